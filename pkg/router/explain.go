package router

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// Sight is the part of Cluster that reads. Its methods are those of Cluster.
type Sight interface {
	VirtualService(namespace, name string) (*virtualservice.VirtualService, error)
	DestinationRule(namespace, name string) (*destinationrule.DestinationRule, error)
	ReplicaSets(rollout types.UID) ([]cluster.ReplicaSet, error)
	PodLabels(replicaSet types.UID) []cluster.PodGroup
	ExperimentAvailable(namespace, hash string) int32
	ServiceSelector(namespace, name string) map[string]string
	ServicePorts(namespace, name string) []cluster.ServicePort
	Endpoints(namespace, service string) ([]cluster.Endpoint, error)
}

// Explanation is what a process of the plugin that has just been started would find and
// do, if the controller called it for this Rollout at this moment. Weights are in parts of
// Max. What only the running plugin remembers (since when a weight has been held, what the
// health gate has measured) is not in it.
type Explanation struct {
	Config config.Config
	// Max is maxTrafficWeight, at least 1.
	Max   int32
	Asked Asked

	// Written is the canary's weight in the VirtualServices, of several routes the
	// highest; Known is false where a route has no weights, Uniform where routes differ.
	Written        int32
	Known, Uniform bool
	// Decision is the guard's. Enforced is false in the modes Observe and Off.
	Decision guard.Decision
	Enforced bool
	// Next is the weight that would be written now.
	Next int32
	// Answers are what SetWeight and VerifyWeight would say but for the mesh.
	Answers guard.Answers
	// FirstRequest is why the canary cannot get its first request yet, "" if it can.
	FirstRequest string
	// Pin is the operator's brake if it holds the weight down, Pinned if it is there at
	// all; PinErr is why it cannot be read.
	Pin, Pinned *int32
	PinErr      error

	// Broken joins why objects cannot be handled, StepsErr is why the steps' managed
	// routes cannot.
	Broken, StepsErr error
	Services         []ExplainedService
	Sides            []ExplainedSide
	// Mismatch says which labels match no pods, Unpinned that the stable Service selects
	// the canary's pods, too; "" if all is well.
	Mismatch, Unpinned string
	// AsDecided tells that the VirtualServices hold what would be written.
	AsDecided bool
	// Unverified is what is not in effect yet by the Rollout's verify.level; "" if
	// everything is. It is not known (UnverifiedKnown is false) where that level needs
	// istiod, and nobody said where it is.
	Unverified      string
	UnverifiedKnown bool
	// Mesh is nil where istiod was not asked.
	Mesh *ExplainedMesh

	// Braked tells that a rollback of the health gate was begun and is not done. Mark is
	// what it has left, Place where in its steps the Rollout is.
	Braked bool
	Mark   gate.Mark
	Place  gate.Place
	// SkippedSteps tells a rollback within rollbackWindow.
	SkippedSteps bool
	// Intended is the canary's size that the controller is aiming for.
	Intended int32
	// Lowered is when the canary's weight was last lowered, or may have been: the last
	// change of a VirtualService. Zero if that is not known.
	Lowered time.Time
}

// Explain looks at a Rollout as it is in the cluster, and judges by what the plugin itself
// judges by. It writes nothing, sends no Event, and remembers nothing. Of the options the
// recorder is not used; Mesh may be nil, and is followed for as long as the caller lets
// it. An error says what has to change before the Rollout can be handled at all; it is a
// *config.Error where that is the Rollout itself. Config, Max, Services and Sides then hold
// what can be told all the same, and all else is empty.
func Explain(ctx context.Context, from Sight, options Options, ro *v1alpha1.Rollout) (Explanation, error) {
	return explain(ctx, from, options, ro, clock.RealClock{})
}

func explain(ctx context.Context, from Sight, options Options, ro *v1alpha1.Rollout, clock clock.WithTicker) (Explanation, error) {
	options.Recorder, options.Health = nil, unasked{}
	r := newRouter(onlooker{from}, options, hclog.NewNullLogger(), clock)
	defer r.watch.queue.ShutDown() // ends its goroutines
	subject, err := r.subjectOf(ro)
	if err != nil {
		return Explanation{}, err
	}
	s, err := r.look(ro, subject, recordedTemplates(ro))
	if err != nil {
		return r.explainedInPart(ro, subject), err
	}
	return r.explained(ctx, ro, s), nil
}

