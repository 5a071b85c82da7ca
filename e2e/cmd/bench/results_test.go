package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

var errBroken = errors.New("the cable broke")

// fakes are what happens instead of measurements. The lab that they get is nil.
type fakes struct {
	// fails is the table whose measurement fails when half of it is there.
	fails string
	// before is called when the measurement of a table begins.
	before map[string]func()
	// noLab and noEnd are the parts whose lab cannot be started, and be taken down.
	noLab, noEnd string
}

// play goes the way of the real player, with everything that it would play.
func (f fakes) play(ctx context.Context, o options, _ io.Writer, made func(table, text string)) error {
	parts := (&bench{options: o}).asked()
	for _, p := range parts {
		for i, m := range p.measurements {
			p.measurements[i].do = func(ctx context.Context, _ *lab.Lab) (string, error) { return f.measure(ctx, m.table) }
		}
	}
	playing := ""
	on := func(ctx context.Context, do func(context.Context, *lab.Lab) error) error {
		if playing == f.noLab {
			return errBroken
		}
		err := do(ctx, nil)
		if playing == f.noEnd {
			err = errors.Join(err, errBroken)
		}
		return err
	}
	return playAll(ctx, parts, on, func(p part) { playing = p.name }, made)
}

func (f fakes) measure(ctx context.Context, table string) (string, error) {
	if before := f.before[table]; before != nil {
		before()
	}
	if table == f.fails {
		return "| half of " + table + " |\n", errBroken
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return newText(table), nil
}

func newText(table string) string { return "| all of " + table + " |\n" }

// copyOfPage is the page of the repository where it can be written.
func copyOfPage(t *testing.T) (path string, before []byte) {
	t.Helper()
	before = page(t)
	path = filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, before
}

func TestTablesThatWereCompleteOutliveWhatEndsThePlay(t *testing.T) {
	all := []string{"crowd-150", "crowd-500", "idle", "canary", "incident"}
	for sentence, tc := range map[string]struct {
		fakes
		made int // how many of all
		errs []string
		// interruptedAt is the table in whose measurement Ctrl-C is pressed.
		interruptedAt string
	}{
		"nothing does": {made: 5},
		"the last part fails": {fakes: fakes{fails: "incident"}, made: 4,
			errs: []string{"part incident: table incident: the cable broke", "not made: incident; in "}},
		"a part in the middle fails": {fakes: fakes{fails: "idle"}, made: 2,
			errs: []string{"part idle: table idle: the cable broke", "not made: idle, canary, incident; in "}},
		"the second table of a part fails": {fakes: fakes{fails: "crowd-500"}, made: 1,
			errs: []string{"part crowd: table crowd-500: the cable broke", "not made: crowd-500, idle, canary, incident; in "}},
		"the first table of all fails": {fakes: fakes{fails: "crowd-150"}, made: 0,
			errs: []string{"part crowd: table crowd-150: the cable broke", "not made: crowd-150, crowd-500, idle, canary, incident; in "}},
		"the lab of a part does not start": {fakes: fakes{noLab: "canary"}, made: 3,
			errs: []string{"part canary: the cable broke", "not made: canary, incident; in "}},
		"the lab of a part does not end": {fakes: fakes{noEnd: "canary"}, made: 4,
			errs: []string{"part canary: the cable broke", "not made: incident; in "}},
		"the lab of the last part does not end": {fakes: fakes{noEnd: "incident"}, made: 5,
			errs: []string{"part incident: the cable broke"}},
		"Ctrl-C in the part canary": {interruptedAt: "canary", made: 3,
			errs: []string{"interrupted: part canary: table canary: context canceled", "not made: canary, incident; in "}},
	} {
		t.Run(sentence, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			tc.before = map[string]func(){tc.interruptedAt: interrupt}
			path, before := copyOfPage(t)
			var out bytes.Buffer
			err := run(ctx, tc.play, []string{"--out=" + path}, &out, io.Discard)
			checkSaid(t, err, tc.errs)
			after, readErr := os.ReadFile(path)
			if readErr != nil {
				t.Fatal(readErr)
			}
			checkPage(t, before, after, all[:tc.made])
			checkPrinted(t, out.String(), all[:tc.made], all[tc.made:])
		})
	}
}

