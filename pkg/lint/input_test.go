package lint_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// lintText judges one file that is all there is.
func lintText(text string) lint.Report {
	var in lint.Input
	in.Read("web.yaml", []byte(text))
	return lint.Run(in, lint.Options{Complete: func(string, string) bool { return true }})
}

// faulty is the base with one finding, of which the line is known.
const faulty = "              routes: [primaries]"

func faultyBase() string {
	return strings.Replace(bySubsets, "              routes: [primary]", faulty, 1)
}

func TestTheFormOfTheTextMakesNoDifference(t *testing.T) {
	want := lintText(faultyBase()).Findings
	if len(want) != 1 || want[0].Code != "ARI0202" || want[0].Line != 20 {
		t.Fatalf("the base has %+v", want)
	}
	for sentence, text := range map[string]string{
		"Windows line ends":                         strings.ReplaceAll(faultyBase(), "\n", "\r\n"),
		"a byte order mark":                         "\ufeff" + faultyBase(),
		"a byte order mark behind each separator":   strings.ReplaceAll(faultyBase(), "---\n", "---\n\ufeff"),
		"a byte order mark before each separator":   strings.ReplaceAll(faultyBase(), "---\n", "\ufeff---\n"),
		"no line end at the end":                    strings.TrimRight(faultyBase(), "\n"),
		"comments and blanks behind the separators": strings.ReplaceAll(faultyBase(), "---\n", "---   # next\n"),
		"a document's end before the separators":    strings.ReplaceAll(faultyBase(), "---\n", "---\n"),
		"blanks at the ends of the lines":           strings.ReplaceAll(faultyBase(), "  strategy:\n", "  strategy:   \n"),
	} {
		t.Run(sentence, func(t *testing.T) {
			got := lintText(text).Findings
			if len(got) != 1 || got[0] != want[0] {
				t.Errorf("found %+v", got)
			}
		})
	}
}

func TestDocumentsThatMoveTheLines(t *testing.T) {
	for sentence, tc := range map[string]struct {
		text string
		line int
	}{
		"a directive in front":              {"%YAML 1.1\n---\n" + faultyBase(), 22},
		"a separator in front":              {"---\n" + faultyBase(), 21},
		"a byte order mark and a separator": {"\ufeff---\n" + faultyBase(), 21},
		"comments in front":                 {"# a\n\n# b\n" + faultyBase(), 23},
		"empty documents in front":          {"---\n---\n# nothing\n---\n" + faultyBase(), 24},
		"an end of document in front":       {"a: 1\n...\n" + faultyBase(), 22},
		"a document that cannot be read":    {"a: [\n---\n" + faultyBase(), 22},
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, f := range lintText(tc.text).Findings {
				if f.Code == "ARI0202" {
					if f.Line != tc.line {
						t.Errorf("at line %d, want %d", f.Line, tc.line)
					}
					return
				}
			}
			t.Error("not found")
		})
	}
}

// list is the base as one object of the kind List, two levels further in.
func list(text string) string {
	out := "apiVersion: v1\nkind: List\nitems:\n"
	for document := range strings.SplitSeq(text, "---\n") {
		for i, line := range strings.Split(strings.TrimSpace(document), "\n") {
			mark := "  "
			if i == 0 {
				mark = "- "
			}
			out += mark + line + "\n"
		}
	}
	return out
}

func TestAListIsItsItems(t *testing.T) {
	got := lintText(list(faultyBase())).Findings
	if len(got) != 1 || got[0].Code != "ARI0202" || got[0].Line != 23 {
		t.Errorf("found %+v", got)
	}
	if report := lintText(list(bySubsets)); report.Rollouts != 1 || len(report.Findings) > 0 {
		t.Errorf("%d Rollouts, found %+v", report.Rollouts, report.Findings)
	}
}

func TestJSONIsRead(t *testing.T) {
	text := "{\n\t\"apiVersion\": \"argoproj.io/v1alpha1\",\n\t\"kind\": \"Rollout\",\n\t\"metadata\": {\"name\": \"web\"},\n\t\"spec\": {\n\t\t\"replicas\": \"many\",\n" +
		"\t\t\"strategy\": {\"canary\": {\"trafficRouting\": {\"istio\": {}}}}\n\t}\n}\n"
	got := lintText(text).Findings
	if len(got) != 1 || got[0].Code != "ARI0006" || got[0].Line != 6 {
		t.Errorf("found %+v", got)
	}
}

