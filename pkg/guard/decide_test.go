package guard_test

import (
	"math"
	"testing"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

func pods(available, size int32) guard.Pods {
	return guard.Pods{Available: available, Size: size}
}

func percent(value int32) *v1alpha1.ReplicaProgressThreshold {
	return &v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ProgressTypePercentage, Value: value}
}

func podCount(value int32) *v1alpha1.ReplicaProgressThreshold {
	return &v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ProgressTypePods, Value: value}
}

// rollback is the incident: 20 replicas, all of the traffic asked for, and a canary that is still being scaled up.
func rollback(available int32) guard.Facts {
	return guard.Facts{
		Desired: 100, Max: 100, Replicas: 20, Intended: 20,
		Canary: pods(available, 20), Stable: pods(20, 20),
		WrittenKnown: true,
	}
}

// with changes facts for one row of a table.
func with(f guard.Facts, change func(*guard.Facts)) guard.Facts {
	change(&f)
	return f
}

func TestDecide(t *testing.T) {
	for sentence, tc := range map[string]struct {
		facts   guard.Facts
		weight  int32
		reason  guard.Reason
		message string
	}{
		// Rule 1
		"a negative weight is read as 0": {
			with(rollback(20), func(f *guard.Facts) { f.Desired = -140 }),
			0, guard.ReasonNothingAsked, "canary at 0 of 0: no traffic asked for",
		},
		"a weight above the maximum is read as the maximum": {
			with(rollback(20), func(f *guard.Facts) { f.Desired = 200 }),
			100, guard.ReasonEnoughPods, "canary at 100 of 100: 20 of 20 replicas available",
		},
		"a weight above the maximum is capped like the maximum": {
			with(rollback(2), func(f *guard.Facts) { f.Desired = 200 }),
			10, guard.ReasonProportional, "canary held at 10 of 100: 2 of 20 replicas available",
		},
		"a maximum that is not set is 100": {
			with(rollback(2), func(f *guard.Facts) { f.Max = 0 }),
			10, guard.ReasonProportional, "canary held at 10 of 100: 2 of 20 replicas available",
		},

		// Rule 2
		"weight 0 with a full canary is weight 0": {
			with(rollback(20), func(f *guard.Facts) { f.Desired = 0 }),
			0, guard.ReasonNothingAsked, "canary at 0 of 0: no traffic asked for",
		},
		"one hash on both sides is not capped, as no weight changes anything": {
			with(rollback(2), func(f *guard.Facts) { f.SameHash, f.Stable = true, pods(2, 20) }),
			100, guard.ReasonSameHash, "canary at 100 of 100: canary and stable are one revision",
		},
		"spec.replicas 0 is not capped while a canary pod is there": {
			with(rollback(1), func(f *guard.Facts) { f.Replicas, f.Intended = 0, 0 }),
			100, guard.ReasonNoReplicasAsked, "canary at 100 of 100: spec.replicas is 0",
		},
		"spec.replicas 0 is not capped when no pod is left on either side": {
			with(rollback(0), func(f *guard.Facts) { f.Replicas, f.Intended, f.Stable = 0, 0, pods(0, 0) }),
			100, guard.ReasonNoReplicasAsked, "canary at 100 of 100: spec.replicas is 0",
		},
		"spec.replicas 0 is capped at 0 while only the stable has pods": {
			with(rollback(0), func(f *guard.Facts) { f.Replicas, f.Intended, f.Stable = 0, 0, pods(3, 0) }),
			0, guard.ReasonNoCanaryPods, "canary held at 0 of 100: 0 of 1 replicas available",
		},

		// Rule 3
		"a canary without pods gets nothing while the stable has one": {
			with(rollback(0), func(f *guard.Facts) { f.Stable = pods(1, 20) }),
			0, guard.ReasonNoCanaryPods, "canary held at 0 of 100: 0 of 20 replicas available",
		},
		"a canary without pods gets nothing even by a threshold of 0 pods": {
			with(rollback(0), func(f *guard.Facts) { f.Threshold = podCount(0) }),
			0, guard.ReasonNoCanaryPods, "canary held at 0 of 100: 0 of 20 replicas available",
		},
		"without pods on either side the weight stays as it is": {
			with(rollback(0), func(f *guard.Facts) { f.Stable, f.Written = pods(0, 20), 30 }),
			30, guard.ReasonNoPods, "canary left at 30 of 100: neither canary nor stable has an available replica",
		},
		"without pods on either side the weight still follows a lower one": {
			with(rollback(0), func(f *guard.Facts) { f.Stable, f.Written, f.Desired = pods(0, 20), 70, 30 }),
			30, guard.ReasonNoPods, "canary at 30 of 30: neither canary nor stable has an available replica",
		},
		"without pods on either side and without a written weight it is the one asked for": {
			with(rollback(0), func(f *guard.Facts) { f.Stable, f.WrittenKnown, f.Written = pods(0, 20), false, 5 }),
			100, guard.ReasonNoPods, "canary at 100 of 100: neither canary nor stable has an available replica",
		},

		// Rule 4
		"a canary at full size gets everything": {
			rollback(20),
			100, guard.ReasonEnoughPods, "canary at 100 of 100: 20 of 20 replicas available",
		},
		"more canary pods than needed get the full weight and no more": {
			with(rollback(30), func(f *guard.Facts) { f.Desired = 70 }),
			70, guard.ReasonEnoughPods, "canary at 70 of 70: 30 of 14 replicas available",
		},
		"a step weight needs its share of the pods, rounded up": {
			with(rollback(1), func(f *guard.Facts) { f.Desired, f.Intended = 10, 2 }),
			5, guard.ReasonProportional, "canary held at 5 of 10: 1 of 2 replicas available",
		},
		"one percent of twenty replicas needs one pod": {
			with(rollback(1), func(f *guard.Facts) { f.Desired, f.Intended = 1, 1 }),
			1, guard.ReasonEnoughPods, "canary at 1 of 1: 1 of 1 replicas available",
		},
		"one pod by setCanaryScale gets the half that was asked for": {
			with(rollback(1), func(f *guard.Facts) { f.Desired, f.Intended = 50, 1 }),
			50, guard.ReasonEnoughPods, "canary at 50 of 50: 1 of 1 replicas available",
		},
		"a canary that is meant to have no pods needs one all the same": {
			with(rollback(1), func(f *guard.Facts) { f.Desired, f.Intended = 50, 0 }),
			50, guard.ReasonEnoughPods, "canary at 50 of 50: 1 of 1 replicas available",
		},
		"a canary on its way to a higher step is not held for the weight of the present one": {
			with(rollback(2), func(f *guard.Facts) { f.Desired, f.Intended = 10, 10 }),
			10, guard.ReasonEnoughPods, "canary at 10 of 10: 2 of 2 replicas available",
		},
		"a threshold of 90 percent releases 9 of 10": {
			guard.Facts{Desired: 100, Max: 100, Replicas: 10, Intended: 10, Canary: pods(9, 10), Stable: pods(10, 10), Threshold: percent(90)},
			100, guard.ReasonEnoughPods, "canary at 100 of 100: 9 of 10 replicas available, 9 are enough by replicaProgressThreshold",
		},
		"a threshold of 90 percent holds 8 of 10 by the whole need": {
			guard.Facts{Desired: 100, Max: 100, Replicas: 10, Intended: 10, Canary: pods(8, 10), Stable: pods(10, 10), Threshold: percent(90)},
			80, guard.ReasonProportional, "canary held at 80 of 100: 8 of 10 replicas available",
		},
		"a threshold of 33 percent of 10 pods needs four": {
			guard.Facts{Desired: 100, Max: 100, Replicas: 10, Intended: 10, Canary: pods(3, 10), Stable: pods(10, 10), Threshold: percent(33)},
			30, guard.ReasonProportional, "canary held at 30 of 100: 3 of 10 replicas available",
		},
		"a threshold of 3 pods releases 3 of 20": {
			with(rollback(3), func(f *guard.Facts) { f.Threshold = podCount(3) }),
			100, guard.ReasonEnoughPods, "canary at 100 of 100: 3 of 20 replicas available, 3 are enough by replicaProgressThreshold",
		},
		"a threshold of more pods than needed does not raise the need": {
			with(rollback(20), func(f *guard.Facts) { f.Threshold = podCount(50) }),
			100, guard.ReasonEnoughPods, "canary at 100 of 100: 20 of 20 replicas available",
		},
		"a threshold above 100 percent does not raise the need": {
			with(rollback(20), func(f *guard.Facts) { f.Threshold = percent(150) }),
			100, guard.ReasonEnoughPods, "canary at 100 of 100: 20 of 20 replicas available",
		},
		"a negative threshold counts for nothing, as in the controller": {
			with(rollback(2), func(f *guard.Facts) { f.Threshold = podCount(-1) }),
			10, guard.ReasonProportional, "canary held at 10 of 100: 2 of 20 replicas available",
		},

		// Rule 5
		"the incident: 2 of 20 pods get 10 of 100": {
			rollback(2),
			10, guard.ReasonProportional, "canary held at 10 of 100: 2 of 20 replicas available",
		},
		"the incident with a last step of 70: 2 of 20 pods get 10 as well": {
			with(rollback(2), func(f *guard.Facts) { f.Desired = 70 }),
			10, guard.ReasonProportional, "canary held at 10 of 70: 2 of 14 replicas available",
		},
		"the proportional share is rounded down": {
			guard.Facts{Desired: 100, Max: 100, Replicas: 3, Intended: 3, Canary: pods(2, 3), Stable: pods(3, 3)},
			66, guard.ReasonProportional, "canary held at 66 of 100: 2 of 3 replicas available",
		},
		"a maximum of 1000 is counted in tenths of a percent": {
			with(rollback(1), func(f *guard.Facts) { f.Desired, f.Max = 1000, 1000 }),
			50, guard.ReasonProportional, "canary held at 50 of 1000: 1 of 20 replicas available",
		},
		"minPodsPerReplicaSet does not hold back a small weight": {
			with(rollback(1), func(f *guard.Facts) { f.Desired, f.Intended = 5, 2 }),
			5, guard.ReasonEnoughPods, "canary at 5 of 5: 1 of 1 replicas available",
		},

		// Rule 6
		"a stable smaller than the canary is relieved by equal load": {
			with(rollback(6), func(f *guard.Facts) { f.Stable = pods(4, 4) }),
			60, guard.ReasonEqualLoad, "canary held at 60 of 100: 6 of 20 replicas available, as busy as the 4 of the stable",
		},
		"a canary alone gets everything, as there is nobody else": {
			with(rollback(1), func(f *guard.Facts) { f.Stable = pods(0, 20) }),
			100, guard.ReasonEqualLoad, "canary at 100 of 100: 1 of 20 replicas available, as busy as the 0 of the stable",
		},
		"an autoscaler's new count does not throw back a canary that carries its part": {
			with(rollback(8), func(f *guard.Facts) { f.Desired, f.Intended, f.Stable = 50, 10, pods(8, 20) }),
			50, guard.ReasonEqualLoad, "canary at 50 of 50: 8 of 10 replicas available, as busy as the 8 of the stable",
		},

		// Bad input
		"negative pod counts are read as none": {
			with(rollback(-3), func(f *guard.Facts) { f.Stable = pods(2, 20) }),
			0, guard.ReasonNoCanaryPods, "canary held at 0 of 100: 0 of 20 replicas available",
		},
		"negative spec.replicas is read as 0": {
			with(rollback(1), func(f *guard.Facts) { f.Replicas = -5 }),
			100, guard.ReasonNoReplicasAsked, "canary at 100 of 100: spec.replicas is 0",
		},
		"the largest numbers there are do not overflow": {
			guard.Facts{
				Desired: math.MaxInt32, Max: math.MaxInt32, Replicas: math.MaxInt32, Intended: math.MaxInt32,
				Canary: pods(math.MaxInt32-1, math.MaxInt32), Stable: pods(math.MaxInt32, math.MaxInt32),
			},
			math.MaxInt32 - 1, guard.ReasonProportional,
			"canary held at 2147483646 of 2147483647: 2147483646 of 2147483647 replicas available",
		},
		"a written weight out of range is brought into it": {
			with(rollback(0), func(f *guard.Facts) { f.Stable, f.Written = pods(0, 0), -7 }),
			0, guard.ReasonNoPods, "canary left at 0 of 100: neither canary nor stable has an available replica",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			d := guard.Decide(tc.facts)
			if d.Weight != tc.weight || d.Reason != tc.reason {
				t.Errorf("weight %d (%s), want %d (%s)", d.Weight, d.Reason, tc.weight, tc.reason)
			}
			if diff := cmp.Diff(tc.message, d.Message()); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecisionCarriesWhatItRestsOn(t *testing.T) {
	got := guard.Decide(with(rollback(8), func(f *guard.Facts) { f.Desired, f.Threshold = 130, percent(90) }))
	want := guard.Decision{
		Desired: 100, Weight: 40, Max: 100, Need: 20, Enough: 18,
		Canary: pods(8, 20), Stable: pods(20, 20), Reason: guard.ReasonProportional,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if got, want := got.String(), "canary held at 40 of 100: 8 of 20 replicas available (Proportional)"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

func TestRolloutFacts(t *testing.T) {
	thousand, two, five := int32(1000), int32(2), int32(5)
	threshold := percent(90)
	full := &v1alpha1.Rollout{}
	full.Spec.Replicas = &five
	full.Spec.Strategy.Canary = &v1alpha1.CanaryStrategy{
		DynamicStableScale: true, MinPodsPerReplicaSet: &two, ReplicaProgressThreshold: threshold,
		TrafficRouting: &v1alpha1.RolloutTrafficRouting{MaxTrafficWeight: &thousand},
	}
	bare := &v1alpha1.Rollout{}
	bare.Spec.Strategy.Canary = &v1alpha1.CanaryStrategy{}
	aborted := bare.DeepCopy()
	aborted.Status.Abort = true
	backAtStable := bare.DeepCopy()
	backAtStable.Status.CurrentPodHash, backAtStable.Status.StableRS = "s1", "s1"
	underway := bare.DeepCopy()
	underway.Status.CurrentPodHash, underway.Status.StableRS = "c2", "s1"

	for sentence, tc := range map[string]struct {
		rollout *v1alpha1.Rollout
		want    guard.Facts
	}{
		"everything that is set is taken over": {
			full, guard.Facts{Max: 1000, Replicas: 5, MinPods: 2, Threshold: threshold, DynamicStableScale: true},
		},
		"what is not set has the controller's defaults":         {bare, guard.Facts{Max: 100, Replicas: 1}},
		"an aborted Rollout is on its way back":                 {aborted, guard.Facts{Max: 100, Replicas: 1, Returning: true}},
		"a Rollout set back to its stable is on its way back":   {backAtStable, guard.Facts{Max: 100, Replicas: 1, Returning: true}},
		"a Rollout in the middle of its steps is not":           {underway, guard.Facts{Max: 100, Replicas: 1}},
		"a Rollout without a canary strategy does not crash us": {&v1alpha1.Rollout{}, guard.Facts{Max: 100, Replicas: 1}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, guard.RolloutFacts(tc.rollout)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}
