package lint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestAPathIsTakenApart(t *testing.T) {
	name := func(text string) step { return step{name: text, index: -1} }
	for path, want := range map[string][]step{
		"":                         nil,
		"spec":                     {name("spec")},
		"spec.http[0].route":       {name("spec"), name("http"), {index: 0}, name("route")},
		`plugins["a.b/c[0]"].name`: {name("plugins"), name("a.b/c[0]"), name("name")},
		"annotations[a.b/c]":       {name("annotations"), name("a.b/c")},
		"steps[-1]":                {name("steps"), name("-1")},
		"a..b":                     {name("a"), name("b")},
		"a[":                       {name("a"), name("")},
		`a["b`:                     {name("a"), name(`"b`)},
		"a[1":                      {name("a"), {index: 1}},
	} {
		if diff := cmp.Diff(want, stepsOf(path), cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("%q:\n%s", path, diff)
		}
	}
}

func TestALineIsThatOfTheNearestPart(t *testing.T) {
	var root yaml.Node
	text := "a:\n  b: &b\n  - c: 1\n    d: [x, y]\nm:\n  <<: {e: 1}\n  f: 2\ng: *b\na.b: 3\nh:\n  i: 1\n  i: 2\n"
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"": 1, "a": 1, "a.b": 2, "a.b[0]": 3, "a.b[0].d": 4, "a.b[0].d[1]": 4, "a.b[0].none": 3, "a.b[9].c": 2, "a.b.c": 2, "none": 1,
		"m.e": 6, "m.f": 7, "g[0].d": 4, "g": 8, `["a.b"]`: 9, "h.i": 12,
	} {
		if got := lineOf(&root, path); got != want {
			t.Errorf("%q is at line %d, want %d", path, got, want)
		}
	}
	if got := lineOf(nil, "a"); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
}
