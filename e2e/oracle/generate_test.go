package oracle

import (
	"fmt"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// anyOf draws one of the values.
func anyOf[T any](t *rapid.T, name string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, name)
}

func maybe(t *rapid.T, name string, g *rapid.Generator[int32]) *int32 {
	if !rapid.Bool().Draw(t, name+" is set") {
		return nil
	}
	v := g.Draw(t, name)
	return &v
}

// anyRollout draws a Rollout with traffic routing in any state of an update, with every field that has a say in its
// number of pods. Values go a little beyond what validation lets pass, as the controller reckons before it validates.
func anyRollout(t *rapid.T) *v1alpha1.Rollout {
	limit := anyOf[int32](t, "max", 100, 100, 100, 1000, 7, 1)
	ro := &v1alpha1.Rollout{}
	ro.Spec.Replicas = maybe(t, "replicas", rapid.OneOf(rapid.Int32Range(0, 30), rapid.Int32Range(0, 5000)))
	ro.Spec.Strategy.Canary = anyStrategy(t, limit)
	ro.Status = anyStatus(t, limit, int32(len(ro.Spec.Strategy.Canary.Steps)))
	return ro
}

func anyStrategy(t *rapid.T, limit int32) *v1alpha1.CanaryStrategy {
	canary := &v1alpha1.CanaryStrategy{
		DynamicStableScale:         rapid.Bool().Draw(t, "dynamicStableScale"),
		MinPodsPerReplicaSet:       maybe(t, "minPods", rapid.Int32Range(-1, 35)),
		AbortScaleDownDelaySeconds: maybe(t, "abortDelay", rapid.SampledFrom([]int32{0, 0, 1, 30})),
	}
	if rapid.IntRange(0, 9).Draw(t, "traffic routing") > 0 {
		canary.TrafficRouting = &v1alpha1.RolloutTrafficRouting{}
		if limit != 100 || rapid.Bool().Draw(t, "max is set") {
			canary.TrafficRouting.MaxTrafficWeight = &limit
		}
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "steps") {
		canary.Steps = append(canary.Steps, anyStep(t, fmt.Sprintf("step %d", i), limit))
	}
	return canary
}

func anyStep(t *rapid.T, name string, limit int32) v1alpha1.CanaryStep {
	weight := rapid.Int32Range(-3, limit+3)
	switch anyOf(t, name, "weight", "weight", "scale", "scale", "pause", "header") {
	case "weight":
		w := weight.Draw(t, name+" weight")
		return v1alpha1.CanaryStep{SetWeight: &w}
	case "scale":
		scale := &v1alpha1.SetCanaryScale{MatchTrafficWeight: rapid.IntRange(0, 3).Draw(t, name+" match") == 0}
		scale.Replicas = maybe(t, name+" replicas", rapid.Int32Range(0, 40))
		scale.Weight = maybe(t, name+" scale", weight)
		return v1alpha1.CanaryStep{SetCanaryScale: scale}
	case "header":
		return v1alpha1.CanaryStep{SetHeaderRoute: &v1alpha1.SetHeaderRoute{Name: "h"}}
	default:
		return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}}
	}
}

func anyStatus(t *rapid.T, limit, steps int32) v1alpha1.RolloutStatus {
	status := v1alpha1.RolloutStatus{
		Abort:            rapid.Bool().Draw(t, "abort"),
		PromoteFull:      rapid.IntRange(0, 7).Draw(t, "promoteFull") == 0,
		CurrentPodHash:   anyOf(t, "currentPodHash", "c2", "c2", "c2", "s1"),
		StableRS:         anyOf(t, "stableRS", "s1", "s1", "s1", "s1", ""),
		CurrentStepIndex: maybe(t, "index", rapid.Int32Range(0, steps+1)),
	}
	if recorded := maybe(t, "recorded", rapid.Int32Range(-limit, 2*limit)); recorded != nil {
		status.Canary.Weights = &v1alpha1.TrafficWeights{
			Canary: v1alpha1.WeightDestination{Weight: *recorded},
			Stable: v1alpha1.WeightDestination{Weight: limit - *recorded},
		}
	}
	return status
}

// anyReplicaSet draws a ReplicaSet of a hash.
func anyReplicaSet(t *rapid.T, hash string) *appsv1.ReplicaSet {
	count := rapid.OneOf(rapid.Int32Range(0, 35), rapid.Int32Range(0, 5000))
	size := count.Draw(t, hash+" size")
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: hash, Labels: map[string]string{v1alpha1.DefaultRolloutUniqueLabelKey: hash}},
	}
	rs.Spec.Replicas = &size
	rs.Status.AvailableReplicas = count.Draw(t, hash+" available")
	return rs
}
