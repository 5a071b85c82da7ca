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
)

func TestFaultsInTheFlagsAreReportedTogether(t *testing.T) {
	_, _, err := parse([]string{"--parts=crowd,nothing", "--canaries=0", "--controller-qps=-1", "--idle=5,5", "--window=1ms", "now"})
	if err == nil {
		t.Fatal("six faults were accepted")
	}
	for _, text := range []string{"--parts nothing", "--canaries 0", "--controller-qps -1", "--idle 5: the numbers have to ascend", "--window 1ms", `"now"`} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s is not named in: %v", text, err)
		}
	}
}

func TestAFaultInAFlagNamesItAndWhatItTakes(t *testing.T) {
	const canaries, idle = "it takes whole numbers of 1 to 2000 with commas between them", "it takes whole numbers of 1 to 20000, ascending, with commas between them"
	const once = "give each number once"
	for sentence, tc := range map[string]struct{ args, want string }{
		"no number of canaries":                       {"--canaries=", `--canaries "": ` + canaries},
		"a comma behind the last number of canaries":  {"--canaries=150,", `--canaries "150,": ` + canaries},
		"a word for the canaries":                     {"--canaries=many", `--canaries "many": ` + canaries},
		"more canaries than can be counted":           {"--canaries=99999999999999999999", `--canaries "99999999999999999999": ` + canaries},
		"half a canary":                               {"--canaries=1.5", `--canaries "1.5": ` + canaries},
		"as many canaries twice":                      {"--canaries=150,150", "--canaries 150: " + once},
		"as many canaries twice, not one by one":      {"--canaries=150,500,150", "--canaries 150: " + once},
		"as many canaries twice, by two flags":        {"--canaries=150 --canaries=150", "--canaries 150: " + once},
		"no number of idle Rollouts":                  {"--idle=", `--idle "": ` + idle},
		"a word for the idle Rollouts":                {"--idle=1,many", `--idle "1,many": ` + idle},
		"as many idle Rollouts twice":                 {"--idle=5,5", "--idle 5: the numbers have to ascend"},
		"no number of requests":                       {"--controller-qps=", `--controller-qps "": it takes a whole number of 0 to 10000`},
		"a duration without its unit":                 {"--window=60", `--window "60": it takes a duration of 1s or more, as 30s or 2m`},
		"no parts":                                    {"--parts=", "--parts: name one at least of crowd, idle, canary, incident"},
		"parts with a quote":                          {`--parts=crowd,"idle`, `--parts "crowd,\"idle": it takes names with commas between them, of crowd, idle, canary, incident`},
		"a value for the flag that asks for the help": {"--help=please", `--help "please": it takes no value`},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := run(context.Background(), neverPlayed(t), strings.Fields(tc.args), io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "pars") {
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
		})
	}
	if _, _, err := parse([]string{"--canaries=500,150"}); err != nil {
		t.Errorf("numbers of canaries that do not ascend: %v", err)
	}
}

// neverPlayed is the player where nothing may be played.
func neverPlayed(t *testing.T) player {
	return func(context.Context, options, io.Writer, func(table, text string)) error {
		t.Error("something was played")
		return nil
	}
}

func TestHelpNamesEveryFlagAndStartsNothing(t *testing.T) {
	var out, progress bytes.Buffer
	if err := run(context.Background(), neverPlayed(t), []string{"--help"}, &out, &progress); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--parts", "--canaries", "--controller-qps", "--idle", "--window", "--out", "--help"} {
		if !strings.Contains(out.String(), flag) {
			t.Errorf("%s is missing in\n%s", flag, &out)
		}
	}
	if progress.Len() > 0 {
		t.Errorf("something was done: %s", &progress)
	}
}

func TestTheTablesThatWillBeMadeAreKnownBefore(t *testing.T) {
	for args, want := range map[string][]string{
		"": {"crowd-150", "crowd-500", "idle", "canary", "incident"},
		"--parts=idle,crowd --canaries=3 --controller-qps=200": {"crowd-3-qps-200", "idle"},
		"--parts=incident": {"incident"},
	} {
		o, _, err := parse(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, o.tables()); diff != "" {
			t.Errorf("%s: %s", args, diff)
		}
	}
}

// page is the one in the repository.
func page(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestThePageHasAPlaceForEveryTableOfADefaultRun(t *testing.T) {
	o, _, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	path, err := o.page()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readPage(path, o.tables()); err != nil {
		t.Error(err)
	}
}

func TestOnlyWhatStandsBetweenTheMarkersIsWritten(t *testing.T) {
	before := page(t)
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := put(path, map[string]string{"idle": "| new |\n"}, []string{"idle"}); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(after, []byte("<!-- begin idle -->\n| new |\n<!-- end idle -->")) {
		t.Error("the table is not there")
	}
	restored, err := fill(after, map[string]string{"idle": between(t, before, "idle")}, []string{"idle"})
	if err != nil || !bytes.Equal(restored, before) {
		t.Errorf("more than the table was changed (%v)", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the page there is something left: %v, %v", entries, err)
	}
}

// between is what stands between the markers of a table.
func between(t *testing.T, page []byte, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(string(page), "<!-- begin "+name+" -->\n")
	table, _, closed := strings.Cut(rest, "<!-- end "+name+" -->")
	if !found || !closed {
		t.Fatalf("no table %s", name)
	}
	return table
}

func TestAPageWithoutThePlaceIsAnErrorBeforeAnythingIsPlayed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("<!-- end idle -->\n<!-- begin idle -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	err := run(context.Background(), neverPlayed(t), []string{"--parts=idle,incident", "--out=" + path}, &out, &progress)
	if err == nil || !strings.Contains(err.Error(), "begin idle") || !strings.Contains(err.Error(), "begin incident") || progress.Len() > 0 {
		t.Errorf("%v after %q", err, &progress)
	}
	err = run(context.Background(), neverPlayed(t), []string{"--out=" + filepath.Join(t.TempDir(), "none.md")}, &out, &progress)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a page that is not there: %v", err)
	}
}

func TestEveryPartIsNamedInTheHelp(t *testing.T) {
	_, set, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	text := set.Lookup("parts").Usage
	if i := slices.IndexFunc(allParts, func(part string) bool { return !strings.Contains(text, "("+part+")") }); i >= 0 {
		t.Errorf("%s is missing in %q", allParts[i], text)
	}
}
