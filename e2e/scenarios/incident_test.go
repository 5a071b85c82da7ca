package scenarios

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// incident is the reported one: 20 replicas, 2 of them ready for 5 s.
func incident(level Level, last int32) Incident {
	return Incident{Level: level, Replicas: 20, Last: last, Ready: 2, Wait: 5 * time.Second}
}

func TestTheIncidentIsCapped(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1.10.1", "v1.8.5"} {
		for _, level := range []Level{Host, Subset} {
			for _, last := range []int32{100, 70} {
				t.Run(fmt.Sprintf("controller %s, %s level, last step %d", version, level, last), func(t *testing.T) {
					t.Parallel()
					i := incident(level, last)
					goesOnWhileHeld(t, checkIncident(t, version, i), i)
				})
			}
		}
	}
}

func TestTheIncidentWithDynamicStableScaleIsHeldWithoutScalingTheStableAway(t *testing.T) {
	t.Parallel()
	for _, level := range []Level{Host, Subset} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			i := incident(level, 100)
			i.Edit = func(ro *v1alpha1.Rollout) {
				// With it the stable is scaled by weight, and a delay is refused.
				ro.Spec.Strategy.Canary.DynamicStableScale = true
				ro.Spec.Strategy.Canary.ScaleDownDelaySeconds = nil
			}
			checkIncident(t, lab.DefaultVersion, i)
		})
	}
}

func TestBothPodsFailingInMidRollbackGetNoTraffic(t *testing.T) {
	t.Parallel()
	for _, level := range []Level{Host, Subset} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			i := incident(level, 100)
			i.During = func(ctx context.Context, s *Scene, hash string) error {
				for range 2 {
					for _, unready := range []bool{true, false} {
						if err := s.Fail(ctx, hash, unready); err != nil {
							return err
						}
						if err := sleep(ctx, 2*time.Second); err != nil {
							return err
						}
					}
				}
				return nil
			}
			// Pods may fail at any moment, so a peak of a few milliseconds is no
			// fault; that it does not last is one of the invariants.
			checkRollback(t, lab.DefaultVersion, i, withFailures(rollbackLimits()))
		})
	}
}

// checkIncident plays an incident under the plugin: it finishes, and the canary
// never gets more than its pods can take.
func checkIncident(t *testing.T, version string, i Incident) timeline.Timeline {
	t.Helper()
	recorded := checkRollback(t, version, i, rollbackLimits())
	if got := recorded.Measure().Canary.Points; got > 0.5 {
		t.Errorf("peak overcommitment is %.1f points, want 0", got)
	}
	return recorded
}

func rollbackLimits() timeline.Limits { return limits(Rollback, "Healthy", time.Minute) }

// goesOnWhileHeld checks that the controller keeps working while the canary is
// held: its status says so, and the ReplicaSet gets its full size.
func goesOnWhileHeld(t *testing.T, rollback timeline.Timeline, i Incident) {
	t.Helper()
	told, scaled := false, false
	for _, s := range rollback.States() {
		held := s.CanaryWeight > 0 && s.CanaryWeight < i.Last && s.CanaryHash == s.Rollout.PodHash
		if !held || s.Pods[s.CanaryHash].Available >= i.Replicas {
			continue
		}
		told = told || s.Rollout.DesiredWeight == i.Last && s.Rollout.Verified != nil && !*s.Rollout.Verified
		scaled = scaled || s.Pods[s.CanaryHash].Size*100 >= i.Replicas*i.Last
	}
	if !told {
		t.Errorf("while the canary was held no status said that %d was asked for and not verified", i.Last)
	}
	if !scaled {
		t.Errorf("while the canary was held its ReplicaSet was not scaled up")
	}
}

// checkRollback plays an incident and holds it against the invariants; it
// returns the rollback alone.
func checkRollback(t *testing.T, version string, i Incident, l timeline.Limits) timeline.Timeline {
	t.Helper()
	recorded := play(t, controller(t, version), i.Workload(Plugin), i.Play)
	hold(t, recorded, l)
	rollback, err := recorded.Since(Rollback)
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"CanaryWeightCapped", "CanaryWeightReleased", "VirtualServiceUpdated"} {
		if told(rollback, reason) == 0 {
			t.Errorf("no Event %s on the Rollout", reason)
		}
	}
	return rollback
}

// told counts the Events of a reason.
func told(recorded timeline.Timeline, reason string) int {
	states := recorded.States()
	return count(states[len(states)-1].Events, reason)
}
