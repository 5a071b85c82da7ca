package matrix

import (
	"fmt"
	"io"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// Table is the outcomes as a table in Markdown: a row for each ground, in the order
// in which they come, and a column for each cell.
func Table(outcomes []Outcome) string {
	var grounds []Ground
	var columns []string
	rows := map[Ground]map[string]string{}
	for _, o := range outcomes {
		column := o.Cell.Story.Title + ", " + string(o.Cell.Level)
		if rows[o.Ground] == nil {
			grounds, rows[o.Ground] = append(grounds, o.Ground), map[string]string{}
		}
		if rows[o.Ground][column] == "" && o.Ground == grounds[0] {
			columns = append(columns, column)
		}
		rows[o.Ground][column] = o.word()
	}
	var out strings.Builder
	fmt.Fprintf(&out, "| Controller | Istio | %s |\n|---|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, g := range grounds {
		fmt.Fprintf(&out, "| %s | %s |", g.Controller, g.Istio)
		for _, column := range columns {
			fmt.Fprintf(&out, " %s |", rows[g][column])
		}
		out.WriteString("\n")
	}
	return out.String()
}

// word is the outcome in a table.
func (o Outcome) word() string {
	switch {
	case len(o.Faults) > 0:
		return "**fails**"
	case o.Lacking:
		return "not supported"
	default:
		return fmt.Sprintf("ok, %.0f s", o.Took.Seconds())
	}
}

// Explain tells what was wrong, with the recording, and nothing of an outcome
// without faults.
func (o Outcome) Explain(out io.Writer) error {
	if len(o.Faults) == 0 {
		return nil
	}
	fmt.Fprintf(out, "%s: %s, %s level:\n", o.Ground, o.Cell.Story.Name, o.Cell.Level)
	for _, fault := range o.Faults {
		fmt.Fprintf(out, "  %s\n", fault)
	}
	if err := timeline.Print(out, o.Timeline); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "controller's log:\n%s\n", o.Log)
	return err
}
