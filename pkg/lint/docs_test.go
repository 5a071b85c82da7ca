package lint_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

var update = flag.Bool("update", false, "write docs/lint.md anew")

const page = "../../docs/lint.md"

// TestTheDocumentationIsTheRegistry: go test ./pkg/lint -update writes the page.
func TestTheDocumentationIsTheRegistry(t *testing.T) {
	want := documentation()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(have)); diff != "" {
		t.Errorf("docs/lint.md is not what the registry says: run go test ./pkg/lint -update\n%s", diff)
	}
}

func documentation() string {
	var b strings.Builder
	b.WriteString(`# What lint finds

<!-- Written by go test ./pkg/lint -update, from the registry in pkg/lint. -->

Each finding has one of these codes. How to run it: [cli.md](cli.md).

* **error**: it does not work. The plugin, the controller or Istio refuses it, or requests go nowhere.
* **warning**: it works today, and does not under conditions that the text names.
* **info**: it works, and is worth knowing.

A code is suppressed with ` + "`--ignore CODE`" + `, or by the annotation ` + "`" + lint.IgnoreAnnotation + ": CODE`" + ` (several with commas) on the
object that the finding is about. On a Rollout the annotation holds for all that is found on its behalf. What is found
while reading (ARI0001 to ARI0005, ARI0008) belongs to a file: ` + "`--ignore`" + ` alone suppresses it.

| Code | | Finding |
|---|---|---|
`)
	for _, c := range lint.Checks() {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", c.Code, strings.ToLower(c.Code), c.Severity, c.Title)
	}
	for _, c := range lint.Checks() {
		fmt.Fprintf(&b, "\n## %s\n\n**%s** (%s)\n\n* What will happen: %s\n* What to write instead: %s\n", c.Code, c.Title, c.Severity, c.Happens, c.Instead)
		if c.Not != "" {
			fmt.Fprintf(&b, "* When it does not apply: %s\n", c.Not)
		}
		if c.Elsewhere != "" {
			fmt.Fprintf(&b, "* The same elsewhere: %s\n", c.Elsewhere)
		}
	}
	return b.String()
}
