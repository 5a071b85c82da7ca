package scenarios

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func TestThePluginLowersTheWeightWhileTheControllerStandsStill(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		c := ownController(t, lab.ControllerOptions{InstanceID: "stopped-" + string(level)})
		w := canary(level, SetWeight(50), Pause(600))
		recorded := play(t, c, w, func(ctx context.Context, s *Scene) error {
			if err := atWeight(ctx, s, 50); err != nil {
				return err
			}
			hash, err := s.Hash(ctx)
			if err != nil {
				return err
			}
			if err := c.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			defer func() { _ = c.Signal(syscall.SIGCONT) }()
			s.Mark("pods fail")
			if err := s.Fail(ctx, hash, true); err != nil {
				return err
			}
			waiting, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			_, err = s.Await(waiting, "weight 0 without the controller", func(st timeline.State) bool { return st.CanaryWeight == 0 })
			return err
		})
		hold(t, recorded, limits("", "", 0))
	})
}

func TestASupersededCanaryNeverSendsTrafficToNobody(t *testing.T) {
	for _, version := range []string{lab.DefaultVersion, "v1.8.5"} {
		t.Run("controller "+version, func(t *testing.T) {
			t.Parallel()
			w := canary(Subset, SetWeight(30), Pause(2), SetWeight(60), Pause(1))
			recorded := play(t, controller(t, version), w, func(ctx context.Context, s *Scene) error {
				if err := atWeight(ctx, s, 30); err != nil {
					return err
				}
				if err := s.Deploy(ctx, "superseded", 3); err != nil {
					return err
				}
				return promoted(ctx, s, "superseded")
			})
			// No grace: no pod is lost here, so no side is ever without one.
			l := limits("superseded", "Healthy", time.Minute)
			l.Grace = time.Nanosecond
			hold(t, recorded, l)
			endsPromoted(t, recorded)
		})
	}
}

func TestAHoldUnderDynamicStableScaleEndsAtTheDeadlineSoThatTheRolloutIsAborted(t *testing.T) {
	t.Parallel()
	deadline := int32(12)
	i := Incident{Level: Subset, Replicas: 6, Last: 100, Ready: 2, Edit: func(ro *v1alpha1.Rollout) {
		ro.Spec.Strategy.Canary.DynamicStableScale = true
		ro.Spec.Strategy.Canary.ScaleDownDelaySeconds = nil
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
		_, err = s.Await(ctx, "the abort", func(st timeline.State) bool { return st.Rollout.Abort })
		return err
	})
	hold(t, recorded, limits(Rollback, "", 0))
	rollback, err := recorded.Since(Rollback)
	if err != nil {
		t.Fatal(err)
	}
	// While it is held the stable keeps its size. What the controller does after
	// maxHold, by then the progress deadline, is the price of its acting at all.
	held := false
	for _, s := range rollback.States() {
		if s.CanaryHash != s.Rollout.PodHash {
			continue // the rollback has not begun
		}
		if s.Rollout.DesiredWeight == s.Max && s.CanaryHash != s.StableHash && s.CanaryWeight > 0 {
			break
		}
		if stable := s.Pods[s.StableHash]; s.CanaryWeight > 0 && s.CanaryHash != s.StableHash {
			held = true
			if stable.Size < i.Replicas {
				t.Errorf("at %s the stable was scaled to %d under a held canary", s.At, stable.Size)
			}
		}
	}
	if !held {
		t.Error("the canary was never held")
	}
}

func TestARollbackToAReplicaSetThatIsStillThereGoesAtOnce(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		delay := int32(600)
		i := Incident{Level: level, Replicas: 10, Last: 100, Edit: func(ro *v1alpha1.Rollout) {
			ro.Spec.Strategy.Canary.ScaleDownDelaySeconds = &delay
		}}
		recorded := play(t, controller(t, lab.DefaultVersion), i.Workload(Plugin), func(ctx context.Context, s *Scene) error {
			if err := deployed(ctx, s); err != nil {
				return err
			}
			if err := s.Deploy(ctx, "upgrade", 2); err != nil {
				return err
			}
			if err := promoted(ctx, s, "upgrade"); err != nil {
				return err
			}
			if err := s.Deploy(ctx, Rollback, 1); err != nil {
				return err
			}
			return promoted(ctx, s, Rollback)
		})
		l := limits(Rollback, "Healthy", 20*time.Second)
		l.Grace = time.Nanosecond
		hold(t, recorded, l)
		endsPromoted(t, recorded)
	})
}

