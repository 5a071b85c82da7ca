package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "../../docs/cli.md"

var example = regexp.MustCompile("(?s)```yaml\n(apiVersion.*?)```\n.*?`rollouts-plugin-trafficrouter-istio (lint -f web.yaml)`.*?```text\n(.*?)```")

// TestTheDocumentationShowsWhatIsSaid runs the command of docs/cli.md on the file that
// stands there; with -update it writes the answer into the page.
func TestTheDocumentationShowsWhatIsSaid(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := example.FindSubmatchIndex(data)
	if found == nil {
		t.Fatalf("%s has no example", page)
	}
	text := func(group int) string { return string(data[found[2*group]:found[2*group+1]]) }
	got := running(t, reading(text(1)), strings.Fields(strings.Replace(text(2), "web.yaml", "-", 1))...)
	if got.code != exitFindings || got.err != "" {
		t.Errorf("%+v", got)
	}
	said := strings.ReplaceAll(got.out, "stdin:", "web.yaml:")
	if *update {
		put(t, page, string(data[:found[6]])+said+string(data[found[7]:]))
	} else if diff := cmp.Diff(text(3), said); diff != "" {
		t.Errorf("%s (go test ./pkg/cli -update writes it):\n%s", page, diff)
	}
}
