package mesh

import (
	"fmt"
	"math"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

const (
	// Points is how far a share may be from its weight.
	Points = 3.0
	// settling is how long after a write the mesh is not held against it: istiod
	// waits for further writes, and then tells every client.
	settling = 1500 * time.Millisecond
	// certainty is how many standard deviations are believed: one window in a
	// thousand is further off by chance alone.
	certainty = 3.3
)

// Window is a time in which weights and hashes stayed as they were.
type Window struct {
	// From and To are on the timeline's clock, From after the mesh had settled.
	From, To time.Duration
	// Weight and Share are the canary's, in percent: what the objects said, and
	// what of the answers came from its pods.
	Weight, Share float64
	// Answers is how many there were.
	Answers int
}

// Long says whether the window has so many answers that chance does not carry the
// share further than Points away: each request takes its side by lot, so the share
// of n answers at weight p has a standard deviation of √(p(1-p)/n).
func (w Window) Long() bool { return certainty*w.deviation() <= Points }

// deviation is the standard deviation of the share, in points. At weights 0 and 1
// there is no chance in it.
func (w Window) deviation() float64 {
	p := w.Weight / 100
	return 100 * math.Sqrt(p*(1-p)/float64(max(w.Answers, 1)))
}

// Off is how far the share is from the weight, in points.
func (w Window) Off() float64 { return math.Abs(w.Share - w.Weight) }

func (w Window) String() string {
	return fmt.Sprintf("%.1f s to %.1f s: weight %.0f, share %.1f of %d answers", w.From.Seconds(), w.To.Seconds(), w.Weight, w.Share, w.Answers)
}

// windows finds the times of constant weight and measures the share in each.
// Times without two sides have none.
func windows(t timeline.Timeline, record fleet.Record) []Window {
	var found []Window
	states := t.States()
	for i := 0; i < len(states); {
		next := i + 1
		for next < len(states) && sameSplit(states[i], states[next]) {
			next++
		}
		end := t.End
		if next < len(states) {
			end = states[next].At
		}
		if w, ok := measure(states[i], t.Start, states[i].At+settling, end, record); ok {
			found = append(found, w)
		}
		i = next
	}
	return found
}

func sameSplit(a, b timeline.State) bool {
	return a.CanaryWeight == b.CanaryWeight && a.StableWeight == b.StableWeight &&
		a.CanaryHash == b.CanaryHash && a.StableHash == b.StableHash
}

// measure counts the answers of one window.
func measure(s timeline.State, start time.Time, from, to time.Duration, record fleet.Record) (Window, bool) {
	if from >= to || s.CanaryHash == s.StableHash || s.CanaryHash == "" || s.StableHash == "" {
		return Window{}, false
	}
	w := Window{From: from, To: to, Weight: s.Percent(s.CanaryWeight)}
	answered := record.Between(start.Add(from), start.Add(to)).Answered()
	for _, n := range answered {
		w.Answers += n
	}
	if w.Answers == 0 {
		return Window{}, false
	}
	w.Share = 100 * float64(answered[s.CanaryHash]) / float64(w.Answers)
	return w, true
}
