package gate

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// notPromoted is so while the present revision is not the stable, nor aborted.
func notPromoted(st timeline.State) bool {
	return st.Rollout.StableRS != st.Rollout.PodHash && !st.Rollout.Abort
}

func TestAHealthyCanaryIsPromotedWithoutAnyPause(t *testing.T) {
	t.Parallel()
	for _, level := range []scenarios.Level{scenarios.Subset, scenarios.Host} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			recorded := play(t, gated(level, steps(50), nil), busy, func(ctx context.Context, s *scenarios.Scene, _ *Traffic) error {
				if err := s.Deploy(ctx, "new", 2); err != nil {
					return err
				}
				return promoted(ctx, s, "new")
			})
			eachHasItsWindow(t, recorded, "new", 50, 100)
		})
	}
}

func TestACanaryThatFailsIsPulledBackForGood(t *testing.T) {
	t.Parallel()
	play(t, gated(scenarios.Subset, steps(25, 75), nil), busy, func(ctx context.Context, s *scenarios.Scene, traffic *Traffic) error {
		traffic.Behave(2, Behaviour{Failing: 0.1, Latency: 5})
		if err := s.Deploy(ctx, "sick", 2); err != nil {
			return err
		}
		if err := rolledBack(ctx, s); err != nil {
			return err
		}
		text := event(s.Now(), "CanaryRolledBack")
		if !strings.HasPrefix(text, "rolled back from 25: 5xx ") || !strings.HasSuffix(text, " % over 1 %") {
			t.Errorf("the Event says %q", text)
		}
		hash, err := s.Hash(ctx)
		if err != nil {
			return err
		}
		_, err = s.Await(ctx, "the annotation", func(st timeline.State) bool {
			return st.Rollout.Object.GetAnnotations()["istio.argoproj-labs.io/canary-rolled-back"] == hash+" aborted: "+text
		})
		if err != nil {
			return err
		}
		if err := stays(ctx, s, "pulled back", 2*window, func(st timeline.State) bool { return st.Rollout.Abort && st.CanaryWeight == 0 }); err != nil {
			return err
		}
		// A person who has mended what was wrong outside tries again.
		traffic.Behave(2, Behaviour{Latency: 5})
		if err := s.Retry(ctx, "retried"); err != nil {
			return err
		}
		if err := promoted(ctx, s, "retried"); err != nil {
			return err
		}
		if text, there := s.Now().Rollout.Object.GetAnnotations()["istio.argoproj-labs.io/canary-rolled-back"]; there {
			t.Errorf("the annotation still says %q", text)
		}
		return nil
	})
}

func TestACanaryThatFailsWithAllOfTheTrafficIsNotPromoted(t *testing.T) {
	t.Parallel()
	for _, dynamic := range []bool{false, true} {
		t.Run(fmt.Sprintf("dynamicStableScale %t", dynamic), func(t *testing.T) {
			t.Parallel()
			w := gated(scenarios.Subset, steps(50), nil)
			if dynamic {
				w = dynamicStableScale(w)
			}
			recorded := play(t, w, busy, func(ctx context.Context, s *scenarios.Scene, traffic *Traffic) error {
				if err := s.Deploy(ctx, "sick", 2); err != nil {
					return err
				}
				if err := atWeight(ctx, s, 100); err != nil {
					return err
				}
				traffic.Behave(2, Behaviour{Failing: 0.2})
				return rolledBack(ctx, s)
			})
			states := recorded.States()
			if held := heldAfterTheAbort(states); held > 1 { // one may have been under way
				t.Errorf("SetWeight held the aborted Rollout up %d times", held)
			}
			if last := states[len(states)-1]; last.Rollout.StableRS == last.Rollout.PodHash || !strings.HasPrefix(event(last, "CanaryRolledBack"), "rolled back from 100: 5xx ") {
				t.Errorf("the stable is %s of %s, the Event says %q", last.Rollout.StableRS, last.Rollout.PodHash, event(last, "CanaryRolledBack"))
			}
		})
	}
}

// heldAfterTheAbort counts the errors of SetWeight by which the gate kept the controller
// from taking back the traffic.
func heldAfterTheAbort(states []timeline.State) int {
	held := 0
	for _, st := range states {
		e, isEvent := st.Entry.Fact.(timeline.Event)
		if isEvent && st.Rollout.Abort && strings.Contains(e.Message, "until then the canary is not promoted") {
			held++
		}
	}
	return held
}

