package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

var update = flag.Bool("update", false, "write the golden files anew")

// said is what one run has printed, and how it ended.
type said struct {
	out, err string
	code     int
}

// running runs one command as a person does.
func running(t *testing.T, change func(*Program), args ...string) said {
	t.Helper()
	var out, err bytes.Buffer
	p := Program{Name: "/usr/local/bin/rollouts-plugin-trafficrouter-istio", Version: "the version", In: strings.NewReader(""), Out: &out, Err: &err, patience: time.Hour}
	if change != nil {
		change(&p)
	}
	code := Run(t.Context(), args, p)
	return said{out.String(), err.String(), code}
}

// assertGolden holds a text against a file in testdata, or writes it with -update.
func assertGolden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (go test ./pkg/cli -update writes it):\n%s", path, diff)
	}
}

func asKubectlPlugin(p *Program) { p.Name = "/usr/local/bin/kubectl-argo_rollouts_istio" }

func coloured(p *Program) { p.Colour = true }

func reading(text string) func(*Program) {
	return func(p *Program) { p.In = strings.NewReader(text) }
}

func TestOutput(t *testing.T) {
	offline := part(t, "findings.yaml", 0)
	for golden, tc := range map[string]struct {
		change func(*Program)
		args   []string
		code   int
	}{
		"help.txt":              {nil, []string{"--help"}, 0},
		"help-kubectl.txt":      {asKubectlPlugin, []string{"--help"}, 0},
		"help-lint.txt":         {asKubectlPlugin, []string{"lint", "--help"}, 0},
		"version.txt":           {nil, []string{"--version"}, 0},
		"lint-clean.txt":        {nil, []string{"lint", "-f", "testdata/web.yaml"}, 0},
		"lint-clean.json":       {nil, []string{"lint", "-f", "testdata/web.yaml", "-o", "json"}, 0},
		"lint-findings.txt":     {nil, []string{"lint", "-f", "testdata/findings.yaml"}, 1},
		"lint-findings.json":    {nil, []string{"lint", "-f", "testdata/findings.yaml", "-o", "json"}, 1},
		"lint-findings.yaml":    {nil, []string{"lint", "-f", "testdata/findings.yaml", "-o", "yaml"}, 1},
		"lint-colour.txt":       {coloured, []string{"lint", "-f", "testdata/findings.yaml", "--ignore", "ARI0202,ari0305"}, 0},
		"lint-offline.txt":      {reading(offline), []string{"lint", "-f", "-", "-n", "shop"}, 0},
		"lint-complete.txt":     {reading(offline), []string{"lint", "-f", "-", "--complete"}, 1},
		"lint-unreadable.txt":   {reading("a: b\n---\nkind: {{ .Values.kind }}\n"), []string{"lint", "-f", "-"}, 1},
		"explain.txt":           {nil, []string{"lint", "--explain", "ari0404"}, 0},
		"explain.json":          {nil, []string{"lint", "--explain", "ARI0204", "-o", "json"}, 0},
		"explain-elsewhere.txt": {coloured, []string{"lint", "--explain", "ARI0204"}, 0},
	} {
		t.Run(golden, func(t *testing.T) {
			got := running(t, tc.change, tc.args...)
			if got.code != tc.code || got.err != "" {
				t.Errorf("exit code %d, want %d; on stderr: %s", got.code, tc.code, got.err)
			}
			assertGolden(t, golden, got.out)
		})
	}
}

// part is one document of a file in testdata.
func part(t *testing.T, name string, n int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(data), "---\n")[n]
}

func TestEveryFormatTakesEveryCharacter(t *testing.T) {
	for _, text := range []string{"web\x7f", "a\u0085b", "\u2028", "\x1b[2J", "plain", "ü 世"} {
		for _, f := range []format{asJSON, asYAML} {
			var out bytes.Buffer
			if err := f.write(&out, map[string]string{"name": text}, nil); err != nil {
				t.Errorf("%s of %q: %v", f, text, err)
				continue
			}
			var back map[string]string
			if err := yaml.Unmarshal(out.Bytes(), &back); err != nil || back["name"] != text {
				t.Errorf("%s of %q is read back as %q, %v", f, text, back["name"], err)
			}
		}
	}
}

func TestANameMakesNoLineOfItsOwn(t *testing.T) {
	var out bytes.Buffer
	(&Program{}).lintTable(&out, lint.Report{Findings: []lint.Finding{{
		Code: "ARI0101", Severity: lint.Error, Object: "Rollout shop/x\nRollout shop/y", Field: "spec\nweb.yaml:1: error", File: "a\nb.yaml", Message: "m", Consequence: "c", Remedy: "r",
	}}})
	for _, forged := range []string{"\nRollout shop/y", "\nweb.yaml", "\nb.yaml"} {
		if strings.Contains(out.String(), forged) {
			t.Errorf("a line begins with %q:\n%s", forged, &out)
		}
	}
}
