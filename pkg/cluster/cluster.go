package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// FieldManager is the name under which the plugin writes. It is what
// `kubectl get virtualservice -o yaml --show-managed-fields` shows.
const FieldManager = "rollouts-plugin-trafficrouter-istio"

// discoveryTimeout bounds one discovery request. It is set on a client of its
// own, since a client's time-out would end its watches too.
const discoveryTimeout = 3 * time.Second

// followEvery is how often new credentials of the mesh are looked for without a
// call: the plugin also writes when pods are lost, and the controller may be quiet
// then.
const followEvery = 10 * time.Second

// Options are the operator's choices. The zero value watches all namespaces of the
// controller's own cluster.
type Options struct {
	// Namespace limits every watch to one namespace. It is needed where the
	// controller has a Role instead of the ClusterRole.
	Namespace string
	// SyncWait is how long one call waits for the caches to fill; 0 means 3 s.
	// It has to be shorter than a call's deadline, so that the caller still
	// learns the reason.
	SyncWait time.Duration

	// MeshKubeconfig is the path of a kubeconfig of the cluster in which
	// VirtualServices and DestinationRules live, if it is another one. Everything else
	// stays in the controller's. The file may change at any time.
	MeshKubeconfig string
	// MeshSecretNamespace is where a Secret with the label
	// istio.argoproj.io/primary-cluster=true holds such a kubeconfig. At most one of
	// the two may be set.
	MeshSecretNamespace string

	// Written is told the kind of each object that was written, Conflict that of each
	// for which another writer was faster. Heard is told the resource, as a Role spells
	// it, of whatever a list or a watch brings, bookmarks included. Each may be nil, is
	// called by many goroutines at once and must return at once.
	Written, Conflict func(kind string)
	Heard             func(resource string)
}

// hooks are those of the options, with something to call in place of nil.
func (o Options) hooks(changed func(kind, namespace, name string)) hooks {
	some := func(f func(string)) func(string) {
		if f == nil {
			return func(string) {}
		}
		return f
	}
	return hooks{
		changed: changed, unserved: func(error) {},
		heard: some(o.Heard), written: some(o.Written), conflict: some(o.Conflict),
	}
}

// Cluster reads, patches and reports. It is safe for concurrent use.
// Its methods may only be called after Ready has returned nil once.
type Cluster struct {
	options Options
	log     hclog.Logger
	asking  rest.Interface // for what the API server says of itself
	dynamic dynamic.Interface

	access         *access
	secret         *kubeconfigSecret // nil unless the mesh's credentials are in one
	replicaSets    *replicaSets
	services       *services
	pods           *pods
	endpointSlices *endpointSlices // not watched until somebody asks
	events         *events
	starting       *start

	podsChanged           atomic.Pointer[func(types.UID)]
	experimentPodsChanged atomic.Pointer[func(namespace, hash string)]
	routingChanged        atomic.Pointer[func(kind, namespace, name string)]
	endpointsChanged      atomic.Pointer[func(namespace, service string)]
}

// New makes the clients. It sends no request and reads no file, so it succeeds
// while the API servers are away.
func New(config *rest.Config, options Options, log hclog.Logger) (*Cluster, error) {
	if options.MeshKubeconfig != "" && options.MeshSecretNamespace != "" {
		return nil, errors.New("the mesh's credentials are to be read from a file and from a Secret: choose one")
	}
	if options.SyncWait == 0 {
		options.SyncWait = 3 * time.Second
	}
	c := &Cluster{options: options, log: log, starting: newStart()}
	if err := c.makeLocal(config); err != nil {
		return nil, err
	}
	c.access = &access{credentials: c.credentials(), connect: c.connect(config), patience: options.SyncWait, log: log}
	return c, nil
}

