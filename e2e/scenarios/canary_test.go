package scenarios

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// canary is a plain canary of 10 replicas.
func canary(level Level, steps ...v1alpha1.CanaryStep) Workload {
	return Workload{Level: level, Router: Plugin, Replicas: 10, Steps: steps}
}

// eachLevel runs a scenario at host and at subset level, side by side with each
// other and with the other scenarios.
func eachLevel(t *testing.T, scenario func(t *testing.T, level Level)) {
	t.Helper()
	t.Parallel()
	for _, level := range []Level{Host, Subset} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			scenario(t, level)
		})
	}
}

func TestACanaryGoesThroughItsStepsAndLeavesTheRestOfTheObjectsAlone(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		w := canary(level, SetWeight(10), Pause(1), SetWeight(50), Pause(1), SetWeight(100))
		recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
			if err := deployed(ctx, s); err != nil {
				return err
			}
			if err := s.Deploy(ctx, "upgrade", 2); err != nil {
				return err
			}
			return promoted(ctx, s, "upgrade")
		})
		hold(t, recorded, limits("upgrade", "Healthy", time.Minute))
		upgrade, err := recorded.Since("upgrade")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := weightsSeen(upgrade), []int32{10, 50, 100, 0}; !timeline.FollowSteps(got, want) {
			t.Errorf("canary weights were %v, want %v", got, want)
		}
		onlyWeightsAndHashesChanged(t, recorded)
		endsPromoted(t, recorded)
	})
}

// weightsSeen are the canary's weights in the order in which they were written.
func weightsSeen(recorded timeline.Timeline) []int32 {
	states := recorded.States()
	last := states[0].CanaryWeight
	var seen []int32
	for _, s := range states[1:] {
		if s.CanaryWeight != last {
			seen = append(seen, s.CanaryWeight)
			last = s.CanaryWeight
		}
	}
	return seen
}

// onlyWeightsAndHashesChanged compares the first and the last version of each of
// Istio's objects.
func onlyWeightsAndHashesChanged(t *testing.T, recorded timeline.Timeline) {
	t.Helper()
	first := map[timeline.Kind]map[string]any{}
	last := map[timeline.Kind]map[string]any{}
	for _, e := range recorded.Entries {
		if e.Object == nil || e.Deleted {
			continue
		}
		if kind := e.Fact.Kind(); kind == timeline.KindVirtualService || kind == timeline.KindDestinationRule {
			spec := withoutOurs(e.Object)
			if first[kind] == nil {
				first[kind] = spec
			}
			last[kind] = spec
		}
	}
	if len(first) == 0 {
		t.Error("no object of Istio's was recorded")
	}
	if diff := cmp.Diff(first, last); diff != "" {
		t.Errorf("more than weights and hashes changed:\n%s", diff)
	}
}

// withoutOurs is an object's spec, labels and annotations without the two kinds
// of fields that the plugin owns.
func withoutOurs(object *unstructured.Unstructured) map[string]any {
	copied := object.DeepCopy()
	routes, _, _ := unstructured.NestedSlice(copied.Object, "spec", "http")
	for _, route := range routes {
		destinations, _, _ := unstructured.NestedSlice(route.(map[string]any), "route")
		for _, d := range destinations {
			delete(d.(map[string]any), "weight")
		}
		route.(map[string]any)["route"] = destinations
	}
	if routes != nil {
		_ = unstructured.SetNestedSlice(copied.Object, routes, "spec", "http")
	}
	subsets, _, _ := unstructured.NestedSlice(copied.Object, "spec", "subsets")
	for _, subset := range subsets {
		unstructured.RemoveNestedField(subset.(map[string]any), "labels", v1alpha1.DefaultRolloutUniqueLabelKey)
	}
	if subsets != nil {
		_ = unstructured.SetNestedSlice(copied.Object, subsets, "spec", "subsets")
	}
	return map[string]any{"spec": copied.Object["spec"], "labels": copied.GetLabels(), "annotations": copied.GetAnnotations()}
}

// endsPromoted checks the rest of a finished canary: all weight on the stable
// side, which names the present revision.
func endsPromoted(t *testing.T, recorded timeline.Timeline) {
	t.Helper()
	states := recorded.States()
	end := states[len(states)-1]
	if end.CanaryWeight != 0 || end.StableWeight != end.Max {
		t.Errorf("at the end stable/canary are %d/%d", end.StableWeight, end.CanaryWeight)
	}
	if end.StableHash != end.Rollout.PodHash || end.CanaryHash != end.Rollout.PodHash {
		t.Errorf("at the end stable names %q and canary %q, the revision is %q", end.StableHash, end.CanaryHash, end.Rollout.PodHash)
	}
}

func TestAnAbortInMidCanaryTakesAllTrafficBack(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		w := canary(level, SetWeight(10), SetWeight(50), Pause(600))
		recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
			if err := atWeight(ctx, s, 50); err != nil {
				return err
			}
			if err := s.Abort(ctx, "abort"); err != nil {
				return err
			}
			if _, err := s.Await(ctx, "weight 0 after the abort", func(st timeline.State) bool {
				return st.Rollout.Abort && st.CanaryWeight == 0
			}); err != nil {
				return err
			}
			_, err := s.AwaitPhase(ctx, "abort", "Degraded")
			return err
		})
		hold(t, recorded, limits("abort", "Degraded", 20*time.Second))
	})
}

