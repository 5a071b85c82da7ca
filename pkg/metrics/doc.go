// Package metrics counts and times what the plugin does and serves it to
// Prometheus, if the operator asks for it.
//
//	m := metrics.New()
//	go func() { err := m.Serve(ctx, ":8081") … }()
//	m.Weights("shop", "cart", 50, 10, "Proportional")
//
// A nil *Metrics is valid and does nothing, so that callers need not ask whether
// metrics are on.
//
// # What is served
//
//	rollouts_istio_desired_weight{namespace,rollout}        gauge, parts of maxTrafficWeight: what the controller asks for
//	rollouts_istio_applied_weight{namespace,rollout}        gauge, parts of maxTrafficWeight: what the plugin let through
//	rollouts_istio_capped{namespace,rollout,reason}         gauge, 1 while applied is below desired, else 0
//	rollouts_istio_writes_total{kind}                       counter, patches that the API server took
//	rollouts_istio_write_conflicts_total{kind}              counter, patches that it refused since the object had changed
//	rollouts_istio_drift_corrections_total{kind}            counter, patches that put back what someone else had changed
//	rollouts_istio_reaction_seconds                         histogram, from the watch's news of a ReplicaSet to the written patch
//	rollouts_istio_rpc_duration_seconds{rpc,result}         histogram, calls of the controller; result is ok or error
//	rollouts_istio_watch_age_seconds{resource}              gauge, since the watch last delivered anything; reckoned when asked
//
// and client_golang's go_* and process_* of this process.
//
// # How many series
//
// The first three have one series for each Rollout that was called for: the
// series of an older reason goes when a new one comes, and [Metrics.Forget]
// removes all three. kind is VirtualService or DestinationRule, rpc one of the
// seven calls of the controller, resource one of the few resources watched. So
// three series a Rollout, and below 200 others however many Rollouts there are.
// The caller passes constants for kind, rpc, reason and resource, never text
// from an object or an error.
//
// # What it does not do
//
// It keeps no state that anything decides by, sends nothing anywhere, and has no
// alerts. The HTTP server has no TLS and no authentication, as the controller's
// own metrics have none: a NetworkPolicy is the way to keep others out.
package metrics