// makeLocal makes what looks at the controller's own cluster.
func (c *Cluster) makeLocal(config *rest.Config) error {
	binary := rest.CopyConfig(config)
	binary.ContentType = "application/vnd.kubernetes.protobuf"
	binary.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed, err := newClients(binary)
	if err != nil {
		return fmt.Errorf("making the Kubernetes clients: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the client for the metadata of pods: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("making the client for Rollouts: %w", err)
	}
	if c.asking, err = newAsking(config); err != nil {
		return fmt.Errorf("making the client for the API server's version: %w", err)
	}
	heard := func(resource string) func() { return func() { c.hooks().heard(resource) } }
	namespace := c.options.Namespace
	c.replicaSets = newReplicaSets(typed.apps, namespace, podNews{rollout: c.tellPodsChanged, experiment: c.tellExperimentPodsChanged}, heard("replicasets.apps"))
	c.services = newServices(typed.core, namespace, heard("services"))
	c.pods = newPods(meta, namespace, c.replicaSets.tellOf, heard("pods"))
	c.endpointSlices = newEndpointSlices(typed.discovery, namespace, c.pods.tally.labels, c.tellEndpointsChanged, heard("endpointslices.discovery.k8s.io"), c.log)
	c.events = newEvents(typed.core)
	if c.options.MeshSecretNamespace != "" {
		c.secret = newKubeconfigSecret(typed.core, c.options.MeshSecretNamespace, heard("secrets"))
	}
	return nil
}

func (c *Cluster) hooks() hooks { return c.options.hooks(c.tellRoutingChanged) }

// credentials are those for the mesh.
func (c *Cluster) credentials() credentials {
	switch {
	case c.secret != nil:
		return c.secret
	case c.options.MeshKubeconfig != "":
		return kubeconfigFile(c.options.MeshKubeconfig)
	}
	return own{}
}

// connect makes the mesh of credentials: without any it is in the controller's own
// cluster.
func (c *Cluster) connect(config *rest.Config) func(found) (*mesh, error) {
	return func(credentials found) (*mesh, error) {
		if credentials.origin == "" {
			return newMesh(config, c.options, c.hooks(), c.log)
		}
		remote, err := credentials.config(config)
		if err != nil {
			return nil, err
		}
		m, err := newMesh(remote, c.options, c.hooks(), c.log)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", credentials.origin, err)
		}
		m.content, m.host = credentials.content, shown(remote)
		return m, nil
	}
}

// OnPodsChanged names the function that is told, by the Rollout's UID, whenever
// the number of available pods of one of its ReplicaSets has changed, or the
// labels of one of its pods. It is called from the watch, one call after the other,
// and must return at once. So it is for the other two of its kind.
func (c *Cluster) OnPodsChanged(f func(rollout types.UID)) { c.podsChanged.Store(&f) }

// OnExperimentPodsChanged is to the pods of Experiments what OnPodsChanged is to
// those of Rollouts. An Experiment's pods are known by namespace and hash.
func (c *Cluster) OnExperimentPodsChanged(f func(namespace, hash string)) {
	c.experimentPodsChanged.Store(&f)
}

// OnRoutingChanged names the function that is told of each new version of a
// VirtualService or DestinationRule, and of each that is gone, once a read returns
// it. kind is one of these two names. What this process itself wrote is told, too,
// and so is each object at the start and after a change of the mesh's credentials or
// of the versions in which it serves Istio's API.
func (c *Cluster) OnRoutingChanged(f func(kind, namespace, name string)) { c.routingChanged.Store(&f) }

func (c *Cluster) tellPodsChanged(rollout types.UID) {
	if f := c.podsChanged.Load(); f != nil {
		(*f)(rollout)
	}
}

func (c *Cluster) tellExperimentPodsChanged(namespace, hash string) {
	if f := c.experimentPodsChanged.Load(); f != nil {
		(*f)(namespace, hash)
	}
}

func (c *Cluster) tellRoutingChanged(kind, namespace, name string) {
	if f := c.routingChanged.Load(); f != nil {
		(*f)(kind, namespace, name)
	}
}

