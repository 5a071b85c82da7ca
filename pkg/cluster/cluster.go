package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// FieldManager is the name under which the plugin writes. It is what
// `kubectl get virtualservice -o yaml --show-managed-fields` shows.
const FieldManager = "rollouts-plugin-trafficrouter-istio"

// startPause is how long a failed start is remembered, so that ten workers that
// call at once do not ask a broken API server ten times.
const startPause = time.Second

// discoveryTimeout bounds one discovery request. It is set on a client of its
// own, since a client's time-out would end its watches too.
const discoveryTimeout = 3 * time.Second

// Options are the operator's choices. The zero value watches all namespaces.
type Options struct {
	// Namespace limits every watch to one namespace. It is needed where the
	// controller has a Role instead of the ClusterRole.
	Namespace string
	// SyncWait is how long one call waits for the caches to fill; 0 means 3 s.
	// It has to be shorter than a call's deadline, so that the caller still
	// learns the reason.
	SyncWait time.Duration
}

// Cluster reads, patches and reports. It is safe for concurrent use.
// Its methods may only be called after Ready has returned nil once.
type Cluster struct {
	options   Options
	log       hclog.Logger
	discovery discovery.DiscoveryInterface
	dynamic   dynamic.Interface
	typed     kubernetes.Interface

	virtualServices  *kind[*virtualservice.VirtualService]
	destinationRules *kind[*destinationrule.DestinationRule]
	replicaSets      *replicaSets
	services         *services
	events           *events

	podsChanged atomic.Pointer[func(types.UID)]

	// starting is held by the call that tries to start. It is a semaphore and not
	// a mutex so that a call that waits for another still ends at its deadline.
	starting *semaphore.Weighted
	started  bool
	failed   error
	failedAt time.Time
}

// New makes the clients. It sends no request, so it succeeds while the API
// server is away.
func New(config *rest.Config, options Options, log hclog.Logger) (*Cluster, error) {
	typedConfig := rest.CopyConfig(config)
	typedConfig.ContentType = "application/vnd.kubernetes.protobuf"
	typedConfig.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed, err := kubernetes.NewForConfig(typedConfig)
	if err != nil {
		return nil, fmt.Errorf("making the Kubernetes client: %w", err)
	}
	asking := rest.CopyConfig(config)
	asking.Timeout = discoveryTimeout
	discovery, err := discovery.NewDiscoveryClientForConfig(asking)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client for Istio's resources: %w", err)
	}
	if options.SyncWait == 0 {
		options.SyncWait = 3 * time.Second
	}
	c := &Cluster{
		options: options, log: log, starting: semaphore.NewWeighted(1), discovery: discovery, dynamic: dyn, typed: typed,
		services: newServices(typed, options.Namespace),
		events:   newEvents(typed),
	}
	c.replicaSets = newReplicaSets(typed, options.Namespace, c.tellPodsChanged)
	return c, nil
}

// OnPodsChanged names the function that is told, by the Rollout's UID, whenever
// the number of available pods of one of its ReplicaSets has changed. It is
// called from the watch, one call after the other, and must return at once.
func (c *Cluster) OnPodsChanged(f func(rollout types.UID)) { c.podsChanged.Store(&f) }

func (c *Cluster) tellPodsChanged(rollout types.UID) {
	if f := c.podsChanged.Load(); f != nil {
		(*f)(rollout)
	}
}

// Ready starts the caches at the first call that reaches the API server and
// returns nil once all are filled. Until then it returns an error that names
// what is missing (the API server, Istio's CRDs, a permission); the caller
// should report it and call again: a start that failed is tried anew.
func (c *Cluster) Ready(ctx context.Context) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.SyncWait)
	defer cancel()
	for _, w := range c.watches() {
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start asks which versions of Istio's API are served before any watch begins.
// A watch that cannot connect backs off for up to 30 s; asking first means that
// the watches start the moment the API server is there.
func (c *Cluster) start(ctx context.Context) error {
	if err := c.starting.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("asking the API server for %s: %w", networkingGroup, err)
	}
	defer c.starting.Release(1)
	if c.started {
		return nil
	}
	if c.failed != nil && time.Since(c.failedAt) < startPause {
		return c.failed
	}
	versions, err := servedVersions(ctx, c.resourcesOf)
	if err != nil {
		c.failed, c.failedAt = err, time.Now()
		return err
	}
	c.virtualServices = newKind(c.dynamic, versions.virtualServices, "VirtualService", c.options.Namespace,
		virtualservice.Parse)
	c.destinationRules = newKind(c.dynamic, versions.destinationRules, "DestinationRule", c.options.Namespace,
		destinationrule.Parse)
	for _, w := range c.watches() {
		w.run(c.log)
	}
	c.events.start()
	c.started, c.failed = true, nil
	c.log.Info("watching", "virtualServices", versions.virtualServices.GroupVersion().String(),
		"destinationRules", versions.destinationRules.GroupVersion().String(), "namespace", c.options.Namespace)
	return nil
}

// watches are all caches, in the order in which a missing one is reported.
func (c *Cluster) watches() []*watched {
	return []*watched{&c.virtualServices.watched, &c.destinationRules.watched, &c.replicaSets.watched, &c.services.watched}
}

// VirtualService returns the newest version that this process knows, or an
// error that names it. The result is shared and must not be changed.
func (c *Cluster) VirtualService(namespace, name string) (*virtualservice.VirtualService, error) {
	return c.virtualServices.get(namespace, name)
}

// UpdateVirtualService patches one VirtualService with what edit returns for
// it. An empty patch sends nothing. edit may be called several times, each time
// with a fresher object, and must not keep state between the calls; its errors
// end the update and come back unchanged. The result is the object after the
// write, and whether there was one.
func (c *Cluster) UpdateVirtualService(ctx context.Context, namespace, name string,
	edit Edit[*virtualservice.VirtualService],
) (*virtualservice.VirtualService, bool, error) {
	return c.virtualServices.update(ctx, namespace, name, edit)
}

// DestinationRule is to DestinationRules what VirtualService is to VirtualServices.
func (c *Cluster) DestinationRule(namespace, name string) (*destinationrule.DestinationRule, error) {
	return c.destinationRules.get(namespace, name)
}

// UpdateDestinationRule is to DestinationRules what UpdateVirtualService is to
// VirtualServices.
func (c *Cluster) UpdateDestinationRule(ctx context.Context, namespace, name string,
	edit Edit[*destinationrule.DestinationRule],
) (*destinationrule.DestinationRule, bool, error) {
	return c.destinationRules.update(ctx, namespace, name, edit)
}