func TestDynamicStableScaleIsNoTrouble(t *testing.T) {
	t.Parallel()
	recorded := play(t, dynamicStableScale(gated(scenarios.Subset, steps(50, 100), nil)), busy, func(ctx context.Context, s *scenarios.Scene, _ *Traffic) error {
		if err := s.Deploy(ctx, "new", 2); err != nil {
			return err
		}
		return promoted(ctx, s, "new")
	})
	eachHasItsWindow(t, recorded, "new", 50, 100)
}

func TestARolloutMayNameAnotherServerThatTheOperatorAllows(t *testing.T) {
	t.Parallel()
	other := func(gate map[string]any) {
		gate["provider"] = map[string]any{"prometheus": map[string]any{"address": shared.other.URL}}
	}
	recorded := play(t, gated(scenarios.Subset, steps(50), other), busy, func(ctx context.Context, s *scenarios.Scene, _ *Traffic) error {
		if err := s.Deploy(ctx, "new", 2); err != nil {
			return err
		}
		return promoted(ctx, s, "new")
	})
	eachHasItsWindow(t, recorded, "new", 50, 100)
}

func TestASlowCanaryIsPulledBack(t *testing.T) {
	t.Parallel()
	play(t, gated(scenarios.Host, steps(50), nil), busy, func(ctx context.Context, s *scenarios.Scene, traffic *Traffic) error {
		traffic.Behave(1, Behaviour{Latency: 20})
		traffic.Behave(2, Behaviour{Latency: 90})
		if err := s.Deploy(ctx, "slow", 2); err != nil {
			return err
		}
		if err := rolledBack(ctx, s); err != nil {
			return err
		}
		if text := event(s.Now(), "CanaryRolledBack"); text != "rolled back from 50: mean latency 90 ms over 1.5 times the stable's 20 ms" {
			t.Errorf("the Event says %q", text)
		}
		return nil
	})
}

func TestAQuietServiceWaitsAndIsNoFailure(t *testing.T) {
	t.Parallel()
	recorded := play(t, gated(scenarios.Subset, steps(50), nil), 1, func(ctx context.Context, s *scenarios.Scene, traffic *Traffic) error {
		traffic.Behave(2, Behaviour{Failing: 1}) // nobody learns that from so few
		if err := s.Deploy(ctx, "quiet", 2); err != nil {
			return err
		}
		if err := atWeight(ctx, s, 50); err != nil {
			return err
		}
		if err := told(ctx, s, "CanaryHeldByHealthGate", "of at least 20 requests on the canary in 10s"); err != nil {
			return err
		}
		if err := stays(ctx, s, "held at 50", 2*window, func(st timeline.State) bool { return notPromoted(st) && st.CanaryWeight == 50 }); err != nil {
			return err
		}
		traffic.Behave(2, Behaviour{})
		traffic.Rate(busy)
		return promoted(ctx, s, "quiet")
	})
	eachHasItsWindow(t, recorded, "quiet", 50, 100)
}

