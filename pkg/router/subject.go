package router

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// subject is what counts of a Rollout as the controller last sent it. It is
// small, so that it may be kept between calls: a Rollout itself can be 40 KB.
type subject struct {
	// ref names the Rollout in Events.
	ref    corev1.ObjectReference
	config config.Config
	// managed are the names in managedRoutes.
	managed []string
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
		ref: corev1.ObjectReference{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Rollout",
			Namespace: ro.Namespace, Name: ro.Name, UID: ro.UID, ResourceVersion: ro.ResourceVersion,
		},
		config: cfg,
		facts:  guard.RolloutFacts(ro),
		status: hashes{canary: ro.Status.CurrentPodHash, stable: ro.Status.StableRS},
	}
	s.pin, s.pinErr = pinOf(ro, s.facts.Max)
	canary := ro.Spec.Strategy.Canary
	s.ephemeral = labelsOf(canary.CanaryMetadata, canary.StableMetadata)
	for _, route := range ro.Spec.Strategy.Canary.TrafficRouting.ManagedRoutes {
		s.managed = append(s.managed, route.Name)
	}
	return s, nil
}

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
