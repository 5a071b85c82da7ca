package config

import (
	"strings"
	"testing"
)

func TestParseCrossNamespace(t *testing.T) {
	tests := map[string]struct {
		flag             string
		text             string
		allowed, refused []string
	}{
		"nothing allows nothing":            {"", "off", nil, []string{"edge", ""}},
		"off allows nothing, not even off":  {"off", "off", nil, []string{"edge", "off"}},
		"false allows nothing":              {"false", "off", nil, []string{"edge", "false"}},
		"a star allows everything":          {"*", "*", []string{"edge", "mesh"}, nil},
		"a star with blanks around it":      {" * ", "*", []string{"edge"}, nil},
		"a list allows what is in it":       {"mesh, edge,mesh", "edge,mesh", []string{"edge", "mesh"}, []string{"edg", "edge2", "*", ""}},
		"a single namespace is a list, too": {"edge", "edge", []string{"edge"}, []string{"mesh"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x := crossNamespace(t, tc.flag)
			if x.String() != tc.text {
				t.Errorf("reads as %q, want %q", x, tc.text)
			}
			if again := crossNamespace(t, x.String()); again.String() != x.String() {
				t.Errorf("%q reads back as %q", x, again)
			}
			for _, ns := range tc.allowed {
				if !x.Allows(ns) {
					t.Errorf("refuses %q", ns)
				}
			}
			for _, ns := range tc.refused {
				if x.Allows(ns) {
					t.Errorf("allows %q", ns)
				}
			}
		})
	}
}

func TestFaultyCrossNamespaceFlags(t *testing.T) {
	tests := map[string]struct{ flag, want string }{
		"true is too much to guess":      {"true", `--allow-cross-namespace=true: list the namespaces, or write "*" for all`},
		"a star in a list":               {"edge,*", `--allow-cross-namespace: "*" is no namespace`},
		"an empty place in a list":       {"edge,,mesh", `--allow-cross-namespace: "" is no namespace`},
		"something that is no namespace": {"Edge", `--allow-cross-namespace: "Edge" is no namespace`},
		"a pattern":                      {"team-*", `--allow-cross-namespace: "team-*" is no namespace`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			x, err := ParseCrossNamespace(tc.flag)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %s…", err, tc.want)
			}
			if x.Allows("edge") {
				t.Error("a faulty flag allows a namespace")
			}
		})
	}
}
