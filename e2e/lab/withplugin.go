package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// PluginRun says what [WithPlugin] starts. The zero value is right for tests.
type PluginRun struct {
	// Programs are built before anything else; none are those that the lab and its
	// controller need. Who needs more later names all, so that the progress counts to the
	// right number.
	Programs []Component
	// Progress is told what is built and started; nil means standard error.
	Progress io.Writer
	// KeepFiles leaves the logs in the temporary folder, and says where.
	KeepFiles bool
	// Race builds the plugin with the race detector.
	Race bool
}

// WithPlugin builds what is missing, starts a lab and in it a controller of
// DefaultVersion with the plugin of this repository, calls do, and ends everything
// again. ctx bounds the builds and the start; do has its own.
func WithPlugin(ctx context.Context, run PluginRun, do func(*Lab, *Controller) error) (err error) {
	progress := cmp.Or[io.Writer](run.Progress, os.Stderr)
	programs := run.Programs
	if len(programs) == 0 {
		programs = append(ControlPlane(), Rollouts(DefaultVersion))
	}
	if err := Build(ctx, progress, programs...); err != nil {
		return err
	}
	plugin, err := BuildPlugin(ctx, PluginOptions{Race: run.Race, Progress: progress})
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "Starting a control plane with the Argo Rollouts controller %s.\n", DefaultVersion)
	l, err := Start(ctx, Options{Progress: progress, KeepFiles: run.KeepFiles})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, l.Stop())
		if run.KeepFiles {
			fmt.Fprintf(progress, "Logs are kept in %s\n", l.Dir())
		}
	}()
	c, err := l.StartController(ctx, ControllerOptions{PluginPath: plugin})
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "Up after %.0f s.\n", l.StartTook.Seconds())
	return do(l, c)
}
