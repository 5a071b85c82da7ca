package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run prints the tables on out and what it does meanwhile on progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
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
	tables, err := play(ctx, o, progress)
	if err != nil {
		return err
	}
	for _, name := range o.tables() {
		tables[name] += fmt.Sprintf("\n%s; `bench %s`\n", machine(), strings.Join(args, " "))
		fmt.Fprintf(out, "\n%s\n\n%s", name, tables[name])
	}
	if path == "" {
		return nil
	}
	return put(path, tables, o.tables())
}

// put writes the tables into a page, as it is now.
func put(path string, tables map[string]string, names []string) error {
	page, err := readPage(path, names)
	if err != nil {
		return err
	}
	if page, err = fill(page, tables, names); err != nil {
		return err
	}
	return writePage(path, page)
}

// bench is what all parts need.
type bench struct {
	options
	plugin   string // path of the binary
	progress io.Writer
	tables   map[string]string
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// play builds what is missing and plays what was asked for, each part in a lab of its
// own.
func play(ctx context.Context, o options, progress io.Writer) (map[string]string, error) {
	plugin, err := lab.BuildPlugin(ctx, lab.PluginOptions{Progress: progress})
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, plugin: plugin, progress: progress, tables: map[string]string{}}
	for _, part := range []struct {
		name string
		play func(context.Context, *lab.Lab) error
	}{{partCrowd, b.crowds}, {partIdle, b.idlers}, {partCanary, b.canary}, {partIncident, b.incident}} {
		if !o.plays(part.name) {
			continue
		}
		b.say("%s:", part.name)
		if err := b.inLab(ctx, part.play); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return b.tables, nil
}

func (b *bench) crowds(ctx context.Context, l *lab.Lab) error {
	for _, canaries := range b.canaries {
		result, err := b.crowd(ctx, l, canaries)
		if err != nil {
			return err
		}
		b.tables[b.crowdTable(canaries)] = crowdText(result)
	}
	return nil
}

func (b *bench) idlers(ctx context.Context, l *lab.Lab) error {
	rows, err := b.measureIdle(ctx, l)
	b.tables[partIdle] = idleText(rows)
	return err
}

func (b *bench) canary(ctx context.Context, l *lab.Lab) error {
	rows, err := b.alone(ctx, l, stepsStory)
	b.tables[partCanary] = canaryText(rows)
	return err
}

func (b *bench) incident(ctx context.Context, l *lab.Lab) error {
	rows, err := b.alone(ctx, l, incidentStory)
	b.tables[partIncident] = incidentText(rows)
	return err
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
