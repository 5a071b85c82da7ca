package router

import (
	"context"

	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// Cluster is what the router reads, writes and tells through. Reads cost
// nothing and see this process's own writes.
type Cluster interface {
	VirtualService(namespace, name string) (*virtualservice.VirtualService, error)
	UpdateVirtualService(ctx context.Context, namespace, name string, edit cluster.Edit[*virtualservice.VirtualService]) (*virtualservice.VirtualService, bool, error)
	DestinationRule(namespace, name string) (*destinationrule.DestinationRule, error)
	UpdateDestinationRule(ctx context.Context, namespace, name string, edit cluster.Edit[*destinationrule.DestinationRule]) (*destinationrule.DestinationRule, bool, error)
	ReplicaSets(rollout types.UID) ([]cluster.ReplicaSet, error)
	ServiceSelector(namespace, name string) map[string]string
	Event(rollout corev1.ObjectReference, warning bool, reason, message string)
}

// Options are the operator's choices.
type Options struct {
	// Config says how a Rollout's configuration is found and what it may name.
	Config config.Options
	// ClusterDomain is the DNS domain of full host names; "" is cluster.local.
	ClusterDomain string
}

// Router serves all Rollouts. Calls for different Rollouts run at the same time;
// calls for one Rollout run one after the other.
type Router struct {
	cluster  Cluster
	options  Options
	log      hclog.Logger
	clock    clock.WithTicker
	memories memories
	watch    *watch
}

// New returns a Router that has not been called yet.
func New(c Cluster, options Options, log hclog.Logger) *Router {
	return newRouter(c, options, log, clock.RealClock{})
}

func newRouter(c Cluster, options Options, log hclog.Logger, clock clock.WithTicker) *Router {
	return &Router{cluster: c, options: options, log: log, clock: clock, watch: newWatch(clock)}
}

// begin is how every call that needs the whole situation starts: it waits for its
// turn, looks, and remembers the Rollout as it was sent. release ends the turn;
// it is nil when there is an error.
func (r *Router) begin(ctx context.Context, ro *v1alpha1.Rollout, additional []v1alpha1.WeightDestination) (s *situation, m *memory, release func(), err error) {
	if err := withoutExperiment(additional); err != nil {
		return nil, nil, nil, err
	}
	m, release, err = r.memories.take(ctx, ro, r.clock.Now())
	if err != nil {
		return nil, nil, nil, err
	}
	if s, err = r.look(ro); err != nil {
		release()
		return nil, nil, nil, err
	}
	m.subject = s.subject
	return s, m, release, nil
}

// logFor names the Rollout in every line.
func (r *Router) logFor(s *situation) hclog.Logger {
	return r.log.With("namespace", s.ref.Namespace, "rollout", s.ref.Name)
}
