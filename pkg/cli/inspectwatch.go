package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/inspect"
)

// screen tells how many rows and columns there are at this moment, 0 where that is not known.
type screen func() (rows, columns int)

// screenOf is the terminal behind out, nil where there is none that can be drawn anew.
func screenOf(out io.Writer) screen {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() (rows, columns int) {
		columns, rows, err := term.GetSize(int(file.Fd()))
		if err != nil {
			return 0, 0
		}
		return rows, columns
	}
}

// inspectWatch is a watch, and what it has printed so far.
type inspectWatch struct {
	p        *Program
	interval time.Duration
	form     format
	// screen is drawn anew with each look; nil: what has changed is printed.
	screen screen
	shown  *inspect.Report
	failed string
}

// run looks again and again until ctx ends, which is no error. What fails at the first look
// ends it, as most likely that is a name or a flag. Later nothing does: a Rollout that is gone
// may be made again, and an API server that is away comes back.
func (w *inspectWatch) run(ctx context.Context, look func() (inspect.Report, error)) error {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		report, err := look()
		if ctx.Err() != nil {
			return nil // interrupted, perhaps in the middle of a look
		}
		if err := w.take(report, err); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// take shows a look.
func (w *inspectWatch) take(report inspect.Report, err error) error {
	drawn := w.screen != nil && w.form == table
	switch {
	case err != nil && w.shown == nil:
		return err
	case err != nil && drawn:
		return w.draw(*w.shown, fmt.Sprintf("%v; it is tried again. This is what was seen before:", err))
	case err != nil:
		w.warn(err)
		return nil
	case drawn:
		w.shown = &report
		return w.draw(report, "")
	case w.shown != nil && w.failed == "" && sameReport(*w.shown, report):
		return nil
	}
	text := w.separator(report)
	w.failed, w.shown = "", &report
	return w.print(text, report)
}

// warn tells once of an error that lasts.
func (w *inspectWatch) warn(err error) {
	if err.Error() == w.failed {
		return
	}
	w.failed = err.Error()
	fmt.Fprintf(w.p.Err, "%s: %v; it is tried again\n", CommandName(w.p.Name), err)
}

// separator sets a block apart from the one before. JSON needs nothing: it is one document
// after the other.
func (w *inspectWatch) separator(report inspect.Report) string {
	switch {
	case w.form == table:
		return fmt.Sprintf("--- %s\n", clockTime(report.At))
	case w.form == asYAML && w.shown != nil:
		return "---\n"
	}
	return ""
}

func (w *inspectWatch) print(before string, report inspect.Report) error {
	text := bytes.NewBufferString(before)
	if err := w.p.printInspect(text, w.form, report); err != nil {
		return err
	}
	_, err := w.p.Out.Write(text.Bytes())
	return err
}

// redraw moves to the upper left corner and clears all from there on, by ECMA-48.
const redraw = "\x1b[H\x1b[J"

// draw puts a report in place of the one before, in one write, so that it does not flicker.
// What does not fit is left out at the end: a screen that scrolls could not be drawn over.
func (w *inspectWatch) draw(report inspect.Report, trouble string) error {
	text := bytes.NewBufferString(w.p.paint(fmt.Sprintf("every %s, last at %s; Ctrl-C ends it", w.interval, clockTime(report.At)), "2") + "\n")
	if trouble != "" {
		text.WriteString(w.p.paint(strings.Join(strings.Fields(trouble), " "), "31") + "\n")
	}
	if err := w.p.printInspect(text, w.form, report); err != nil {
		return err
	}
	rows, columns := w.screen()
	_, err := io.WriteString(w.p.Out, redraw+fit(text.String(), rows, columns))
	return err
}

var colourCode = regexp.MustCompile("\x1b\\[[0-9;]*m")

// fit cuts a text that ends with a line's end to what so many rows can show, and leaves two
// for the cursor and for what is being done. Long lines take several rows; 0 is no bound.
func fit(text string, rows, columns int) string {
	if rows <= 0 || columns <= 0 {
		return text
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	needs := func(line string) int {
		width := utf8.RuneCountInString(strings.TrimSuffix(colourCode.ReplaceAllString(line, ""), "\n"))
		return max(1, (width+columns-1)/columns)
	}
	used, kept, room := 0, 0, max(1, rows-2)
	for kept < len(lines) && used+needs(lines[kept]) <= room {
		used += needs(lines[kept])
		kept++
	}
	if kept == len(lines) {
		return text
	}
	for kept > 0 && used >= room { // room for the last line
		kept--
		used -= needs(lines[kept])
	}
	return strings.Join(lines[:kept], "") + fmt.Sprintf("… and %d more lines, for a larger window\n", len(lines)-kept)
}

// clockTime is as the report has times.
func clockTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// sameReport tells whether nothing has changed but the time.
func sameReport(a, b inspect.Report) bool {
	a.At = b.At
	return reflect.DeepEqual(a, b)
}
