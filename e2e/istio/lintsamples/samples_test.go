package lintsamples

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

var update = flag.Bool("update", false, "write testdata anew")

// samples is where the module cache has Istio's samples.
func samples(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", "istio.io/istio").Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Fatalf("no module istio.io/istio: %v %s", err, out)
	}
	return filepath.Join(module.Dir, "samples")
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// files are the paths of all YAML below a folder, in order.
func files(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// verdict are the codes that are found in a text. Each finding has a line in it.
func verdict(t *testing.T, name, text string) string {
	t.Helper()
	var in lint.Input
	in.Read(name, []byte(text))
	codes := map[string]bool{}
	for _, f := range lint.Run(in, lint.Options{}).Findings {
		codes[f.Code] = true
		if f.Line < 1 || f.Line > strings.Count(text, "\n")+1 || f.Message == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(codes)), " ")
}

// rollout puts the reviews of Bookinfo under a Rollout between two of its subsets.
const rollout = `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: reviews}
spec:
  selector: {matchLabels: {app: reviews}}
  template:
    metadata: {labels: {app: reviews, version: v4}}
    spec: {containers: [{name: reviews, image: reviews}]}
  strategy:
    canary:
      steps: [{setWeight: 10}, {pause: {}}]
      trafficRouting:
        plugins:
          argoproj-labs/istio:
            virtualService: {name: reviews}
            destinationRule: {name: reviews, stableSubsetName: v1, canarySubsetName: v2}
---
`

// TestOfficialSamples holds the findings against a file, which
// go test ./lintsamples -update writes.
func TestOfficialSamples(t *testing.T) {
	root := samples(t)
	all := files(t, root)
	var b strings.Builder
	for _, path := range all {
		name, _ := filepath.Rel(root, path)
		if codes := verdict(t, name, read(t, path)); codes != "" {
			fmt.Fprintf(&b, "%s: %s\n", filepath.ToSlash(name), codes)
		}
	}
	reviews := 0
	for _, path := range files(t, filepath.Join(root, "bookinfo", "networking")) {
		if text := read(t, path); strings.Contains(text, "kind: VirtualService\nmetadata:\n  name: reviews\n") {
			reviews++
			fmt.Fprintf(&b, "%s under a Rollout: %s\n", filepath.Base(path), verdict(t, path, rollout+bookinfo(t, root)+text))
		}
	}
	if len(all) < 100 || reviews < 5 {
		t.Errorf("%d files, of which %d have routes of reviews", len(all), reviews)
	}
	assertFile(t, "testdata/samples.txt", b.String())
}

// bookinfo are the Services and subsets of Bookinfo.
func bookinfo(t *testing.T, root string) string {
	t.Helper()
	return read(t, filepath.Join(root, "bookinfo/platform/kube/bookinfo.yaml")) + "\n---\n" +
		read(t, filepath.Join(root, "bookinfo/networking/destination-rule-all.yaml")) + "\n---\n"
}

// TestWhatIsToldMakesTheSampleClean does to the sample what the finding says: the labels
// that pin its subsets go.
func TestWhatIsToldMakesTheSampleClean(t *testing.T) {
	root := samples(t)
	text := rollout + bookinfo(t, root) + read(t, filepath.Join(root, "bookinfo/networking/virtual-service-reviews-90-10.yaml"))
	if got := verdict(t, "reviews.yaml", text); got != "ARI0305" {
		t.Errorf("as it is: %q", got)
	}
	for _, version := range []string{"v1", "v2"} {
		pinned := fmt.Sprintf("  - name: %[1]s\n    labels:\n      version: %[1]s\n", version)
		if !strings.Contains(text, pinned) {
			t.Fatalf("the sample has no subset %s", version)
		}
		text = strings.ReplaceAll(text, pinned, fmt.Sprintf("  - name: %s\n", version))
	}
	if got := verdict(t, "reviews.yaml", text); got != "" {
		t.Errorf("without the labels: %q", got)
	}
}

func assertFile(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(read(t, path), got); diff != "" {
		t.Errorf("%s (go test ./lintsamples -update writes it):\n%s", path, diff)
	}
}