func TestASourceThatIsAwayHoldsAndNeverPullsBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	own, err := shared.lab.StartPrometheus(ctx, lab.PrometheusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Stop)
	fleet, err := NewFleet(own)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fleet.Close() })
	controller, err := shared.lab.StartController(ctx, lab.ControllerOptions{
		InstanceID: "away", PluginPath: shared.plugin, PluginArgs: []string{"--prometheus-address=" + own.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(controller.Stop)
	recorded := playWith(t, controller, fleet, gated(scenarios.Subset, steps(50), nil), busy, func(ctx context.Context, s *scenarios.Scene, traffic *Traffic) error {
		if err := own.Kill(); err != nil {
			return err
		}
		if err := s.Deploy(ctx, "away", 2); err != nil {
			return err
		}
		if err := told(ctx, s, "CanaryHeldByHealthGate", "the numbers cannot be had: "); err != nil {
			return err
		}
		held := func(st timeline.State) bool { return notPromoted(st) && st.CanaryWeight == 50 }
		if err := stays(ctx, s, "held without numbers", 2*window, held); err != nil {
			return err
		}
		// What it counts when it comes back is older than any window: a failure of a time
		// that nobody saw.
		traffic.Behave(2, Behaviour{Failing: 1})
		time.Sleep(time.Second)
		traffic.Behave(2, Behaviour{})
		if err := own.Start(ctx); err != nil {
			return err
		}
		if err := promoted(ctx, s, "away"); err != nil {
			return err
		}
		// A new process of the plugin knows nothing, and begins with a whole window.
		if err := s.Deploy(ctx, "restarted", 3); err != nil {
			return err
		}
		for _, weight := range []int32{50, 100} {
			if err := atWeight(ctx, s, weight); err != nil {
				return err
			}
			time.Sleep(window / 2)
			if _, err := controller.KillPlugin(syscall.SIGKILL); err != nil {
				return err
			}
		}
		return promoted(ctx, s, "restarted")
	})
	eachHasItsWindow(t, recorded, "restarted", 50, 100)
}

func TestAStableThatFailsDoesNotHoldUpTheCanaryThatMendsIt(t *testing.T) {
	t.Parallel()
	recorded := play(t, gated(scenarios.Subset, steps(50), nil), busy, func(ctx context.Context, s *scenarios.Scene, traffic *Traffic) error {
		traffic.Behave(1, Behaviour{Failing: 0.6, Latency: 1}) // failing is fast
		traffic.Behave(2, Behaviour{Latency: 60})
		if err := s.Deploy(ctx, "mends", 2); err != nil {
			return err
		}
		return promoted(ctx, s, "mends")
	})
	eachHasItsWindow(t, recorded, "mends", 50, 100)
}

func TestARollbackInAnIncidentIsNotCancelledByWhatItReplaces(t *testing.T) {
	t.Parallel()
	recorded := play(t, gated(scenarios.Subset, steps(50), nil), busy, func(ctx context.Context, s *scenarios.Scene, traffic *Traffic) error {
		if err := promotedByHand(ctx, s, "new", 2); err != nil {
			return err
		}
		traffic.Behave(2, Behaviour{Failing: 0.9, Latency: 1})
		time.Sleep(window / 2)
		if err := s.Deploy(ctx, "back", 1); err != nil {
			return err
		}
		return promoted(ctx, s, "back")
	})
	eachHasItsWindow(t, recorded, "back", 100)
}

func TestARollbackThatIsSickItselfIsHeldAndNotPulledBack(t *testing.T) {
	t.Parallel()
	play(t, gated(scenarios.Subset, steps(50), nil), busy, func(ctx context.Context, s *scenarios.Scene, traffic *Traffic) error {
		if err := promotedByHand(ctx, s, "new", 2); err != nil {
			return err
		}
		traffic.Behave(1, Behaviour{Failing: 0.5})
		if err := s.Deploy(ctx, "back", 1); err != nil {
			return err
		}
		if err := told(ctx, s, "CanaryHeldByHealthGate", "the controller would take back an abort within rollbackWindow"); err != nil {
			return err
		}
		held := func(st timeline.State) bool { return notPromoted(st) && st.CanaryWeight == 100 }
		if err := stays(ctx, s, "held with all of the traffic", 2*window, held); err != nil {
			return err
		}
		traffic.Behave(1, Behaviour{})
		return promoted(ctx, s, "back")
	})
}

func TestCountersThatBeginAnewAreNoTrouble(t *testing.T) {
	t.Parallel()
	recorded := play(t, gated(scenarios.Subset, steps(50), nil), busy, func(ctx context.Context, s *scenarios.Scene, traffic *Traffic) error {
		resets, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			for range 1000 {
				select {
				case <-resets.Done():
					return
				case <-time.After(4 * time.Second):
					traffic.Restart()
				}
			}
		}()
		if err := s.Deploy(ctx, "new", 2); err != nil {
			return err
		}
		return promoted(ctx, s, "new")
	})
	eachHasItsWindow(t, recorded, "new", 50, 100)
}

func TestNoPromotionSlipsThroughAndNothingDeadlocks(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(fmt.Sprintf("Rollout %d", i), func(t *testing.T) {
			t.Parallel()
			level := []scenarios.Level{scenarios.Subset, scenarios.Host}[i%2]
			play(t, gated(level, steps(50), nil), 0, func(ctx context.Context, s *scenarios.Scene, traffic *Traffic) error {
				if err := promotedByHand(ctx, s, "new", 2); err != nil {
					return err
				}
				// The steps are skipped: the canary grows from nothing to all at the end, and is
				// promoted in the moment in which the controller sees the last pod. Nobody asks
				// for anything, so the gate can never let it go.
				if err := s.Deploy(ctx, "back", 1); err != nil {
					return err
				}
				if err := atWeight(ctx, s, 100); err != nil {
					return err
				}
				if err := stays(ctx, s, "held at the end", 2*window, notPromoted); err != nil {
					return err
				}
				// An autoscaler's change is carried out all the same.
				if err := s.Scale(ctx, 4); err != nil {
					return err
				}
				_, err := s.Await(ctx, "four canary pods", func(st timeline.State) bool { return st.Pods[st.Rollout.PodHash].Available == 4 })
				if err != nil {
					return err
				}
				if err := stays(ctx, s, "held at the end, with more pods", window, notPromoted); err != nil {
					return err
				}
				traffic.Rate(busy)
				return promoted(ctx, s, "back")
			})
		})
	}
}
