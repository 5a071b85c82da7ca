package scenarios

import (
	"context"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func TestARolloutTakesADeploymentOverAndTheTrafficStaysWithWhoHasPods(t *testing.T) {
	t.Parallel()
	for scaleDown, left := range map[string]int32{
		v1alpha1.ScaleDownNever: 6, v1alpha1.ScaleDownOnSuccess: 0, v1alpha1.ScaleDownProgressively: 0,
	} {
		t.Run("scaleDown "+scaleDown, func(t *testing.T) {
			t.Parallel()
			w := Workload{Level: Subset, Router: Plugin, Replicas: 6, From: scaleDown, Steps: []v1alpha1.CanaryStep{SetWeight(50), Pause(1)}}
			recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
				// One pod after the other, so that there is a time in between.
				if err := s.Gate.Delay(v1alpha1.DefaultRolloutUniqueLabelKey, 2*time.Second); err != nil {
					return err
				}
				if err := s.Migrate(ctx, "migration"); err != nil {
					return err
				}
				if err := promoted(ctx, s, "migration"); err != nil {
					return err
				}
				err := lab.Until(ctx, "the Deployment's size after the migration", func(ctx context.Context) (bool, error) {
					pods, err := s.DeploymentPods(ctx)
					return pods == left, err
				})
				if err != nil {
					return err
				}
				if err := s.Deploy(ctx, "upgrade", 2); err != nil {
					return err
				}
				return promoted(ctx, s, "upgrade")
			})
			hold(t, recorded, limits("upgrade", "Healthy", time.Minute))
			endsPromoted(t, recorded)
			namesWhoHasPods(t, between(t, recorded, "migration", "upgrade"))
		})
	}
}

// namesWhoHasPods: until the first revision has all of its pods the stable side
// names no hash, and so takes the Deployment's pods, too; the canary side gets
// nothing in all that time.
func namesWhoHasPods(t *testing.T, states []timeline.State) {
	t.Helper()
	open := 0
	for _, s := range states {
		if s.CanaryWeight != 0 {
			t.Errorf("at %s the canary had weight %d during the migration", s.At, s.CanaryWeight)
		}
		if s.StableHash == "" {
			open++
			continue
		}
		if available := s.Pods[s.StableHash].Available; available < s.Rollout.Replicas {
			t.Errorf("at %s the stable side named %s with %d of %d pods", s.At, s.StableHash, available, s.Rollout.Replicas)
		}
	}
	if open == 0 {
		t.Error("the stable side named a hash from the beginning")
	}
}
