// Package docs holds the documentation, and the tests that keep it true: names of
// tests and plugins, links, paths, commands and blocks of YAML. What the tests cannot
// read they refuse: fences in another language, comments that are no markers, links in
// another form. How blocks are marked is told by package markdown. That an API server
// takes the blocks is tested in e2e/pages.
package docs

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/docs/markdown"
)

// read returns the files of the repository with one of the endings, by path.
func read(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	files, err := filesBelow("..", endings...)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestEveryTestThatTheDocumentationNamesIsThere(t *testing.T) {
	there := map[string]bool{}
	for _, body := range read(t, "_test.go") {
		for _, name := range testsOf(body) {
			there[name] = true
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

// pages are all of the repository.
func pages(t *testing.T) []markdown.Page {
	t.Helper()
	all, err := markdown.Pages("..")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// allAnchors are those of each page.
func allAnchors(t *testing.T) map[string]map[string]bool {
	t.Helper()
	anchors := map[string]map[string]bool{}
	for _, page := range pages(t) {
		anchors[page.Path] = page.Anchors()
	}
	return anchors
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	anchors := allAnchors(t)
	links := 0
	for _, page := range pages(t) {
		for _, link := range page.Links() {
			links++
			if err := leads(page.Path, link.Target, anchors); err != nil {
				t.Errorf("%s links to %q: %v", link.At, link.Target, err)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// leads follows a link of a page. Of those that leave the repository only the form
// is looked at; an address of the repository itself does not leave it.
func leads(from, target string, anchors map[string]map[string]bool) error {
	to, err := url.Parse(target)
	switch {
	case err != nil:
		return err
	case target == "":
		return errors.New("it is empty")
	case to.Scheme == "https" || to.Scheme == "http":
		if to.Hostname() == "" || !strings.Contains(to.Hostname(), ".") && to.Hostname() != "localhost" {
			return errors.New("it names no host")
		}
		file, err := ownFile(to)
		if file == "" || err != nil {
			return err
		}
		return reaches(file, to.Fragment, anchors)
	case to.Scheme != "" || to.Host != "":
		return errors.New("use https, or a path")
	case path.IsAbs(to.Path):
		return errors.New("use a path relative to the page")
	}
	file := from
	if to.Path != "" {
		file = path.Join(path.Dir(from), to.Path)
	}
	return reaches(file, to.Fragment, anchors)
}

// reaches says whether there is a file, and the heading in it.
func reaches(file, heading string, anchors map[string]map[string]bool) error {
	if strings.HasPrefix(file, "..") {
		return errors.New("it leaves the repository")
	}
	if _, err := os.Stat(filepath.Join("..", file)); err != nil {
		return err
	}
	if heading != "" && !anchors[file][heading] {
		return fmt.Errorf("%s has no such heading; it has %s", file, strings.Join(slices.Sorted(maps.Keys(anchors[file])), ", "))
	}
	return nil
}

func TestALinkThatLeadsNowhereIsFound(t *testing.T) {
	anchors := map[string]map[string]bool{"docs/guard.md": {"there": true}}
	for name, tc := range map[string]struct {
		target string
		good   bool
	}{
		"a page":                    {"guard.md", true},
		"a heading":                 {"guard.md#there", true},
		"a heading of this page":    {"#there", true},
		"a folder":                  {"../examples/host-level", true},
		"elsewhere":                 {"https://example.com/x#y", true},
		"no such page":              {"gard.md", false},
		"no such heading":           {"guard.md#here", false},
		"no such heading here":      {"#here", false},
		"out of the repository":     {"../../x.md", false},
		"an absolute path":          {"/docs/guard.md", false},
		"nothing":                   {"", false},
		"no host":                   {"https:///x", false},
		"a host without a dot":      {"https://example/x", false},
		"another scheme":            {"file:///tmp/x", false},
		"a scheme that was lost":    {"//example.com/x", false},
		"what is no address at all": {"https://exa mple.com", false},
	} {
		if err := leads("docs/guard.md", tc.target, anchors); (err == nil) != tc.good {
			t.Errorf("%s, %q: %v", name, tc.target, err)
		}
	}
}

func TestEveryPageOfTheDocumentationIsLinked(t *testing.T) {
	linked := map[string]bool{"README.md": true}
	for _, page := range pages(t) {
		for _, link := range page.Links() {
			target, _, _ := strings.Cut(link.Target, "#")
			if to := path.Join(path.Dir(page.Path), target); to != page.Path {
				linked[to] = true
			}
		}
	}
	for _, page := range pages(t) {
		if !linked[page.Path] && !linked[path.Dir(page.Path)] {
			t.Errorf("no page links to %s: nobody will find it", page.Path)
		}
	}
}
