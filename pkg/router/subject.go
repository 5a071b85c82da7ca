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
	// pin is an operator's brake, in parts of max; nil when there is none.
	pin *int32
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
	if s.pin, err = pinOf(ro, s.facts.Max); err != nil {
		return subject{}, err
	}
	for _, route := range ro.Spec.Strategy.Canary.TrafficRouting.ManagedRoutes {
		s.managed = append(s.managed, route.Name)
	}
	return s, nil
}
