package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// bySubsets is a Rollout with all that its routing needs, without any finding.
const bySubsets = `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata:
  name: web
  namespace: shop
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web, version: v2}
    spec: {}
  strategy:
    canary:
      trafficRouting:
        plugins:
          argoproj-labs/istio:
            virtualService:
              name: web
              routes: [primary]
            destinationRule:
              name: web
              canarySubsetName: canary
              stableSubsetName: stable
      steps:
      - setWeight: 20
      - pause: {}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: web
  namespace: shop
spec:
  host: web
  subsets:
  - name: stable
    labels: {app: web}
  - name: canary
    labels: {app: web}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: web
  namespace: shop
spec:
  hosts: [web]
  http:
  - name: primary
    route:
    - destination: {host: web, subset: stable}
      weight: 100
    - destination: {host: web, subset: canary}
      weight: 0
`

// variant is the base with some of its text replaced, and more objects behind it.
type variant struct {
	base    string   // empty: bySubsets
	replace []string // old, new, old, new …
	more    string
	options func(*lint.Options)
}

func (v variant) text(t *testing.T) string {
	t.Helper()
	text := bySubsets
	if v.base != "" {
		text = v.base
	}
	for i := 0; i+1 < len(v.replace); i += 2 {
		if n := strings.Count(text, v.replace[i]); n != 1 {
			t.Fatalf("%q stands %d times in the base", v.replace[i], n)
		}
		text = strings.Replace(text, v.replace[i], v.replace[i+1], 1)
	}
	if v.more != "" {
		text += "---\n" + v.more
	}
	return text
}

func (v variant) lint(t *testing.T) lint.Report {
	t.Helper()
	o := lint.Options{Complete: func(string, string) bool { return true }}
	if v.options != nil {
		v.options(&o)
	}
	var in lint.Input
	in.Read("web.yaml", []byte(v.text(t)))
	return lint.Run(in, o)
}

// cell is one row of the grid: what has exactly this finding, and what is nearly the
// same and has none.
type cell struct {
	finds, near variant
	// field is the end of the finding's path, says a part of its message.
	field, says string
}

func edit(replace ...string) variant { return variant{replace: replace} }

// bare is a text of its own.
func bare(text string) variant { return variant{base: text} }

func with(more string, replace ...string) variant { return variant{more: more, replace: replace} }

func allowing(namespaces string, replace ...string) variant {
	return variant{replace: replace, options: func(o *lint.Options) {
		o.CrossNamespace, _ = config.ParseCrossNamespace(namespaces)
	}}
}

// Pieces of the base that many rows change.
const (
	steps    = "      - setWeight: 20\n      - pause: {}\n"
	routing  = "      trafficRouting:\n"
	block    = "          argoproj-labs/istio:\n"
	http     = "  http:\n"
	canary   = "    - destination: {host: web, subset: canary}\n      weight: 0\n"
	stable   = "    - destination: {host: web, subset: stable}\n      weight: 100\n"
	strategy = "  strategy:\n"
	subsets  = "  - name: canary\n    labels: {app: web}\n"
)

func TestEveryCheckFindsItsOwnAndNothingNearIt(t *testing.T) {
	if report := (variant{}).lint(t); len(report.Findings)+len(report.Notes) > 0 {
		t.Fatalf("the base is not clean: %+v", report)
	}
	for _, c := range lint.Checks() {
		row, there := grid[c.Code]
		if !there {
			t.Errorf("%s (%s) has no row in the grid", c.Code, c.Title)
			continue
		}
		t.Run(c.Code, func(t *testing.T) {
			found := row.finds.lint(t)
			if len(found.Findings) == 0 {
				t.Fatalf("nothing was found; notes: %q", found.Notes)
			}
			for _, f := range found.Findings {
				if f.Code != c.Code {
					t.Errorf("found %s as well: %s %s", f.Code, f.Field, f.Message)
				}
			}
			assertFinding(t, found.Findings[0], row)
			for _, f := range row.near.lint(t).Findings {
				t.Errorf("the near miss has %s: %s %s", f.Code, f.Field, f.Message)
			}
		})
	}
	for code := range grid {
		if _, there := lint.Lookup(code); !there {
			t.Errorf("the grid has %s, which is no check", code)
		}
	}
}

// assertFinding checks that a finding says where it is, and that its line holds the
// last name of its path, or what stands in its place.
func assertFinding(t *testing.T, f lint.Finding, row cell) {
	t.Helper()
	if !strings.HasSuffix(f.Field, row.field) || !strings.Contains(f.Message, row.says) {
		t.Errorf("found %q: %q, want a path that ends in %q and a message with %q", f.Field, f.Message, row.field, row.says)
	}
	lines := strings.Split(row.finds.text(t), "\n")
	if f.File != "web.yaml" || f.Line < 1 || f.Line > len(lines) {
		t.Fatalf("found at %s:%d", f.File, f.Line)
	}
	if f.Consequence == "" || f.Remedy == "" {
		t.Errorf("no consequence or remedy: %+v", f)
	}
	names := strings.FieldsFunc(f.Field, func(r rune) bool { return strings.ContainsRune(`.[]"0123456789`, r) })
	if slices.Contains(nowhere, f.Code) || len(names) == 0 {
		return
	}
	if name := names[len(names)-1]; !strings.Contains(lines[f.Line-1], name) {
		t.Errorf("line %d is %q, which has no %s", f.Line, lines[f.Line-1], name)
	}
}

// nowhere are the codes whose row is about something that is missing, so that the
// line is that of the nearest part of its path, or whose path ends in an index.
var nowhere = []string{"ARI0003", "ARI0101", "ARI0202", "ARI0203", "ARI0204", "ARI0205", "ARI0206", "ARI0221", "ARI0230", "ARI0231", "ARI0406", "ARI0407", "ARI0502", "ARI0503"}

func TestLinesAreThoseOfTheField(t *testing.T) {
	for code, want := range map[string]string{
		"ARI0101": "            guard: {mode: Offf}",
		"ARI0202": "              routes: [primaries]",
		"ARI0204": "  - name: primary",
		"ARI0221": "  - name: primary",
		"ARI0407": "            - {name: a, specRef: canary, weight: 5}",
	} {
		v := grid[code].finds
		lines := strings.Split(v.text(t), "\n")
		if f := v.lint(t).Findings[0]; lines[f.Line-1] != want {
			t.Errorf("%s is at line %d, %q, want %q", code, f.Line, lines[f.Line-1], want)
		}
	}
}

func TestEveryCheckIsWhole(t *testing.T) {
	seen := map[string]bool{}
	last := ""
	for _, c := range lint.Checks() {
		if c.Code <= last || seen[c.Code] {
			t.Errorf("%s comes after %s", c.Code, last)
		}
		last, seen[c.Code] = c.Code, true
		for name, text := range map[string]string{"Title": c.Title, "Happens": c.Happens, "Instead": c.Instead} {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s has no %s", c.Code, name)
			}
		}
		if c.Severity < lint.Info || c.Severity > lint.Error {
			t.Errorf("%s has %s", c.Code, c.Severity)
		}
	}
}
