package scenarios

import (
	"context"
	"fmt"
	"testing"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func TestPodsThatLoseALabelOfTheSubsetLoseTheTraffic(t *testing.T) {
	t.Parallel()
	w := canary(Subset, SetWeight(50), Pause(600))
	w.Edit = func(ro *v1alpha1.Rollout) { ro.Spec.Template.Labels = map[string]string{"app": name, "track": "new"} }
	recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
		if err := s.Merge(ctx, destinationRules, name, subsets(`,"track":"new"`)); err != nil {
			return err
		}
		if err := atWeight(ctx, s, 50); err != nil {
			return err
		}
		hash, err := s.Hash(ctx)
		if err != nil {
			return err
		}
		s.Mark("labels changed")
		for _, c := range []struct {
			track  string
			weight int32
		}{{"old", 0}, {"new", 50}} {
			if err := s.LabelPods(ctx, hash, "track", c.track); err != nil {
				return err
			}
			what := fmt.Sprintf("weight %d with pods of track %s", c.weight, c.track)
			if _, err := s.Await(ctx, what, func(st timeline.State) bool { return st.CanaryWeight == c.weight }); err != nil {
				return err
			}
		}
		return nil
	})
	hold(t, recorded, limits("", "", 0))
	changed, err := recorded.Since("labels changed")
	if err != nil {
		t.Fatal(err)
	}
	if told(changed, "SubsetMatchesNoPods") == 0 {
		t.Error("no Event SubsetMatchesNoPods")
	}
}
