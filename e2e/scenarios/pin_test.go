package scenarios

import (
	"context"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// pinAnnotation is the operator's brake.
const pinAnnotation = "istio.argoproj-labs.io/pin-canary-weight"

func TestAPinHoldsTheCanaryUntilItIsRemoved(t *testing.T) {
	t.Parallel()
	w := canary(Subset, SetWeight(10), Pause(1), SetWeight(50), Pause(1))
	recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
		if err := atWeight(ctx, s, 10); err != nil {
			return err
		}
		s.Mark("pinned")
		if err := s.Annotate(ctx, pinAnnotation, "20"); err != nil {
			return err
		}
		if _, err := s.Await(ctx, "the pinned weight", func(st timeline.State) bool { return st.CanaryWeight == 20 }); err != nil {
			return err
		}
		// Longer than all that is left of the steps.
		if err := sleep(ctx, 12*time.Second); err != nil {
			return err
		}
		s.Mark("unpinned")
		if err := s.Annotate(ctx, pinAnnotation, ""); err != nil {
			return err
		}
		return promoted(ctx, s, "unpinned")
	})
	hold(t, recorded, limits("unpinned", "Healthy", time.Minute))
	endsPromoted(t, recorded)
	pinned := between(t, recorded, "pinned", "unpinned")
	heldByPin(t, pinned)
	for reason, states := range map[string][]timeline.State{"CanaryWeightPinned": pinned, "CanaryWeightUnpinned": recorded.States()} {
		if n := count(states[len(states)-1].Events, reason); n != 1 {
			t.Errorf("%d Events %s, want 1", n, reason)
		}
	}
}

// heldByPin: one write brings the weight to the pin, and from then on nothing
// is written, the controller is told that the weight is not verified, and the
// step is not completed.
func heldByPin(t *testing.T, pinned []timeline.State) {
	t.Helper()
	writes, reached, unverified := 0, false, false
	for _, s := range pinned {
		switch s.Entry.Fact.(type) {
		case timeline.VirtualService, timeline.DestinationRule:
			writes++
		}
		if s.CanaryWeight > 20 {
			t.Errorf("at %s the pinned canary had weight %d", s.At, s.CanaryWeight)
		}
		reached = reached || s.CanaryWeight == 20
		unverified = unverified || reached && s.Rollout.DesiredWeight == 50 && s.Rollout.Verified != nil && !*s.Rollout.Verified
		if s.Rollout.StepIndex > 2 {
			t.Errorf("at %s the step was completed in spite of the pin", s.At)
		}
	}
	if writes != 1 {
		t.Errorf("%d writes while the canary was pinned, want the one that brings it to the pin", writes)
	}
	if !unverified {
		t.Error("no status said that the pinned weight is not the one that was asked for")
	}
}

// between are the states from one mark to the next.
func between(t *testing.T, recorded timeline.Timeline, from, to string) []timeline.State {
	t.Helper()
	cut, err := recorded.Since(from)
	if err != nil {
		t.Fatal(err)
	}
	var states []timeline.State
	for _, s := range cut.States() {
		if _, mark := s.Entry.Fact.(timeline.Mark); mark && s.Entry.Name == to {
			return states
		}
		states = append(states, s)
	}
	t.Fatalf("the mark %q was never set", to)
	return nil
}

// count counts the Events of a reason.
func count(events []timeline.Event, reason string) int {
	n := 0
	for _, event := range events {
		if event.Reason == reason {
			n++
		}
	}
	return n
}
