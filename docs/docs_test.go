// Package docs holds the documentation, and the test that keeps it true.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// read returns the files below the repository's root with one of the endings, by
// path, without what is built or downloaded.
func read(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && len(name) > 2 && name[0] == '.' {
			return fs.SkipDir
		}
		for _, ending := range endings {
			if !entry.IsDir() && strings.HasSuffix(path, ending) {
				body, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				files[path] = string(body)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestEveryTestThatTheDocumentationNamesIsThere(t *testing.T) {
	there := map[string]bool{}
	for _, body := range read(t, "_test.go") {
		for _, found := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`).FindAllStringSubmatch(body, -1) {
			there[found[1]] = true
		}
	}
	named := 0
	for path, body := range read(t, ".md") {
		for _, found := range regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w+)`").FindAllStringSubmatch(body, -1) {
			named++
			if !there[found[1]] {
				t.Errorf("%s names %s, which does not exist", path, found[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d tests are named: the table in features.md is gone?", named)
	}
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	pages := read(t, ".md")
	for path, body := range pages {
		for _, found := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(body, -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", path, found[1], err)
				continue
			}
			if anchor != "" && !anchors(pages[file])[anchor] {
				t.Errorf("%s links to %s: there is no such heading", path, found[1])
			}
		}
	}
}

// anchors are the headings of a page as GitHub makes them.
func anchors(body string) map[string]bool {
	all := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(body, -1) {
		text := strings.ToLower(regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(found[1], ""))
		all[strings.ReplaceAll(text, " ", "-")] = true
	}
	return all
}
