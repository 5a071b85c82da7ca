package mesh

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// The parts of the stories in which a Rollout moves from the native router to the
// plugin and back. Each lasts until the next begins.
const (
	NativeCanary = "canary with the native router"
	ToPlugin     = "the block moves to the plugin"
	PluginCanary = "canary with the plugin"
	ToNative     = "the block moves back"
	NativeAgain  = "canary with the native router again"
)

// UpgradeParts are the parts in their order, of both stories.
func UpgradeParts() []string {
	return []string{NativeCanary, ToPlugin, PluginCanary, ToNative, NativeAgain}
}

// moved is the weight at which the canaries of an upgrade stand, and watched for how
// long the mesh is left alone after a move.
const (
	moved   = 20
	watched = 10 * time.Second
)

// UpgradedAtRest moves the Rollout while no canary is running. It is played with the
// native router, which is what there is before an upgrade.
func UpgradedAtRest(level scenarios.Level) Story {
	return Story{
		Name: "upgrade", Level: level, Title: "native → plugin → native, at rest", Rate: 240,
		Workload: workload(level, 10, scenarios.SetWeight(moved), scenarios.Pause(12), scenarios.SetWeight(100)),
		Play: func(ctx context.Context, p *Performance) error {
			if err := canaried(ctx, p, NativeCanary, 2); err != nil {
				return err
			}
			if err := rerouted(ctx, p, ToPlugin, scenarios.Plugin); err != nil {
				return err
			}
			if err := canaried(ctx, p, PluginCanary, 3); err != nil {
				return err
			}
			if err := rerouted(ctx, p, ToNative, scenarios.Native); err != nil {
				return err
			}
			return canaried(ctx, p, NativeAgain, 4)
		},
	}
}

// UpgradedInCanary moves it while a canary stands at its weight, both times.
func UpgradedInCanary(level scenarios.Level) Story {
	return Story{
		Name: "upgrade-canary", Level: level, Title: "native → plugin → native, in mid-canary", Rate: 240,
		Workload: workload(level, 10, scenarios.SetWeight(moved), scenarios.Pause(600), scenarios.SetWeight(100)),
		Play: func(ctx context.Context, p *Performance) error {
			if err := paused(ctx, p, NativeCanary, 2); err != nil {
				return err
			}
			if err := movedInCanary(ctx, p, ToPlugin, scenarios.Plugin); err != nil {
				return err
			}
			if err := paused(ctx, p, PluginCanary, 3); err != nil {
				return err
			}
			if err := movedInCanary(ctx, p, ToNative, scenarios.Native); err != nil {
				return err
			}
			if err := paused(ctx, p, NativeAgain, 4); err != nil {
				return err
			}
			return resumed(ctx, p, NativeAgain)
		},
	}
}

// canaried is a whole canary.
func canaried(ctx context.Context, p *Performance, mark string, version int) error {
	if err := p.Deploy(ctx, mark, version); err != nil {
		return err
	}
	if err := finished(ctx, p, mark); err != nil {
		return fmt.Errorf("%s: %w", mark, err)
	}
	return nil
}

// rerouted moves the block at rest, and waits until both sides name the revision.
func rerouted(ctx context.Context, p *Performance, mark string, router scenarios.Router) error {
	if err := p.Reroute(ctx, mark, router); err != nil {
		return err
	}
	if err := sleep(ctx, watched); err != nil {
		return err
	}
	return namedByBoth(ctx, p, mark, func(st timeline.State) bool {
		return st.CanaryHash == st.Rollout.PodHash && st.StableHash == st.Rollout.PodHash
	})
}

// paused brings a version out and waits until it stands at its weight, long enough
// for its share to be judged.
func paused(ctx context.Context, p *Performance, mark string, version int) error {
	before := p.Now().Rollout.PodHash
	if err := p.Deploy(ctx, mark, version); err != nil {
		return err
	}
	if _, err := resting(ctx, p, moved, before); err != nil {
		return fmt.Errorf("%s: %w", mark, err)
	}
	return sleep(ctx, watched)
}

