package timeline

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// width is what fits a wide terminal and the log of a CI system.
const width = 140

// foldSpan is how long a run of ReplicaSet changes is printed as one line.
const foldSpan = time.Second

// rowFormat is the part of a line before the words, storyStart its width.
const (
	rowFormat  = "%9s %8s  %-16s %-16s %-5s %-5s %-11s "
	storyStart = 78
	storyLines = 3
)

// row is one printed line: a state and why it is worth a line.
type row struct {
	state State
	why   string
	// podsOnly rows may be folded into one: before is the state ahead of the
	// first, since its time.
	podsOnly bool
	before   State
	since    time.Duration
	changes  int
}

// Print writes the timeline as a table of at most 140 columns, and its measures
// below it. A quick run of changes of one ReplicaSet becomes one line, with
// nothing else left out between.
//
// Weights are canary/stable of the worst routes. Pods are ready/size and the start of their hash; "a3" follows when 3 are
// available and that is not all of the ready ones. "asked" is the weight in
// the Rollout's status, with "?" while that is not verified.
func Print(w io.Writer, t Timeline) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Rollout %s/%s, weights of %d\n", t.Subject.Namespace, t.Subject.Rollout, t.Subject.Max())
	line(&b, fmt.Sprintf(rowFormat, "time", "weights", "canary pods", "stable pods", "step", "asked", "phase")+"what changed")
	line(&b, strings.Repeat("-", width))
	for _, r := range rows(t) {
		r.write(&b)
	}
	for _, g := range t.Gaps {
		line(&b, "GAP: "+g)
	}
	b.WriteString("\n")
	for _, m := range measureRows(t.Measure()) {
		line(&b, fmt.Sprintf("%-34s %s", m.name, m.value))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// line writes one line, cut to the width, without spaces at its end.
func line(b *strings.Builder, s string) {
	b.WriteString(strings.TrimRight(fit(s, width), " ") + "\n")
}

// fit cuts a text to n runes and shows that it did.
func fit(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	const more = "..."
	return string([]rune(s)[:n-len(more)]) + more
}

// rows leaves out what changed nothing that a reader sees.
func rows(t Timeline) []row {
	states := t.States()
	out := []row{{state: states[0], why: "(found at the start)"}}
	for i := 1; i < len(states); i++ {
		why := note(states[i-1], states[i])
		if why == "" {
			continue
		}
		r := row{state: states[i], why: why, before: states[i-1], since: states[i].At, changes: 1}
		r.podsOnly = states[i].Entry.Fact.Kind() == KindReplicaSet
		if last := &out[len(out)-1]; last.takes(r) {
			*last = last.with(r)
			continue
		}
		out = append(out, r)
	}
	return out
}

// takes is whether r can replace the row before it.
func (last row) takes(r row) bool {
	return last.podsOnly && r.podsOnly && last.state.Entry.Name == r.state.Entry.Name &&
		!last.state.Entry.Deleted && r.state.At-last.since <= foldSpan
}

// with tells both rows as one change, from before the first to after the last.
func (last row) with(r row) row {
	r.before, r.since, r.changes = last.before, last.since, last.changes+1
	r.why = fmt.Sprintf("%s (%d changes since %s)", note(r.before, r.state), r.changes, seconds(r.since))
	return r
}

func (r row) write(b *strings.Builder) {
	s := r.state
	start := fmt.Sprintf(rowFormat, seconds(s.At), fmt.Sprintf("%d/%d", s.CanaryWeight, s.StableWeight),
		podsCell(s, s.CanaryHash), podsCell(s, s.StableHash), stepCell(s.Rollout), askedCell(s.Rollout),
		orDefault(s.Rollout.Phase, "-"))
	for _, words := range wrap(r.why, width-storyStart, storyLines) {
		line(b, start+words)
		start = strings.Repeat(" ", storyStart)
	}
}

// wrap breaks a text between words into at most n lines; the last is cut.
func wrap(s string, columns, n int) []string {
	var lines []string
	for ; n > 1 && utf8.RuneCountInString(s) > columns; n-- {
		cut := strings.LastIndex(string([]rune(s)[:columns+1]), " ")
		if cut <= 0 {
			break
		}
		lines = append(lines, s[:cut])
		s = s[cut+1:]
	}
	return append(lines, fit(s, columns))
}

// podsCell shows the pods behind what the routing names at this moment.
func podsCell(s State, hash string) string {
	p := s.Pods[hash]
	if hash == "" {
		return "-"
	}
	available := ""
	if p.Available != p.Ready {
		available = fmt.Sprintf(" a%d", p.Available)
	}
	return fmt.Sprintf("%d/%d%s %s", p.Ready, p.Size, available, short(hash))
}

func stepCell(r Rollout) string {
	if r.StepIndex < 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", r.StepIndex, r.Steps)
}

// askedCell marks a weight that the router has not verified: while the guard
// holds the canary, the status still shows what was asked for.
func askedCell(r Rollout) string {
	if r.Verified != nil && !*r.Verified {
		return fmt.Sprintf("%d?", r.DesiredWeight)
	}
	return fmt.Sprint(r.DesiredWeight)
}

type measureRow struct{ name, value string }

// measureRows puts the measures into words, the same for both tables.
func measureRows(m Measures) []measureRow {
	return []measureRow{
		{"peak overcommitment, canary", m.Canary.String()},
		{"peak overcommitment, stable", m.Stable.String()},
		{"traffic sent to missing pods", m.Missing.String()},
		{"time to finish", m.finish()},
		{"VirtualService writes", m.writes(KindVirtualService)},
		{"DestinationRule writes", m.writes(KindDestinationRule)},
	}
}

// String tells the peak and how long it was above 0 at all.
func (p Peak) String() string {
	if p.Points == 0 {
		return "0 points"
	}
	return fmt.Sprintf("%.0f points at %.1f s (%s above 0)", p.Points, p.At.Seconds(), brief(p.Lasted))
}

// String tells the traffic in seconds of full traffic.
func (m Missing) String() string {
	if m.Wall == 0 {
		return "0 s"
	}
	return fmt.Sprintf("%s of full traffic, within %s", brief(m.Traffic), brief(m.Wall))
}

// brief shows short times in milliseconds: 20 ms is not the same as none.
func brief(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func (m Measures) finish() string {
	if !m.Finished {
		return "never Healthy"
	}
	return brief(m.Finish)
}

func (m Measures) writes(kind Kind) string {
	return fmt.Sprint(m.WritesOf(kind))
}
