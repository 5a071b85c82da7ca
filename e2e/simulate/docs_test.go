package simulate

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

var fenced = regexp.MustCompile("(?ms)^```(yaml|text)\n(.*?)^```")

func TestTheExampleOfTheDocumentationSaysWhatItIsShownToSay(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := fenced.FindAllSubmatch(page, -1)
	if len(blocks) < 2 || string(blocks[0][1]) != "yaml" || string(blocks[1][1]) != "text" {
		t.Fatalf("the page does not begin with a Rollout and what is said of it: %d blocks", len(blocks))
	}
	var in lint.Input
	in.Read("shop.yaml", blocks[0][2])
	plan, err := Derive(in, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if err := WriteNotes(&said, plan); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(blocks[1][2]), said.String()); diff != "" {
		t.Errorf("shown (-), said (+):\n%s", diff)
	}
}