func TestAnchorsAndMergesAreReadAsKubectlDoes(t *testing.T) {
	text := strings.Replace(bySubsets, "  - name: stable\n    labels: {app: web}\n  - name: canary\n    labels: {app: web}\n",
		"  - &stable\n    name: stable\n    labels: &labels {app: web}\n  - <<: *stable\n    name: canary\n    labels: *labels\n", 1)
	if report := lintText(text); len(report.Findings) > 0 {
		t.Errorf("found %+v", report.Findings)
	}
	got := lintText(strings.Replace(text, "&labels {app: web}", "&labels {app: web, role: x}", 1)).Findings
	if len(got) != 2 || got[0].Code != "ARI0303" || got[1].Field != "spec.subsets[1].labels.role" || got[1].Line != 46 {
		t.Errorf("found %+v", got)
	}
}

func TestPlainWordsAreReadAsYAML11(t *testing.T) {
	guard := func(mode string) string {
		return strings.Replace(bySubsets, "          argoproj-labs/istio:\n", "          argoproj-labs/istio:\n            guard: {mode: "+mode+"}\n", 1)
	}
	for mode, want := range map[string]string{
		"Off": "must be a string, not a boolean", "off": "must be a string, not a boolean", `"Off"`: "", "!!str Off": "", "'Off'": "",
		"~": "give a string or remove the field", "": "give a string or remove the field", "3": "must be a string, not a number", "Enforce": "",
	} {
		got := lintText(guard(mode)).Findings
		switch {
		case want == "" && len(got) > 0:
			t.Errorf("mode: %s: found %+v", mode, got)
		case want != "" && (len(got) != 1 || !strings.Contains(got[0].Message, want)):
			t.Errorf("mode: %s: found %+v, want %q", mode, got, want)
		}
	}
}

func laughs(levels int) string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < levels; i++ {
		text += fmt.Sprintf("a%d: &a%d [", i, i) + strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9) + "x]\n"
	}
	return text
}

func TestWhatCannotBeReadIsSaidWithItsLine(t *testing.T) {
	utf16Text := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune("kind: Rollout\n")) {
		utf16Text = append(utf16Text, byte(unit), byte(unit>>8))
	}
	for sentence, tc := range map[string]struct {
		text string
		line int
		says string
	}{
		"no YAML":                           {"a: b\nc: [1, 2\nd: e\n", 2, "not valid YAML"},
		"tabs":                              {"a:\n\tb: c\n", 2, "not valid YAML"},
		"a binary file":                     {"a: b\n\x00\x01", 2, "is no UTF-8 text"},
		"Latin-1":                           {"a: b\nc: caf\xe9\n", 2, "is no UTF-8 text"},
		"UTF-16":                            {string(utf16Text), 1, "save it as UTF-8"},
		"too much":                          {strings.Repeat("# comment\n", lint.MaxBytes/10+1), 0, "split the file"},
		"aliases that explode":              {laughs(12), 6, "aliases (*name) expand"},
		"an alias of itself":                {"a: &a [*a]\n", 0, ""},
		"an alias of nothing":               {"a: *b\n", 1, "unknown anchor"},
		"deep brackets":                     {strings.Repeat("[", 9000), 1, ""},
		"deep brackets that close":          {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), 1, "deeper than 100 levels"},
		"a name that is no text":            {"? [a, b]\n: c\n", 1, "must be a text"},
		"a number that JSON cannot hold":    {"a: 1\nb: .nan\n", 2, "cannot be read"},
		"a template":                        {"a: {{ .Values.a }}\n", 1, "render it first"},
		"a tag that means nothing":          {"a: !!binary \"%%%\"\n", 1, ""},
		"a text":                            {"Hello, world\n", 1, "no Kubernetes object"},
		"a list":                            {"- a\n- b\n", 1, "no Kubernetes object"},
		"a list of objects":                 {"- apiVersion: v1\n  kind: Pod\n", 1, "wrap it in kind: List"},
		"a list of objects, as JSON":        {`[{"apiVersion": "v1", "kind": "Pod"}]`, 1, "wrap it in kind: List"},
		"a kind that is a number":           {"apiVersion: v1\nkind: 3\n", 1, "kind is 3, which is no text"},
		"a version that is a list":          {"apiVersion: [v1]\nkind: Pod\n", 1, "apiVersion is a list, which is no text"},
		"a name that is a number":           {"apiVersion: v1\nkind: Service\nmetadata:\n  name: 123\n", 4, "metadata.name is 123, which is no text"},
		"a namespace that is a number":      {"apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: 0.1\n", 5, "metadata.namespace is 0.1, which is no text"},
		"a kind without a version":          {"kind: Rollout\nmetadata: {name: web}\n", 1, "apiVersion is missing: this is no Kubernetes object"},
		"a version without a kind":          {"apiVersion: v1\nkind: \"\"\n", 1, "kind is missing: this is no Kubernetes object"},
		"neither a version nor a kind":      {"metadata: {name: web}\n", 1, "apiVersion and kind are missing"},
		"items that are no objects":         {"apiVersion: v1\nkind: List\nitems:\n- 1\n", 4, "no Kubernetes object"},
		"a known kind without a name":       {"apiVersion: v1\nkind: Service\n", 1, "no name"},
		"metadata that is a list":           {"apiVersion: v1\nkind: Service\nmetadata: [a]\n", 3, "no name"},
		"a field that stands twice":         {"apiVersion: v1\nkind: Pod\nkind: Pod\n", 3, "stands twice"},
		"the second of several documents":   {"# a\n---\nb: [\n---\nc: d\n", 3, "not valid YAML"},
		"a repeated field in a JSON text":   {`{"apiVersion": "v1", "kind": "Pod",` + "\n" + `"kind": "Pod"}`, 2, "stands twice"},
		"two JSON texts, one after another": {"{\"a\": 1}\n{\"b\": 2}\n", 2, "several JSON texts in one file need a line with ---"},
		"what documentation leaves out":     {"# a\nb:\n- c: 5\n  ...\n  d: 1\n", 4, "in line 4 three dots stand for something left out"},
		"three dots in a text":              {"a: \"...\"\nb: [\n", 2, "did not find expected node content"},
		"a template, with the command":      {"a: {{ .Values.a }}\n", 1, "helm template . | rollouts-plugin-trafficrouter-istio lint -f -"},
	} {
		t.Run(sentence, func(t *testing.T) {
			report := lintText(tc.text)
			if len(report.Findings) == 0 {
				t.Fatal("nothing was said")
			}
			f := report.Findings[0]
			if tc.says != "" && (f.Line != tc.line || !strings.Contains(f.Message, tc.says)) {
				t.Errorf("line %d: %s: want %d, %q", f.Line, f.Message, tc.line, tc.says)
			}
			if f.File != "web.yaml" || len(f.Message) > 500 {
				t.Errorf("%+v", f)
			}
		})
	}
}

// spoilt are texts that cannot be read; a ^ marks the beginning of the line to report.
var spoilt = map[string]string{
	"an alias of nothing":                  "a: 1\nb:\n^  c: *nope\nd: 1\n",
	"an alias of nothing in a comment":     "a: 1\n# *nope\nb: \"*nope\"\n^c: *nope\n",
	"an alias of nothing within brackets":  "a: [\n1,\n^*nope,\n2]\n",
	"an alias before its anchor":           "^a: *b\nb: &b 1\n",
	"an alias of nothing twice":            "a: 1\n^b: *x\nc: *x\n",
	"an open bracket":                      "a: 1\n^b: [1, 2\nc: 3\n",
	"an open bracket behind comments":      "a: 1\n# b\n\n^b: [1, 2\nc: 3\n",
	"an open brace":                        "a: 1\nb:\n^  c: {d: 1\ne: 2\n",
	"a bracket too many":                   "a: 1\n^b: ]\nc: 2\n",
	"an open quote":                        "a: 1\n^b: \"c\nd: e\n",
	"an entry too far out":                 "a:\n  b:\n  - c\n^ d: e\n",
	"a text too far out":                   "a: 1\nb: |\n  c\n^ d\n",
	"a field among the entries of a list":  "a:\n- b\n- c\n- d: 1\n  e: 2\n^  - f\ng: 1\n",
	"a field too far in":                   "a: 1\n^ b: 2\n",
	"two colons":                           "a: 1\n^b: c: d\n",
	"a tab":                                "a:\n^\tb: c\n",
	"a word without a colon":               "a: 1\n^bc\nd: 1\n",
	"a character that YAML keeps":          "a: 1\n^b: @c\n",
	"a control character":                  "a: 1\nb: 2\n^c: \x01\n",
	"a tag of nowhere":                     "a: 1\n^b: !e!x y\n",
	"a name that is a list":                "a: 1\n^? [b]\n: c\n",
	"a field twice":                        "apiVersion: v1\nkind: Pod\n^kind: Pod\n",
	"a number that JSON cannot hold":       "a: 1\nb:\n^- .inf\n",
	"the last line, without a line end":    "a: 1\n^b: *nope",
	"JSON without a comma":                 "{\"a\": 1\n^\"b\": 2}\n",
	"an entry of a List":                   "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Service\n^  metadata: {namespace: a}\n- kind: 3\n",
	"an entry of a List, with a bad alias": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n-\n^  metadata: *nope\n",
}

func TestTheLineIsThatOfTheMistakeWhateverStandsBefore(t *testing.T) {
	before := map[string]string{
		"alone": "", "after comments": "# a\n\n# b: [\n", "after a document": "a: 1\n---\n", "after one that ends": "a: 1\n...\n",
		"after one that cannot be read": "a: [\n---\n", "after a byte order mark": "\ufeff", "after a mark and a comment": "\ufeff# a\n---\n",
		"after a directive": "%YAML 1.1\n---\n", "after separators of Unicode": "# a\u2028# b\u2029# c\u0085# d\n",
	}
	for sentence, marked := range spoilt {
		for where, front := range before {
			for ends, end := range map[string]string{"": "\n", ", Windows": "\r\n"} {
				t.Run(sentence+" "+where+ends, func(t *testing.T) {
					text, rest, _ := strings.Cut(front+marked, "^")
					want := strings.Count(text, "\n") + 1
					for _, f := range lintText(strings.ReplaceAll(text+rest, "\n", end)).Findings {
						if f.Line == want {
							return
						}
					}
					t.Errorf("want line %d, found %+v", want, lintText(strings.ReplaceAll(text+rest, "\n", end)).Findings)
				})
			}
		}
	}
}

func TestLinesAreThoseOfTheFileWhateverYAMLTakesForOne(t *testing.T) {
	for sentence, put := range map[string]string{"a separator of lines": "# a\u2028# b\n", "a separator of paragraphs": "# \u2029# b\n", "a next line": "# \u0085\u0085\n", "a carriage return": "# a\r# b\n"} {
		got := lintText(put + faultyBase()).Findings
		if len(got) == 0 || got[0].Line != 21 {
			t.Errorf("%s: found %+v", sentence, got)
		}
	}
}

func TestFilesOfOtherProgramsAreNoErrors(t *testing.T) {
	for sentence, tc := range map[string]struct {
		file, text string
		worst      lint.Severity
	}{
		"JSON with comments":              {"tsconfig.json", "{ // a\n \"a\": 1}", lint.Info},
		"JSON with comments, and a kind":  {"web.json", "{ // a\n \"kind\": \"Rollout\"}", lint.Error},
		"the same as YAML":                {"tsconfig.yaml", "{ // a\n \"a\": 1", lint.Error},
		"a field twice in such a file":    {"package.json", "{\"a\": 1, \"a\": 2}", lint.Info},
		"a list of operations (RFC 6902)": {"patch.yaml", "- {op: add, path: /spec/replicas, value: 3}\n", lint.Info},
	} {
		var in lint.Input
		in.Read(tc.file, []byte(tc.text))
		if report := lint.Run(in, lint.Options{}); report.Worst() != tc.worst {
			t.Errorf("%s: %+v", sentence, report.Findings)
		}
	}
}

func TestNotesOfTheCallerAreInTheReport(t *testing.T) {
	var in lint.Input
	in.Note("a link was not read")
	if report := lint.Run(in, lint.Options{}); len(report.Notes) != 1 || report.Notes[0] != "a link was not read" {
		t.Errorf("%+v", report)
	}
}

func TestOtherPeoplesObjectsArePassedOver(t *testing.T) {
	for sentence, text := range map[string]string{
		"nothing":                         "",
		"comments":                        "# a\n---\n# b\n",
		"a kind of the core":              "apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n",
		"a Rollout of another group":      "apiVersion: example.com/v1\nkind: Rollout\nmetadata: {name: web}\nspec: 3\n",
		"a VirtualService of another":     "apiVersion: example.com/v1\nkind: VirtualService\nspec: 3\n",
		"a Rollout without traffic":       "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {strategy: {canary: {}}}\n",
		"a blue-green Rollout":            "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {strategy: {blueGreen: {activeService: web}}}\n",
		"an unused VirtualService":        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web}\nspec: {http: 3}\n",
		"two Services that nobody names":  "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\n",
		"a definition of a custom object": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: rollouts.argoproj.io}\n",
		"an empty list":                   "apiVersion: v1\nkind: List\nitems: []\n",
	} {
		t.Run(sentence, func(t *testing.T) {
			if report := lintText(text); len(report.Findings)+len(report.Notes)+report.Rollouts > 0 {
				t.Errorf("%+v", report)
			}
		})
	}
}

