package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

// tableNames are the markers of the page, in its order.
var tableNames = []string{"setting", "requests", "reasons", "cost"}

// tables are the contents of the markers.
func (p played) tables() (map[string]string, error) {
	setting, err := p.setting()
	if err != nil {
		return nil, err
	}
	return map[string]string{"setting": setting, "requests": p.requests(), "reasons": p.reasons(), "cost": p.cost()}, nil
}

// setting says what was played with what.
func (p played) setting() (string, error) {
	istio, err := lab.IstiodProgram.Version()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Argo Rollouts %s, istiod %s, %d cores, %s; each story played %s.\n",
		lab.DefaultVersion, istio, runtime.NumCPU(), runtime.Version(), times(p.times)), nil
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// requests is the table of what was lost.
func (p played) requests() string {
	var b strings.Builder
	b.WriteString("| Story | Level | Lost, native | Lost, plugin | Worst second, native | Worst second, plugin | Share off, native | Share off, plugin | Healthy after, native | Healthy after, plugin |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|\n")
	for _, pair := range p.pairs {
		n, g := pair.native, pair.plugin
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			n.Title, n.Level, lost(n), lost(g), worst(n), worst(g), off(n), off(g), took(n), took(g))
	}
	return b.String()
}

func lost(r mesh.Row) string { return fmt.Sprintf("%d of %d", r.Lost, r.Sent) }

func worst(r mesh.Row) string {
	if r.Lost == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*r.Worst.Share())
}

// off tells nothing where no window was long enough to judge.
func off(r mesh.Row) string {
	if r.Judged == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", r.Off)
}

func took(r mesh.Row) string {
	if !r.Finished {
		return "-"
	}
	return fmt.Sprintf("%.0f s", r.Took.Seconds())
}

// reasons is the list of why requests were lost.
func (p played) reasons() string {
	var b strings.Builder
	raced := map[scenarios.Router]int{}
	for _, pair := range p.pairs {
		raced[pair.native.Router] += pair.native.Raced
		raced[pair.plugin.Router] += pair.plugin.Raced
		for _, r := range []mesh.Row{pair.native, pair.plugin} {
			for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
				fmt.Fprintf(&b, "* %s, %s level, %s: %d × %s\n", r.Title, r.Level, r.Router, r.Reasons[reason], reason)
			}
		}
	}
	if b.Len() == 0 {
		b.WriteString("No request was lost.\n")
	}
	fmt.Fprintf(&b, "\nSent again after the client's own race: %d with the native router, %d with the plugin.\n", raced[scenarios.Native], raced[scenarios.Plugin])
	return b.String()
}

// cost is the table of what istiod had to do.
func (p played) cost() string {
	var b strings.Builder
	b.WriteString("| Story, subset level | Router | Pushes | Computing them | RDS sent | CDS sent | EDS sent | Mean time of a push |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, c := range p.costs {
		fmt.Fprintf(&b, "| %s | %s | %d | %.1f ms | %d | %d | %d | %d ms |\n", c.row.Title, c.row.Router, c.Pushes,
			1000*c.Computing.Seconds(), c.Sent["rds"], c.Sent["cds"], c.Sent["eds"], c.Convergence.Milliseconds())
	}
	return b.String()
}
