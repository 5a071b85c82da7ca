package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"

	"golang.org/x/term"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/inspect"
)

// redraw moves to the upper left corner and clears what is below, by ECMA-48.
const redraw = "\x1b[H\x1b[2J"

// watchInspect looks again and again, and prints what has changed, until ctx ends. What
// fails at the first look ends it; later, only that there is no such Rollout any more.
func (p *Program) watchInspect(ctx context.Context, interval time.Duration, form format, look func() (inspect.Report, error)) error {
	w := &inspectWatch{p: p, form: form, terminal: onTerminal(p.Out)}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		report, err := look()
		if err = w.take(report, err); err != nil {
			if ctx.Err() != nil {
				return nil // interrupted, perhaps in the middle of a look
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// inspectWatch is what a watch has printed so far.
type inspectWatch struct {
	p        *Program
	form     format
	terminal bool
	shown    *inspect.Report
	failed   string
}

// take prints a look that differs from the one before.
func (w *inspectWatch) take(report inspect.Report, err error) error {
	switch {
	case err != nil && (w.shown == nil || errors.Is(err, inspect.ErrNoRollout) || errors.Is(err, context.Canceled)):
		return err
	case err != nil && err.Error() != w.failed:
		w.failed = err.Error()
		fmt.Fprintf(w.p.Err, "%s: %v; it is tried again\n", CommandName(w.p.Name), err)
		return nil
	case err != nil || w.shown != nil && w.failed == "" && sameReport(*w.shown, report):
		return nil
	}
	w.failed = ""
	if err := w.begin(report); err != nil {
		return err
	}
	w.shown = &report
	return w.p.printInspect(w.form, report)
}

// begin clears the screen, or sets the block apart from the one before. JSON needs nothing:
// it is one document after the other.
func (w *inspectWatch) begin(report inspect.Report) error {
	text := ""
	switch {
	case w.form == table && w.terminal:
		text = redraw
	case w.form == table:
		text = fmt.Sprintf("--- %s\n", report.At.Format("2006-01-02 15:04:05Z"))
	case w.form == asYAML && w.shown != nil:
		text = "---\n"
	}
	_, err := io.WriteString(w.p.Out, text)
	return err
}

// sameReport tells whether nothing has changed but the time.
func sameReport(a, b inspect.Report) bool {
	a.At = b.At
	return reflect.DeepEqual(a, b)
}

// onTerminal tells whether the screen can be drawn anew.
func onTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
