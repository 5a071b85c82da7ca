package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

const usage = `Runs a real Kubernetes control plane with Argo Rollouts, without containers.

Usage:
  lab build [flags]   build every program that the tests need and that is missing, with progress
  lab up [flags]      run a control plane, a controller and the plugin until Ctrl-C

Flags:
`

type flags struct {
	set     *pflag.FlagSet
	version string
	plugin  bool
	race    bool
	keep    bool
	help    bool
}

func newFlags() *flags {
	f := &flags{set: pflag.NewFlagSet("lab", pflag.ContinueOnError)}
	f.set.SortFlags = false
	f.set.Usage = func() {} // run prints it when asked, and only then
	f.set.StringVar(&f.version, "version", lab.DefaultVersion, "up: the release of the Argo Rollouts controller")
	f.set.BoolVar(&f.plugin, "plugin", true, "up: build the plugin and register it as "+lab.DefaultPluginName)
	f.set.BoolVar(&f.race, "race", false, "up: build the plugin with the race detector")
	f.set.BoolVar(&f.keep, "keep", false, "up: keep the folder with the logs")
	f.set.BoolVarP(&f.help, "help", "h", false, "print this text")
	return f
}

func (f *flags) usage() string { return usage + f.set.FlagUsages() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	f := newFlags()
	if err := f.set.Parse(args); err != nil {
		return fmt.Errorf("%w; see lab --help", err)
	}
	if f.help {
		_, err := fmt.Fprint(out, f.usage())
		return err
	}
	switch command := f.set.Args(); {
	case len(command) != 1:
		return errors.New("name one command, build or up; see lab --help")
	case command[0] == "build":
		return build(ctx, out)
	case command[0] == "up":
		return up(ctx, out, f)
	default:
		return fmt.Errorf("unknown command %q; see lab --help", command[0])
	}
}

// build makes every binary and says where each is.
func build(ctx context.Context, out io.Writer) error {
	if err := lab.Build(ctx, out); err != nil {
		return err
	}
	for _, c := range lab.Components() {
		path, err := c.Path()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-32s %s\n", c, path)
	}
	return nil
}

// up runs a lab until ctx ends.
func up(ctx context.Context, out io.Writer, f *flags) (err error) {
	options := lab.ControllerOptions{Version: f.version}
	if f.plugin {
		if options.PluginPath, err = lab.BuildPlugin(ctx, lab.PluginOptions{Race: f.race, Progress: out}); err != nil {
			return fmt.Errorf("%w\n(--plugin=false runs without it)", err)
		}
	}
	l, err := lab.Start(ctx, lab.Options{Progress: out, KeepFiles: f.keep})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	c, err := l.StartController(ctx, options)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Up after %.1f s, with the controller's log in %s\n\n  export KUBECONFIG=%s\n\nCtrl-C ends it.\n",
		l.StartTook.Seconds(), c.Log(), l.AdminKubeconfig)
	<-ctx.Done()
	return nil
}
