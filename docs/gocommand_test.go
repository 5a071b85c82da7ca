package docs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// goFaults looks at what a go command names: packages, programs and their flags, tests.
func (k knowledge) goFaults(words []string, at place) []string {
	switch verb, rest := cutVerb(words); verb {
	case "run":
		return k.runFaults(rest, at)
	case "test":
		return append(packageFaults(rest, at), k.patternFaults(rest, at)...)
	case "build", "doc", "install", "list", "vet":
		return packageFaults(rest, at)
	default:
		return nil
	}
}

// valued are the flags of go with a value that may look like a package.
var valued = []string{"-o", "-run", "-bench", "-fuzz"}

// packagesOf are the packages of this repository among the words; "…" stands for some.
func packagesOf(words []string) []string {
	var packages []string
	for i, word := range words {
		if i > 0 && slices.Contains(valued, words[i-1]) {
			continue
		}
		if word == "." || word == ".." || word == "…" || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") {
			packages = append(packages, word)
		}
	}
	return packages
}

// withoutDots is the folder of a package, or that below which several are.
func withoutDots(name string) string { return strings.TrimSuffix(strings.TrimSuffix(name, "..."), "/") }

func packageFaults(words []string, at place) []string {
	var faults []string
	for _, name := range packagesOf(words) {
		if name != "…" && len(at.all(withoutDots(name))) == 0 {
			faults = append(faults, name+": the repository has no such package there")
		}
	}
	return faults
}

// runFaults looks at the program that `go run` builds, and at its flags.
func (k knowledge) runFaults(words []string, at place) []string {
	i := slices.IndexFunc(words, func(word string) bool { return !strings.HasPrefix(word, "-") })
	if i < 0 || strings.Contains(words[i], "@") {
		return nil // none is named, or one of another module
	}
	name, arguments := words[i], words[i+1:]
	if !strings.HasPrefix(name, ".") {
		return []string{fmt.Sprintf("go run %s: write ./%s", name, name)}
	}
	folders := at.all(name)
	if len(folders) == 0 {
		return []string{fmt.Sprintf("go run %s: there is no such folder; if it is meant to run in another one, write cd FOLDER before it", name)}
	}
	if folders[0] == "../plugin" {
		return k.pluginFaults(arguments)
	}
	var defined string
	for _, folder := range folders {
		flags, err := flagsIn(folder)
		if err != nil {
			return []string{fmt.Sprintf("go run %s: %v", name, err)}
		}
		defined += flags
	}
	return flagFaults("go run "+name, arguments, defined)
}

// selecting are the flags of `go test` that choose by name, and what they choose from.
var selecting = []struct {
	flag  string
	kinds *regexp.Regexp
}{
	{"-run", regexp.MustCompile(`^(?:Test|Fuzz|Example)`)},
	{"-bench", regexp.MustCompile(`^Benchmark`)},
	{"-fuzz", regexp.MustCompile(`^Fuzz`)},
}

// nothing is the pattern that chooses none, on purpose.
const nothing = "^$"

// patternFaults are the patterns that no name matches: `go test` is content then.
func (k knowledge) patternFaults(words []string, at place) []string {
	var faults []string
	for _, s := range selecting {
		pattern, given := valueOf(words, s.flag)
		if !given || pattern == nothing {
			continue
		}
		top, _, _ := strings.Cut(pattern, "/") // what follows chooses parts of a test
		matches, err := regexp.Compile(top)
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s %s: %v", s.flag, pattern, err))
			continue
		}
		if !slices.ContainsFunc(k.testsIn(words, at), func(name string) bool {
			return s.kinds.MatchString(name) && matches.MatchString(name)
		}) {
			faults = append(faults, fmt.Sprintf("%s %s: nothing in the packages that are named has such a name", s.flag, pattern))
		}
	}
	return faults
}

// valueOf is what a flag is given.
func valueOf(words []string, flag string) (string, bool) {
	for i, word := range words {
		name, value, joined := strings.Cut(word, "=")
		switch {
		case name != flag:
		case joined:
			return value, true
		case i+1 < len(words):
			return words[i+1], true
		}
	}
	return "", false
}

// testsIn are the names in the packages among the words; in all packages if none is
// named.
func (k knowledge) testsIn(words []string, at place) []string {
	packages := packagesOf(words)
	var names []string
	for folder, tests := range k.tests {
		within := len(packages) == 0 || slices.Contains(packages, "…")
		for _, name := range packages {
			for _, path := range at.all(withoutDots(name)) {
				below := strings.HasSuffix(name, "...") && strings.HasPrefix(folder, path+string(filepath.Separator))
				within = within || folder == path || below
			}
		}
		if within {
			names = append(names, tests...)
		}
	}
	return names
}
