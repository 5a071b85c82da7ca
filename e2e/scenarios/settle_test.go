package scenarios

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func TestASettleSurvivesTheEndOfThePlugin(t *testing.T) {
	t.Parallel()
	const settle = 6 * time.Second
	c := ownController(t, lab.ControllerOptions{InstanceID: "settle"})
	w := canary(Subset, SetWeight(30), Pause(2), SetWeight(60), Pause(1))
	w.Guard = map[string]any{"settle": settle.String()}
	recorded := play(t, c, w, func(ctx context.Context, s *Scene) error {
		if err := atWeight(ctx, s, 30); err != nil {
			return err
		}
		if err := s.Deploy(ctx, "superseded", 3); err != nil {
			return err
		}
		if _, err := s.Await(ctx, "weight 0 for the superseded canary", func(st timeline.State) bool { return st.CanaryWeight == 0 }); err != nil {
			return err
		}
		if _, err := c.KillPlugin(syscall.SIGKILL); err != nil {
			return err
		}
		return promoted(ctx, s, "superseded")
	})
	hold(t, recorded, limits("superseded", "Healthy", time.Minute))
	endsPromoted(t, recorded)
	lowered, moved := moveAfterLowering(t, recorded)
	// A moment is the arrival of a watch, which may lag behind the write itself.
	if waited := moved - lowered; waited < settle-timeline.DefaultLag {
		t.Errorf("the canary's label moved %s after the weight was lowered, settle is %s", waited, settle)
	}
}

// moveAfterLowering tells when the superseded canary lost its weight, and when
// the canary's label then moved.
func moveAfterLowering(t *testing.T, recorded timeline.Timeline) (lowered, moved time.Duration) {
	t.Helper()
	superseded, err := recorded.Since("superseded")
	if err != nil {
		t.Fatal(err)
	}
	states := superseded.States()
	before := states[0].CanaryHash
	for _, s := range states {
		if lowered == 0 && s.CanaryWeight == 0 {
			lowered = s.At
		}
		if s.CanaryHash != before {
			return lowered, s.At
		}
	}
	t.Fatal("the canary's label never moved")
	return 0, 0
}
