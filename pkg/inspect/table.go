package inspect

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// Paint colours a word by an ECMA-48 code, or leaves it.
type Paint func(word, colour string) string

// Plain leaves words as they are.
func Plain(word, _ string) string { return word }

// The colours.
const (
	bold = "1"
	grey = "2"
)

var colours = map[lint.Severity]string{lint.Error: "31", lint.Warning: "33", lint.Info: "36"}

// Table prints the screen for a person. Ages are measured from Report.At.
func (r Report) Table(out io.Writer, paint Paint) {
	t := &screen{out: out, paint: paint, r: r}
	t.head()
	t.findings()
	t.weights()
	t.routes()
	t.sides()
	t.mesh()
	t.pending()
	t.events()
	for _, note := range r.Notes {
		t.line("note: %s", printable(note))
	}
}

// printable keeps what others wrote, such as an Event, from moving the cursor.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// screen prints one Report.
type screen struct {
	out   io.Writer
	paint Paint
	r     Report
}

func (t *screen) line(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

// title begins a part.
func (t *screen) title(text string) { t.line("\n%s", t.paint(printable(text), bold)) }

// rows prints lines in columns; a cell must have no colour.
func (t *screen) rows(rows [][]string) {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable(cell)
		}
		fmt.Fprintf(w, "  %s\n", strings.Join(row, "\t"))
	}
	_ = w.Flush() // fails only where the writer does, which then tells
}

func (t *screen) head() {
	r := t.r.Rollout
	t.line("%s  %s", t.paint(printable("Rollout "+t.r.Namespace+"/"+t.r.Name), bold), printable(strings.Join(t.state(), ", ")))
	t.line("%s", t.paint(printable(t.r.Waiting), t.colour()))
	if r.Steps > 0 {
		step := fmt.Sprintf("%d of %d: %s", r.Step, r.Steps, r.StepText)
		if r.Step > r.Steps {
			step = fmt.Sprintf("%s (%d)", r.StepText, r.Steps)
		}
		t.line("Step      %s", printable(step))
	}
	t.line("Revision  canary %s, stable %s", printable(orNone(r.Canary)), printable(orNone(r.Stable)))
}

// colour is that of the worst finding.
func (t *screen) colour() string {
	if worst := t.r.Worst(); worst >= lint.Warning {
		return colours[worst]
	}
	return "32"
}