// movedInCanary moves the block while the canary stands, looks at what becomes of it,
// and lets it go on to its end.
func movedInCanary(ctx context.Context, p *Performance, mark string, router scenarios.Router) error {
	if err := p.Reroute(ctx, mark, router); err != nil {
		return err
	}
	if err := sleep(ctx, watched); err != nil {
		return err
	}
	err := namedByBoth(ctx, p, mark, func(st timeline.State) bool {
		return st.CanaryWeight == moved && st.CanaryHash == st.Rollout.PodHash && st.StableHash != "" && st.StableHash != st.CanaryHash
	})
	if err != nil {
		return err
	}
	return resumed(ctx, p, mark)
}

func namedByBoth(ctx context.Context, p *Performance, mark string, right func(timeline.State) bool) error {
	_, err := p.Await(ctx, mark+": both sides name their revisions", right)
	return err
}

// resumed ends the pause and waits for the end of the canary.
func resumed(ctx context.Context, p *Performance, mark string) error {
	if err := p.Resume(ctx); err != nil {
		return err
	}
	if err := finished(ctx, p, mark); err != nil {
		return fmt.Errorf("%s: %w", mark, err)
	}
	return nil
}

// Part is what became of the requests between two marks of a story.
type Part struct {
	Mark       string
	Sent, Lost int
	// Windows are the times of constant weight, cut at the marks: a part is judged by
	// its own answers.
	Windows []Window
	// Open is how long a side named no revision while two had pods, so that its
	// requests went to both.
	Open time.Duration
}

// Parts cuts a result at its marks; what was before the first is in none.
func (r Result) Parts(marks ...string) ([]Part, error) {
	starts := make([]time.Time, 0, len(marks)+1)
	for _, mark := range marks {
		since, err := r.Timeline.Since(mark)
		if err != nil {
			return nil, err
		}
		starts = append(starts, since.Start)
	}
	starts = append(starts, r.Record.Ended)
	parts := make([]Part, len(marks))
	for i, mark := range marks {
		record := r.Record.Between(starts[i], starts[i+1])
		from, to := starts[i].Sub(r.Timeline.Start), starts[i+1].Sub(r.Timeline.Start)
		parts[i] = Part{
			Mark: mark, Sent: len(record.Requests), Lost: len(record.Lost()),
			Open: open(r.Timeline, from, to), Windows: windowsIn(r.Timeline, record, from, to),
		}
	}
	return parts, nil
}

// windowsIn are the windows of a timeline, each cut to a part of it, with the answers
// of that part alone.
func windowsIn(t timeline.Timeline, record fleet.Record, from, to time.Duration) []Window {
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
		if w, ok := measure(states[i], t.Start, max(from, states[i].At+settling), min(to, end), record); ok {
			found = append(found, w)
		}
		i = next
	}
	return found
}

// open is how long within a time a side named no revision while two had pods.
func open(t timeline.Timeline, from, to time.Duration) time.Duration {
	states := t.States()
	var sum time.Duration
	for i, s := range states {
		end := t.End
		if i+1 < len(states) {
			end = states[i+1].At
		}
		if begin, end := max(s.At, from), min(end, to); begin < end && (s.CanaryHash == "" || s.StableHash == "") && revisions(s) > 1 {
			sum += end - begin
		}
	}
	return sum
}

// revisions counts those with pods.
func revisions(s timeline.State) int {
	n := 0
	for _, pods := range s.Pods {
		if pods.Available > 0 {
			n++
		}
	}
	return n
}

// String is the part for people, as a row of a table.
func (p Part) String() string {
	var shares []string
	for _, w := range p.Windows {
		if w.Long() {
			shares = append(shares, fmt.Sprintf("%.1f at %.0f", w.Share, w.Weight))
		}
	}
	return fmt.Sprintf("| %s | %d | %d | %s | %d ms |", p.Mark, p.Sent, p.Lost, strings.Join(shares, ", "), p.Open.Milliseconds())
}
