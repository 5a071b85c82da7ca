package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/docs/markdown"
)

// place is where a command may run.
type place struct {
	// folders are paths from this one; the command runs in one of them.
	folders []string
	// made are the names of the folders that commands before it have made.
	made []string
	// theirs says that files are the reader's own.
	theirs bool
}

// root is the repository's root.
var root = place{folders: []string{".."}}

// beside is the root or the folder of a page.
func beside(at string) place {
	page, _, _ := strings.Cut(at, ":")
	return place{folders: []string{"..", filepath.Join("..", filepath.Dir(page))}}
}

// anywhere is where code in running text may be meant: beside the page, or in the root
// of one of the repository's modules, which the text around it names.
func anywhere(at string) place {
	p := beside(at)
	for _, module := range []string{"e2e", "e2e/istio", "hack/licences"} {
		p.folders = append(p.folders, filepath.Join("..", module))
	}
	p.theirs = true
	return p
}

// all are the files and folders in the repository that a name or pattern may mean.
func (p place) all(name string) []string {
	var found []string
	for _, folder := range p.folders {
		path := filepath.Join(folder, name)
		if strings.HasPrefix(path, "../..") {
			continue // out of the repository
		}
		if matches, err := filepath.Glob(path); err == nil {
			found = append(found, matches...)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(found)))
}

// after is where the next command may run. What was there before stays possible: the
// words of a command do not tell where a subshell ends.
func (p place) after(words []string) place {
	if len(words) < 2 {
		return p
	}
	last := words[len(words)-1]
	switch {
	case words[0] == "cd":
		p.folders = slices.Concat(p.folders, p.all(last))
	case words[0] == "mkdir" || words[0] == "git" && words[1] == "clone":
		p.made = append(slices.Clone(p.made), strings.TrimSuffix(filepath.Base(last), ".git"))
	}
	return p
}

// cdFaults says that a folder is not there.
func (p place) cdFaults(words []string) []string {
	if p.theirs || len(words) == 0 || strings.HasPrefix(words[0], "-") || slices.Contains(p.made, words[0]) {
		return nil
	}
	for _, path := range p.all(words[0]) {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return nil
		}
	}
	return []string{"cd " + words[0] + ": no such folder in the repository's root or beside the page. " + readersOwn}
}

const readersOwn = "If it is the reader's own, put <!-- fragment: why --> above the fence"

var (
	// aPath has a folder that it begins with, and more.
	aPath = regexp.MustCompile(`^((?:\.\.?/)*[\w.-]+)/[\w./*-]*$`)
	// built is in no clone.
	built = regexp.MustCompile(`(?:^|/)(?:\.?bin|dist)(?:/|$)`)
	// position is the line in a file.
	position = regexp.MustCompile(`:\d+$`)
)

// pathFault looks at a word that begins with a folder of the repository: the rest has
// to be there, too.
func (p place) pathFault(word string) []string {
	word = strings.TrimSuffix(position.ReplaceAllString(word, ""), "/...")
	found := aPath.FindStringSubmatch(word)
	if found == nil || strings.Trim(found[1], "./") == "" || built.MatchString(word) {
		return nil
	}
	begins := slices.ContainsFunc(p.all(found[1]), func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir()
	})
	if !begins || len(p.all(word)) > 0 {
		return nil
	}
	return []string{word + ": there is " + found[1] + ", but nothing of this name in it"}
}

// inBlock is where the commands of a block run.
func inBlock(f markdown.Fence) place {
	p := beside(f.At)
	p.theirs = f.Kind == markdown.Fragment
	return p
}