// state is the phase, and whatever is not ordinary.
func (t *screen) state() []string {
	r := t.r.Rollout
	var words []string
	if r.Phase != "" {
		words = append(words, r.Phase)
	}
	if r.Paused && r.Phase != "Paused" {
		words = append(words, "paused")
	}
	if r.Aborted {
		words = append(words, "aborted")
	}
	return append(words, map[string]string{
		wayFirst: "first deployment", wayIdle: "no canary", wayBack: "on its way back to the stable", wayFull: "promoted in full by a person",
		wayRollback: "rollback within rollbackWindow", wayCanary: "canary",
	}[r.Way])
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func (t *screen) findings() {
	for i, f := range t.r.Findings {
		if i == 0 {
			t.title("Findings")
		}
		t.line("  %s  %s", t.paint(fmt.Sprintf("%-7s", f.Severity), colours[f.Severity]), printable(f.Message))
	}
}

func (t *screen) weights() {
	w := t.r.Weights
	if w == nil {
		return
	}
	t.title(fmt.Sprintf("Weight of the canary, in parts of %d", w.Max))
	asked := "what the controller asks for"
	switch {
	case w.Silent != "":
		asked = "what the controller would ask for; " + w.Silent
	case w.Recorded != nil && *w.Recorded != w.Asked:
		asked += fmt.Sprintf("; the status still says %d", *w.Recorded)
	}
	applied, written := "?", "no route has weights"
	if w.Applied != nil {
		applied, written = fmt.Sprint(*w.Applied), "what is written in the VirtualServices"
	}
	if w.Applied != nil && !w.Uniform {
		written += ", of several routes the highest: they differ"
	}
	if w.Applied != nil && *w.Applied != w.Next {
		written += fmt.Sprintf("; the plugin would write %d now", w.Next)
	}
	allowed := fmt.Sprintf("%s (%s)", w.Why, w.Reason)
	if w.Guard != "Enforce" {
		allowed += "; guard.mode is " + w.Guard + ", and holds nothing"
	}
	t.rows([][]string{
		{"desired", fmt.Sprint(w.Asked), asked},
		{"applied", applied, written},
		{"allowed", fmt.Sprint(w.Allowed), allowed},
	})
}

func (t *screen) routes() {
	for _, vs := range t.r.VirtualServices {
		t.title(fmt.Sprintf("VirtualService %s/%s", vs.Namespace, vs.Name))
		var rows [][]string
		for _, route := range vs.Routes {
			row := []string{route.Route}
			for _, d := range route.Destinations {
				row = append(row, fmt.Sprintf("%s %d%s", d.Role, d.Weight, t.whose(d)))
			}
			rows = append(rows, row)
		}
		for _, m := range vs.Managed {
			rows = append(rows, []string{fmt.Sprintf("managed route %q", m.Name), managedText(m)})
		}
		t.rows(rows)
	}
}

// whose names a destination that its role does not name.
func (t *screen) whose(d Destination) string {
	if d.Role == "canary" || d.Role == "stable" {
		return ""
	}
	if d.Subset != "" {
		return fmt.Sprintf(" (%s, subset %s)", d.Host, d.Subset)
	}
	return fmt.Sprintf(" (%s)", d.Host)
}

func managedText(m ManagedRoute) string {
	switch {
	case m.Wanted && m.Present:
		return "there"
	case m.Wanted:
		return "missing"
	case m.Present:
		return "there, and not wanted now"
	}
	return "not wanted now"
}

func (t *screen) sides() {
	if len(t.r.Sides) == 0 {
		return
	}
	t.title("Where the sides lead")
	rows := [][]string{{"SIDE", "OBJECT", "HASH", "REPLICASET", "READY/WANTED", "ENDPOINTS"}}
	for _, s := range t.r.Sides {
		object := s.Object
		if s.Subset != "" {
			object += ", subset " + s.Subset
		}
		endpoints := "?"
		if s.Endpoints != nil {
			endpoints = fmt.Sprint(*s.Endpoints)
		}
		rows = append(rows, []string{s.Role, object, hashText(s), replicaSetText(s), podsText(s), endpoints})
	}
	t.rows(rows)
}

func hashText(s Side) string {
	hash := orNone(s.Hash)
	switch {
	case s.HashUnknown != "":
		hash = "?"
	case s.Right:
		return hash + " (right)"
	}
	return hash + " (should be " + orNone(s.Wanted) + ")"
}

func replicaSetText(s Side) string {
	if s.PodsUnknown != "" {
		return "?"
	}
	return orNone(s.ReplicaSet)
}

// podsText is ready/wanted; what the ReplicaSet is scaled to meanwhile is said where it is
// something else.
func podsText(s Side) string {
	ready, wanted, size := fmt.Sprint(s.Available), "?", fmt.Sprint(s.Size)
	if s.Intended != nil {
		wanted = fmt.Sprint(*s.Intended)
	}
	switch {
	case s.PodsUnknown != "":
		return "?/" + wanted
	case size == wanted:
		return ready + "/" + wanted
	}
	return fmt.Sprintf("%s/%s (scaled to %s)", ready, wanted, size)
}

func (t *screen) mesh() {
	m := t.r.Mesh
	if m == nil {
		return
	}
	t.title("What istiod serves")
	if m.Error != "" {
		t.line("  %s", printable(m.Error))
		return
	}
	rows := [][]string{{"ROUTE", "WEIGHT", "CLUSTER"}}
	for _, route := range m.Routes {
		name := route.Route
		if name == "" {
			name = "route without a name"
		}
		for i, c := range route.Clusters {
			where := fmt.Sprintf("%s:%d %s", route.Host, route.Port, name)
			if i > 0 {
				where = ""
			}
			rows = append(rows, []string{where, fmt.Sprintf("%d", c.Weight), c.Cluster})
		}
	}
	t.rows(rows)
	rows = [][]string{{"CLUSTER", "ENDPOINTS"}}
	for _, c := range m.Clusters {
		text := fmt.Sprintf("%d, %d of them healthy", c.Endpoints, c.Healthy)
		if !c.Exists {
			text = "is not there"
		}
		rows = append(rows, []string{c.Name, text})
	}
	t.rows(rows)
	for _, hidden := range m.Hidden {
		t.line("  not seen by asking istiod: %s", printable(hidden))
	}
}

func (t *screen) pending() {
	var rows [][]string
	for _, p := range t.r.Pending {
		rows = append(rows, []string{p.What, p.Text})
	}
	if len(rows) > 0 {
		t.title("Pending")
		t.rows(rows)
	}
}

func (t *screen) events() {
	if len(t.r.Events) == 0 {
		return
	}
	t.title("Events")
	rows := [][]string{{"AGE", "COUNT", "TYPE", "REASON", "MESSAGE"}}
	for _, e := range t.r.Events {
		rows = append(rows, []string{age(t.r.At, e.Last), fmt.Sprint(e.Count), e.Type, e.Reason, oneLine(e.Message)})
	}
	t.rows(rows)
}

// age is how long ago something was, as kubectl says it.
func age(now, then time.Time) string {
	if then.IsZero() {
		return "?"
	}
	return duration.HumanDuration(max(0, now.Sub(then)))
}