func TestAnAbortThatTheControllerTakesBackDuringARollbackBreaksNothing(t *testing.T) {
	// Within rollbackWindow the controller removes an abort at each reconcile:
	// the rollback goes on, and the guard has to hold all the same.
	eachLevel(t, func(t *testing.T, level Level) {
		i := incident(level, 100)
		i.Replicas = 10
		i.During = func(ctx context.Context, s *Scene, _ string) error {
			if err := s.Abort(ctx, "abort"); err != nil {
				return err
			}
			return sleep(ctx, i.Wait)
		}
		checkIncident(t, lab.DefaultVersion, i)
	})
}

func TestReplicasThatChangeInMidCanaryKeepTheGuardRight(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		w := canary(level, SetWeight(25), Pause(3), SetWeight(50), Pause(3), SetWeight(75), Pause(1))
		w.Replicas = 8
		recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
			if err := atWeight(ctx, s, 25); err != nil {
				return err
			}
			for _, replicas := range []int32{20, 8} {
				if err := s.Scale(ctx, replicas); err != nil {
					return err
				}
				if err := sleep(ctx, 2*time.Second); err != nil {
					return err
				}
			}
			return promoted(ctx, s, "upgrade")
		})
		hold(t, recorded, limits("upgrade", "Healthy", time.Minute))
		endsPromoted(t, recorded)
	})
}

func TestOnePodAndHalfOfTheTrafficIsWhatSomebodyAskedFor(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		one := int32(1)
		w := canary(level, v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{Replicas: &one}}, SetWeight(50), Pause(1),
			v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{MatchTrafficWeight: true}}, Pause(1))
		recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
			if err := atWeight(ctx, s, 50); err != nil {
				return err
			}
			return promoted(ctx, s, "upgrade")
		})
		hold(t, recorded, limits("upgrade", "Healthy", time.Minute))
	})
}

func TestAReplicaProgressThresholdReleasesTheWeight(t *testing.T) {
	for name, threshold := range map[string]*v1alpha1.ReplicaProgressThreshold{
		"percent": {Type: v1alpha1.ProgressTypePercentage, Value: 90},
		"pods":    {Type: v1alpha1.ProgressTypePods, Value: 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := canary(Host, SetWeight(100), Pause(600))
			w.Edit = func(ro *v1alpha1.Rollout) { ro.Spec.Strategy.Canary.ReplicaProgressThreshold = threshold }
			recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
				if err := deployed(ctx, s); err != nil {
					return err
				}
				stable, err := s.Hash(ctx)
				if err != nil {
					return err
				}
				if err := s.Gate.Limit(fmt.Sprintf("%[1]s,%[1]s!=%[2]s", v1alpha1.DefaultRolloutUniqueLabelKey, stable), 9); err != nil {
					return err
				}
				if err := s.Deploy(ctx, "upgrade", 2); err != nil {
					return err
				}
				_, err = s.Await(ctx, "weight 100 with 9 of 10 pods", func(st timeline.State) bool { return st.CanaryWeight == 100 })
				return err
			})
			hold(t, recorded, limits("upgrade", "", 0))
		})
	}
}

func TestMinPodsAboveReplicasAndASingleReplicaGoThrough(t *testing.T) {
	for _, replicas := range []int32{1, 2} {
		t.Run(fmt.Sprintf("%d replicas", replicas), func(t *testing.T) {
			t.Parallel()
			w := canary(Subset, SetWeight(20), Pause(1), SetWeight(60), Pause(1))
			w.Replicas = replicas
			w.Edit = func(ro *v1alpha1.Rollout) {
				minPods := int32(5)
				ro.Spec.Strategy.Canary.MinPodsPerReplicaSet = &minPods
			}
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
			endsPromoted(t, recorded)
		})
	}
}

