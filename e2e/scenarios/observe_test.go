package scenarios

import (
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func TestObserveReportsWhatTheGuardWouldDoAndDoesNotDoIt(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		i := incident(level, 100)
		w := i.Workload(Plugin)
		w.Guard = map[string]any{"mode": "Observe"}
		recorded := play(t, controller(t, lab.DefaultVersion), w, i.Play)
		// The rule is what is not enforced; all else holds.
		l := rollbackLimits()
		l.Rule = nil
		hold(t, recorded, l)
		rollback, err := recorded.Since(Rollback)
		if err != nil {
			t.Fatal(err)
		}
		capped, released := 0, 0
		for _, event := range rollback.States()[len(rollback.States())-1].Events {
			switch {
			case event.Reason == "CanaryWeightCapped" && strings.HasPrefix(event.Message, "canary held at ") && strings.Contains(event.Message, "guard.mode is Observe"):
				capped++
			case event.Reason == "CanaryWeightReleased":
				released++
			}
		}
		if capped == 0 || released == 0 {
			t.Errorf("%d Events say what would have been held, %d that it would be over; want some of both", capped, released)
		}
		if seen := weightsSeen(rollback); len(seen) != 2 || seen[0] != 100 || seen[1] != 0 {
			t.Errorf("canary weights were %v, want 100 and then 0, as without a guard", seen)
		}
		if points := rollback.Measure().Canary.Points; points < 80 {
			t.Errorf("the canary got only %.0f points more than its pods can take: something was enforced", points)
		}
		if n := rollback.Measure().WritesOf(timeline.KindVirtualService); n != 2 {
			t.Errorf("%d writes of the VirtualService, want 2", n)
		}
	})
}
