package simulate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// Scenario is a story that is played.
type Scenario string

// The scenarios. There are no others.
const (
	Canary    Scenario = "canary"
	Rollback  Scenario = "rollback"
	Supersede Scenario = "supersede"
	Abort     Scenario = "abort"
	Scale     Scenario = "scale"
)

// Scenarios are all of them, in the order in which they are listed.
func Scenarios() []Scenario { return []Scenario{Rollback, Canary, Supersede, Abort, Scale} }

// About is one sentence on what is played.
func (s Scenario) About() string { return about[s].sentence }

// about holds the sentence for the list, and what the verdict calls the story.
var about = map[Scenario]struct{ sentence, noun string }{
	Rollback:  {"A new revision is out with all pods, nothing is left of the old one, and it is rolled back to that (--revisions, --broken).", "your rollback"},
	Canary:    {"One new revision goes through all steps.", "your canary"},
	Supersede: {"In the middle of a canary another revision takes its place (--at).", "the revision that supersedes your canary"},
	Abort:     {"A canary is aborted in the middle (--at).", "the abort of your canary"},
	Scale:     {"In the middle of a canary an autoscaler changes spec.replicas (--scale-at, --scale-to).", "your canary under an autoscaler"},
}

// ParseScenario reads the name. The error lists those that there are.
func ParseScenario(name string) (Scenario, error) {
	if s := Scenario(name); slices.Contains(Scenarios(), s) {
		return s, nil
	}
	var names []string
	for _, s := range Scenarios() {
		names = append(names, string(s))
	}
	return "", fmt.Errorf("--scenario %s: use %s, or list", name, strings.Join(names, ", "))
}

// beginning is the mark of the moment from which on is judged.
func (s Scenario) beginning() string { return string(s) }

// over tells whether the story has come to its end in a state, and how: "Healthy" or
// "Degraded".
func (s Scenario) over(state timeline.State, failing bool) (phase string, over bool) {
	switch {
	case !state.Rollout.Current:
		return "", false
	case s == Abort:
		// Degraded comes with the abort; the traffic follows.
		return "Degraded", state.Is("Degraded") && state.CanaryWeight == 0
	case state.Is("Healthy"):
		return "Healthy", true
	default:
		return "Degraded", failing && state.Is("Degraded")
	}
}

// end is the first state after the beginning in which the story is over. A timeline that
// begins with the story shows at first how it was before.
func (s Scenario) end(states []timeline.State, failing bool) (state timeline.State, phase string, over bool) {
	left := false
	for _, now := range states {
		ended, is := s.over(now, failing)
		if !is {
			left = true
		} else if left {
			return now, ended, true
		}
	}
	return timeline.State{}, "", false
}
