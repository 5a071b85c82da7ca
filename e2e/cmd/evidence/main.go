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

	"github.com/spf13/pflag"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/namespace"
)

const usage = `Plays canaries under load in a mesh, with the native Istio router of Argo Rollouts
and with this plugin, and writes the tables of docs/evidence.md.

Usage:
  evidence [flags]

Flags:
`

// pluginVariable is the path of the plugin's binary, built before the network
// namespace is entered.
const pluginVariable = "ROLLOUTS_MESH_PLUGIN"

// mostTimes keeps a typing error from filling a day.
const mostTimes = 20

// options are what the flags say.
type options struct {
	file  string
	only  []string
	times int
	keep  bool
	help  bool
}

// parse reads the flags and checks them; all faults are reported at once.
func parse(args []string) (options, *pflag.FlagSet, error) {
	var o options
	set := pflag.NewFlagSet("evidence", pflag.ContinueOnError)
	set.SortFlags = false
	set.Usage = func() {} // printed by run, to the right stream
	set.StringVar(&o.file, "file", "", "page to write (default docs/evidence.md of the repository)")
	set.StringSliceVar(&o.only, "only", nil, "play only stories of these names, print their tables and write nothing")
	set.IntVar(&o.times, "times", 1, fmt.Sprintf("how often each story is played, 1 to %d; the figures are summed", mostTimes))
	set.BoolVar(&o.keep, "keep", false, "keep the folder with the logs of everything that ran")
	set.BoolVarP(&o.help, "help", "h", false, "print this text")
	if err := set.Parse(args); err != nil {
		return o, set, err
	}
	return o, set, o.check(set.Args())
}

func (o options) check(rest []string) error {
	var errs []error
	if len(rest) > 0 {
		errs = append(errs, fmt.Errorf("unknown argument %q: there are only flags", rest))
	}
	if o.times < 1 || o.times > mostTimes {
		errs = append(errs, fmt.Errorf("--times %d: use 1 to %d", o.times, mostTimes))
	}
	if _, err := chosen(o.only); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// page is the path of the page, found from wherever in the repository the command
// was started.
func (o options) page() (string, error) {
	if o.file != "" {
		return filepath.Abs(o.file)
	}
	dir, err := lab.Dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(dir), "docs", "evidence.md"), nil
}

func main() {
	code, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "evidence:", err)
		code = 1
	}
	os.Exit(code)
}

func run(args []string, out io.Writer) (int, error) {
	o, set, err := parse(args)
	if err != nil {
		return 0, fmt.Errorf("%w\nsee --help", err)
	}
	if o.help {
		_, err := fmt.Fprint(out, usage+set.FlagUsages())
		return 0, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if !namespace.Inside() {
		if err := build(ctx, out); err != nil {
			return 0, err
		}
		stop() // Run passes signals on
		return namespace.Run()
	}
	return 0, o.inside(ctx, out)
}

// build makes what is needed while there is a network to download it from.
func build(ctx context.Context, out io.Writer) error {
	if err := lab.Build(ctx, out, mesh.Programs()...); err != nil {
		return err
	}
	if os.Getenv(pluginVariable) != "" {
		return nil
	}
	plugin, err := lab.BuildPlugin(ctx, lab.PluginOptions{Progress: out})
	if err != nil {
		return err
	}
	return os.Setenv(pluginVariable, plugin)
}

// inside plays and writes.
func (o options) inside(ctx context.Context, out io.Writer) (err error) {
	path, err := o.page()
	if err != nil {
		return err
	}
	var page []byte
	if len(o.only) == 0 {
		if page, err = os.ReadFile(path); err != nil { // before the play, which takes long
			return err
		}
	}
	stage, err := mesh.Open(ctx, mesh.Options{Plugin: os.Getenv(pluginVariable), Progress: out, KeepFiles: o.keep})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, stage.Close())
		if o.keep {
			fmt.Fprintf(out, "Logs are kept in %s\n", stage.Lab.Dir())
		}
	}()
	played, err := play(ctx, stage, o, out)
	if err != nil {
		return err
	}
	tables, err := played.tables()
	if err != nil {
		return err
	}
	for _, name := range tableNames {
		fmt.Fprintf(out, "\n%s", tables[name])
	}
	if len(o.only) > 0 {
		return nil
	}
	if page, err = fill(page, tables); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, page, 0o644)
}