// Ready starts the caches at the first call that reaches the API server and
// returns nil once all are filled. Until then it returns an error that names
// what is missing (the API server, Istio's CRDs, a permission, the mesh's
// credentials); the caller should report it and call again: a start that failed is
// tried anew. New credentials of the mesh are taken up here, too, so the calls that
// follow use them, and so are other versions of Istio's API, once one that is in use
// has turned out not to be served any more.
func (c *Cluster) Ready(ctx context.Context) error {
	if err := c.starting.try(ctx, c.start); err != nil {
		return err
	}
	if err := c.awaitSecret(ctx); err != nil {
		return err
	}
	if err := c.access.ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.SyncWait)
	defer cancel()
	for _, w := range c.local() {
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitSecret waits until it is known whether there is a Secret with the mesh's
// credentials.
func (c *Cluster) awaitSecret(ctx context.Context) error {
	if c.secret == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.SyncWait)
	defer cancel()
	if err := c.secret.wait(ctx); err != nil {
		return fmt.Errorf("the Secret with the kubeconfig of the mesh's cluster, in namespace %s: %w", c.secret.namespace, err)
	}
	return nil
}

// start asks the API server anything at all before the watches begin, for the
// reason that mesh.start has.
func (c *Cluster) start(ctx context.Context) error {
	if err := c.asking.Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	for _, w := range c.local() {
		w.run(context.Background(), c.log)
	}
	c.events.start()
	if c.secret != nil {
		c.secret.run(context.Background(), c.log)
	}
	if c.options.MeshKubeconfig != "" || c.secret != nil {
		go c.follow()
	}
	c.log.Info("watching", "namespace", c.options.Namespace)
	return nil
}

// follow looks for new credentials of the mesh for the life of the process.
func (c *Cluster) follow() {
	for {
		time.Sleep(followEvery)
		ctx, cancel := context.WithTimeout(context.Background(), discoveryTimeout+3*c.options.SyncWait)
		_ = c.Ready(ctx) // who calls next is told the error
		cancel()
	}
}

// local are the caches of the controller's own cluster, in the order in which a
// missing one is reported.
func (c *Cluster) local() []*watched {
	return []*watched{&c.replicaSets.watched, &c.services.watched, &c.pods.watched}
}

// mesh is the one in use. There is one once Ready has returned nil.
func (c *Cluster) mesh() (*mesh, error) {
	m := c.access.current.Load()
	if m == nil {
		return nil, errors.New("the VirtualServices and DestinationRules have not been read yet")
	}
	return m, nil
}

// VirtualService returns the newest version that this process knows, or an
// error that names it. The result is shared and must not be changed.
func (c *Cluster) VirtualService(namespace, name string) (*virtualservice.VirtualService, error) {
	m, err := c.mesh()
	if err != nil {
		return nil, err
	}
	return m.virtualServices.get(namespace, name)
}

// UpdateVirtualService patches one VirtualService with what edit returns for
// it. An empty patch sends nothing. edit may be called several times, each time
// with a fresher object, and must not keep state between the calls; its errors
// end the update and come back unchanged. The result is the object after the
// write, and whether there was one.
func (c *Cluster) UpdateVirtualService(ctx context.Context, namespace, name string,
	edit Edit[*virtualservice.VirtualService],
) (*virtualservice.VirtualService, bool, error) {
	m, err := c.mesh()
	if err != nil {
		return nil, false, err
	}
	return m.virtualServices.update(ctx, namespace, name, edit)
}

// DestinationRule is to DestinationRules what VirtualService is to VirtualServices.
func (c *Cluster) DestinationRule(namespace, name string) (*destinationrule.DestinationRule, error) {
	m, err := c.mesh()
	if err != nil {
		return nil, err
	}
	return m.destinationRules.get(namespace, name)
}

// UpdateDestinationRule is to DestinationRules what UpdateVirtualService is to
// VirtualServices.
func (c *Cluster) UpdateDestinationRule(ctx context.Context, namespace, name string,
	edit Edit[*destinationrule.DestinationRule],
) (*destinationrule.DestinationRule, bool, error) {
	m, err := c.mesh()
	if err != nil {
		return nil, false, err
	}
	return m.destinationRules.update(ctx, namespace, name, edit)
}
