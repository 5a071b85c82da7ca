package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licences under which code may be linked into a binary that is given away
// under Apache-2.0, and what they ask for.
var allowed = map[string]string{
	"Apache-2.0":   "keep licence and notices",
	"BSD-2-Clause": "keep licence and notices",
	"BSD-3-Clause": "keep licence and notices",
	"ISC":          "keep licence and notices",
	"MIT":          "keep licence and notices",
	"MPL-2.0":      "the sources of these modules, unchanged here, have to stay available",
}

// leastCoverage is how many of 100 words of a file must be of known licences; the rest are
// names, years and forewords.
const leastCoverage = 50

// classifyAll reads each file once.
func classifyAll(found map[string]text, p pkg, files []string) error {
	for _, file := range files {
		if file == "" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(p.moduleDir, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		one := found[p.module+" "+file]
		one.licences, one.content = classify(content), content
		found[p.module+" "+file] = one
	}
	return nil
}

// classify names the licences in a text, none where too little of it is known.
func classify(content []byte) []string {
	coverage := licensecheck.Scan(content)
	if coverage.Percent < leastCoverage {
		return nil
	}
	var names []string
	for _, match := range coverage.Match {
		if !match.IsURL {
			names = append(names, match.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// judge reports every text that may not be given away, or that nobody can judge.
func judge(texts []text) error {
	var errs []error
	for _, one := range listed(texts) {
		switch {
		case one.file == "":
			errs = append(errs, fmt.Errorf("%s %s has no file of licence text", one.module, one.version))
		case len(one.licences) == 0:
			errs = append(errs, fmt.Errorf("%s %s: the text of %s is not known", one.module, one.version, one.file))
		}
		for _, name := range one.licences {
			if allowed[name] == "" {
				errs = append(errs, fmt.Errorf("%s %s: %s in %s is not allowed: do without the module, or have it allowed in hack/licences", one.module, one.version, name, one.file))
			}
		}
	}
	return errors.Join(errs...)
}

// listed are the texts that are judged and on the page.
func listed(texts []text) []text {
	return slices.DeleteFunc(slices.Clone(texts), func(one text) bool { return one.unlisted })
}

// bundle is all texts in full, which whoever passes a binary on has to pass on with it.
func bundle(texts []text) []byte {
	var out strings.Builder
	for _, one := range texts {
		fmt.Fprintf(&out, "==== %s %s: %s\n\n%s\n\n", one.module, one.version, one.file, strings.TrimSpace(string(one.content)))
	}
	return []byte(out.String())
}

// render makes the page.
func render(texts []text) []byte {
	texts = listed(texts)
	var out strings.Builder
	out.WriteString(foreword)
	out.WriteString("| Module | Version | Licence | File |\n|---|---|---|---|\n")
	for _, one := range texts {
		fmt.Fprintf(&out, "| `%s` | %s | %s | `%s` |\n", one.module, one.version, strings.Join(one.licences, ", "), one.file)
	}
	out.WriteString("\n## Licences\n\n| Licence | Texts | Asks |\n|---|---|---|\n")
	count := map[string]int{}
	var names []string
	for _, one := range texts {
		for _, name := range one.licences {
			if count[name] == 0 {
				names = append(names, name)
			}
			count[name]++
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&out, "| %s | %d | %s |\n", name, count[name], allowed[name])
	}
	return []byte(out.String())
}

const foreword = `<!-- Written by hack/licences: run "make licences". -->
# Licences

The plugin is under Apache-2.0: [LICENSE](../LICENSE). A released binary also contains code of these modules, each under the
licence of the file named, in the module itself; a file in a subfolder covers that subfolder. Go's standard library is under
BSD-3-Clause. What only tests and tools use is in no binary and not listed.

` + "`make licences`" + ` writes this page for all platforms of a release, and ` + "`make check`" + ` fails when it is out of date or when a
licence comes in that is not in the second table.

`
