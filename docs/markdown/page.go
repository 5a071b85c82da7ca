package markdown

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Page is one file of Markdown.
type Page struct {
	// Path is relative to the root that [Pages] was given, with slashes.
	Path  string
	lines []line
}

// line is one line of a page.
type line struct {
	text string
	code bool // inside a fence, or the fence itself
}

// Pages reads all pages below a folder. Those of tests, and what is built or
// downloaded, are none: folders that are hidden, bin, dist and testdata.
func Pages(root string) ([]Page, error) {
	var pages []Page
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (name[0] == '.' || slices.Contains([]string{"bin", "dist", "testdata"}, name)) {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		pages = append(pages, Parse(filepath.ToSlash(relative), string(body)))
		return nil
	})
	return pages, err
}

// Parse reads one page from a text.
func Parse(path, body string) Page {
	p := Page{Path: path}
	fence := ""
	for text := range strings.Lines(body) {
		text = strings.TrimRight(text, "\r\n")
		opened := opens(text)
		switch {
		case fence == "":
			p.lines = append(p.lines, line{text, opened != ""})
			fence = opened
		default:
			p.lines = append(p.lines, line{text, true})
			// A fence is closed by one of the same kind, at least as long, and no word.
			if opened != "" && strings.HasPrefix(opened, fence) && strings.Trim(strings.TrimSpace(text), opened[:1]) == "" {
				fence = ""
			}
		}
	}
	return p
}

// opens is the run of backticks or tildes that begins a fence, or "".
func opens(text string) string {
	text = strings.TrimSpace(text)
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(text, mark)
		if n := len(text) - len(rest); n >= 3 && !strings.Contains(rest, mark) {
			return text[:n]
		}
	}
	return ""
}

// at names a line of the page for people.
func (p Page) at(i int) string { return fmt.Sprintf("%s:%d", p.Path, i+1) }
