package router

import (
	"fmt"
	"math"
	"slices"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
)

// Asked is what the controller asks the plugin for at this moment. It says so in its calls
// only: the status has what was asked for when the last call of SetWeight succeeded.
type Asked struct {
	// Weight is the canary's, in parts of max, as the controller sends it.
	Weight int32
	// Canary and Stable are the hashes that come with it, "" without a ReplicaSet.
	Canary, Stable string
	// Silent is why the controller does not call at all at this moment, "" if it does.
	Silent string
}

// askedBy follows reconcileTrafficRouting in rollout/trafficrouting.go of argo-rollouts
// v1.10, in its order.
func (s *situation) askedBy(ro *v1alpha1.Rollout) Asked {
	c := asking{
		ro: ro, s: s, max: s.facts.Max, replicas: s.facts.Replicas,
		canary: s.setOf(s.status.canary), stable: s.setOf(s.status.stable),
	}
	asked := Asked{Weight: c.weight()}
	if c.canary != nil {
		asked.Canary = c.canary.Hash
	}
	if c.stable != nil {
		asked.Stable = c.stable.Hash
	}
	if c.returning() {
		asked.Canary = ro.Status.Canary.Weights.Canary.PodTemplateHash
	}
	asked.Silent = c.silent(asked.Weight)
	return asked
}

// asking is the controller's view.
type asking struct {
	ro             *v1alpha1.Rollout
	s              *situation
	max, replicas  int32
	canary, stable *cluster.ReplicaSet // nil where there is none
}

func (c asking) strategy() *v1alpha1.CanaryStrategy { return c.ro.Spec.Strategy.Canary }

func (c asking) weight() int32 {
	status := c.ro.Status
	switch {
	case c.returning():
		return c.onTheWayBack()
	case status.StableRS == status.CurrentPodHash:
		return 0
	case status.Abort:
		return c.onTheWayBack()
	case c.canary == nil || c.canary.Available == 0:
		return 0
	case status.PromoteFull:
		return c.promotedInFull()
	case len(c.strategy().Steps) == 0:
		return 0
	case !c.atDesiredCount():
		return c.setWeightBefore(c.step())
	case c.step() < len(c.strategy().Steps):
		return c.setWeightBefore(c.step() + 1)
	}
	return c.max
}

// returning tells a Rollout with dynamicStableScale that is being set back to the stable.
func (c asking) returning() bool {
	status := c.ro.Status
	return status.StableRS == status.CurrentPodHash && c.strategy().DynamicStableScale && status.Canary.Weights != nil &&
		c.canary != nil && status.Canary.Weights.Canary.PodTemplateHash != c.canary.Hash && c.canary.Available < c.replicas
}

func (c asking) step() int {
	if index := c.ro.Status.CurrentStepIndex; index != nil {
		return max(0, min(int(*index), len(c.strategy().Steps)))
	}
	return 0
}

// setWeightBefore is the last setWeight of the steps before that one.
func (c asking) setWeightBefore(step int) int32 {
	for i := step - 1; i >= 0; i-- {
		if weight := c.strategy().Steps[i].SetWeight; weight != nil {
			return *weight
		}
	}
	return 0
}

// atDesiredCount is AtDesiredReplicaCountsForCanary of utils/replicaset; how many pods of
// the stable have been created is taken to be its size.
func (c asking) atDesiredCount() bool {
	if !c.enough(c.canary, c.s.facts.Intended) {
		return false
	}
	return c.strategy().DynamicStableScale || c.stable != nil && c.stable.Size == c.replicas
}

// enough is ReplicaProgressThresholdMet of utils/replicaset.
func (c asking) enough(set *cluster.ReplicaSet, desired int32) bool {
	if set == nil {
		return false
	}
	t := c.strategy().ReplicaProgressThreshold
	switch {
	case t == nil || t.Value < 0:
		return set.Available >= desired
	case t.Type != v1alpha1.ProgressTypePercentage:
		return set.Available >= t.Value
	}
	return desired == 0 || int64(set.Available)*100 >= int64(t.Value)*int64(desired)
}

func (c asking) promotedInFull() int32 {
	switch weights := c.ro.Status.Canary.Weights; {
	case c.strategy().DynamicStableScale && c.replicas > 0:
		return c.part(c.canary.Available)
	case weights != nil:
		return weights.Canary.Weight
	}
	return 0
}

