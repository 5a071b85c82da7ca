package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/cmdline"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/simulate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cli"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// The exit codes.
const (
	exitFine   = 0
	exitBroken = 1
	exitFailed = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// streams are those of the process.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run carries the command out and returns the exit code. When ctx ends it takes away
// what it started and returns.
func run(ctx context.Context, args []string, to streams) int {
	broken, err := perform(ctx, args, to)
	switch {
	case err != nil:
		fmt.Fprintln(to.err, "simulate:", err)
		return exitFailed
	case broken:
		return exitBroken
	}
	return exitFine
}

// perform tells whether the plugin broke something.
func perform(ctx context.Context, args []string, to streams) (broken bool, err error) {
	o, text, err := parse(args)
	switch {
	case err != nil:
		return false, fmt.Errorf("%w\nsee --help", err)
	case text != "":
		_, err := io.WriteString(to.out, text)
		return false, err
	case o.list:
		return false, listScenarios(to.out)
	}
	in := lint.Input{Namespace: o.namespace}
	if err := cli.ReadFiles(ctx, &in, to.in, o.files); err != nil {
		return false, err
	}
	plan, err := simulate.Derive(in, o.settings)
	if err != nil {
		return false, err
	}
	results, err := play(ctx, o, plan, to)
	for _, r := range results {
		broken = broken || len(r.Broken) > 0
	}
	return broken, err
}

func listScenarios(out io.Writer) error {
	var b strings.Builder
	for _, s := range simulate.Scenarios() {
		fmt.Fprintf(&b, "%-10s %s\n", s, s.About())
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// play plays all scenarios in one lab and prints what came of each.
func play(ctx context.Context, o options, plan simulate.Plan, to streams) (results []simulate.Result, err error) {
	if o.output == "table" {
		if err := simulate.WriteNotes(to.out, plan); err != nil {
			return nil, err
		}
	}
	run := lab.PluginRun{Progress: to.err, KeepFiles: o.keep}
	err = lab.WithPlugin(ctx, run, func(l *lab.Lab, c *lab.Controller) error {
		stage := simulate.Stage{Lab: l, Controller: c, Progress: to.err}
		for _, scenario := range o.scenarios {
			fmt.Fprintf(to.err, "Playing %s with both routers.\n", scenario)
			played, err := simulate.Play(ctx, stage, plan, scenario, o.settings)
			if err := errors.Join(err, keep(o, l.Dir(), played)); err != nil {
				return err
			}
			r := simulate.Judge(plan, played)
			results = append(results, r)
			if err := show(o, r, to.out); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && o.output == "json" {
		err = simulate.WriteJSON(to.out, plan, results)
	}
	return results, err
}

// show prints one scenario as soon as it has been played, and draws it.
func show(o options, r simulate.Result, out io.Writer) error {
	if o.output == "table" {
		if err := simulate.WriteResult(out, r); err != nil {
			return err
		}
	}
	if o.svg == "" {
		return nil
	}
	return cmdline.ToFile(o.picture(r.Scenario), func(out io.Writer) error { return simulate.WriteSVG(out, r) })
}

// keep writes down what was recorded, also of a play that failed: package simulate reads
// it as [simulate.Played].
func keep(o options, folder string, played simulate.Played) error {
	if !o.keep {
		return nil
	}
	path := filepath.Join(folder, "played-"+string(played.Scenario)+".json")
	return cmdline.ToFile(path, func(out io.Writer) error { return json.NewEncoder(out).Encode(played) })
}

// picture is the file for a scenario.
func (o options) picture(s simulate.Scenario) string {
	if len(o.scenarios) == 1 {
		return o.svg
	}
	ending := filepath.Ext(o.svg)
	return strings.TrimSuffix(o.svg, ending) + "-" + string(s) + ending
}
