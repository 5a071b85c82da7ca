package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/inspect"
)

// reportAt is a Report of so many Events, some seconds after the first look.
func reportAt(seconds, events int) inspect.Report {
	at := time.Date(2026, 3, 4, 15, 16, 17, 0, time.UTC)
	r := inspect.Report{Namespace: "shop", Name: "web", At: at.Add(time.Duration(seconds) * time.Second), Waiting: "Waits for nothing."}
	for range events {
		r.Events = append(r.Events, inspect.Event{Last: at, Count: 1, Reason: "Reason"})
	}
	return r
}

// drawing takes looks as a terminal of this size has them, and returns what was written.
func drawing(t *testing.T, colour bool, rows int, looks ...func() (inspect.Report, error)) (out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	w := inspectWatch{p: &Program{Out: &o, Err: &e, Name: "inspect", Colour: colour}, interval: 2 * time.Second, form: table, screen: func() (int, int) { return rows, 40 }}
	for _, look := range looks {
		if err := w.take(look()); err != nil {
			t.Fatal(err)
		}
	}
	return o.String(), e.String()
}

func seen(r inspect.Report) func() (inspect.Report, error) {
	return func() (inspect.Report, error) { return r, nil }
}

func failing(text string) func() (inspect.Report, error) {
	return func() (inspect.Report, error) { return inspect.Report{}, errors.New(text) }
}

func TestATerminalIsDrawnAnewWithEachLook(t *testing.T) {
	out, errs := drawing(t, false, 40, seen(reportAt(0, 1)), seen(reportAt(2, 1)), failing("Rollout shop/web:\\tgone"), failing("away"), seen(reportAt(8, 1)))
	frames := strings.Split(out, redraw)
	if frames[0] != "" || errs != "" || strings.Count(out, "\x1b") != 2*5 {
		t.Fatalf("%q, and on stderr %q", out, errs)
	}
	const report = "Rollout shop/web  \nWaits for nothing.\nRevision  canary none, stable none\n\nEvents\n  AGE  COUNT  TYPE  REASON  MESSAGE\n"
	for i, want := range []string{
		"every 2s, last at 2026-03-04 15:16:17Z; Ctrl-C ends it\n" + report + "  0s   1            Reason  \n",
		"every 2s, last at 2026-03-04 15:16:19Z; Ctrl-C ends it\n" + report + "  2s   1            Reason  \n",
		"every 2s, last at 2026-03-04 15:16:19Z; Ctrl-C ends it\nRollout shop/web:\\tgone; it is tried again. This is what was seen before:\n" + report + "  2s   1            Reason  \n",
		"every 2s, last at 2026-03-04 15:16:19Z; Ctrl-C ends it\naway; it is tried again. This is what was seen before:\n" + report + "  2s   1            Reason  \n",
		"every 2s, last at 2026-03-04 15:16:25Z; Ctrl-C ends it\n" + report + "  8s   1            Reason  \n",
	} {
		if got := frames[i+1]; got != want {
			t.Errorf("frame %d is\n%q, want\n%q", i, got, want)
		}
	}
}

func TestAWindowThatIsTooSmallHasTheTopOfTheReport(t *testing.T) {
	for _, tc := range []struct {
		rows, lines int
		end         string
	}{
		{0, 27, "Reason  \n"}, // not known
		{30, 27, "Reason  \n"},
		{29, 26, "Reason  \n… and 2 more lines, for a larger window\n"}, // the head takes two rows of 40 columns
		{10, 7, "\nEvents\n… and 21 more lines, for a larger window\n"},
		{3, 1, redraw + "… and 27 more lines, for a larger window\n"},
		{1, 1, redraw + "… and 27 more lines, for a larger window\n"},
	} {
		out, _ := drawing(t, false, tc.rows, seen(reportAt(0, 20)))
		if lines := strings.Count(out, "\n"); lines != tc.lines || !strings.HasSuffix(out, tc.end) {
			t.Errorf("%d rows: %d lines, want %d, of %q, want %q", tc.rows, lines, tc.lines, out, tc.end)
		}
	}
}

func TestColoursTakeNoRoom(t *testing.T) {
	line := "\x1b[33m" + strings.Repeat("x", 40) + "\x1b[0m\n"
	if got := fit(line+line, 4, 40); got != line+line {
		t.Errorf("%q", got)
	}
	if got := fit(line+line, 3, 40); !strings.HasPrefix(got, "… and 2 more lines") {
		t.Errorf("%q", got)
	}
	out, _ := drawing(t, true, 40, seen(reportAt(0, 0)), failing("away"))
	for _, want := range []string{"\x1b[2mevery 2s", "\x1b[31maway; it is tried again", "\x1b[32mWaits for nothing.\x1b[0m"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q lacks %q", out, want)
		}
	}
}

func TestOnlyTablesAreDrawnInPlace(t *testing.T) {
	for form, want := range map[format]string{asJSON: "}\n{\n", asYAML: "\n---\n"} {
		var out bytes.Buffer
		w := inspectWatch{p: &Program{Out: &out}, form: form, screen: func() (int, int) { return 10, 40 }}
		for _, report := range []inspect.Report{reportAt(0, 0), reportAt(2, 0), reportAt(4, 1)} {
			if err := w.take(report, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := out.String(); strings.Contains(got, "\x1b") || strings.Count(got, want) != 1 {
			t.Errorf("%s: %q", form, got)
		}
	}
}

func TestAWatchThatIsInterruptedSaysNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	w := inspectWatch{p: &Program{Out: &out, Err: &errs}, interval: time.Hour, form: table}
	looks := 0
	err := w.run(ctx, func() (inspect.Report, error) {
		looks++
		cancel() // in the middle of a look, which fails in whatever words
		return inspect.Report{}, errors.New("the request was cut off")
	})
	if err != nil || looks != 1 || out.Len()+errs.Len() > 0 {
		t.Errorf("%v after %d looks, %q, %q", err, looks, &out, &errs)
	}
}

func TestAFirstLookThatFailsEndsAWatch(t *testing.T) {
	for _, size := range []screen{nil, func() (int, int) { return 40, 80 }} {
		var out bytes.Buffer
		w := inspectWatch{p: &Program{Out: &out}, interval: time.Hour, form: table, screen: size}
		if err := w.run(t.Context(), failing("no such Rollout")); err == nil || err.Error() != "no such Rollout" || out.Len() > 0 {
			t.Errorf("%v, %q", err, &out)
		}
	}
}

func TestAScreenThatCannotBeWrittenEndsAWatch(t *testing.T) {
	w := inspectWatch{p: &Program{Out: closed{}}, interval: time.Hour, form: table, screen: func() (int, int) { return 0, 0 }}
	if err := w.run(t.Context(), seen(reportAt(0, 0))); err == nil {
		t.Error("no error")
	}
}
