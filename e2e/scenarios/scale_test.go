package scenarios

import (
	"context"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func TestReplicasThatChangeOnAnAbortedRolloutLeaveTheTrafficWithTheStable(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		w := canary(level, SetWeight(25), Pause(600), SetWeight(50), Pause(1))
		w.Replicas = 8
		recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
			if err := atWeight(ctx, s, 25); err != nil {
				return err
			}
			if err := s.Abort(ctx, "abort"); err != nil {
				return err
			}
			if _, err := s.Await(ctx, "weight 0 after the abort", func(st timeline.State) bool { return st.CanaryWeight == 0 }); err != nil {
				return err
			}
			s.Mark("scaled")
			for _, replicas := range []int32{20, 8} {
				if err := scaledStable(ctx, s, replicas); err != nil {
					return err
				}
			}
			if err := s.Retry(ctx, "retry"); err != nil {
				return err
			}
			if _, err := s.Await(ctx, "weight 25 again", func(st timeline.State) bool { return st.CanaryWeight == 25 }); err != nil {
				return err
			}
			if err := s.PromoteFull(ctx, "promote"); err != nil {
				return err
			}
			return promoted(ctx, s, "promote")
		})
		hold(t, recorded, limits("promote", "Healthy", time.Minute))
		endsPromoted(t, recorded)
		for _, s := range between(t, recorded, "scaled", "retry") {
			if s.CanaryWeight != 0 {
				t.Errorf("at %s the aborted canary had weight %d", s.At, s.CanaryWeight)
				break // the states after it would say the same
			}
		}
	})
}

// scaledStable sets spec.replicas and waits until the stable has that many pods.
func scaledStable(ctx context.Context, s *Scene, replicas int32) error {
	if err := s.Scale(ctx, replicas); err != nil {
		return err
	}
	_, err := s.Await(ctx, "the stable at its new size", func(st timeline.State) bool {
		return st.Pods[st.StableHash].Available == replicas && st.Pods[st.StableHash].Size == replicas
	})
	return err
}