// part is what so many of all replicas amount to, rounded down.
func (c asking) part(pods int32) int32 {
	return int32(int64(c.max) * int64(pods) / int64(c.replicas))
}

// onTheWayBack is calculateDesiredWeightOnAbortOrStableRollback.
func (c asking) onTheWayBack() int32 {
	if !c.strategy().DynamicStableScale || c.stable == nil || c.canary == nil || c.ro.Spec.Replicas == nil || c.replicas <= 0 {
		return 0
	}
	served := c.part(c.stable.Available)
	unserved, goal := max(0, c.max-served), c.goalOnTheWayBack()
	weights := c.ro.Status.Canary.Weights
	switch {
	case weights == nil:
		return max(unserved, goal)
	case goal <= 0:
		return min(unserved, weights.Canary.Weight)
	case served < c.max-goal:
		return weights.Canary.Weight // the stable is still being scaled up
	}
	return min(goal, weights.Canary.Weight)
}

// goalOnTheWayBack is GetDesiredCanaryWeight of utils/replicaset.
func (c asking) goalOnTheWayBack() int32 {
	steps := c.strategy().Steps
	switch {
	case !c.ro.Status.Abort && c.step() >= len(steps):
		return c.max
	case !c.ro.Status.Abort:
		return c.setWeightBefore(c.step() + 1)
	}
	serving := max(c.replicas-c.stable.Available, c.canary.Available)
	for i := len(steps) - 1; i >= 0; i-- {
		if weight := steps[i].SetWeight; weight != nil && c.podsFor(*weight) < int64(serving) {
			return *weight
		}
	}
	return 0
}

// podsFor is how many pods a weight is worth, rounded up.
func (c asking) podsFor(weight int32) int64 {
	return (int64(weight)*int64(c.replicas) + int64(c.max) - 1) / int64(c.max)
}

// silent is why the controller returns before it calls.
func (c asking) silent(weight int32) string {
	if c.stable == nil {
		return "no revision is stable yet, so that there is nothing to split"
	}
	need := int32(int64(c.max-weight) * int64(c.replicas) / int64(c.max))
	if c.stable.Available < need && !c.enough(c.stable, need) {
		return fmt.Sprintf("the controller waits until the stable has %d available replicas (it has %d), and calls nobody before", need, c.stable.Available)
	}
	return ""
}

// intendedSize is how many pods the controller is aiming for with the ReplicaSet of a hash,
// nil where that cannot be told: of a revision in between, which it takes down by and by, and
// of a stable with dynamicStableScale beside a setCanaryScale.
func (s *situation) intendedSize(ro *v1alpha1.Rollout, hash string) *int32 {
	size := s.facts.Replicas
	switch {
	case hash == "":
		return nil
	case hash == s.status.canary:
		size = s.facts.Intended
	case hash != s.status.stable:
		return nil
	case s.facts.DynamicStableScale:
		return s.intendedDynamicStable(ro)
	}
	return &size
}

// intendedDynamicStable is the second answer of CalculateReplicaCountsForTrafficRoutedCanary
// of utils/replicaset: the stable keeps the pods for the requests that it has, and gets those
// for the requests that it is about to have.
func (s *situation) intendedDynamicStable(ro *v1alpha1.Rollout) *int32 {
	c := asking{
		ro: ro, s: s, max: s.facts.Max, replicas: s.facts.Replicas,
		canary: s.setOf(s.status.canary), stable: s.setOf(s.status.stable),
	}
	if c.canary == nil || c.stable == nil || slices.ContainsFunc(c.strategy().Steps, func(step v1alpha1.CanaryStep) bool { return step.SetCanaryScale != nil }) {
		return nil
	}
	goal := c.goalOnTheWayBack()
	if ro.Status.PromoteFull {
		goal = c.max
	}
	size := c.podsFor(c.max - goal)
	if weights := ro.Status.Canary.Weights; weights != nil {
		size = max(size, c.podsFor(weights.Stable.Weight))
	}
	if size != 0 {
		size = max(size, int64(min(s.facts.MinPods, c.replicas)))
	}
	pods := int32(max(0, min(size, math.MaxInt32)))
	return &pods
}
