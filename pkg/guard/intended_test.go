package guard_test

import (
	"math"
	"testing"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

func ptr[T any](v T) *T { return &v }

func setWeight(weight int32) v1alpha1.CanaryStep { return v1alpha1.CanaryStep{SetWeight: &weight} }

func pause() v1alpha1.CanaryStep { return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}} }

func setScale(scale v1alpha1.SetCanaryScale) v1alpha1.CanaryStep {
	return v1alpha1.CanaryStep{SetCanaryScale: &scale}
}

// rollout is a Rollout of 20 replicas from s1 to c2, at the step of the index.
func rollout(index int32, steps ...v1alpha1.CanaryStep) *v1alpha1.Rollout {
	ro := &v1alpha1.Rollout{}
	ro.Spec.Replicas = ptr[int32](20)
	ro.Spec.Strategy.Canary = &v1alpha1.CanaryStrategy{
		Steps: steps, TrafficRouting: &v1alpha1.RolloutTrafficRouting{},
	}
	ro.Status.CurrentPodHash, ro.Status.StableRS = "c2", "s1"
	ro.Status.CurrentStepIndex = &index
	return ro
}

// changed changes a Rollout for one row of a table.
func changed(ro *v1alpha1.Rollout, change func(*v1alpha1.Rollout)) *v1alpha1.Rollout {
	change(ro)
	return ro
}

func aborted(ro *v1alpha1.Rollout) { ro.Status.Abort = true }

func abortedDynamic(ro *v1alpha1.Rollout) {
	ro.Status.Abort = true
	ro.Spec.Strategy.Canary.DynamicStableScale = true
}