func TestARolloutScaledToNothingAndBackEndsWhereItShould(t *testing.T) {
	t.Parallel()
	w := canary(Host, SetWeight(50), Pause(2))
	recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
		if err := atWeight(ctx, s, 50); err != nil {
			return err
		}
		if err := s.Scale(ctx, 0); err != nil {
			return err
		}
		if err := sleep(ctx, 3*time.Second); err != nil {
			return err
		}
		if err := s.Scale(ctx, 4); err != nil {
			return err
		}
		return promoted(ctx, s, "upgrade")
	})
	l := limits("upgrade", "Healthy", time.Minute)
	// On the way to nothing the rule has no pods to count.
	l.Rule = nil
	hold(t, recorded, l)
	endsPromoted(t, recorded)
}

func TestAPinHoldsTheCanaryUntilItIsRemoved(t *testing.T) {
	t.Parallel()
	w := canary(Subset, SetWeight(10), Pause(1), SetWeight(50), Pause(1))
	recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
		if err := atWeight(ctx, s, 10); err != nil {
			return err
		}
		if err := s.Annotate(ctx, "istio.argoproj-labs.io/pin-canary-weight", "20"); err != nil {
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
		if err := s.Annotate(ctx, "istio.argoproj-labs.io/pin-canary-weight", ""); err != nil {
			return err
		}
		return promoted(ctx, s, "unpinned")
	})
	hold(t, recorded, limits("unpinned", "Healthy", time.Minute))
	pinned := true
	for _, s := range recorded.States() {
		if s.Entry.Name == "unpinned" {
			pinned = false
		}
		if pinned && s.CanaryWeight > 20 {
			t.Errorf("at %s the pinned canary had weight %d", s.At, s.CanaryWeight)
		}
	}
	for _, reason := range []string{"CanaryWeightPinned", "CanaryWeightUnpinned"} {
		if n := told(recorded, reason); n != 1 {
			t.Errorf("%d Events %s, want 1", n, reason)
		}
	}
}

func TestAFlappingPodCostsFewWrites(t *testing.T) {
	t.Parallel()
	w := canary(Host, SetWeight(50), Pause(600))
	w.Replicas = 20
	const flaps = 10
	recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
		if err := atWeight(ctx, s, 50); err != nil {
			return err
		}
		hash, err := s.Hash(ctx)
		if err != nil {
			return err
		}
		s.Mark("flapping")
		for range flaps {
			for _, unready := range []bool{true, false} {
				if err := s.FailOne(ctx, hash, unready); err != nil {
					return err
				}
				if err := sleep(ctx, time.Second); err != nil {
					return err
				}
			}
		}
		return nil
	})
	hold(t, recorded, limits("flapping", "", 0))
	flapping, err := recorded.Since("flapping")
	if err != nil {
		t.Fatal(err)
	}
	// Down with each loss, and up with each return, since the return reaches what
	// was asked for: two writes a flap, and not one more.
	writes := flapping.Measure().WritesOf(timeline.KindVirtualService)
	t.Logf("%d VirtualService writes for %d flaps of one of 10 pods", writes, flaps)
	if writes > 2*flaps {
		t.Errorf("%d VirtualService writes for %d flaps", writes, flaps)
	}
}

func TestDynamicStableScaleNeverLeavesAHeldCanaryWithoutItsStable(t *testing.T) {
	for _, last := range []int32{100, 70} {
		t.Run(fmt.Sprintf("last step %d", last), func(t *testing.T) {
			t.Parallel()
			i := incident(Subset, last)
			i.Replicas = 10
			i.Edit = func(ro *v1alpha1.Rollout) {
				ro.Spec.Strategy.Canary.DynamicStableScale = true
				ro.Spec.Strategy.Canary.ScaleDownDelaySeconds = nil
			}
			rollback := checkRollback(t, lab.DefaultVersion, i)
			for _, s := range rollback.States() {
				stable := s.Pods[s.StableHash]
				if needed := s.StableWeight * s.Rollout.Replicas / s.Max; s.CanaryHash != s.StableHash && stable.Size < needed {
					t.Errorf("at %s the stable had %d pods for weight %d", s.At, stable.Size, s.StableWeight)
				}
			}
		})
	}
}
