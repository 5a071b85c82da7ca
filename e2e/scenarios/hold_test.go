package scenarios

import (
	"context"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// dynamicStable turns dynamicStableScale on, which refuses a scale-down delay.
func dynamicStable(ro *v1alpha1.Rollout) {
	ro.Spec.Strategy.Canary.DynamicStableScale = true
	ro.Spec.Strategy.Canary.ScaleDownDelaySeconds = nil
}

func TestMaxHoldEndsAHold(t *testing.T) {
	t.Parallel()
	const maxHold = 6 * time.Second
	i := Incident{Level: Subset, Replicas: 6, Last: 100, Ready: 2, Edit: dynamicStable}
	w := i.Workload(Plugin)
	w.Guard = map[string]any{"maxHold": maxHold.String()}
	recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
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
		// As long as the reconciles are ended no status is written.
		if _, err := s.Await(ctx, "a status during the hold", func(st timeline.State) bool {
			return held(st) && st.Rollout.DesiredWeight == i.Last
		}); err != nil {
			return err
		}
		if err := s.Gate.Limit(HashSelector(old), -1); err != nil {
			return err
		}
		return promoted(ctx, s, Rollback)
	})
	// After maxHold the controller scales the stable away; see the documentation.
	hold(t, recorded, withFailures(rollbackLimits()))
	endsPromoted(t, recorded)
	rollback, err := recorded.Since(Rollback)
	if err != nil {
		t.Fatal(err)
	}
	began, ended := heldUntilStatus(rollback.States(), i.Last)
	if lasted := ended - began; lasted < maxHold-timeline.DefaultLag {
		t.Errorf("the hold of the reconciles lasted %s, maxHold is %s", lasted, maxHold)
	}
}

// held is whether the canary of a rollback has some weight and not all of it.
func held(s timeline.State) bool {
	return isRollback(s) && s.CanaryWeight > 0 && s.CanaryWeight < s.Max
}

func isRollback(s timeline.State) bool {
	return s.CanaryHash == s.Rollout.PodHash && s.CanaryHash != s.StableHash
}

// heldUntilStatus tells when the hold began with its last pod, and when the
// status showed the weight that was asked for. A hold begins anew with each pod, the
// first one included, which has to wait for its first request.
func heldUntilStatus(states []timeline.State, last int32) (began, ended time.Duration) {
	var available int32
	for _, s := range states {
		if !isRollback(s) {
			continue
		}
		if pods := s.Pods[s.CanaryHash].Available; pods > available {
			began, available = s.At, pods
		}
		if held(s) && s.Rollout.DesiredWeight == last {
			return began, s.At
		}
	}
	return 0, 0
}

func TestDynamicStableScaleKeepsTheStableWhileACanaryIsHeldInMidStep(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		w := canary(level, SetWeight(20), Pause(1), SetWeight(50), Pause(600))
		w.Edit = dynamicStable
		recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
			if err := atWeight(ctx, s, 50); err != nil {
				return err
			}
			if _, err := s.Await(ctx, "the stable scaled to its half", func(st timeline.State) bool {
				return st.Pods[st.StableHash].Size == 5 && st.Pods[st.StableHash].Available == 5
			}); err != nil {
				return err
			}
			hash, err := s.Hash(ctx)
			if err != nil {
				return err
			}
			s.Mark("pod fails")
			if err := s.FailOne(ctx, hash, true); err != nil {
				return err
			}
			if _, err := s.Await(ctx, "a lower weight", func(st timeline.State) bool { return st.CanaryWeight < 50 }); err != nil {
				return err
			}
			if err := sleep(ctx, 5*time.Second); err != nil {
				return err
			}
			s.Mark("pod is back")
			if err := s.FailOne(ctx, hash, false); err != nil {
				return err
			}
			_, err = s.Await(ctx, "weight 50 again", func(st timeline.State) bool { return st.CanaryWeight == 50 })
			return err
		})
		hold(t, recorded, limits("", "", 0))
		for _, s := range between(t, recorded, "pod fails", "pod is back") {
			if size := s.Pods[s.StableHash].Size; size < 5 {
				t.Errorf("at %s the stable was scaled to %d under a held canary", s.At, size)
			}
		}
	})
}

func TestASickStableDoesNotBlockTheCanaryThatFixesIt(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		w := canary(level, SetWeight(50), Pause(1), SetWeight(100))
		recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
			if err := deployed(ctx, s); err != nil {
				return err
			}
			sick, err := s.Hash(ctx)
			if err != nil {
				return err
			}
			if err := s.Fail(ctx, sick, true); err != nil {
				return err
			}
			if _, err := s.Await(ctx, "a stable without a ready pod", func(st timeline.State) bool { return st.Pods[sick].Available == 0 }); err != nil {
				return err
			}
			if err := s.Deploy(ctx, "fix", 2); err != nil {
				return err
			}
			return promoted(ctx, s, "fix")
		})
		l := limits("fix", "Healthy", time.Minute)
		// The controller does not call the router at all as long as the stable lacks
		// pods for its part: until the canary can take everything nothing can help.
		l.Grace = time.Minute
		hold(t, recorded, l)
		endsPromoted(t, recorded)
	})
}
