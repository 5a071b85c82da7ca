package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

const usage = `Measures the native Istio router of Argo Rollouts and this plugin in the lab, and what
many idle Rollouts cost the plugin, and writes the tables of docs/benchmarks.md.

Usage:
  bench [flags]

Flags:
`

// The parts, in the order in which they are played.
const (
	partCrowd    = "crowd"    // many canaries that begin at once
	partIdle     = "idle"     // many Rollouts with which nothing happens
	partCanary   = "canary"   // one canary that has the lab to itself
	partIncident = "incident" // one rollback to few pods
)

var allParts = []string{partCrowd, partIdle, partCanary, partIncident}

const (
	// these keep a typing error from filling a small machine.
	mostCanaries = 2_000
	mostIdle     = 20_000
	mostQPS      = 10_000
	// toStdout as the page means none.
	toStdout = "-"
)

// options are what the flags say.
type options struct {
	parts    []string
	canaries []int
	qps      int // of the controllers of a crowd; 0 leaves them their own
	idle     []int
	window   time.Duration
	out      string
	help     bool
}

// parse reads the flags and checks them; all faults are reported at once.
func parse(args []string) (options, *pflag.FlagSet, error) {
	var o options
	set := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	set.SortFlags = false
	set.Usage = func() {} // printed by run, to the right stream
	set.StringSliceVar(&o.parts, "parts", allParts, "what to measure: many canaries at once (crowd), many Rollouts at rest (idle), one canary (canary), one rollback (incident)")
	set.IntSliceVar(&o.canaries, "canaries", []int{150, 500}, fmt.Sprintf("how many canaries begin at once, 1 to %d; each number is a table, so none comes twice", mostCanaries))
	set.IntVar(&o.qps, "controller-qps", 0, "requests per second that the controller of these canaries may send, a table of its own; 0: its default of 40, which bounds them")
	set.IntSliceVar(&o.idle, "idle", []int{1, 1000, 5000}, fmt.Sprintf("how many Rollouts are at rest, ascending, 1 to %d; each number is a row", mostIdle))
	set.DurationVar(&o.window, "window", time.Minute, "for how long the plugin is looked at with each number of idle Rollouts, 1s or more")
	set.StringVar(&o.out, "out", "", "page whose tables are written; - for none (default docs/benchmarks.md of the repository)")
	set.BoolVarP(&o.help, "help", "h", false, "print this text")
	if err := set.Parse(args); err != nil {
		return o, set, explained(err)
	}
	return o, set, o.check(set.Args())
}

// takes is what the flags take whose values are more than text.
var takes = map[string]string{
	"canaries":       fmt.Sprintf("whole numbers of 1 to %d with commas between them, as 150,500", mostCanaries),
	"controller-qps": fmt.Sprintf("a whole number of 0 to %d", mostQPS),
	"idle":           fmt.Sprintf("whole numbers of 1 to %d, ascending, with commas between them, as 1,1000", mostIdle),
	"window":         "a duration of 1s or more, as 30s or 2m",
	"parts":          "names with commas between them, of " + strings.Join(allParts, ", "),
	"help":           "no value",
}

// explained says what a flag takes where the Go functions that read its value only say
// how they failed.
func explained(err error) error {
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		name := wrong.GetFlag().Name
		if what, known := takes[name]; known {
			return fmt.Errorf("--%s %q: it takes %s", name, wrong.GetValue(), what)
		}
	}
	return err
}

func (o options) check(rest []string) error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(len(rest) == 0, "unknown argument %q: there are only flags", rest)
	need(len(o.parts) > 0, "--parts: name one at least of %s", strings.Join(allParts, ", "))
	for _, part := range o.parts {
		need(slices.Contains(allParts, part), "--parts %s: use %s", part, strings.Join(allParts, ", "))
	}
	for i, n := range o.canaries {
		need(n >= 1 && n <= mostCanaries, "--canaries %d: use 1 to %d", n, mostCanaries)
		need(!slices.Contains(o.canaries[:i], n), "--canaries %d: give each number once, since it is the name of a table", n)
	}
	need(o.qps >= 0 && o.qps <= mostQPS, "--controller-qps %d: use 0 to %d", o.qps, mostQPS)
	for i, n := range o.idle {
		need(n >= 1 && n <= mostIdle, "--idle %d: use 1 to %d", n, mostIdle)
		need(i == 0 || n > o.idle[i-1], "--idle %d: the numbers have to ascend, since Rollouts are only added", n)
	}
	need(o.window >= time.Second, "--window %s: use 1s or more", o.window)
	return errors.Join(errs...)
}

// plays tells whether a part was asked for.
func (o options) plays(part string) bool { return slices.Contains(o.parts, part) }

// tables are the names of those that will be made.
func (o options) tables() []string {
	var names []string
	for _, part := range allParts {
		switch {
		case !o.plays(part):
		case part == partCrowd:
			for _, n := range o.canaries {
				names = append(names, o.crowdTable(n))
			}
		default:
			names = append(names, part)
		}
	}
	return names
}

// crowdTable is the name of the table of so many canaries.
func (o options) crowdTable(canaries int) string {
	name := fmt.Sprintf("%s-%d", partCrowd, canaries)
	if o.qps > 0 {
		name += fmt.Sprintf("-qps-%d", o.qps)
	}
	return name
}

// page is the path of the page, found from wherever in the repository the command
// was started; "" for none.
func (o options) page() (string, error) {
	switch o.out {
	case toStdout:
		return "", nil
	case "":
		dir, err := lab.Dir()
		if err != nil {
			return "", err
		}
		return filepath.Join(filepath.Dir(dir), "docs", "benchmarks.md"), nil
	default:
		return filepath.Abs(o.out)
	}
}
