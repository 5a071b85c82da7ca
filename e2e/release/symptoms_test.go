package release

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The headings in docs/troubleshooting.md whose tables are tried here.
const (
	notStarting   = "The controller does not start"
	standingStill = "A Rollout stands still"
)

// symptom is a row: what the log says, in lines of their own, by the reason why.
type symptom map[string][]string

// symptoms reads the table below a heading. A row that says "the same" has the
// lines of the row before.
func symptoms(t *testing.T, heading string) symptom {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("there is no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows, last := symptom{}, []string(nil)
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 3 || cells[0] == "| You see" {
			continue
		}
		if cells[0] != "| the same" {
			last = codeSpans(cells[0])
		}
		rows[cells[1]] = last
	}
	return rows
}

func codeSpans(text string) []string {
	var spans []string
	for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		spans = append(spans, found[1])
	}
	return spans
}

// tried holds the rows of a table against the cases that try them: none may be
// missing on either side.
func tried[T any](t *testing.T, rows symptom, cases map[string]T) {
	t.Helper()
	var told, trying []string
	for why, lines := range rows {
		if told = append(told, why); len(lines) == 0 {
			t.Errorf("%q: the row quotes nothing", why)
		}
	}
	for why := range cases {
		trying = append(trying, why)
	}
	slices.Sort(told)
	slices.Sort(trying)
	if diff := cmp.Diff(told, trying); diff != "" {
		t.Errorf("docs/troubleshooting.md and the cases (-told +tried):\n%s", diff)
	}
}
