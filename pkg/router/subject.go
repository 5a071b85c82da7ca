package router

import (
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/managedroute"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// subject is what counts of a Rollout as the controller last sent it. It is
// small, so that it may be kept between calls: a Rollout itself can be 40 KB.
type subject struct {
	// ref names the Rollout in Events.
	ref corev1.ObjectReference
	// created is when the Rollout was made.
	created time.Time
	config  config.Config
	// managed are the names in managedRoutes, routes those that the steps so far
	// ask for.
	managed []string
	routes  []virtualservice.ManagedRoute
	// routesErr is why the steps cannot be read. There are no managed routes then,
	// and no weight is verified, but weights, scaling, deadline and abort go on.
	routesErr error
	// atEnd tells that all steps are done or skipped, rollbackWindow is
	// spec.rollbackWindow.revisions: together they tell whether steps were skipped.
	atEnd          bool
	rollbackWindow int32
	// aborted is status.abort, promoteFull status.promoteFull.
	aborted, promoteFull bool
	// steps and mark are what the health gate has to know of the Rollout.
	steps gate.Steps
	mark  gate.Mark
	// markOther tells that there is a mark, of another revision.
	markOther bool
	// step and recorded are status.currentStepIndex and the canary's weight in the
	// status: with all else they tell whether the controller has moved on.
	step, recorded int32
	// podsCounted is status.availableReplicas, of all revisions, and updated is
	// status.updatedReplicas, the size of the canary: what the controller knew when it
	// last wrote the status.
	podsCounted, updated int32
	// minReady is for how long a pod has been ready when it becomes available.
	minReady time.Duration
	// facts are those that the Rollout tells; the intended count is filled in
	// once its ReplicaSets are known.
	facts guard.Facts
	// pin is an operator's brake, in parts of max; nil when there is none. pinErr
	// is why one that is there cannot be read.
	pin    *int32
	pinErr error
	// ephemeral are the labels that the controller itself changes on pods at a
	// promotion: those of canaryMetadata and stableMetadata.
	ephemeral map[string]bool
	// status are the hashes of the Rollout's status.
	status hashes
}

// hashes are those of the two sides.
type hashes struct{ canary, stable string }

// subjectOf checks the configuration and takes from the Rollout what is needed.
func (r *Router) subjectOf(ro *v1alpha1.Rollout) (subject, error) {
	cfg, err := config.FromRollout(ro, r.options.Config)
	if err != nil {
		return subject{}, err
	}
	s := subject{
		ref:     referenceTo(ro),
		created: ro.CreationTimestamp.Time,
		config:  cfg,
		facts:   guard.RolloutFacts(ro),

		minReady: time.Duration(ro.Spec.MinReadySeconds) * time.Second,
		status:   hashes{canary: ro.Status.CurrentPodHash, stable: ro.Status.StableRS},

		podsCounted: ro.Status.AvailableReplicas, updated: ro.Status.UpdatedReplicas,
	}
	s.pin, s.pinErr = pinOf(ro, s.facts.Max)
	canary := ro.Spec.Strategy.Canary
	s.ephemeral = labelsOf(canary.CanaryMetadata, canary.StableMetadata)
	if ro.Spec.RollbackWindow != nil {
		s.rollbackWindow = ro.Spec.RollbackWindow.Revisions
	}
	s.managed, s.atEnd, s.aborted = managedroute.Names(ro), managedroute.AtEnd(ro), ro.Status.Abort
	s.promoteFull, s.steps, s.mark = ro.Status.PromoteFull, gate.StepsOf(ro), gate.MarkOf(ro, s.status.canary)
	s.markOther = ro.Annotations[gate.Annotation] != "" && s.mark == (gate.Mark{})
	routes, err := managedroute.FromRollout(ro)
	s.routes, s.routesErr = routes.Routes(), err
	if ro.Status.CurrentStepIndex != nil {
		s.step = *ro.Status.CurrentStepIndex
	}
	if weights := ro.Status.Canary.Weights; weights != nil {
		s.recorded = weights.Canary.Weight
	}
	return s, nil
}

// sameAs tells whether nothing of the Rollout that counts has changed. Its
// resourceVersion alone says little: the controller notes every pod in the status.
func (s subject) sameAs(other subject) bool {
	s.ref, other.ref = corev1.ObjectReference{}, corev1.ObjectReference{}
	s.facts.Intended, other.facts.Intended = 0, 0
	s.podsCounted, other.podsCounted, s.updated, other.updated = 0, 0, 0, 0
	s.mark, other.mark, s.markOther, other.markOther = gate.Mark{}, gate.Mark{}, false, false // our own writing
	return reflect.DeepEqual(s, other)
}

// sameSides tells whether weights of the one mean the same for the other.
func (s *subject) sameSides(other *subject) bool {
	return s.facts.Max == other.facts.Max && reflect.DeepEqual(s.config, other.config)
}

// referenceTo is the Rollout as an Event names it.
func referenceTo(ro *v1alpha1.Rollout) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Rollout",
		Namespace: ro.Namespace, Name: ro.Name, UID: ro.UID, ResourceVersion: ro.ResourceVersion,
	}
}

// owner is how the Rollout is named in other objects.
func (s *subject) owner() string { return s.ref.Namespace + "/" + s.ref.Name }

// objects are the keys of all objects that the Rollout's routing is made of.
func (s *subject) objects() []string {
	var keys []string
	for _, vs := range s.config.VirtualServices {
		keys = append(keys, objectKey("VirtualService", vs.Namespace, vs.Name))
	}
	for _, rule := range s.config.DestinationRules {
		keys = append(keys, objectKey("DestinationRule", rule.Namespace, rule.Name))
	}
	return keys
}

func objectKey(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// labelsOf are the keys of the labels in all of the metadata; nil if there are none.
func labelsOf(all ...*v1alpha1.PodTemplateMetadata) map[string]bool {
	var keys map[string]bool
	for _, metadata := range all {
		if metadata == nil {
			continue
		}
		for key := range metadata.Labels {
			if keys == nil {
				keys = map[string]bool{}
			}
			keys[key] = true
		}
	}
	return keys
}
