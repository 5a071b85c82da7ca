package cli

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var inspectExampleBlock = regexp.MustCompile("(?s)`kubectl argo-rollouts-istio inspect -n shop web`.*?```text\n(.*?)```")

// TestTheDocumentationShowsWhatInspectSays runs the command of docs/cli.md on the held
// Rollout of testdata/inspect.yaml; with -update it writes the answer into the page.
func TestTheDocumentationShowsWhatInspectSays(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := inspectExampleBlock.FindSubmatchIndex(data)
	if found == nil {
		t.Fatalf("%s has no example of inspect", page)
	}
	got := running(t, heldRollout(t).connect, "inspect", "-n", "shop", "web")
	if got.code != exitFindings || got.err != "" {
		t.Errorf("%+v", got)
	}
	if *update {
		put(t, page, string(data[:found[2]])+got.out+string(data[found[3]:]))
	} else if diff := cmp.Diff(string(data[found[2]:found[3]]), got.out); diff != "" {
		t.Errorf("%s (go test ./pkg/cli -update writes it):\n%s", page, diff)
	}
}
