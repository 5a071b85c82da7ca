package simulate

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// Figures are what one router did, from the beginning of the story. Times are in seconds.
type Figures struct {
	// Phase is how the story ended, Healthy or Degraded, and Seconds when; Over is false
	// if it did not as long as it was watched.
	Over    bool    `json:"over"`
	Phase   string  `json:"phase,omitempty"`
	Seconds float64 `json:"seconds"`
	// Canary and Stable are how far a side's weight went beyond what its pods can take.
	Canary PeakFigures `json:"canaryOvercommitment"`
	Stable PeakFigures `json:"stableOvercommitment"`
	// ToNoPod is for how long a side without any pod got requests while the other had
	// some.
	ToNoPod float64 `json:"secondsToNoPod"`
	// Worst is the moment at which a side got most beyond its share of the available
	// pods; nil if that never was. Unlike the two above it leaves out what no split could
	// have spared.
	Worst *Worst `json:"worst,omitempty"`
	// The writes of Istio's objects.
	VirtualServiceWrites  int `json:"virtualServiceWrites"`
	DestinationRuleWrites int `json:"destinationRuleWrites"`
}

// PeakFigures are a peak in percent of all traffic, and how long there was any.
type PeakFigures struct {
	Points  float64 `json:"points"`
	Seconds float64 `json:"seconds"`
}

// Worst is a moment: so much of the traffic, in percent, for so many of the wanted pods.
type Worst struct {
	At        float64 `json:"at"`
	Percent   float64 `json:"percent"`
	Available int32   `json:"available"`
	Replicas  int32   `json:"replicas"`
	// Seconds is how long any side got more than its share, in all.
	Seconds float64 `json:"seconds"`
}

// Result is a scenario with what came of it.
type Result struct {
	Scenario Scenario `json:"scenario"`
	Native   Figures  `json:"native"`
	Plugin   Figures  `json:"plugin"`
	// Verdict is one sentence.
	Verdict string `json:"verdict"`
	// Remark is what one has to know to read it; may be empty.
	Remark string `json:"remark,omitempty"`
	// Broken are the invariants that the plugin did not keep; a plugin that came to no
	// end is one.
	Broken []string `json:"broken,omitempty"`

	played Played
}

// Judge measures what was played. The plan tells whether the guard's rule holds.
func Judge(plan Plan, p Played) Result {
	r := Result{Scenario: p.Scenario, played: p, Native: figures(p, p.Native), Plugin: figures(p, p.Plugin)}
	r.Verdict = verdict(r)
	r.Remark = remark(plan, p, r)
	limits := timeline.Limits{}
	if plan.enforced && !plan.pingPong {
		limits.Rule = scenarios.Allowed
	}
	if plan.enforced {
		r.Broken = timeline.Violations(p.Plugin, limits)
	}
	if !r.Plugin.Over {
		r.Broken = append(r.Broken, fmt.Sprintf("with the plugin there was no end within %s", inSeconds(p.Plugin.End.Seconds())))
	}
	return r
}

// remark tells what in the table is as it has to be, as when a rollback takes all steps;
// empty where there is nothing to say.
func remark(plan Plan, p Played, r Result) string {
	switch {
	case p.Scenario == Abort:
		return "An aborted Rollout is Degraded, and not Healthy, until somebody retries it or changes its spec: that is how an abort ends."
	case p.Scenario == Scale && r.Native.Stable.Points > 0 && r.Plugin.Stable.Points > 0:
		return "Until the pods that are added have started, the stable side has fewer than are wanted with either router: what counts is where the two differ."
	case p.Scenario != Rollback:
		return ""
	case plan.window == nil:
		return "spec.rollbackWindow is not set, so that no rollback is told from any other revision: it takes all steps. " +
			"With one, a rollback to a revision within it skips them and asks for all of the traffic at once."
	case p.Revisions > int(*plan.window):
		return fmt.Sprintf("spec.rollbackWindow.revisions is %d and the rollback goes %d back: it takes all steps, as any other revision does.", *plan.window, p.Revisions)
	case plan.history != nil && int(*plan.history) < p.Revisions:
		return fmt.Sprintf("spec.revisionHistoryLimit is %d and the rollback goes %d back: that ReplicaSet may be gone, and a new one takes all steps.", *plan.history, p.Revisions)
	}
	return ""
}