// recordedTemplates are those of a running experiment, by the Rollout's status.
func recordedTemplates(ro *v1alpha1.Rollout) []template {
	if ro.Status.Canary.Weights == nil {
		return nil
	}
	templates, _ := templatesOf(ro.Status.Canary.Weights.Additional)
	return templates
}

// explained goes the way of a call of SetWeight and VerifyWeight.
func (r *Router) explained(ctx context.Context, ro *v1alpha1.Rollout, s *situation) Explanation {
	asked := s.askedBy(ro)
	m := &memory{asked: true, desired: asked.Weight, announced: hashes{canary: asked.Canary, stable: asked.Stable}}
	e := Explanation{
		Config: s.config, Max: s.facts.Max, Asked: asked, Written: s.written, Known: s.known, Uniform: s.uniform,
		Pinned: s.pin, PinErr: s.pinErr, Broken: s.broken, StepsErr: s.routesErr, Mark: s.mark,
		Place: s.steps.Place(asked.Weight), SkippedSteps: s.skippedSteps(), Intended: s.facts.Intended,
		Mismatch: s.mismatch(), Unpinned: s.unpinnedStable(), UnverifiedKnown: true,
	}
	e.Mesh = r.askMesh(ctx, s)
	if s.config.Verify.Level == config.Mesh && e.Mesh == nil {
		s.config.Verify.Level, e.UnverifiedKnown = config.Object, false
	}
	m.observe(s, r.clock.Now(), false)
	r.observeFresh(s, m)
	e.Lowered = m.loweredAt
	v := r.judge(s, m, asked.Weight)
	e.Decision, e.Enforced, e.Pin, e.Braked, e.Answers = v.decision, v.enforced, v.pin, v.braked, v.answers
	v = r.withFirstRequests(s, m, v, &e)
	e.Next, e.AsDecided = v.next, s.holds(r.target(s, v.next))
	e.Services, e.Sides = r.explainServices(s, v.next), r.explainSides(ro, s, m)
	if found, err := r.verifyObjects(ctx, s, m, v); !found.verified {
		e.Unverified = s.unverified(m, v, err)
	}
	if e.Mesh != nil {
		r.judgeMesh(s, v, e.Mesh)
	}
	return e
}

// withFirstRequests is how SetWeight treats a side that is not ready for requests.
func (r *Router) withFirstRequests(s *situation, m *memory, v verdict, e *Explanation) verdict {
	e.FirstRequest = s.firstRequests(m, v.next)
	if s.canaryWaits(m) != "" {
		v.next = 0
	}
	if s.stableFresh != "" && v.next < s.written {
		v.next, e.FirstRequest = s.written, s.stableFresh
	}
	if s.pinErr != nil {
		v.next = min(v.next, s.written)
	}
	return v
}

// unverified says why VerifyWeight would not be content, "" where that is said elsewhere:
// of a weight that is held the decision tells.
func (s *situation) unverified(m *memory, v verdict, err error) string {
	switch {
	case !v.answers.Verified:
		return ""
	case err != nil:
		return err.Error()
	}
	return m.unseen
}

// onlooker is a Cluster that can only be read.
type onlooker struct{ Sight }

// errOnlooker can be met only by a fault of this package: nothing on the way of an
// explanation writes.
var errOnlooker = errors.New("an explanation writes nothing")

func (onlooker) UpdateVirtualService(context.Context, string, string, cluster.Edit[*virtualservice.VirtualService]) (*virtualservice.VirtualService, bool, error) {
	return nil, false, errOnlooker
}

func (onlooker) UpdateDestinationRule(context.Context, string, string, cluster.Edit[*destinationrule.DestinationRule]) (*destinationrule.DestinationRule, bool, error) {
	return nil, false, errOnlooker
}

func (onlooker) MarkRollout(context.Context, corev1.ObjectReference, string, string, string) error {
	return errOnlooker
}

func (onlooker) AbortRollout(context.Context, corev1.ObjectReference, string) error {
	return errOnlooker
}

func (onlooker) Rollout(context.Context, string, string) (*v1alpha1.Rollout, error) {
	return nil, errOnlooker
}

func (onlooker) Event(corev1.ObjectReference, bool, string, string) {}

// unasked is a source of numbers that is never asked: whether a rollback was begun says
// the Rollout's annotation.
type unasked struct{}

func (unasked) Ask(gate.Question)             {}
func (unasked) Answer(types.UID) *gate.Answer { return nil }
func (unasked) Forget(types.UID)              {}
