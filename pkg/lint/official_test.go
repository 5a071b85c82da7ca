package lint_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// argoRollouts is where the module cache has Argo Rollouts, with its documentation,
// examples and tests.
func argoRollouts(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/argoproj/argo-rollouts").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Fatalf("no module github.com/argoproj/argo-rollouts: %v %s", err, out)
	}
	return dir
}

// fenced is a block of YAML in a page, perhaps indented.
var fenced = regexp.MustCompile("(?ms)^([ \t]*)```ya?ml[^\n]*\n(.*?)^[ \t]*```")

// texts are the YAML texts below a folder: files, and the blocks of pages.
func texts(t *testing.T, root string, folders ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			ending := filepath.Ext(path)
			if err != nil || !slices.Contains([]string{".yaml", ".yml", ".md"}, ending) {
				return err
			}
			data, err := os.ReadFile(path)
			name, _ := filepath.Rel(root, path)
			if name = filepath.ToSlash(name); ending != ".md" {
				all[name] = string(data)
				return err
			}
			for i, found := range fenced.FindAllStringSubmatch(string(data), -1) {
				all[fmt.Sprintf("%s block %02d", name, i+1)] = strings.ReplaceAll("\n"+found[2], "\n"+found[1], "\n")[1:]
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// moved is the text with each native block under the plugin's name, as docs/migration.md
// has it; empty if it has none.
func moved(text string) string {
	var documents []string
	native := false
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		var o map[string]any
		if yaml.Unmarshal([]byte(document), &o) != nil || o == nil {
			continue
		}
		spec, _ := o["spec"].(map[string]any)
		strategy, _ := spec["strategy"].(map[string]any)
		canary, _ := strategy["canary"].(map[string]any)
		if routing, _ := canary["trafficRouting"].(map[string]any); routing["istio"] != nil {
			routing["plugins"] = map[string]any{"argoproj-labs/istio": routing["istio"]}
			delete(routing, "istio")
			native = true
		}
		data, _ := yaml.Marshal(o)
		documents = append(documents, string(data))
	}
	if !native {
		return ""
	}
	return strings.Join(documents, "---\n")
}

// verdict is how many Rollouts were judged and which codes found, and tells of each
// finding that it has a line.
func verdict(t *testing.T, name, text string) string {
	t.Helper()
	var in lint.Input
	in.Read("web.yaml", []byte(text))
	report := lint.Run(in, lint.Options{})
	codes := map[string]bool{}
	for _, f := range report.Findings {
		codes[f.Code] = true
		if f.Line < 1 || f.Line > strings.Count(text, "\n")+1 || f.Message == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if len(codes) == 0 && report.Rollouts == 0 {
		return ""
	}
	return fmt.Sprintf("%d: %s", report.Rollouts, strings.Join(slices.Sorted(maps.Keys(codes)), " "))
}

// TestOfficialManifests holds the findings in what Argo Rollouts itself shows, as it is
// and with its native blocks moved to the plugin, against a file: a new one is a fault of
// the manifest, and then it stands there with good reason, or a fault of the check.
// go test ./pkg/lint -update writes the file.
func TestOfficialManifests(t *testing.T) {
	var b strings.Builder
	all := texts(t, argoRollouts(t), "docs", "examples", "test")
	routed := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if said := verdict(t, name, all[name]); said != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, said)
		}
		if text := moved(all[name]); text != "" {
			routed++
			fmt.Fprintf(&b, "%s, moved: %s\n", name, verdict(t, name+", moved", text))
		}
	}
	if len(all) < 200 || routed < 10 {
		t.Errorf("%d texts, of which %d have the native router", len(all), routed)
	}
	assertFile(t, "testdata/official.txt", b.String())
}

func assertFile(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), want); diff != "" {
		t.Errorf("%s (go test ./pkg/lint -update writes it):\n%s", path, diff)
	}
}
