package scenarios

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func TestAnOldAndANewLeaderDoNotFightOverTheWeights(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		id := "old-leader-" + string(level)
		old := ownController(t, lab.ControllerOptions{InstanceID: id})
		w := canary(level, SetWeight(30), Pause(600), SetWeight(60), Pause(600))
		recorded := play(t, old, w, func(ctx context.Context, s *Scene) error {
			if err := atWeight(ctx, s, 30); err != nil {
				return err
			}
			if _, err := s.Await(ctx, "the pause", func(st timeline.State) bool { return st.Is("Paused") }); err != nil {
				return err
			}
			// The old leader hangs, and its plugin lives on.
			if err := old.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			defer func() { _ = old.Signal(syscall.SIGCONT) }()
			// The last of two flags of one name counts: this one sees the same Rollouts.
			heir := ownController(t, lab.ControllerOptions{InstanceID: "new-leader-" + string(level), Args: []string{"--instance-id=" + id}})
			if err := resume(ctx, s, 60); err != nil {
				return err
			}
			if err := failAndRecover(ctx, s, 60); err != nil {
				return err
			}
			// For a moment both are at work.
			s.Mark("both")
			if err := old.Signal(syscall.SIGCONT); err != nil {
				return err
			}
			if err := sleep(ctx, 5*time.Second); err != nil {
				return err
			}
			old.Stop()
			s.Mark("old leader gone")
			if err := s.PromoteFull(ctx, "promote"); err != nil {
				return err
			}
			err := promoted(ctx, s, "promote")
			for _, line := range faults(t, heir) {
				t.Errorf("in the new leader's log: %s", line)
			}
			return err
		})
		hold(t, recorded, withFailures(limits("promote", "Healthy", time.Minute)))
		endsPromoted(t, recorded)
		// What a process sees of the pods may be a moment older than what the other
		// has already acted on: that may be put right once, and is no fight.
		if n := turns(between(t, recorded, "pods fail", "pods recover"), -1); n > 1 {
			t.Errorf("while pods were lost the weight rose %d times", n)
		}
		if n := turns(between(t, recorded, "pods recover", "both"), +1); n > 1 {
			t.Errorf("while pods came back the weight fell %d times", n)
		}
		// The old leader's first look is at the Rollout as it was when it stopped. Its
		// plugin finds the other's write, and that the Rollout has moved on.
		both := between(t, recorded, "both", "old leader gone")
		if n := turns(both, +1); n > 0 {
			t.Errorf("while both leaders were at work the weight fell %d times", n)
		}
		for _, s := range both {
			if s.CanaryWeight > 60 {
				t.Errorf("at %s the canary had weight %d while both leaders were at work", s.At, s.CanaryWeight)
			}
		}
		if last := both[len(both)-1]; last.CanaryWeight != 60 {
			t.Errorf("both leaders together ended at weight %d, want 60", last.CanaryWeight)
		}
	})
}

// turns counts the changes of the canary's weight against a direction.
func turns(states []timeline.State, direction int32) int {
	n := 0
	for i := 1; i < len(states); i++ {
		if (states[i].CanaryWeight-states[i-1].CanaryWeight)*direction < 0 {
			n++
		}
	}
	return n
}

// resume ends a pause, as the Rollouts CLI does, and waits for the next weight.
func resume(ctx context.Context, s *Scene, weight int32) error {
	if err := s.Resume(ctx); err != nil {
		return err
	}
	_, err := s.Await(ctx, "the next weight", func(st timeline.State) bool { return st.CanaryWeight == weight })
	return err
}

// failAndRecover makes all pods of the canary fail, and passes on when they and
// their weight are back.
func failAndRecover(ctx context.Context, s *Scene, weight int32) error {
	hash, err := s.Hash(ctx)
	if err != nil {
		return err
	}
	s.Mark("pods fail")
	if err := s.Fail(ctx, hash, true); err != nil {
		return err
	}
	if _, err := s.Await(ctx, "weight 0", func(st timeline.State) bool { return st.CanaryWeight == 0 }); err != nil {
		return err
	}
	if err := sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	s.Mark("pods recover")
	if err := s.Fail(ctx, hash, false); err != nil {
		return err
	}
	_, err = s.Await(ctx, "the weight again", func(st timeline.State) bool { return st.CanaryWeight == weight })
	return err
}
