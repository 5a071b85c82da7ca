package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/cmdline"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/simulate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
)

const usage = `Plays the steps of your own Rollout on a real control plane without containers, with the native
Istio router of Argo Rollouts and with this plugin side by side, and says what becomes of the
requests: what will my rollback do?

Usage:
  simulate -f FILE|DIR|- [--scenario NAME,…] [flags]

  go run ./cmd/simulate -f rollout.yaml
  kubectl kustomize overlays/prod | go run ./cmd/simulate -f - --scenario rollback,canary --svg web.svg

The files hold a Rollout with the block of either router, and as far as you have them its
VirtualServices, DestinationRules and Services. What is missing is made up, and said.
Exit codes: 0 fine, 1 the plugin broke an invariant or came to no end, 2 could not run.

Flags:
`

// list is the name that lists the scenarios.
const list = "list"

// options are what the flags say.
type options struct {
	files     []string
	namespace string
	scenarios []simulate.Scenario
	list      bool
	output    string
	svg       string
	keep      bool
	settings  simulate.Settings
}

// parse reads the flags and checks them; all faults are reported at once. The text is
// the help, if that was asked for.
func parse(args []string) (o options, text string, err error) {
	o.settings = simulate.Defaults()
	set := cmdline.New("simulate", usage)
	set.StringArrayVarP(&o.files, "filename", "f", nil, "file, folder (with all below it) or - for stdin; may be given several times")
	set.StringVarP(&o.namespace, "namespace", "n", "", "that of objects that do not name one")
	set.StringVar(&o.settings.Rollout, "rollout", "", "[NAMESPACE/]NAME of the Rollout, if the files have several")
	scenarios := set.StringSlice("scenario", []string{string(simulate.Rollback)}, "what to play, with commas between them; list lists all")
	set.StringVarP(&o.output, "output", "o", "table", "table or json")
	set.StringVar(&o.svg, "svg", "", "file for a picture; with several scenarios their names are put into it")
	o.readiness(set)
	set.StringVar(&o.settings.PluginName, "plugin-name", config.DefaultPluginName, "the name under which the plugin is registered")
	set.DurationVar(&o.settings.Timeout, "timeout", o.settings.Timeout, "longest time for one scenario, without what is built the first time")
	set.BoolVar(&o.keep, "keep", false, "keep the folder with the logs of everything that ran, and what was recorded")
	switch help, err := set.Parse(args); {
	case err != nil:
		return o, "", err
	case help:
		return o, set.Help(), nil
	}
	return o, "", errors.Join(o.choose(*scenarios), o.check(set.Args()))
}

// readiness are the flags about pods and steps.
func (o *options) readiness(set *cmdline.Flags) {
	s := &o.settings
	set.DurationVar(&s.Pause, "pause", s.Pause, "longest pause that is played; minReadySeconds and scaleDownDelaySeconds are shortened to it, too")
	set.Int32Var(&s.Replicas, "replicas", 0, fmt.Sprintf("in place of spec.replicas, 1 to %d", simulate.MaxReplicas))
	set.DurationVar(&s.Startup, "startup", s.Startup, "time from a pod's start until it is ready")
	set.DurationVar(&s.Spread, "spread", s.Spread, "time from the first ready pod of a revision to the last: they come one after another")
	set.Var(&s.Failing, "failing", "pods of the revision that comes that never become ready; in a rollback that is the old one")
	set.Var(&s.Broken, "broken", "pods of the revision that is left that fail when a rollback begins")
	set.IntVar(&s.Revisions, "revisions", s.Revisions, "how many revisions a rollback goes back, 1 to 5")
	set.IntVar(&s.At, "at", s.At, "index of the step, from 0, at which supersede and abort interfere (default the last pause below full weight)")
	set.IntVar(&s.ScaleAt, "scale-at", s.ScaleAt, "index of the step at which scale changes spec.replicas (default the same)")
	set.Int32Var(&s.ScaleTo, "scale-to", 0, "what scale changes them to (default twice as many)")
	for _, name := range []string{"at", "scale-at", "replicas", "scale-to"} {
		set.Lookup(name).DefValue = "0" // not shown: the text says what it is
	}
}

// choose reads the names of scenarios.
func (o *options) choose(names []string) error {
	var errs []error
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == list {
			o.list = true
			continue
		}
		s, err := simulate.ParseScenario(name)
		if err != nil {
			errs = append(errs, err)
		} else if !slices.Contains(o.scenarios, s) {
			o.scenarios = append(o.scenarios, s)
		}
	}
	if len(o.scenarios) == 0 && !o.list && len(errs) == 0 {
		errs = append(errs, errors.New("--scenario is empty: --scenario list lists them"))
	}
	return errors.Join(errs...)
}

func (o *options) check(rest []string) error {
	var f cmdline.Faults
	f.Need(len(rest) == 0, "unknown argument %q: files are given with -f", rest)
	f.Need(len(o.files) > 0 || o.list, "no files: give the Rollout with -f FILE, a folder, or - for stdin")
	f.Need(o.output == "table" || o.output == "json", "-o %s: use table or json", o.output)
	// Here, since a wrong path should not cost the play.
	if folder, err := os.Stat(filepath.Dir(o.svg)); o.svg != "" {
		f.Need(err == nil && folder.IsDir(), "--svg %s: there is no folder %s", o.svg, filepath.Dir(o.svg))
		there, err := os.Stat(o.svg)
		f.Need(err != nil || !there.IsDir(), "--svg %s: that is a folder: give the name of a file", o.svg)
	}
	f.Add(o.settings.Validate())
	return f.Err()
}