// The oracle test in the e2e module compares with the controller's own function; these rows say what it means.
func TestIntendedCanaryReplicas(t *testing.T) {
	one := v1alpha1.SetCanaryScale{Replicas: ptr[int32](1)}
	quarter := v1alpha1.SetCanaryScale{Weight: ptr[int32](25)}
	match := v1alpha1.SetCanaryScale{MatchTrafficWeight: true}
	for sentence, tc := range map[string]struct {
		rollout        *v1alpha1.Rollout
		canary, stable guard.Pods
		want           int32
	}{
		"before the first setWeight the canary has no pods":    {rollout: rollout(0, pause(), setWeight(50)), want: 0},
		"a setWeight step is rounded up to whole pods":         {rollout: rollout(0, setWeight(11)), want: 3},
		"a pause keeps the weight of the step before":          {rollout: rollout(1, setWeight(50), pause()), want: 10},
		"after the last step it is all of the replicas":        {rollout: rollout(2, setWeight(50), pause()), want: 20},
		"without steps it is all of the replicas":              {rollout: rollout(0), want: 20},
		"a missing step index is the first step":               {rollout: changed(rollout(0, setWeight(5)), func(ro *v1alpha1.Rollout) { ro.Status.CurrentStepIndex = nil }), want: 1},
		"a negative step index is the first step":              {rollout: rollout(-3, setWeight(5)), want: 1},
		"replicas that are not set are one":                    {rollout: changed(rollout(0, setWeight(5)), func(ro *v1alpha1.Rollout) { ro.Spec.Replicas = nil }), want: 1},
		"no replicas, no canary":                               {rollout: changed(rollout(0, setWeight(50)), func(ro *v1alpha1.Rollout) { ro.Spec.Replicas = ptr[int32](0) }), want: 0},
		"setCanaryScale by replicas wins over the weight":      {rollout: rollout(1, setScale(one), setWeight(50)), want: 1},
		"setCanaryScale by weight wins over the weight":        {rollout: rollout(1, setScale(quarter), setWeight(50)), want: 5},
		"matchTrafficWeight goes back to the weight":           {rollout: rollout(2, setScale(one), setWeight(50), setScale(match)), want: 10},
		"a setCanaryScale that says nothing is the weight":     {rollout: rollout(1, setWeight(50), setScale(v1alpha1.SetCanaryScale{})), want: 10},
		"setCanaryScale ends with the last step":               {rollout: rollout(2, setScale(one), setWeight(50)), want: 20},
		"an abort forgets setCanaryScale":                      {rollout: changed(rollout(0, setScale(one)), aborted), want: 0},
		"an abort takes the weight to nothing":                 {rollout: changed(rollout(0, setWeight(50)), aborted), want: 0},
		"promote-full is all of the replicas":                  {rollout: changed(rollout(0, setScale(one)), func(ro *v1alpha1.Rollout) { ro.Status.PromoteFull = true }), want: 20},
		"a first deployment is all of the replicas":            {rollout: changed(rollout(0, setWeight(5)), func(ro *v1alpha1.Rollout) { ro.Status.StableRS = "" }), want: 20},
		"a return to the stable is all of the replicas":        {rollout: changed(rollout(0, setWeight(5)), func(ro *v1alpha1.Rollout) { ro.Status.CurrentPodHash = "s1" }), want: 20},
		"a strategy that is not canary is all of the replicas": {rollout: changed(rollout(0), func(ro *v1alpha1.Rollout) { ro.Spec.Strategy.Canary = nil }), want: 20},
		"a maximum of 1000 counts in tenths of a percent": {
			rollout: changed(rollout(0, setWeight(55)), func(ro *v1alpha1.Rollout) {
				ro.Spec.Strategy.Canary.TrafficRouting.MaxTrafficWeight = ptr[int32](1000)
			}),
			want: 2,
		},
		"a maximum of 0 is the default": {
			rollout: changed(rollout(0, setWeight(50)), func(ro *v1alpha1.Rollout) {
				ro.Spec.Strategy.Canary.TrafficRouting.MaxTrafficWeight = ptr[int32](0)
			}),
			want: 10,
		},
		"abortScaleDownDelaySeconds 0 keeps setCanaryScale after an abort": {
			rollout: changed(rollout(0, setScale(quarter)), func(ro *v1alpha1.Rollout) {
				ro.Status.Abort = true
				ro.Spec.Strategy.Canary.AbortScaleDownDelaySeconds = ptr[int32](0)
			}),
			want: 5,
		},
		"abortScaleDownDelaySeconds 30 does not": {
			rollout: changed(rollout(0, setScale(quarter)), func(ro *v1alpha1.Rollout) {
				ro.Status.Abort = true
				ro.Spec.Strategy.Canary.AbortScaleDownDelaySeconds = ptr[int32](30)
			}),
			want: 0,
		},
		"minPodsPerReplicaSet holds up a small canary": {
			rollout: changed(rollout(0, setWeight(1)), func(ro *v1alpha1.Rollout) {
				ro.Spec.Strategy.Canary.MinPodsPerReplicaSet = ptr[int32](3)
			}),
			want: 3,
		},
		"minPodsPerReplicaSet leaves a canary of 0 alone": {
			rollout: changed(rollout(0, setWeight(0)), func(ro *v1alpha1.Rollout) {
				ro.Spec.Strategy.Canary.MinPodsPerReplicaSet = ptr[int32](3)
			}),
			want: 0,
		},
		"minPodsPerReplicaSet is never more than the replicas": {
			rollout: changed(rollout(0, setWeight(1)), func(ro *v1alpha1.Rollout) {
				ro.Spec.Strategy.Canary.MinPodsPerReplicaSet = ptr[int32](50)
			}),
			want: 20,
		},
		"minPodsPerReplicaSet does not touch setCanaryScale by replicas": {
			rollout: changed(rollout(0, setScale(one)), func(ro *v1alpha1.Rollout) {
				ro.Spec.Strategy.Canary.MinPodsPerReplicaSet = ptr[int32](3)
			}),
			want: 1,
		},
		"with dynamicStableScale minPodsPerReplicaSet does touch it": {
			rollout: changed(rollout(0, setScale(one)), func(ro *v1alpha1.Rollout) {
				ro.Spec.Strategy.Canary.MinPodsPerReplicaSet = ptr[int32](3)
				ro.Spec.Strategy.Canary.DynamicStableScale = true
			}),
			want: 3,
		},
		"matchTrafficWeight wins over a count beside it": {
			rollout: rollout(1, setWeight(50), setScale(v1alpha1.SetCanaryScale{MatchTrafficWeight: true, Replicas: ptr[int32](1)})),
			want:    10,
		},
		"setCanaryScale is for traffic routing only": {
			rollout: changed(rollout(1, setScale(one), setWeight(50)), func(ro *v1alpha1.Rollout) {
				ro.Spec.Strategy.Canary.TrafficRouting = nil
			}),
			want: 10,
		},
		"recorded weights hold up no canary that goes forward": {
			rollout: changed(rollout(0, setWeight(20)), func(ro *v1alpha1.Rollout) {
				ro.Spec.Strategy.Canary.DynamicStableScale = true
				ro.Status.Canary.Weights = &v1alpha1.TrafficWeights{Canary: v1alpha1.WeightDestination{Weight: 100}}
			}),
			want: 4,
		},
		"a recorded weight below 0 needs no pods": {
			rollout: changed(rollout(0, setWeight(20)), func(ro *v1alpha1.Rollout) {
				abortedDynamic(ro)
				ro.Spec.Strategy.Canary.MinPodsPerReplicaSet = ptr[int32](3)
				ro.Status.Canary.Weights = &v1alpha1.TrafficWeights{Canary: v1alpha1.WeightDestination{Weight: -100}}
			}),
			stable: pods(20, 20), want: 0,
		},
		"an abort with dynamicStableScale counts a canary that is larger than the stable's gap": {
			rollout: changed(rollout(2, setWeight(20), setWeight(60), pause()), abortedDynamic),
			canary:  pods(14, 14), stable: pods(20, 20), want: 12,
		},
		"an abort with dynamicStableScale counts what a small stable leaves to a sick canary": {
			rollout: changed(rollout(2, setWeight(20), setWeight(60), pause()), abortedDynamic),
			canary:  pods(2, 12), stable: pods(8, 8), want: 4,
		},
		"minPodsPerReplicaSet is for traffic routing only": {
			rollout: changed(rollout(0, setWeight(5)), func(ro *v1alpha1.Rollout) {
				ro.Spec.Strategy.Canary.MinPodsPerReplicaSet = ptr[int32](3)
				ro.Spec.Strategy.Canary.TrafficRouting = nil
			}),
			want: 1,
		},
		"an abort with dynamicStableScale goes back step by step": {
			rollout: changed(rollout(2, setWeight(20), setWeight(60), pause()), abortedDynamic),
			canary:  pods(14, 14), stable: pods(6, 6), want: 12,
		},
		"an abort with dynamicStableScale goes on as the stable grows": {
			rollout: changed(rollout(2, setWeight(20), setWeight(60), pause()), abortedDynamic),
			canary:  pods(12, 12), stable: pods(8, 8), want: 4,
		},
		"an abort with dynamicStableScale ends at nothing": {
			rollout: changed(rollout(2, setWeight(20), setWeight(60), pause()), abortedDynamic),
			canary:  pods(4, 4), stable: pods(20, 20), want: 0,
		},
		"an abort with dynamicStableScale keeps the pods of traffic that has not left": {
			rollout: changed(rollout(2, setWeight(20), pause()), func(ro *v1alpha1.Rollout) {
				abortedDynamic(ro)
				ro.Status.Canary.Weights = &v1alpha1.TrafficWeights{Canary: v1alpha1.WeightDestination{Weight: 45}}
			}),
			canary: pods(9, 9), stable: pods(20, 20), want: 9,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := guard.IntendedCanaryReplicas(tc.rollout, tc.canary, tc.stable); got != tc.want {
				t.Errorf("intended canary replicas: %d, want %d", got, tc.want)
			}
		})
	}
}