func figures(p Played, t timeline.Timeline) Figures {
	m := t.Measure()
	f := Figures{
		Canary: PeakFigures{m.Canary.Points, m.Canary.Lasted.Seconds()}, Stable: PeakFigures{m.Stable.Points, m.Stable.Lasted.Seconds()},
		ToNoPod: m.Missing.Wall.Seconds(), Worst: worst(t), Seconds: t.End.Seconds(),
		VirtualServiceWrites: m.WritesOf(timeline.KindVirtualService), DestinationRuleWrites: m.WritesOf(timeline.KindDestinationRule),
	}
	if state, phase, over := p.Scenario.end(t.States(), p.Failing); over {
		f.Over, f.Phase, f.Seconds = true, phase, state.At.Seconds()
	}
	return f
}

// worst is the moment at which a side got most beyond its share of the pods. One with
// no pod at all is told apart, so that it stands only where there is no other.
func worst(t timeline.Timeline) *Worst {
	var found *Worst
	most, lasted := 0.0, time.Duration(0)
	states := t.States()
	for i, s := range states {
		beyond, percent, available := unfair(s)
		if beyond < 1 && (available > 0 || percent == 0) {
			continue // what rounding leaves; to no pod at all nothing may go
		}
		next := t.End
		if i+1 < len(states) {
			next = states[i+1].At
		}
		lasted += next - s.At
		if available == 0 {
			beyond = math.SmallestNonzeroFloat64
		}
		if beyond > most {
			most = beyond
			found = &Worst{At: s.At.Seconds(), Percent: percent, Available: available, Replicas: s.Rollout.Replicas}
		}
	}
	if found != nil {
		found.Seconds = lasted.Seconds()
	}
	return found
}

// unfair is the side that gets most beyond its share, in points. The share is that of
// the wanted pods; where fewer are available on both sides together, that of those: no
// split can spare them all then.
func unfair(s timeline.State) (beyond, percent float64, available int32) {
	canary, stable := s.Pods[s.CanaryHash].Available, s.Pods[s.StableHash].Available
	all := min(s.Rollout.Replicas, canary+stable)
	if all <= 0 || s.CanaryHash == s.StableHash || s.CanaryHash == "" || s.StableHash == "" {
		return 0, 0, 0
	}
	for _, side := range []struct{ weight, available int32 }{{s.CanaryWeight, canary}, {s.StableWeight, stable}} {
		traffic := min(100, s.Percent(side.weight))
		if more := traffic - 100*float64(side.available)/float64(all); more > beyond {
			beyond, percent, available = more, traffic, side.available
		}
	}
	return beyond, percent, available
}

// verdict is one sentence about both routers.
func verdict(r Result) string {
	noun := about[r.Scenario].noun
	if r.Native.Worst == nil && r.Plugin.Worst == nil {
		return fmt.Sprintf("With neither router %s sends more requests to the pods than they can take; %s with the native router and %s with the plugin.",
			noun, r.Scenario.ending(r.Native), r.Scenario.ending(r.Plugin))
	}
	return fmt.Sprintf("With the native router %s sends %s; with the plugin %s.", noun, burden(r.Native), burden(r.Plugin))
}

func burden(f Figures) string {
	text := "never more than the pods can take"
	if w := f.Worst; w != nil {
		text = fmt.Sprintf("up to %s of the requests to %d of %d pods, and more than the pods can take for %s",
			percent(w.Percent), w.Available, w.Replicas, inSeconds(w.Seconds))
	}
	if f.ToNoPod > 0 {
		text += fmt.Sprintf(" (of that %s to no pod at all)", inSeconds(f.ToNoPod))
	}
	if !f.Over {
		text += ", and comes to no end within " + inSeconds(f.Seconds)
	}
	return text
}

func (s Scenario) ending(f Figures) string {
	switch {
	case !f.Over:
		return "it comes to no end within " + inSeconds(f.Seconds)
	case s == Abort:
		return "the stable pods get all requests again after " + inSeconds(f.Seconds)
	}
	return fmt.Sprintf("it is %s after %s", f.Phase, inSeconds(f.Seconds))
}

func percent(p float64) string { return strconv.FormatFloat(math.Round(p), 'f', -1, 64) + " %" }

// inSeconds shows times below a second in milliseconds: 20 ms is not none.
func inSeconds(s float64) string {
	if s < 1 {
		return strconv.FormatFloat(math.Round(s*1000), 'f', -1, 64) + " ms"
	}
	return strconv.FormatFloat(math.Round(s*10)/10, 'f', -1, 64) + " s"
}
