package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

func TestFaultsInTheFlagsAreReportedTogether(t *testing.T) {
	_, _, err := parse([]string{"--times=0", "--only=plain,nothing", "now"})
	if err == nil {
		t.Fatal("three faults were accepted")
	}
	for _, text := range []string{"--times", "nothing", `"now"`} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s is not named in: %v", text, err)
		}
	}
}

func TestHelpNamesEveryFlagAndStartsNothing(t *testing.T) {
	var out bytes.Buffer
	if code, err := run([]string{"--help"}, &out); err != nil || code != 0 {
		t.Fatal(code, err)
	}
	for _, flag := range []string{"--file", "--only", "--times", "--keep", "--help"} {
		if !strings.Contains(out.String(), flag) {
			t.Errorf("%s is missing in\n%s", flag, &out)
		}
	}
}

func TestEveryStoryIsPlayedAtBothLevels(t *testing.T) {
	all, err := chosen(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]map[scenarios.Level]bool{}
	for _, story := range all {
		if seen[story.Name] == nil {
			seen[story.Name] = map[scenarios.Level]bool{}
		}
		if seen[story.Name][story.Level] {
			t.Errorf("%s is there twice at %s level", story.Name, story.Level)
		}
		seen[story.Name][story.Level] = true
	}
	for name, at := range seen {
		if len(at) != len(levels) {
			t.Errorf("%s is played at %v", name, at)
		}
	}
	for _, name := range costly {
		if seen[name] == nil {
			t.Errorf("there is no story %s, whose cost is measured", name)
		}
	}
}

// example is a play of one story.
func example() played {
	native := mesh.Row{Story: "plain", Title: "plain canary", Level: scenarios.Subset, Router: scenarios.Native, Sent: 200, Lost: 50,
		Reasons: map[string]int{"Unavailable: nobody": 50}, Worst: fleet.Second{Sent: 100, Lost: 40}, Off: 1.26, Judged: 2, Took: 30 * time.Second, Finished: true}
	plugin := mesh.Row{Story: "plain", Title: "plain canary", Level: scenarios.Subset, Router: scenarios.Plugin, Sent: 190}
	return played{times: 2, pairs: []pair{{native, plugin}}, costs: []cost{{native, mesh.Cost{
		Pushes: 4, Computing: 1500 * time.Microsecond, Sent: map[string]int{"rds": 16, "cds": 8, "eds": 32}, Convergence: 120 * time.Millisecond,
	}}}}
}

func TestTheTablesHaveTheFigures(t *testing.T) {
	tables, err := example().tables()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"setting":  "each story played 2 times",
		"requests": "| plain canary | subset | 50 of 200 | 0 of 190 | 40 % | - | 1.3 | - | 30 s | - |",
		"reasons":  "* plain canary, subset level, native: 50 × Unavailable: nobody",
		"cost":     "| plain canary | native | 4 | 1.5 ms | 16 | 8 | 32 | 120 ms |",
	} {
		if !strings.Contains(tables[name], want) {
			t.Errorf("table %s has no line %q:\n%s", name, want, tables[name])
		}
	}
	if len(tables) != len(tableNames) {
		t.Errorf("%d tables for %d markers", len(tables), len(tableNames))
	}
}

func TestThePageKeepsWhatIsOutsideOfTheMarkers(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "evidence.md"))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := example().tables()
	if err != nil {
		t.Fatal(err)
	}
	once, err := fill(page, tables)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := fill(once, tables)
	if err != nil || !bytes.Equal(once, twice) {
		t.Errorf("filled again the page is another one (%v)", err)
	}
	empty := map[string]string{}
	cleared, _ := fill(once, empty)
	was, _ := fill(page, empty)
	if !bytes.Equal(cleared, was) {
		t.Error("more than the tables was changed")
	}
}

func TestAPageWithoutItsMarkersIsAnError(t *testing.T) {
	for _, page := range []string{"", "<!-- begin setting -->\n", "<!-- end setting -->\n<!-- begin setting -->\n"} {
		if _, err := fill([]byte(page), nil); err == nil || !strings.Contains(err.Error(), "setting") {
			t.Errorf("page %q: %v", page, err)
		}
	}
}