func TestAVersionOrKindThatThereIsNotIsSaid(t *testing.T) {
	for sentence, tc := range map[string]struct{ version, kind, field, says string }{
		"a Rollout of a version to come":  {"argoproj.io/v1beta1", "Rollout", "apiVersion", "no Rollout of argoproj.io/v1beta1, but of argoproj.io/v1alpha1"},
		"a Rollout of no version":         {"argoproj.io/", "Rollout", "apiVersion", "no Rollout of argoproj.io/,"},
		"a Rollout of a group alone":      {"argoproj.io", "Rollout", "apiVersion", "no Rollout of argoproj.io, but of argoproj.io/v1alpha1; the object was not"},
		"a Rollout of a version alone":    {"v1alpha1", "Rollout", "apiVersion", "but of argoproj.io/v1alpha1"},
		"a Rollout in small letters":      {"argoproj.io/v1alpha1", "rollout", "kind", "has no kind rollout, but Rollout"},
		"Rollouts":                        {"argoproj.io/v1alpha1", "Rollouts", "kind", "but Rollout"},
		"a VirtualService of v2":          {"networking.istio.io/v2", "VirtualService", "apiVersion", "but of networking.istio.io/v1, networking.istio.io/v1beta1, networking.istio.io/v1alpha3"},
		"a VirtualService of the core":    {"v1", "VirtualService", "apiVersion", "no VirtualService of v1, but of networking.istio.io/v1,"},
		"a Virtualservice":                {"networking.istio.io/v1", "Virtualservice", "kind", "but VirtualService"},
		"a DestinationRule of v1beta2":    {"networking.istio.io/v1beta2", "DestinationRule", "apiVersion", "no DestinationRule of networking.istio.io/v1beta2"},
		"a ServiceEntry of v3":            {"networking.istio.io/v3", "ServiceEntry", "apiVersion", "no ServiceEntry"},
		"a Service of v2":                 {"v2", "Service", "apiVersion", "no Service of v2, but of v1"},
		"a service":                       {"v1", "service", "kind", "but Service"},
		"a Deployment of apps/v2":         {"apps/v2", "Deployment", "apiVersion", "no Deployment of apps/v2"},
		"an autoscaler of v3":             {"autoscaling/v3", "HorizontalPodAutoscaler", "apiVersion", "but of autoscaling/v2,"},
		"a Service of another's":          {"serving.knative.dev/v1", "Service", "", ""},
		"a Rollout of another's":          {"example.com/v7", "Rollout", "", ""},
		"an Application of nobody's":      {"v1", "Application", "", ""},
		"an autoscaler of a version past": {"autoscaling/v2beta2", "HorizontalPodAutoscaler", "", ""},
		"an Experiment":                   {"argoproj.io/v1alpha1", "Experiment", "", ""},
		"a Gateway of Istio's":            {"networking.istio.io/v1", "Gateway", "", ""},
		"a VirtualService of v1alpha3":    {"networking.istio.io/v1alpha3", "VirtualService", "", ""},
		"a Pod of the core":               {"v1", "Pod", "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			findings := lintText("# a\napiVersion: " + tc.version + "\nkind: " + tc.kind + "\nmetadata: {name: web}\n").Findings
			if tc.says == "" {
				if len(findings) > 0 {
					t.Errorf("found %+v", findings)
				}
				return
			}
			line := map[string]int{"apiVersion": 2, "kind": 3}[tc.field]
			if len(findings) != 1 || findings[0].Code != "ARI0008" || findings[0].Line != line || findings[0].Field != tc.field || !strings.Contains(findings[0].Message, tc.says) {
				t.Errorf("found %+v", findings)
			}
		})
	}
}

func TestManyOtherObjectsAreRead(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Service\nmetadata: {name: s%d, namespace: shop}\nspec: {selector: {app: s%d}}\n---\n", i, i)
	}
	report := lintText(b.String() + faultyBase())
	if len(report.Findings) != 1 || report.Findings[0].Code != "ARI0202" {
		t.Errorf("found %+v", report.Findings)
	}
}