// anyRollout is one that the controller's validation may well refuse.
func anyRollout(t *rapid.T) *v1alpha1.Rollout {
	number := func(name string) *int32 {
		if rapid.IntRange(0, 3).Draw(t, name+" is missing") == 0 {
			return nil
		}
		return ptr(rapid.OneOf(rapid.Int32Range(-2, 30), rapid.Int32()).Draw(t, name))
	}
	var steps []v1alpha1.CanaryStep
	for range rapid.IntRange(0, 4).Draw(t, "steps") {
		steps = append(steps, v1alpha1.CanaryStep{SetWeight: number("setWeight")})
		if rapid.Bool().Draw(t, "with setCanaryScale") {
			steps = append(steps, setScale(v1alpha1.SetCanaryScale{
				Weight: number("scale.weight"), Replicas: number("scale.replicas"), MatchTrafficWeight: rapid.Bool().Draw(t, "match"),
			}))
		}
	}
	ro := rollout(0, steps...)
	canary := ro.Spec.Strategy.Canary
	ro.Spec.Replicas, canary.MinPodsPerReplicaSet = number("replicas"), number("minPods")
	canary.AbortScaleDownDelaySeconds, canary.TrafficRouting.MaxTrafficWeight = number("abortDelay"), number("max")
	canary.DynamicStableScale = rapid.Bool().Draw(t, "dynamic")
	ro.Status.Abort, ro.Status.PromoteFull = rapid.Bool().Draw(t, "abort"), rapid.Bool().Draw(t, "promoteFull")
	ro.Status.CurrentStepIndex = number("index")
	if recorded := number("recorded"); recorded != nil {
		ro.Status.Canary.Weights = &v1alpha1.TrafficWeights{Canary: v1alpha1.WeightDestination{Weight: *recorded}}
	}
	return ro
}

func TestAnyRolloutGivesACountWithoutBeingChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ro := anyRollout(t)
		before := ro.DeepCopy()
		canary, stable := anyPods(t, "canary"), anyPods(t, "stable")
		first := guard.IntendedCanaryReplicas(ro, canary, stable)
		facts := guard.RolloutFacts(ro)
		facts.Intended, facts.Desired, facts.Canary, facts.Stable = first, math.MaxInt32, canary, stable
		checkDecision(t, facts)
		if again := guard.IntendedCanaryReplicas(ro, canary, stable); again != first {
			t.Fatalf("two answers to one question: %d, %d", first, again)
		}
		if diff := cmp.Diff(before, ro); diff != "" {
			t.Fatalf("the Rollout was changed:\n%s", diff)
		}
	})
}
