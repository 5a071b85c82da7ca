package router

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
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
	PodLabels(replicaSet types.UID) []cluster.PodGroup
	ExperimentAvailable(namespace, hash string) int32
	// MarkRollout sets an annotation of a Rollout at this revision, or removes it;
	// AbortRollout aborts one. Both are for the health gate alone.
	MarkRollout(ctx context.Context, rollout corev1.ObjectReference, hash, annotation, value string) error
	AbortRollout(ctx context.Context, rollout corev1.ObjectReference, hash string) error
	// Rollout costs an API request; it is nil where there is none.
	Rollout(ctx context.Context, namespace, name string) (*v1alpha1.Rollout, error)
	ServiceSelector(namespace, name string) map[string]string
	ServicePorts(namespace, name string) []cluster.ServicePort
	// Endpoints is asked only where verify.level is Endpoints or Mesh: the first
	// question begins a watch. The error is for as long as it has not been answered.
	Endpoints(namespace, service string) ([]cluster.Endpoint, error)
	Event(rollout corev1.ObjectReference, warning bool, reason, message string)
}

// Mesh is what istiod serves, as a client of it sees it. Nothing but Proxies waits.
type Mesh interface {
	// Namespace is whose view of the mesh a Rollout of this namespace gets.
	Namespace(rollout string) string
	Follow(rollout types.UID, namespace string, want mesh.Want)
	Forget(rollout types.UID)
	Served(rollout types.UID) (mesh.Served, error)
	Proxies(ctx context.Context) ([]mesh.Proxy, error)
}

// Recorder is told what happens, for metrics. Its methods return at once.
type Recorder interface {
	// Weights are a Rollout's, in parts of maxTrafficWeight; reason is "" when the
	// canary is not capped.
	Weights(namespace, rollout string, desired, applied int32, reason string)
	Forget(namespace, rollout string)
	DriftCorrected(kind string)
	// Reaction is from the news of a change of pods to the written VirtualService.
	Reaction(time.Duration)
}

// Options are the operator's choices.
type Options struct {
	// Config says how a Rollout's configuration is found and what it may name.
	Config config.Options
	// ClusterDomain is the DNS domain of full host names; "" is cluster.local.
	ClusterDomain string
	// Recorder may be nil.
	Recorder Recorder
	// Mesh is nil where the operator has not said where istiod is.
	Mesh Mesh
	// Health is nil where the operator has named no source of numbers.
	Health Health
}

// Router serves all Rollouts. Calls for different Rollouts run at the same time;
// calls for one Rollout run one after the other.
type Router struct {
	cluster  Cluster
	options  Options
	log      hclog.Logger
	clock    clock.WithTicker
	memories memories
	claims   claims
	own      ownWrites
	watch    *watch
	// patience is how long VerifyWeight looks again before it says no, staying how long
	// a passing error is kept back by those that have a seat in waiting.
	patience, staying time.Duration
	// waiting are the seats of SetWeight and UpdateHash that are taken, looking those of
	// VerifyWeight.
	waiting, looking chan struct{}
}

// New returns a Router that has not been called yet.
func New(c Cluster, options Options, log hclog.Logger) *Router {
	return newRouter(c, options, log, clock.RealClock{})
}

func newRouter(c Cluster, options Options, log hclog.Logger, clock clock.WithTicker) *Router {
	if options.Recorder == nil {
		options.Recorder = nobody{}
	}
	r := &Router{cluster: c, options: options, log: log, clock: clock, watch: newWatch(clock), patience: verifyPatience, staying: passingPatience, waiting: make(chan struct{}, seats), looking: make(chan struct{}, seats)}
	r.memories.forgotten = r.forgotten
	return r
}

// nobody is told nothing.
type nobody struct{}

func (nobody) Weights(string, string, int32, int32, string) {}
func (nobody) Forget(string, string)                        {}
func (nobody) DriftCorrected(string)                        {}
func (nobody) Reaction(time.Duration)                       {}

// begin is how a call with weights or hashes starts: it waits for its turn, looks,
// and remembers the Rollout as it was sent, with the experiment that goes with the
// call. release ends the turn; it is nil when there is an error.
//
// The situation may be broken: only SetWeight goes on with one, and only down.
func (r *Router) begin(ctx context.Context, ro *v1alpha1.Rollout, additional []v1alpha1.WeightDestination) (s *situation, m *memory, release func(), err error) {
	return r.open(ctx, ro, func(m *memory) { r.noteTemplates(m, ro, additional) })
}

