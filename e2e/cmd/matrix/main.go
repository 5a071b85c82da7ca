package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/matrix"
)

const usage = `Plays canaries with the plugin on every release of the Argo Rollouts controller that
it supports, with Istio's kinds served as v1, v1beta1 and v1alpha3, and writes the
table of docs/compatibility.md.

Usage:
  matrix [flags]

Flags:
`

// options are what the flags say.
type options struct {
	controllers, istio, stories []string
	file                        string
	race, help                  bool
}

func (o options) partial() bool { return len(o.controllers)+len(o.istio)+len(o.stories) > 0 }

func parse(args []string) (options, *pflag.FlagSet, error) {
	var o options
	set := pflag.NewFlagSet("matrix", pflag.ContinueOnError)
	set.SortFlags = false
	set.Usage = func() {} // printed by run, to the right stream
	set.StringSliceVar(&o.controllers, "controller", nil, "play only on these releases, and write nothing")
	set.StringSliceVar(&o.istio, "istio", nil, "play only with these versions of Istio's kinds, and write nothing")
	set.StringSliceVar(&o.stories, "story", nil, "play only these stories, and write nothing: "+strings.Join(names(), ", "))
	set.StringVar(&o.file, "file", "", "page to write (default docs/compatibility.md of the repository)")
	set.BoolVar(&o.race, "race", true, "build the plugin with the race detector")
	set.BoolVarP(&o.help, "help", "h", false, "print this text")
	err := set.Parse(args)
	if err == nil && set.NArg() > 0 {
		err = fmt.Errorf("unknown argument %q: there are only flags", set.Args())
	}
	return o, set, err
}

func names() []string {
	var all []string
	for _, story := range matrix.Stories() {
		all = append(all, story.Name)
	}
	return all
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	o, set, err := parse(args)
	if err != nil {
		return fmt.Errorf("%w\nsee --help", err)
	}
	if o.help {
		_, err := fmt.Fprint(out, usage+set.FlagUsages())
		return err
	}
	grounds, cells, err := o.chosen()
	if err != nil {
		return err
	}
	path, page, err := o.page()
	if err != nil { // before the play, which takes long
		return err
	}
	table, err := play(ctx, out, grounds, cells, o.race)
	if table != "" {
		fmt.Fprintf(out, "\n%s", table)
	}
	if err != nil || o.partial() {
		return err
	}
	if page, err = fill(page, table); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, page, 0o644)
}

// chosen are the grounds and the cells that the flags leave. A name that is none is
// an error: a matrix of nothing would be green.
func (o options) chosen() ([]matrix.Ground, []matrix.Cell, error) {
	grounds, err := matrix.Grounds()
	if err != nil {
		return nil, nil, err
	}
	releases, err := lab.Releases()
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(known("controller", o.controllers, releases), known("istio", o.istio, matrix.IstioVersions()), known("story", o.stories, names()))
	if err != nil {
		return nil, nil, err
	}
	grounds = slices.DeleteFunc(grounds, func(g matrix.Ground) bool { return !asked(o.controllers, g.Controller) || !asked(o.istio, g.Istio) })
	stories := slices.DeleteFunc(matrix.Stories(), func(s matrix.Story) bool { return !asked(o.stories, s.Name) })
	return grounds, matrix.Cells(stories...), nil
}

func asked(only []string, name string) bool { return len(only) == 0 || slices.Contains(only, name) }

func known(flag string, given, have []string) error {
	for _, name := range given {
		if !slices.Contains(have, name) {
			return fmt.Errorf("--%s %s: there are %s", flag, name, strings.Join(have, ", "))
		}
	}
	return nil
}

// play plays everything, one ground after the other, and returns the table of what
// was played, also with an error.
func play(ctx context.Context, out io.Writer, grounds []matrix.Ground, cells []matrix.Cell, race bool) (string, error) {
	plugin, err := lab.BuildPlugin(ctx, lab.PluginOptions{Race: race, Progress: out})
	if err != nil {
		return "", err
	}
	var outcomes []matrix.Outcome
	var errs []error
	for i, ground := range grounds {
		began := time.Now()
		played, err := matrix.Play(ctx, ground, plugin, out, cells...)
		if err != nil {
			errs = append(errs, err)
		}
		for _, o := range played {
			if len(o.Faults) > 0 {
				errs = append(errs, fmt.Errorf("%s: %s, %s level fails", o.Ground, o.Cell.Story.Name, o.Cell.Level))
			}
			if err := o.Explain(out); err != nil {
				return "", err
			}
		}
		outcomes = append(outcomes, played...)
		fmt.Fprintf(out, "%s: %d plays in %.0f s (%d of %d)\n", ground, len(played), time.Since(began).Seconds(), i+1, len(grounds))
		if ctx.Err() != nil {
			break
		}
	}
	return matrix.Table(outcomes), errors.Join(errs...)
}

// page is the page's path and content; nothing when nothing is to be written.
func (o options) page() (string, []byte, error) {
	if o.partial() {
		return "", nil, nil
	}
	path := o.file
	if path == "" {
		dir, err := lab.Dir()
		if err != nil {
			return "", nil, err
		}
		path = filepath.Join(filepath.Dir(dir), "docs", "compatibility.md")
	}
	page, err := os.ReadFile(path)
	if err == nil {
		_, err = fill(page, "")
	}
	return path, page, err
}

const begin, end = "<!-- begin matrix -->\n", "<!-- end matrix -->"

// fill puts the table between its markers and leaves the rest of the page as it is.
func fill(page []byte, table string) ([]byte, error) {
	from, to := bytes.Index(page, []byte(begin)), bytes.Index(page, []byte(end))
	if from < 0 || to < from {
		return nil, fmt.Errorf("no lines %q and %q in that order: put them where the table belongs", strings.TrimSpace(begin), end)
	}
	return bytes.Join([][]byte{page[:from+len(begin)], []byte(table), page[to:]}, nil), nil
}
