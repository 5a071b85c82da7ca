package config

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestClosest(t *testing.T) {
	known := []string{"name", "namespace", "routes", "tlsRoutes", "tcpRoutes", "allMatchingRoutes"}
	tests := map[string]struct{ word, want string }{
		"another case":                             {"NAMESPACE", "namespace"},
		"two letters of four swapped":              {"nmae", "name"},
		"two letters swapped":                      {"rotues", "routes"},
		"a letter too few":                         {"rutes", "routes"},
		"a letter too many":                        {"namme", "name"},
		"another letter":                           {"tlsRoutez", "tlsRoutes"},
		"an abbreviation of one half":              {"allMatchinRoute", "allMatchingRoutes"},
		"nothing like it":                          {"weight", ""},
		"a short word is not stretched to another": {"tls", ""},
		"nothing at all":                           {"", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := closest(tc.word, known); got != tc.want {
				t.Errorf("closest to %q is %q, want %q", tc.word, got, tc.want)
			}
		})
	}
}

func TestEndlessNamesAreNotCompared(t *testing.T) {
	word, known := strings.Repeat("name", 10_000), []string{"name"}
	if allocations := testing.AllocsPerRun(1, func() { closest(word, known) }); allocations > 0 {
		t.Errorf("%.0f allocations for a name of %d bytes", allocations, len(word))
	}
}

func TestDistanceIsADistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab]{0,6}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) {
			t.Fatalf("distance(%q, %q) depends on the direction", a, b)
		}
		if (d == 0) != (a == b) || d > max(len(a), len(b)) || d < max(len(a), len(b))-min(len(a), len(b)) {
			t.Fatalf("distance(%q, %q) = %d", a, b, d)
		}
	})
}
