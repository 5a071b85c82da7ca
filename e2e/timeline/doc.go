// Package timeline records what really happened to the traffic of one Rollout
// and judges it.
//
// A [Recorder] watches the VirtualServices, the DestinationRule, the Services,
// the ReplicaSets, the Rollout and its Events, and keeps every version of each.
// All of them live in one etcd, so their resourceVersions say in which order
// they were written, whichever watch delivered first. A [Timeline] is that
// ordered list. Its fold, [Timeline.States], tells for each moment the weights,
// the pod-template hashes that the routing names, and the pods behind them.
//
// On top of the fold stand the measures ([Timeline.Measure]), the invariants
// ([Violations] and the functions it calls), two printed tables ([Print],
// [SideBySide]) and a chart ([WriteSVG]).
//
//	rec := timeline.NewRecorder(client, subject)
//	if err := rec.Start(ctx); err != nil {
//		t.Fatal(err)
//	}
//	rec.Mark("rollback")
//	patchTheRollout()
//	_, err := rec.WaitPhase(ctx, "rollback", "Healthy")
//	tl := rec.Stop()
//	bad := timeline.Violations(tl, timeline.Limits{Rule: rule, Mark: "rollback", Deadline: time.Minute})
//
// With the environment variable [WrittenObjects] the versions of Istio's objects
// are also kept in files, for other checks.
//
// A Timeline can be kept as JSON, without the whole objects, and read again. [Progress]
// tells people that wait how two recordings stand. Timelines for other packages' tests
// are written with package tape.
//
// The package never writes to the cluster, starts nothing in it, and knows no
// rule of the guard: the rule to hold a run against is handed in as a function.
// It sees API objects, not proxies: what the mesh did with a weight, and when,
// is for a client in the data plane to measure.
package timeline
