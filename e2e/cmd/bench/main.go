package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, play, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// player plays what the options ask for and hands each table over once all of it was
// measured. After an error there are no further tables.
type player func(ctx context.Context, o options, progress io.Writer, made func(table, text string)) error

// run prints the tables on out and what it does meanwhile on progress. Of a play that
// fails or is interrupted, the tables that were complete by then are kept.
func run(ctx context.Context, play player, args []string, out, progress io.Writer) error {
	o, set, err := parse(args)
	if err != nil {
		return fmt.Errorf("%w\nsee --help", err)
	}
	if o.help {
		_, err := fmt.Fprint(out, usage+set.FlagUsages())
		return err
	}
	path, err := o.page()
	if err != nil {
		return err
	}
	if path != "" { // before the play, which takes long
		if _, err := readPage(path, o.tables()); err != nil {
			return err
		}
	}
	r := results{out: out, page: path, missing: o.tables(), below: fmt.Sprintf("\n%s; `bench %s`\n", machine(), strings.Join(args, " "))}
	err = play(ctx, o, progress, r.add)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %w", err)
	}
	return r.close(err)
}

// bench is what all parts need.
type bench struct {
	options
	plugin   string // path of the binary
	progress io.Writer
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// play builds what is missing and plays what was asked for.
func play(ctx context.Context, o options, progress io.Writer, made func(table, text string)) error {
	plugin, err := lab.BuildPlugin(ctx, lab.PluginOptions{Progress: progress})
	if err != nil {
		return err
	}
	b := &bench{options: o, plugin: plugin, progress: progress}
	return playAll(ctx, b.asked(), b.inLab, func(p part) { b.say("%s:", p.name) }, made)
}

// part is what is measured in one lab, one after the other.
type part struct {
	name         string
	measurements []measurement
}

// measurement makes a table. With an error its text counts for nothing: figures that
// are missing are no figures.
type measurement struct {
	table string
	do    func(context.Context, *lab.Lab) (text string, err error)
}

// stage does something in a lab, which is there for no longer.
type stage func(context.Context, func(context.Context, *lab.Lab) error) error

// playAll plays each part on a stage of its own. The first that fails is the last.
func playAll(ctx context.Context, parts []part, on stage, begins func(part), made func(table, text string)) error {
	for _, p := range parts {
		begins(p)
		err := on(ctx, func(ctx context.Context, l *lab.Lab) error {
			for _, m := range p.measurements {
				text, err := m.do(ctx, l)
				if err != nil {
					return fmt.Errorf("table %s: %w", m.table, err)
				}
				made(m.table, text)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("part %s: %w", p.name, err)
		}
	}
	return nil
}

// asked are the parts that the options ask for, in the order of allParts.
func (b *bench) asked() []part {
	all := []part{
		{partCrowd, b.crowds()},
		{partIdle, []measurement{{partIdle, b.idlers}}},
		{partCanary, []measurement{{partCanary, b.canary}}},
		{partIncident, []measurement{{partIncident, b.incident}}},
	}
	return slices.DeleteFunc(all, func(p part) bool { return !b.plays(p.name) })
}

func (b *bench) crowds() []measurement {
	var all []measurement
	for _, canaries := range b.canaries {
		all = append(all, measurement{b.crowdTable(canaries), func(ctx context.Context, l *lab.Lab) (string, error) {
			result, err := b.crowd(ctx, l, canaries)
			if err != nil {
				return "", err
			}
			return crowdText(result), nil
		}})
	}
	return all
}

func (b *bench) idlers(ctx context.Context, l *lab.Lab) (string, error) {
	rows, err := b.measureIdle(ctx, l)
	return idleText(rows), err
}

func (b *bench) canary(ctx context.Context, l *lab.Lab) (string, error) {
	rows, err := b.alone(ctx, l, stepsStory)
	return canaryText(rows), err
}

func (b *bench) incident(ctx context.Context, l *lab.Lab) (string, error) {
	rows, err := b.alone(ctx, l, incidentStory)
	return incidentText(rows), err
}

// alone plays a story under one controller.
func (b *bench) alone(ctx context.Context, l *lab.Lab, of func(scenarios.Level, *scenarios.Meeting) story) ([]aloneRow, error) {
	c, err := l.StartController(ctx, lab.ControllerOptions{PluginPath: b.plugin})
	if err != nil {
		return nil, err
	}
	return playAlone(ctx, l, c, of)
}

func (b *bench) inLab(ctx context.Context, do func(context.Context, *lab.Lab) error) (err error) {
	l, err := lab.Start(ctx, lab.Options{Progress: b.progress})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	return do(ctx, l)
}