// beginWhole is begin for a call that goes nowhere with a broken situation.
func (r *Router) beginWhole(ctx context.Context, ro *v1alpha1.Rollout, additional []v1alpha1.WeightDestination) (s *situation, m *memory, release func(), err error) {
	return whole(r.begin(ctx, ro, additional))
}

// beginStep is how a call that says nothing of experiments starts.
func (r *Router) beginStep(ctx context.Context, ro *v1alpha1.Rollout) (s *situation, m *memory, release func(), err error) {
	return whole(r.open(ctx, ro, func(*memory) {}))
}

func whole(s *situation, m *memory, release func(), err error) (*situation, *memory, func(), error) {
	if err == nil && s.broken != nil {
		release()
		return nil, nil, nil, s.broken
	}
	return s, m, release, err
}

func (r *Router) open(ctx context.Context, ro *v1alpha1.Rollout, note func(*memory)) (*situation, *memory, func(), error) {
	m, release, err := r.memories.take(ctx, ro, r.clock.Now())
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := r.situationOf(ctx, ro, m, note)
	if err != nil {
		release()
		return nil, nil, nil, err
	}
	return s, m, release, nil
}

// situationOf looks, claims what the Rollout handles, and remembers it.
func (r *Router) situationOf(ctx context.Context, ro *v1alpha1.Rollout, m *memory, note func(*memory)) (*situation, error) {
	m.lastCall = r.clock.Now()
	subject, err := r.subjectAgain(ro, m)
	if err != nil {
		return nil, r.refuse(m, ro, err)
	}
	note(m)
	if err := r.leaveBehind(ctx, m, &subject); err != nil {
		return nil, err
	}
	s, err := r.look(ro, subject, m.templates)
	if err != nil {
		return nil, err
	}
	if s.broken == nil {
		if err := r.claim(ctx, s); err != nil {
			return nil, r.refuse(m, ro, err)
		}
	}
	if s.routesErr != nil {
		_ = r.refuse(m, ro, s.routesErr) // VerifyWeight answers with it; weights go on without managed routes
	} else {
		m.refused = ""
	}
	m.subject = s.subject
	m.observe(s, m.lastCall, r.writtenByAnother(s))
	m.heard.note(s.available(), m.lastCall)
	m.heard.compare(s.podsCounted, m.lastCall)
	r.followMesh(s)
	r.observeFresh(s, m)
	r.memories.follow(ro.UID, m, subject.objects())
	return s, nil
}

// leaveBehind forgets what was applied to other sides or on another scale, and
// removes managed routes whose names are no longer among managedRoutes: nobody
// would ever remove them again, and they would count as routes of the user's.
func (r *Router) leaveBehind(ctx context.Context, m *memory, s *subject) error {
	before := m.subject
	if before.ref.UID == "" {
		return nil
	}
	if !before.sameSides(s) {
		m.applied, m.labelled, m.seen = nil, hashes{}, false
	}
	before.managed = slices.DeleteFunc(slices.Clone(before.managed), func(name string) bool { return slices.Contains(s.managed, name) })
	if len(before.managed) == 0 {
		return nil
	}
	return r.removeAllManaged(ctx, before, m)
}

// subjectAgain is subjectOf, but for a Rollout of the same version: a reconcile is
// four and more calls, most of them with nothing new.
func (r *Router) subjectAgain(ro *v1alpha1.Rollout, m *memory) (subject, error) {
	known := m.subject.ref
	if ro.ResourceVersion != "" && known.UID == ro.UID && known.ResourceVersion == ro.ResourceVersion {
		return m.subject, nil
	}
	return r.subjectOf(ro)
}

// refuse tells of a Rollout that cannot be handled until somebody changes it. The
// controller shows such an error in its log only.
func (r *Router) refuse(m *memory, ro *v1alpha1.Rollout, err error) error {
	if text := err.Error(); text != m.refused {
		m.refused = text
		ref := referenceTo(ro)
		r.cluster.Event(ref, true, EventConfigurationInvalid, text)
	}
	return err
}

// logFor names the Rollout in every line.
func (r *Router) logFor(s *situation) hclog.Logger {
	return r.log.With("namespace", s.ref.Namespace, "rollout", s.ref.Name)
}
