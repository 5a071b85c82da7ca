package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/cmdline"
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
}

// parse reads the flags and checks them; all faults are reported at once. The text is
// the help, if that was asked for.
func parse(args []string) (o options, text string, err error) {
	set := cmdline.New("demo", usage)
	level := set.String("level", string(scenarios.Subset), "split between two subsets of one Service (subset), or between two Services (host)")
	set.Int32Var(&o.replicas, "replicas", 20, fmt.Sprintf("size of the Rollout, 1 to %d", maxReplicas))
	set.IntVar(&o.ready, "ready", 2, "how many pods of the rollback become ready at first, 0 to --replicas")
	set.DurationVar(&o.wait, "wait", 5*time.Second, "for how long it stays at that many")
	set.IntVar(&o.flaps, "flaps", 15, fmt.Sprintf("how often the flapping pod fails for a second and is ready for a second, 1 to %d", maxFlaps))
	set.StringVar(&o.svg, "svg", "", "file for the picture (default docs/images/incident.svg of the repository)")
	set.BoolVar(&o.keep, "keep", false, "keep the folder with the logs of everything that ran")
	switch help, err := set.Parse(args); {
	case err != nil:
		return o, "", err
	case help:
		return o, set.Help(), nil
	}
	o.level = scenarios.Level(*level)
	return o, "", o.check(set.Args())
}

func (o options) check(rest []string) error {
	var f cmdline.Faults
	f.Need(len(rest) == 0, "unknown argument %q: there are only flags", rest)
	f.Need(o.level == scenarios.Subset || o.level == scenarios.Host, "--level %q: use subset or host", o.level)
	f.Need(o.replicas >= 1 && o.replicas <= maxReplicas, "--replicas %d: use 1 to %d", o.replicas, maxReplicas)
	f.Need(o.ready >= 0 && o.ready <= int(o.replicas), "--ready %d: use 0 to %d, the replicas", o.ready, o.replicas)
	f.Need(o.flaps >= 1 && o.flaps <= maxFlaps, "--flaps %d: use 1 to %d", o.flaps, maxFlaps)
	f.Need(o.wait >= 0, "--wait %s: use a duration of 0 or more", o.wait)
	return f.Err()
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