// atWeight deploys revision 1, brings out revision 2 and waits until the canary
// has that weight.
func atWeight(ctx context.Context, s *Scene, weight int32) error {
	if err := deployed(ctx, s); err != nil {
		return err
	}
	if err := s.Deploy(ctx, "upgrade", 2); err != nil {
		return err
	}
	_, err := s.Await(ctx, fmt.Sprintf("canary weight %d", weight), func(st timeline.State) bool {
		return st.CanaryWeight == weight
	})
	return err
}

func TestPromoteFullSkipsTheStepsWithoutOvercommitment(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		w := canary(level, SetWeight(10), Pause(600), SetWeight(50))
		recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
			if err := atWeight(ctx, s, 10); err != nil {
				return err
			}
			if err := s.PromoteFull(ctx, "promote"); err != nil {
				return err
			}
			return promoted(ctx, s, "promote")
		})
		hold(t, recorded, limits("promote", "Healthy", time.Minute))
		endsPromoted(t, recorded)
	})
}

func TestACanaryThatNeverBecomesReadyIsAbortedInTime(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		deadline := int32(10)
		w := canary(level, SetWeight(10), SetWeight(50))
		w.Edit = func(ro *v1alpha1.Rollout) {
			ro.Spec.ProgressDeadlineSeconds, ro.Spec.ProgressDeadlineAbort = &deadline, true
		}
		recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
			if err := deployed(ctx, s); err != nil {
				return err
			}
			stable, err := s.Hash(ctx)
			if err != nil {
				return err
			}
			// Every revision but the first.
			if err := s.Gate.Limit("rollouts-pod-template-hash,rollouts-pod-template-hash!="+stable, 0); err != nil {
				return err
			}
			if err := s.Deploy(ctx, "upgrade", 2); err != nil {
				return err
			}
			_, err = s.AwaitPhase(ctx, "upgrade", "Degraded")
			return err
		})
		hold(t, recorded, limits("upgrade", "Degraded", 40*time.Second))
		upgrade, err := recorded.Since("upgrade")
		if err != nil {
			t.Fatal(err)
		}
		if seen := weightsSeen(upgrade); len(seen) != 0 {
			t.Errorf("a canary without a pod got the weights %v", seen)
		}
	})
}

func TestARollbackOfWhichOnlyAFewPodsEverComeIsAbortedInTime(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		deadline := int32(12)
		i := Incident{Level: level, Replicas: 6, Last: 100, Ready: 2, Edit: func(ro *v1alpha1.Rollout) {
			ro.Spec.ProgressDeadlineSeconds, ro.Spec.ProgressDeadlineAbort = &deadline, true
		}}
		recorded := play(t, controller(t, lab.DefaultVersion), i.Workload(Plugin), func(ctx context.Context, s *Scene) error {
			old, err := i.prepare(ctx, s)
			if err != nil {
				return err
			}
			if err := s.Gate.Limit(HashSelector(old), i.Ready); err != nil {
				return err
			}
			if err := s.Deploy(ctx, Rollback, 1); err != nil {
				return err
			}
			if _, err := s.Await(ctx, "the abort", func(st timeline.State) bool { return st.Rollout.Abort && st.CanaryWeight == 0 }); err != nil {
				return err
			}
			_, err = s.AwaitPhase(ctx, Rollback, "Degraded")
			return err
		})
		hold(t, recorded, limits(Rollback, "Degraded", 45*time.Second))
		rollback, err := recorded.Since(Rollback)
		if err != nil {
			t.Fatal(err)
		}
		// The two pods may be seen one after the other.
		seen := weightsSeen(rollback)
		if len(seen) > 2 && seen[0] == 0 {
			seen = seen[1:] // the traffic was still on its way back from the promotion before
		}
		if !cmp.Equal(seen, []int32{33, 0}) && !cmp.Equal(seen, []int32{16, 33, 0}) {
			t.Errorf("canary weights were %v, want 33 (2 of 6 pods) and then 0", seen)
		}
	})
}

func TestACanaryReplicaSetLeftAtOneOfTenIsScaledUp(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		// The old ReplicaSet is kept by the scale-down delay, then shrunk to one
		// pod by hand: the controller asks for 100 before it has scaled anything.
		delay := int32(600)
		i := Incident{Level: level, Replicas: 10, Last: 100, Edit: func(ro *v1alpha1.Rollout) {
			ro.Spec.Strategy.Canary.ScaleDownDelaySeconds = &delay
		}}
		recorded := play(t, controller(t, lab.DefaultVersion), i.Workload(Plugin), func(ctx context.Context, s *Scene) error {
			if err := deployed(ctx, s); err != nil {
				return err
			}
			old, err := s.Hash(ctx)
			if err != nil {
				return err
			}
			if err := s.Deploy(ctx, "upgrade", 2); err != nil {
				return err
			}
			if _, err := s.AwaitPhase(ctx, "upgrade", "Healthy"); err != nil {
				return err
			}
			if err := s.ScaleReplicaSet(ctx, old, 1); err != nil {
				return err
			}
			if _, err := s.Await(ctx, "one pod of revision 1 is left", func(st timeline.State) bool {
				return st.Pods[old].Size == 1 && st.Pods[old].Available == 1
			}); err != nil {
				return err
			}
			if err := s.Deploy(ctx, Rollback, 1); err != nil {
				return err
			}
			return promoted(ctx, s, Rollback)
		})
		hold(t, recorded, limits(Rollback, "Healthy", time.Minute))
		endsPromoted(t, recorded)
	})
}
