package matrix

import (
	"fmt"
	"slices"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// deadline is what a Rollout may take from a mark to its end. A good run takes a
// tenth of it.
const deadline = 90 * time.Second

// points is how much more than its pods' share the canary may get, for rounding.
const points = 0.5

func all(faults ...[]string) []string { return slices.Concat(faults...) }

// within holds a timeline against the invariants of every scenario.
func within(t timeline.Timeline, mark, phase string) []string {
	return timeline.Violations(t, timeline.Limits{
		Rule: scenarios.Allowed, Grace: time.Nanosecond, Mark: mark, Phase: phase, Deadline: deadline,
	})
}

// follows holds the canary's weights after a mark against the steps.
func follows(t timeline.Timeline, mark string, steps ...int32) []string {
	since, err := t.Since(mark)
	if err != nil {
		return []string{err.Error()}
	}
	var seen []int32
	states := since.States()
	last := states[0].CanaryWeight
	for _, s := range states[1:] {
		if s.CanaryWeight != last {
			seen, last = append(seen, s.CanaryWeight), s.CanaryWeight
		}
	}
	if !timeline.FollowSteps(seen, steps) {
		return []string{fmt.Sprintf("the canary's weights were %v, want %v", seen, steps)}
	}
	return nil
}

// promoted holds the last state against what a finished canary leaves.
func promoted(t timeline.Timeline) []string {
	states := t.States()
	if end := states[len(states)-1]; !isPromoted(end) {
		return []string{fmt.Sprintf("at the end stable/canary are %d/%d of %d and name %q/%q, the revision is %q",
			end.StableWeight, end.CanaryWeight, end.Max, end.StableHash, end.CanaryHash, end.Rollout.PodHash)}
	}
	return nil
}

// carried holds the weights after a mark against the pods.
func carried(t timeline.Timeline, mark string) []string {
	since, err := t.Since(mark)
	if err != nil {
		return []string{err.Error()}
	}
	if peak := since.Measure().Canary.Points; peak > points {
		return []string{fmt.Sprintf("the canary had %.1f points more than its pods can take", peak)}
	}
	return nil
}

// told asks for Events after a mark.
func told(t timeline.Timeline, mark string, reasons ...string) []string {
	since, err := t.Since(mark)
	if err != nil {
		return []string{err.Error()}
	}
	states := since.States()
	var missing []string
	for _, reason := range reasons {
		if !slices.ContainsFunc(states[len(states)-1].Events, func(e timeline.Event) bool { return e.Reason == reason }) {
			missing = append(missing, "no Event "+reason+" on the Rollout")
		}
	}
	return missing
}
