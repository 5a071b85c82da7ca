package docs

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The first two tables of troubleshooting.md are tried on a controller, by
// e2e/release. The third one quotes what other pages and the plugin say.
func TestTheTroublesQuoteWhatThePagesAndThePluginSay(t *testing.T) {
	pages := read(t, ".md")
	page := pages["../docs/troubleshooting.md"]
	_, table, found := strings.Cut(page, "\n## Traffic is not what you expect\n")
	if !found {
		t.Fatal("the section is gone")
	}
	code := said(t)
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 || cells[0] == "| You see" {
			continue
		}
		rows++
		texts := code
		for _, link := range regexp.MustCompile(`\]\(([\w-]+\.md)`).FindAllStringSubmatch(cells[2], -1) {
			texts += pages[filepath.Join("..", "docs", link[1])]
		}
		if texts == code {
			t.Errorf("no page is named in %s", line)
		}
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			for part := range strings.SplitSeq(quoted[1], "…") {
				if !strings.Contains(words(texts), words(part)) {
					t.Errorf("%q stands on none of the pages that the row names, nor in the code", part)
				}
			}
		}
	}
	if rows < 20 {
		t.Errorf("only %d rows are read", rows)
	}
}

// said is the plugin's code.
func said(t *testing.T) string {
	t.Helper()
	files := read(t, ".go")
	var all strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(path, "../pkg/") && !strings.HasSuffix(path, "_test.go") {
			all.WriteString(files[path])
		}
	}
	return all.String()
}

// words is a text without its line breaks.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }
