package markdown

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fences(t *testing.T, text string) []Fence {
	t.Helper()
	found, err := Parse("p.md", text).Fences()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAFenceHasItsLanguageItsBodyAndTheMarkerAboveIt(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []Fence
	}{
		"without a marker": {"text\n```sh\nmake\n```\n", []Fence{{At: "p.md:2", Language: "sh", Body: "make\n"}}},
		"whole objects": {"<!-- runnable -->\n```yaml\na: 1\n```\n",
			[]Fence{{At: "p.md:2", Language: "yaml", Body: "a: 1\n", Marker: Marker{Kind: Runnable}}}},
		"a part": {"<!-- runnable in f.yaml at spec.x -->\n\n```yaml\na: 1\n```\n",
			[]Fence{{At: "p.md:3", Language: "yaml", Body: "a: 1\n", Marker: Marker{Kind: Runnable, File: "f.yaml", Path: "spec.x"}}}},
		"a fragment below another comment": {"<!-- fragment: no cluster -->\n<!-- a note -->\n```yaml\n```\n",
			[]Fence{{At: "p.md:3", Language: "yaml", Marker: Marker{Kind: Fragment, Why: "no cluster"}}}},
		"text between marker and fence": {"<!-- runnable -->\ntext\n```yaml\n```\n", []Fence{{At: "p.md:3", Language: "yaml"}}},
		"indented, in a list": {"1. do\n\n   <!-- runnable -->\n   ```sh\n   make \\\n     x\n\n   ```\n",
			[]Fence{{At: "p.md:4", Language: "sh", Body: "make \\\n  x\n\n", Marker: Marker{Kind: Runnable}}}},
		"a longer fence around another": {"````\n```yaml\n```\n````\n", []Fence{{At: "p.md:1", Body: "```yaml\n```\n"}}},
		"two after each other":          {"```\na\n```\n```\nb\n```\n", []Fence{{At: "p.md:1", Body: "a\n"}, {At: "p.md:4", Body: "b\n"}}},
		"one that is never closed":      {"```\na\n", []Fence{{At: "p.md:1", Body: "a\n"}}},
	} {
		if diff := cmp.Diff(tc.want, fences(t, tc.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAMarkerThatIsMisspeltIsAnErrorWithItsPlace(t *testing.T) {
	for _, marker := range []string{"runnable: yes", "runnable in f.yaml", "fragment", "fragment:", "fragment - why"} {
		_, err := Parse("p.md", "<!-- "+marker+" -->\n```yaml\n```\n").Fences()
		if err == nil || !strings.Contains(err.Error(), "p.md:2") || !strings.Contains(err.Error(), marker) {
			t.Errorf("%s: %v", marker, err)
		}
	}
}

func TestLinksAreFoundWhereverTheyStandAndNotInCode(t *testing.T) {
	page := Parse("p.md", strings.Join([]string{
		"[a](a.md#x) and ![b](b.svg \"title\"), `[c](c.md)`",
		"[d]: d.md", `<a href="e.md">e</a> <img src="f.png">`, "<https://example.com/g>",
		"```", "[h](h.md)", "```", "[![badge](i.svg)](j.md)",
	}, "\n"))
	var got []string
	for _, l := range page.Links() {
		got = append(got, l.Target)
	}
	want := []string{"a.md#x", "b.svg", "d.md", "e.md", "f.png", "https://example.com/g", "i.svg", "j.md"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func TestAnchorsAreThoseThatGitHubMakes(t *testing.T) {
	for text, want := range map[string]string{
		"What it is":                          "what-it-is",
		"`verify.level: Mesh`, and others":    "verifylevel-mesh-and-others",
		"Native → plugin":                     "native--plugin",
		"See [the page](other.md)":            "see-the-page",
		"snake_case and Ünïcode 2":            "snake_case-and-ünïcode-2",
		"ARI0101: the subset names no pod":    "ari0101-the-subset-names-no-pod",
		"What is it (really)?":                "what-is-it-really",
		"A  double space & an ampersand":      "a--double-space--an-ampersand",
		"**Bold** and a trailing full stop. ": "bold-and-a-trailing-full-stop-",
	} {
		if got := Anchor(text); got != want {
			t.Errorf("anchor of %q is %q, want %q", text, got, want)
		}
	}
	page := Parse("p.md", "# One\n## One\n```sh\n# no heading\n```\n# One ##\n<a name=\"here\"></a>\n#nothing\n")
	want := []string{"here", "one", "one-1", "one-2"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(page.Anchors()))); diff != "" {
		t.Errorf("anchors (-want +got):\n%s", diff)
	}
}

func TestCommandsAreSplitIntoWords(t *testing.T) {
	got := Commands("make build && bin/x lint -f 'a b' # why\nA=1 base=x kubectl -n x \\\n  get y | grep \"z;\"\n\n# only this\n(cd e2e; go run ./cmd/lab)")
	want := [][]string{
		{"make", "build"}, {"bin/x", "lint", "-f", "a b"}, {"kubectl", "-n", "x", "get", "y"}, {"grep", "z;"},
		{"cd", "e2e"}, {"go", "run", "./cmd/lab"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestPagesAreAllButThoseOfTestsAndWhatIsBuilt(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{"README.md", "docs/a.md", ".bin/b.md", "bin/c.md", "docs/testdata/d.md", "docs/d.txt"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte("# x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range pages {
		got = append(got, p.Path)
	}
	if diff := cmp.Diff([]string{"README.md", "docs/a.md"}, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}
