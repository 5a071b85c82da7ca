package timeline

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

const (
	barWidth  = 20
	cellWidth = 68
	// followSpan is how quickly a weight has to follow the pods to be told in
	// one line with them.
	followSpan = 100 * time.Millisecond
	// fewRows is about how many moments the table shows; longer runs are shown
	// in larger spans.
	fewRows = 30
)

// SideBySide writes two timelines in two columns, aligned by time, and their
// measures below. The canary is the revision that each run leads to
// ([Timeline.Revision]), also after its promotion: the traffic sent to it, and
// its pods. Longer runs are told in longer spans: a line may stand for several
// changes of the pods, and of traffic that followed them at once, and shows the
// last. A moment of overload is never swallowed by a line without. Cut both
// timelines at the same mark first.
func SideBySide(w io.Writer, left, right Timeline, titles [2]string) error {
	var b strings.Builder
	pair(&b, titles[0], titles[1])
	pair(&b, cellHeader, cellHeader)
	line(&b, strings.Repeat("-", width))
	span := spanFor(max(left.End, right.End))
	for _, c := range align(column(left, span), column(right, span), span) {
		pair(&b, c[0], c[1])
	}
	line(&b, strings.Repeat("-", width))
	lm, rm := measureRows(left.Measure()), measureRows(right.Measure())
	for i := range lm {
		pair(&b, lm[i].both(), rm[i].both())
	}
	for i, gaps := range [2][]string{left.Gaps, right.Gaps} {
		for _, g := range gaps {
			line(&b, "GAP in "+titles[i]+": "+g)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", legend)
	_, err := io.WriteString(w, b.String())
	return err
}

const (
	cellHeader = "   time  traffic sent to the canary   pods  what happened"
	legend     = "Each bar is all traffic: # goes to the canary and its available pods can take it, ! goes there and they cannot,\n" +
		". they could take and it goes elsewhere. Pods are available/wanted."
)

// pair writes one line of both columns, each cut to its half.
func pair(b *strings.Builder, left, right string) {
	line(b, fmt.Sprintf("%-*s | %s", cellWidth, fit(left, cellWidth), fit(right, cellWidth)))
}

func (m measureRow) both() string { return fmt.Sprintf("%-29s %s", m.name, m.value) }

// spanFor is the shortest of 0.1, 0.2, 0.5, 1, 2, 5 … s that shows a run in
// few rows.
func spanFor(end time.Duration) time.Duration {
	span := 100 * time.Millisecond
	for i := 0; end/span > fewRows; i++ {
		// 1 -> 2 -> 5 -> 10: the factors between the round numbers.
		span = span * time.Duration([]int{4, 5, 4}[i%3]) / 2
	}
	return span
}

// cell is one line of a column.
type cell struct {
	at   time.Duration
	text string
}

// column makes the lines of one run.
func column(t Timeline, span time.Duration) []cell {
	revision := t.Revision()
	var cells []cell
	for _, m := range moments(t, revision, span) {
		cells = append(cells, cell{m.state.At, m.text(revision)})
	}
	return cells
}

// align puts two columns in the order of time. Lines stand beside each other
// when they are less than a quarter of a span apart.
func align(l, r []cell, span time.Duration) [][2]string {
	var out [][2]string
	for len(l) > 0 || len(r) > 0 {
		var both [2]string
		takeLeft := len(r) == 0 || len(l) > 0 && l[0].at < r[0].at+span/4
		takeRight := len(l) == 0 || len(r) > 0 && r[0].at < l[0].at+span/4
		if takeLeft {
			both[0], l = l[0].text, l[1:]
		}
		if takeRight {
			both[1], r = r[0].text, r[1:]
		}
		out = append(out, both)
	}
	return out
}

// moment is one line of a column.
type moment struct {
	state State
	why   string
}

// moments leaves out what shows nothing new and joins what one line can tell.
func moments(t Timeline, revision string, span time.Duration) []moment {
	states := t.States()
	out := []moment{{states[0], "start"}}
	for i := 1; i < len(states); i++ {
		now := moment{states[i], headline(states[i-1], states[i])}
		last := &out[len(out)-1]
		if now.same(*last, revision) {
			continue
		}
		if last.joins(now, revision, span) {
			now.why = last.why + now.why
			*last = now
			continue
		}
		out = append(out, now)
	}
	return out
}

// same is whether a reader would see the same line again. The controller repeats an
// Event with each reconcile that fails.
func (m moment) same(last moment, revision string) bool {
	return (m.why == "" || m.why == last.why) && m.numbers(revision) == last.numbers(revision)
}

// joins is whether one line can stand for both: within a span the traffic did
// not change, or it followed the pods at once and was never beyond their share.
// No two things may want the room for words.
func (m moment) joins(now moment, revision string, span time.Duration) bool {
	if m.why != "" && now.why != "" {
		return false
	}
	if m.overload(revision) && !now.overload(revision) {
		return false
	}
	if m.state.Toward(revision) == now.state.Toward(revision) {
		return m.state.At/span == now.state.At/span
	}
	return m.why == "" && !m.overload(revision) && now.state.At-m.state.At <= followSpan
}

// overload is whether the canary gets more than its pods can take.
func (m moment) overload(revision string) bool {
	return m.state.Toward(revision) > m.state.Share(revision)+rounding
}

func (m moment) text(revision string) string {
	return fmt.Sprintf("%6.1fs  %s  %s", m.state.At.Seconds(), m.numbers(revision), m.why)
}

func (m moment) numbers(revision string) string {
	s := m.state
	return fmt.Sprintf("%3.0f [%s] %5s", s.Toward(revision), bar(s.Toward(revision), s.Share(revision)),
		fmt.Sprintf("%d/%d", s.Pods[revision].Available, s.Rollout.Replicas))
}

// bar draws traffic against the share that the pods can take, both in percent.
// The least excess shows as one mark.
func bar(traffic, share float64) string {
	traffic = max(0, min(100, traffic))
	taken := int(math.Round(min(traffic, share) * barWidth / 100))
	beyond := int(math.Ceil(max(0, traffic-share-rounding) * barWidth / 100))
	beyond = min(beyond, barWidth)
	taken = min(taken, barWidth-beyond)
	room := int(math.Round(max(0, share-traffic) * barWidth / 100))
	room = min(room, barWidth-taken-beyond)
	return strings.Repeat("#", taken) + strings.Repeat("!", beyond) + strings.Repeat(".", room) +
		strings.Repeat(" ", barWidth-taken-beyond-room)
}

// headline is the shortest note that explains a line. Weights and pods need
// none: the line shows them.
func headline(before, now State) string {
	if now.Entry.Deleted {
		return ""
	}
	switch f := now.Entry.Fact.(type) {
	case Mark:
		return now.Entry.Name
	case Event:
		return f.Reason
	case Rollout:
		return rolloutHeadline(before.Rollout, f)
	default:
		return ""
	}
}

// rolloutHeadline leaves the message out: there is no room, and Print has it.
func rolloutHeadline(before, now Rollout) string {
	var parts []string
	if !before.Abort && now.Abort {
		parts = append(parts, "aborted")
	}
	if before.Phase != now.Phase {
		parts = append(parts, now.Phase)
	}
	if before.DesiredWeight != now.DesiredWeight {
		parts = append(parts, fmt.Sprintf("asks for %d", now.DesiredWeight))
	}
	return strings.Join(parts, ", ")
}