// checkSaid: an error ends in exit code 1.
func checkSaid(t *testing.T, err error, want []string) {
	t.Helper()
	if (err != nil) != (len(want) > 0) {
		t.Fatalf("error %v, want %q", err, want)
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q lacks %q", err, text)
		}
	}
}

// checkPage: the tables that were made are new in the page, and all else is as before.
func checkPage(t *testing.T, before, after []byte, made []string) {
	t.Helper()
	old := map[string]string{}
	for _, table := range made {
		text := between(t, after, table)
		if !strings.HasPrefix(text, newText(table)) || !strings.Contains(text, "`bench --out=") {
			t.Errorf("the page has as table %s: %q", table, text)
		}
		old[table] = between(t, before, table)
	}
	restored, err := fill(after, old, made)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(restored)); diff != "" {
		t.Errorf("more than the tables %v was changed (-before +after):\n%s", made, diff)
	}
}

func checkPrinted(t *testing.T, out string, made, missing []string) {
	t.Helper()
	for _, table := range made {
		if strings.Count(out, "\n"+table+"\n\n"+newText(table)) != 1 {
			t.Errorf("table %s is not printed once in:\n%s", table, out)
		}
	}
	for _, table := range missing {
		if strings.Contains(out, table) {
			t.Errorf("something is printed of table %s:\n%s", table, out)
		}
	}
}

func TestAPageThatCannotBeWrittenAnyMoreStopsNothing(t *testing.T) {
	path, _ := copyOfPage(t)
	spoilt := []byte("somebody has taken the places away\n")
	spoil := func() {
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Error(err)
		}
	}
	var out bytes.Buffer
	err := run(t.Context(), fakes{before: map[string]func(){"canary": spoil}}.play, []string{"--out=" + path, "--parts=idle,canary,incident"}, &out, io.Discard)
	checkSaid(t, err, []string{"write table canary into the page, it is printed only: ", "write table incident into the page", `"<!-- begin canary -->"`})
	checkPrinted(t, out.String(), []string{"idle", "canary", "incident"}, nil)
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, spoilt) {
		t.Errorf("the page is %q, %v", after, err)
	}
}

func TestWithoutAPageTheTablesThatWereCompleteArePrinted(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), fakes{fails: "canary"}.play, []string{"--out=-", "--parts=idle,canary"}, &out, io.Discard)
	checkSaid(t, err, []string{"the cable broke\nnot made: canary."})
	checkPrinted(t, out.String(), []string{"idle"}, []string{"canary |"})
}

// gone is a reader that has gone.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestThePageIsWrittenThoughNobodyReadsWhatIsPrinted(t *testing.T) {
	path, before := copyOfPage(t)
	err := run(t.Context(), fakes{}.play, []string{"--out=" + path}, gone{}, io.Discard)
	checkSaid(t, err, []string{"print table idle: io: read/write on closed pipe"})
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	checkPage(t, before, after, []string{"crowd-150", "crowd-500", "idle", "canary", "incident"})
}

func TestWhatIsPlayedMakesTheTablesThatAreKnownBefore(t *testing.T) {
	for _, args := range []string{"", "--parts=incident,crowd --canaries=7,3 --controller-qps=200", "--parts=idle", "--parts=canary,idle"} {
		o, _, err := parse(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		var made []string
		for _, p := range (&bench{options: o}).asked() {
			if !slices.Contains(o.parts, p.name) {
				t.Errorf("%q: part %s was not asked for", args, p.name)
			}
			for _, m := range p.measurements {
				made = append(made, m.table)
			}
		}
		if diff := cmp.Diff(o.tables(), made); diff != "" {
			t.Errorf("%q (-known +made):\n%s", args, diff)
		}
	}
}
