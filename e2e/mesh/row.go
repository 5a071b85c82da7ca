package mesh

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

// Row is a result in figures.
type Row struct {
	Story, Title string
	Level        scenarios.Level
	Router       scenarios.Router
	Sent, Lost   int
	// Raced counts the requests that the client itself refused first; they are not
	// lost, see package fleet.
	Raced int
	// Reasons counts the lost requests by reason.
	Reasons map[string]int
	// Worst is the second in which most was lost.
	Worst fleet.Second
	// Off is the largest distance between a share and its weight, in points, over
	// the windows that are long enough; Judged is how many those are.
	Off    float64
	Judged int
	// Took is the time until the Rollout was Healthy; Finished is false when it
	// was not meant to be, or never was.
	Took     time.Duration
	Finished bool
}

// Row sums a result up.
func (r Result) Row() Row {
	m := r.Timeline.Measure()
	row := Row{
		Story: r.Story.Name, Title: r.Story.Title, Level: r.Story.Level, Router: r.Router,
		Sent: len(r.Record.Requests), Lost: len(r.Record.Lost()), Reasons: r.Record.Reasons(), Worst: r.Record.Worst(), Raced: r.Record.Raced(),
		Took: m.Finish, Finished: m.Finished,
	}
	for _, w := range r.Windows {
		if w.Long() {
			row.Judged++
			row.Off = max(row.Off, w.Off())
		}
	}
	return row
}

// Add sums another play of the same story with the same router up: Worst and Off
// are the worse of both, Took is the longer one.
func (r *Row) Add(other Row) {
	r.Sent, r.Lost, r.Raced, r.Judged = r.Sent+other.Sent, r.Lost+other.Lost, r.Raced+other.Raced, r.Judged+other.Judged
	sum := maps.Clone(r.Reasons)
	for reason, n := range other.Reasons {
		sum[reason] += n
	}
	r.Reasons = sum
	if other.Worst.Lost > r.Worst.Lost {
		r.Worst = other.Worst
	}
	r.Off, r.Took, r.Finished = max(r.Off, other.Off), max(r.Took, other.Took), r.Finished && other.Finished
}

// String is the row for people.
func (r Row) String() string {
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		reasons = append(reasons, fmt.Sprintf("%d × %s", r.Reasons[reason], reason))
	}
	return fmt.Sprintf("%-10s %-6s %-6s sent %6d lost %5d worst second %3.0f %% share off by %.1f in %d windows, %5.1f s %s",
		r.Story, r.Level, r.Router, r.Sent, r.Lost, 100*r.Worst.Share(), r.Off, r.Judged, r.Took.Seconds(), strings.Join(reasons, "; "))
}
