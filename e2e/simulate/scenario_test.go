package simulate

import (
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline/tape"
)

func TestAStoryIsOverOnlyAfterItHasBegun(t *testing.T) {
	const never = -1
	degraded := func() timeline.Timeline {
		return tape.New("web").At(1).Phase("Progressing").At(2).Weight(20).At(3).Phase("Degraded").At(4).Weight(0).Timeline(9)
	}
	healthy := func() timeline.Timeline {
		return tape.New("web").At(1).Phase("Progressing").At(5).Phase("Healthy").Timeline(9)
	}
	for name, c := range map[string]struct {
		scenario Scenario
		tl       timeline.Timeline
		failing  bool
		at       float64
	}{
		"Healthy from the beginning is no end":           {Canary, tape.New("web").Timeline(9), false, never},
		"Healthy again":                                  {Canary, healthy(), false, 5},
		"Degraded is no end where all pods become ready": {Rollback, degraded(), false, never},
		"Degraded is one where they do not":              {Rollback, degraded(), true, 3},
		"an abort is over when the traffic is back":      {Abort, degraded(), false, 4},
		"an abort does not end Healthy":                  {Abort, healthy(), false, never},
	} {
		t.Run(name, func(t *testing.T) {
			state, _, over := c.scenario.end(c.tl.States(), c.failing)
			if over != (c.at != never) || over && state.At.Seconds() != c.at {
				t.Errorf("over %t at %s, want %g s", over, state.At, c.at)
			}
		})
	}
}

func TestEachScenarioHasASentenceAndANoun(t *testing.T) {
	for _, s := range Scenarios() {
		if s.About() == "" || about[s].noun == "" {
			t.Errorf("%s says nothing of itself", s)
		}
		if parsed, err := ParseScenario(string(s)); err != nil || parsed != s {
			t.Errorf("%s is read as %q, %v", s, parsed, err)
		}
	}
	if _, err := ParseScenario("chaos"); err == nil || err.Error() != "--scenario chaos: use rollback, canary, supersede, abort, scale, or list" {
		t.Errorf("of an unknown name it said %v", err)
	}
}

func TestTheMiddleIsTheLastPauseBelowFullWeight(t *testing.T) {
	for steps, want := range map[string]int{
		"[{setWeight: 10}, {pause: {}}, {setWeight: 50}, {pause: {}}, {setWeight: 100}, {pause: {}}]": 3,
		"[{pause: {}}, {setWeight: 10}]": 0,
		"[]":                             0,
	} {
		if got := derived(t, Defaults(), rolloutOf(nativeSubset, "      steps: "+steps)).middle(); got != want {
			t.Errorf("of %s step %d is the middle, want %d", steps, got, want)
		}
	}
}
