package guard

import "github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

// IntendedCanaryReplicas is the canary count that the controller is aiming for at the Rollout's current step: what
// CalculateReplicaCountsForTrafficRoutedCanary in argo-rollouts' utils/replicaset answers when the controller scales the
// new ReplicaSet. That package brings k8s.io/kubernetes with it, so it is reckoned here again; the oracle test in the e2e
// module holds the two against each other.
//
// canary and stable are the ReplicaSets of status.currentPodHash and status.stableRS. They only matter on an abort with
// dynamicStableScale; the controller asks for weight 0 there when one of them does not exist, so that a missing one may
// be given as Pods{}.
//
// The Rollout is read as the controller sends it, with the weights that it last recorded. What the controller rejects or
// would stumble over (a negative step index, no canary strategy) gives some count rather than a panic. The result is
// negative only if the Rollout itself asks for a negative number.
func IntendedCanaryReplicas(ro *v1alpha1.Rollout, canary, stable Pods) int32 {
	strategy := ro.Spec.Strategy.Canary
	if strategy == nil {
		return saturate(replicas(ro))
	}
	fixed, weight := aim(ro, canary, stable)
	if fixed != nil && !strategy.DynamicStableScale {
		return *fixed
	}
	count := podsFor(ro, weight)
	if fixed != nil {
		count = int64(*fixed)
	}
	if recorded := ro.Status.Canary.Weights; ro.Status.Abort && strategy.DynamicStableScale && recorded != nil {
		// The canary keeps its pods until its traffic has left.
		count = max(count, shareOfReplicas(ro, int64(recorded.Canary.Weight)))
	}
	return saturate(atLeastMinPods(ro, count))
}

// aim is what the controller scales the canary by: a fixed count where setCanaryScale names one, else a weight in parts
// of maxTrafficWeight.
func aim(ro *v1alpha1.Rollout, canary, stable Pods) (fixed *int32, weight int64) {
	status := ro.Status
	if status.PromoteFull || status.StableRS == "" || status.CurrentPodHash == status.StableRS {
		return nil, maxWeight(ro)
	}
	if scale := canaryScale(ro); scale != nil {
		switch {
		case scale.Replicas != nil:
			return scale.Replicas, 0
		case scale.Weight != nil:
			return nil, int64(*scale.Weight)
		}
	}
	switch {
	case !status.Abort:
		return nil, stepWeight(ro)
	case ro.Spec.Strategy.Canary.DynamicStableScale:
		return nil, weightOnTheWayBack(ro, canary, stable)
	default:
		return nil, 0
	}
}

// canaryScale is the setCanaryScale that is in force, nil if none is: the latest one at or before the current step,
// unless it says matchTrafficWeight.
func canaryScale(ro *v1alpha1.Rollout) *v1alpha1.SetCanaryScale {
	canary := ro.Spec.Strategy.Canary
	if canary.TrafficRouting == nil || ro.Status.Abort && !canaryStaysAfterAbort(canary) {
		return nil
	}
	done, finished := stepsSoFar(ro)
	if finished {
		return nil
	}
	for i := len(done) - 1; i >= 0; i-- {
		if scale := done[i].SetCanaryScale; scale != nil {
			if scale.MatchTrafficWeight {
				return nil
			}
			return scale
		}
	}
	return nil
}

// canaryStaysAfterAbort is true where the user asked for it, with abortScaleDownDelaySeconds: 0.
func canaryStaysAfterAbort(canary *v1alpha1.CanaryStrategy) bool {
	delay := canary.AbortScaleDownDelaySeconds
	return delay != nil && *delay == 0
}

// stepWeight is the latest setWeight at or before the current step, 0 before the first, and everything after the last
// step. The last is where a rollback within rollbackWindow begins, whatever the number of pods (argo-rollouts#3941).
func stepWeight(ro *v1alpha1.Rollout) int64 {
	done, finished := stepsSoFar(ro)
	if finished {
		return maxWeight(ro)
	}
	for i := len(done) - 1; i >= 0; i-- {
		if done[i].SetWeight != nil {
			return int64(*done[i].SetWeight)
		}
	}
	return 0
}

// stepsSoFar are the steps up to and including the current one. finished is true when there is no current step: all are
// done, or there are none.
func stepsSoFar(ro *v1alpha1.Rollout) (steps []v1alpha1.CanaryStep, finished bool) {
	steps = ro.Spec.Strategy.Canary.Steps
	index := 0
	if ro.Status.CurrentStepIndex != nil {
		index = max(0, int(*ro.Status.CurrentStepIndex))
	}
	if index >= len(steps) {
		return steps, true
	}
	return steps[:index+1], false
}

// weightOnTheWayBack is the weight that an aborted Rollout with dynamicStableScale is on its way to: the steps in
// reverse, to the first one that needs fewer pods than the canary still has to serve.
func weightOnTheWayBack(ro *v1alpha1.Rollout, canary, stable Pods) int64 {
	serving := max(replicas(ro)-int64(stable.Available), int64(canary.Available))
	steps := ro.Spec.Strategy.Canary.Steps
	for i := len(steps) - 1; i >= 0; i-- {
		if weight := steps[i].SetWeight; weight != nil && shareOfReplicas(ro, int64(*weight)) < serving {
			return int64(*weight)
		}
	}
	return 0
}

// podsFor is the count for a weight, held up by minPodsPerReplicaSet.
func podsFor(ro *v1alpha1.Rollout, weight int64) int64 {
	return atLeastMinPods(ro, shareOfReplicas(ro, weight))
}

func shareOfReplicas(ro *v1alpha1.Rollout, weight int64) int64 {
	return ceilDiv(weight*replicas(ro), maxWeight(ro))
}

// atLeastMinPods applies minPodsPerReplicaSet, which never asks for more than spec.replicas and leaves 0 alone.
func atLeastMinPods(ro *v1alpha1.Rollout, count int64) int64 {
	canary := ro.Spec.Strategy.Canary
	if count == 0 || canary.MinPodsPerReplicaSet == nil || canary.TrafficRouting == nil {
		return count
	}
	return max(count, min(int64(*canary.MinPodsPerReplicaSet), replicas(ro)))
}
