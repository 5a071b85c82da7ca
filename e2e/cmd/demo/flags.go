package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

const usage = `Plays a rollback, a canary, a flapping pod and the rollback with real requests on a real
control plane, with the native Istio router of Argo Rollouts and with this plugin, and
compares the two.

Usage:
  demo [flags]

Flags:
`

// maxReplicas keeps a typing error from filling a small machine with pods.
const maxReplicas = 200

// maxFlaps keeps the last part from lasting longer than anybody watches.
const maxFlaps = 300

// options are what the flags say.
type options struct {
	level    scenarios.Level
	replicas int32
	ready    int
	wait     time.Duration
	flaps    int
	keep     bool
	svg      string
	help     bool
}

// parse reads the flags and checks them; all faults are reported at once.
func parse(args []string) (options, *pflag.FlagSet, error) {
	var o options
	set := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	set.SortFlags = false
	set.Usage = func() {} // printed by run, to the right stream
	level := set.String("level", string(scenarios.Subset), "split between two subsets of one Service (subset), or between two Services (host)")
	set.Int32Var(&o.replicas, "replicas", 20, fmt.Sprintf("size of the Rollout, 1 to %d", maxReplicas))
	set.IntVar(&o.ready, "ready", 2, "how many pods of the rollback become ready at first, 0 to --replicas")
	set.DurationVar(&o.wait, "wait", 5*time.Second, "for how long it stays at that many")
	set.IntVar(&o.flaps, "flaps", 15, fmt.Sprintf("how often the flapping pod fails for a second and is ready for a second, 1 to %d", maxFlaps))
	set.StringVar(&o.svg, "svg", "", "file for the picture (default docs/images/incident.svg of the repository)")
	set.BoolVar(&o.keep, "keep", false, "keep the folder with the logs of everything that ran")
	set.BoolVarP(&o.help, "help", "h", false, "print this text")
	if err := set.Parse(args); err != nil {
		return o, set, err
	}
	o.level = scenarios.Level(*level)
	return o, set, o.check(set.Args())
}

func (o options) check(rest []string) error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(len(rest) == 0, "unknown argument %q: there are only flags", rest)
	need(o.level == scenarios.Subset || o.level == scenarios.Host, "--level %q: use subset or host", o.level)
	need(o.replicas >= 1 && o.replicas <= maxReplicas, "--replicas %d: use 1 to %d", o.replicas, maxReplicas)
	need(o.ready >= 0 && o.ready <= int(o.replicas), "--ready %d: use 0 to %d, the replicas", o.ready, o.replicas)
	need(o.flaps >= 1 && o.flaps <= maxFlaps, "--flaps %d: use 1 to %d", o.flaps, maxFlaps)
	need(o.wait >= 0, "--wait %s: use a duration of 0 or more", o.wait)
	return errors.Join(errs...)
}

// picture is the path of the picture, found from wherever in the repository the
// command was started.
func (o options) picture() (string, error) {
	if o.svg != "" {
		return filepath.Abs(o.svg)
	}
	dir, err := lab.Dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(dir), "docs", "images", "incident.svg"), nil
}

// incident is the story of the first part.
func (o options) incident() scenarios.Incident {
	return scenarios.Incident{Level: o.level, Replicas: o.replicas, Last: 100, Ready: o.ready, Wait: o.wait}
}

// flapping is the story of the last part.
func (o options) flapping() scenarios.Flapping {
	return scenarios.Flapping{Level: o.level, Replicas: o.replicas, Flaps: o.flaps}
}
