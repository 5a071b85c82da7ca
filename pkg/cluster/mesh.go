package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// mesh is the cluster in which Istio's objects live, as one set of credentials sees it
// in the versions that were served at its start: the clients and the two caches. With
// new credentials comes a new one, and with other versions, too.
type mesh struct {
	// content is what the credentials were read from; it is compared, never shown.
	content string
	// host is the API server for people, empty if it is the controller's own.
	host string

	log       hclog.Logger
	namespace string
	syncWait  time.Duration
	asking    rest.Interface // for the versions of its API
	dynamic   dynamic.Interface
	hooks     hooks

	// life ends when another mesh has taken over.
	life context.Context
	end  context.CancelFunc
	// known ends once a version that was served at the start is not served any more; its
	// cause says which.
	known  context.Context
	forget context.CancelCauseFunc
	// used tells that this is the mesh of which callers are told.
	used atomic.Bool

	starting         *start
	startedAt        time.Time
	virtualServices  *kind[*virtualservice.VirtualService]
	destinationRules *kind[*destinationrule.DestinationRule]
}

// newMesh makes the clients. It sends no request.
func newMesh(config *rest.Config, options Options, hooks hooks, log hclog.Logger) (*mesh, error) {
	asking, err := newAsking(config)
	if err != nil {
		return nil, fmt.Errorf("making the client for the versions of Istio's API: %w", err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client for Istio's resources: %w", err)
	}
	m := &mesh{
		log: log, namespace: options.Namespace, syncWait: options.SyncWait,
		asking: asking, dynamic: dyn, hooks: hooks, starting: newStart(),
	}
	m.life, m.end = context.WithCancel(context.Background())
	m.known, m.forget = context.WithCancelCause(context.Background())
	m.hooks.unserved = m.forget
	m.hooks.changed = func(kind, namespace, name string) {
		if m.used.Load() {
			hooks.changed(kind, namespace, name)
		}
	}
	return m, nil
}

// unserved is nil as long as the versions are served that were so at the start, as far
// as is known. Otherwise it says which is not, and another mesh has to take over.
func (m *mesh) unserved() error { return context.Cause(m.known) }

// after says of a mesh that has not started that it is the one after another, which is
// unserved: that counts as a start of this one that failed then, so that an API server
// that says one thing and does another is not asked all the time.
func (m *mesh) after(old *mesh) {
	m.starting.failed, m.starting.failedAt = old.unserved(), old.startedAt
}

// bequeath hands on what is known to the mesh that takes over, of the same cluster.
func (m *mesh) bequeath(heir *mesh) {
	m.virtualServices.bequeath(heir.virtualServices)
	m.destinationRules.bequeath(heir.destinationRules)
}

// ready starts the caches at the first call that reaches the API server and
// returns nil once both are filled.
func (m *mesh) ready(ctx context.Context) error {
	if err := m.starting.try(ctx, m.start); err != nil {
		return m.named(err)
	}
	ctx, cancel := context.WithTimeout(ctx, m.syncWait)
	defer cancel()
	defer context.AfterFunc(m.known, cancel)()
	for _, w := range []*watched{&m.virtualServices.watched, &m.destinationRules.watched} {
		if err := w.wait(ctx); err != nil {
			return m.named(m.reason(err))
		}
	}
	return nil
}

// reason is why a cache is not filled: that its version is not served says more than
// what its watch last met.
func (m *mesh) reason(unfilled error) error {
	if err := m.unserved(); err != nil {
		return err
	}
	return unfilled
}

// start asks which versions of Istio's API are served before any watch begins.
// A watch that cannot connect backs off for up to 30 s; asking first means that
// the watches start the moment the API server is there.
func (m *mesh) start(ctx context.Context) error {
	versions, err := servedVersions(ctx, m.resourcesOf)
	if err != nil {
		return err
	}
	m.virtualServices = newKind(m.dynamic, versions.virtualServices, "VirtualService", m.namespace, virtualservice.Parse, m.hooks)
	m.destinationRules = newKind(m.dynamic, versions.destinationRules, "DestinationRule", m.namespace, destinationrule.Parse, m.hooks)
	asked := "the controller's cluster (for a mesh in another one: --mesh-kubeconfig or --mesh-secret-namespace)"
	if m.host != "" {
		asked = "the mesh's cluster " + m.host
	}
	m.startedAt = time.Now()
	m.virtualServices.asked, m.destinationRules.asked = asked, asked
	m.virtualServices.run(m.life, m.log)
	m.destinationRules.run(m.life, m.log)
	m.log.Info("watching Istio's resources", "virtualServices", versions.virtualServices.GroupVersion().String(),
		"destinationRules", versions.destinationRules.GroupVersion().String(), "namespace", m.namespace, "cluster", m.host)
	return nil
}

// named says in an error which of two clusters it is about.
func (m *mesh) named(err error) error {
	if m.host == "" {
		return err
	}
	return fmt.Errorf("the mesh's cluster %s: %w", m.host, err)
}
