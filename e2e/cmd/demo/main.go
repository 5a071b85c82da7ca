package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/namespace"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, set, err := parse(args)
	if err != nil {
		return fmt.Errorf("%w\nsee --help", err)
	}
	if o.help {
		fmt.Fprint(out, usage+set.FlagUsages())
		return nil
	}
	if namespace.Inside() {
		return requests(ctx, o, out)
	}
	// Before anything is built, since a wrong path should not cost the play.
	picture, err := o.picture()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(picture), 0o755); err != nil {
		return err
	}
	if err := inLab(ctx, o, out, func(s stage) error { return show(ctx, s, o, picture) }); err != nil {
		return err
	}
	return apart(ctx, o, out)
}

// inLab builds what is missing and sets the stage for a play.
func inLab(ctx context.Context, o options, out io.Writer, play func(stage) error) (err error) {
	// All at once, so that the progress counts to the right number.
	if err := lab.Build(ctx, out, mesh.Programs()...); err != nil {
		return err
	}
	plugin, err := lab.BuildPlugin(ctx, lab.PluginOptions{Progress: out})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Starting a control plane with the Argo Rollouts controller %s.\n", lab.DefaultVersion)
	l, err := lab.Start(ctx, lab.Options{Progress: out, KeepFiles: o.keep})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, l.Stop())
		if o.keep {
			fmt.Fprintf(out, "Logs are kept in %s\n", l.Dir())
		}
	}()
	c, err := l.StartController(ctx, lab.ControllerOptions{PluginPath: plugin})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Up after %.0f s.\n", l.StartTook.Seconds())
	return play(stage{lab: l, controller: c, out: out})
}

// show plays all parts but the last and reports each as soon as it is over.
func show(ctx context.Context, s stage, o options, picture string) error {
	fmt.Fprint(s.out, incidentIntro(o))
	rollback, err := s.incident(ctx, o)
	if err != nil {
		return err
	}
	if err := writeIncident(s.out, rollback); err != nil {
		return err
	}
	if err := draw(picture, rollback); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\nThe picture is in %s\n", picture)

	fmt.Fprint(s.out, canaryIntro(o))
	canary, err := s.canary(ctx, o)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s.out, canaryVerdict(canary.measure())); err != nil {
		return err
	}

	fmt.Fprint(s.out, flappingIntro(o))
	flapping, err := s.flapping(ctx, o)
	if err != nil {
		return err
	}
	_, err = io.WriteString(s.out, flappingVerdict(flapping.measure()))
	return err
}

func draw(path string, p pair) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return timeline.WriteSVG(file, p.native, p.plugin)
}
