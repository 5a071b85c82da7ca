package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/cmdline"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/namespace"
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
	o, text, err := parse(args)
	if err != nil {
		return fmt.Errorf("%w\nsee --help", err)
	}
	if text != "" {
		_, err := io.WriteString(out, text)
		return err
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
	// All programs at once, so that the progress counts to the right number.
	run := lab.PluginRun{Programs: mesh.Programs(), Progress: out, KeepFiles: o.keep}
	err = lab.WithPlugin(ctx, run, func(l *lab.Lab, c *lab.Controller) error {
		return show(ctx, stage{lab: l, controller: c, out: out}, o, picture)
	})
	if err != nil {
		return err
	}
	return apart(ctx, o, out)
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
	if err := cmdline.ToFile(picture, rollback.draw); err != nil {
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
