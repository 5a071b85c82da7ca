package istio

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pair is a line with an object before and after a write.
func pair(t *testing.T, before, after string) string {
	t.Helper()
	line, err := json.Marshal(map[string]json.RawMessage{"before": object(t, before), "after": object(t, after)})
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func TestReports(t *testing.T) {
	good := string(object(t, goodService))
	bad := strings.Replace(goodService, "weight: 10", "weight: -10", 1)
	badLine := string(object(t, bad))
	unreached := goodService + "  - {name: second, route: [{destination: {host: cart}}]}\n"
	for sentence, c := range map[string]struct {
		lines []string
		want  string // objects, refused, excused
		says  []string
	}{
		"every line is an object": {
			lines: []string{good, string(object(t, goodRule)), badLine},
			want:  "3 1 0", says: []string{"VirtualService shop/cart: "},
		},
		"empty lines are skipped and the last line needs no end": {lines: []string{"", good, "  "}, want: "1 0 0"},
		"what is said twice is reported once, and counted twice": {
			lines: []string{badLine, badLine}, want: "2 2 0", says: []string{"VirtualService shop/cart: "},
		},
		"a write that makes a good object bad is refused": {
			lines: []string{pair(t, goodService, bad)}, want: "1 1 0", says: []string{"VirtualService shop/cart: "},
		},
		"a write on an object that was bad before is excused": {
			lines: []string{pair(t, bad, bad)}, want: "1 0 1", says: []string{"VirtualService shop/cart: warning: refused, as before the write"},
		},
		"a write that mends an object passes": {lines: []string{pair(t, bad, goodService)}, want: "1 0 0"},
		"a warning refuses nothing": {
			lines: []string{string(object(t, unreached))}, want: "1 0 0", says: []string{"VirtualService shop/cart: warning: "},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var r Report
			if err := r.Check(strings.NewReader(strings.Join(c.lines, "\n"))); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, counts(r)); diff != "" {
				t.Errorf("objects, refused, excused (-want +got):\n%s", diff)
			}
			if len(r.Findings) != len(c.says) {
				t.Fatalf("findings %v, want %q", r.Findings, c.says)
			}
			for i, f := range r.Findings {
				if !strings.HasPrefix(f.String(), c.says[i]) || strings.Contains(f.String(), "\n") {
					t.Errorf("finding %q, want one line that begins with %q", f, c.says[i])
				}
			}
		})
	}
}

func counts(r Report) string {
	text, _ := json.Marshal([]int{r.Objects, r.Refused, r.Excused})
	return strings.Trim(strings.ReplaceAll(string(text), ",", " "), "[]")
}

func TestALineThatIsNoObjectEndsTheCheckAndIsNamed(t *testing.T) {
	good := string(object(t, goodService))
	for _, line := range []string{
		"{", "null", "[]", "7", `{"kind":"Service","apiVersion":"v1"}`, good + good,
		`{"after":` + good + `,"before":{}}`, `{"after":{}}`, `{"before":` + good + `}`,
	} {
		var r Report
		err := r.Check(strings.NewReader(good + "\n\n" + line + "\n"))
		if err == nil || !strings.Contains(err.Error(), "line 3: ") {
			t.Errorf("%s: %v", line, err)
		}
		if r.Objects != 1 {
			t.Errorf("%s: %d objects judged, want the first only", line, r.Objects)
		}
	}
}
