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
		hold(t, recorded, withFailures(limits("", "", 0)))
	})
}

func TestASupersededCanaryNeverSendsTrafficToNobody(t *testing.T) {
	t.Parallel()
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
			hold(t, recorded, limits("superseded", "Healthy", time.Minute))
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
	// After maxHold the controller scales the stable away; see the documentation.
	hold(t, recorded, withFailures(limits(Rollback, "", 0)))
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
		hold(t, recorded, limits(Rollback, "Healthy", 20*time.Second))
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
		one, thirty := int32(1), int32(30)
		w := canary(level, v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{Replicas: &one}}, SetWeight(50), Pause(1),
			v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{Weight: &thirty}}, SetWeight(70), Pause(1),
			v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{MatchTrafficWeight: true}}, Pause(1))
		recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
			if err := atWeight(ctx, s, 50); err != nil {
				return err
			}
			return promoted(ctx, s, "upgrade")
		})
		hold(t, recorded, limits("upgrade", "Healthy", time.Minute))
		pods := map[int32]int32{} // by weight, the fewest that had it
		for _, s := range recorded.States() {
			if n, seen := pods[s.CanaryWeight]; s.CanaryHash != s.StableHash && (!seen || s.Pods[s.CanaryHash].Available < n) {
				pods[s.CanaryWeight] = s.Pods[s.CanaryHash].Available
			}
		}
		if pods[50] != 1 || pods[70] != 3 {
			t.Errorf("weight 50 was given to %d pods and 70 to %d, want 1 and 3", pods[50], pods[70])
		}
	})
}

func TestAReplicaProgressThresholdReleasesTheWeight(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	for name, replicas := range map[string]*int32{"replicas not set": nil, "1 replica": new(int32(1)), "2 replicas": new(int32(2))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := canary(Subset, SetWeight(20), Pause(1), SetWeight(60), Pause(1))
			w.Edit = func(ro *v1alpha1.Rollout) {
				minPods := int32(5)
				ro.Spec.Strategy.Canary.MinPodsPerReplicaSet = &minPods
				ro.Spec.Replicas = replicas
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
	// On the way to nothing the rule has no pods to count, and the last pod of one
	// side goes before that of the other.
	l.Rule = nil
	hold(t, recorded, withFailures(l))
	endsPromoted(t, recorded)
}

func TestDynamicStableScaleNeverLeavesAHeldCanaryWithoutItsStable(t *testing.T) {
	t.Parallel()
	for _, last := range []int32{100, 70} {
		t.Run(fmt.Sprintf("last step %d", last), func(t *testing.T) {
			t.Parallel()
			i := incident(Subset, last)
			i.Replicas = 10
			i.Edit = func(ro *v1alpha1.Rollout) {
				ro.Spec.Strategy.Canary.DynamicStableScale = true
				ro.Spec.Strategy.Canary.ScaleDownDelaySeconds = nil
			}
			rollback := checkRollback(t, lab.DefaultVersion, i, rollbackLimits())
			for _, s := range rollback.States() {
				stable := s.Pods[s.StableHash]
				if needed := s.StableWeight * s.Rollout.Replicas / s.Max; s.CanaryHash != s.StableHash && stable.Size < needed {
					t.Errorf("at %s the stable had %d pods for weight %d", s.At, stable.Size, s.StableWeight)
				}
			}
		})
	}
}
