package jsonpatch_test

import (
	"encoding/json"
	"strings"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
)

func TestPointer(t *testing.T) {
	for sentence, tc := range map[string]struct {
		parts []string
		want  string
	}{
		"no parts are the whole document":                   {nil, ""},
		"names and indices are joined":                      {[]string{"spec", "http", "0", "route"}, "/spec/http/0/route"},
		"a slash in an annotation key does not part it":     {[]string{"annotations", "example.io/key"}, "/annotations/example.io~1key"},
		"a tilde is escaped":                                {[]string{"a~b"}, "/a~0b"},
		"an escape in a name is not taken for an escape":    {[]string{"~1", "~0"}, "/~01/~00"},
		"an empty name is a name":                           {[]string{"a", ""}, "/a/"},
		"a name of slashes and tildes alone is one part":    {[]string{"/~/"}, "/~1~0~1"},
		"text beyond ASCII and quotes are left as they are": {[]string{`é"`}, `/é"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := jsonpatch.Pointer(tc.parts...); got != tc.want {
				t.Errorf("Pointer(%q) = %q, want %q", tc.parts, got, tc.want)
			}
		})
	}
}

func TestMarshal(t *testing.T) {
	for sentence, tc := range map[string]struct {
		patch jsonpatch.Patch
		want  string
	}{
		"no patch is an empty list":         {nil, `[]`},
		"an empty patch is an empty list":   {jsonpatch.Patch{}, `[]`},
		"add carries its value":             {jsonpatch.Patch{jsonpatch.Add("/a", "x")}, `[{"op":"add","path":"/a","value":"x"}]`},
		"a weight of zero is not left out":  {jsonpatch.Patch{jsonpatch.Add("/w", int64(0))}, `[{"op":"add","path":"/w","value":0}]`},
		"a null is a value too":             {jsonpatch.Patch{jsonpatch.Add("/n", nil)}, `[{"op":"add","path":"/n","value":null}]`},
		"remove has no value":               {jsonpatch.Patch{jsonpatch.Remove("/a")}, `[{"op":"remove","path":"/a"}]`},
		"test carries its value":            {jsonpatch.Patch{jsonpatch.Test("/a", true)}, `[{"op":"test","path":"/a","value":true}]`},
		"operations keep their order":       {jsonpatch.Patch{jsonpatch.Remove("/b"), jsonpatch.Remove("/a")}, `[{"op":"remove","path":"/b"},{"op":"remove","path":"/a"}]`},
		"labels can be added as one object": {jsonpatch.Patch{jsonpatch.Add("/l", map[string]string{"k": "v"})}, `[{"op":"add","path":"/l","value":{"k":"v"}}]`},
	} {
		t.Run(sentence, func(t *testing.T) {
			body, err := tc.patch.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMarshalReportsAValueThatJSONCannotHold(t *testing.T) {
	_, err := jsonpatch.Patch{jsonpatch.Add("/f", func() {})}.Marshal()
	if err == nil || !strings.Contains(err.Error(), "write JSON patch") {
		t.Errorf("error = %v, want one that names the JSON patch", err)
	}
}

func TestGuarded(t *testing.T) {
	change := jsonpatch.Add("/a", int64(1))
	guard := func(version string) jsonpatch.Op { return jsonpatch.Test("/metadata/resourceVersion", version) }
	for sentence, tc := range map[string]struct {
		patch   jsonpatch.Patch
		version string
		want    jsonpatch.Patch
	}{
		"the guard comes first":                                           {jsonpatch.Patch{change}, "7", jsonpatch.Patch{guard("7"), change}},
		"a second guard replaces the first":                               {jsonpatch.Patch{guard("7"), change}, "8", jsonpatch.Patch{guard("8"), change}},
		"nothing to change needs no guard":                                {jsonpatch.Patch{}, "7", nil},
		"a lone guard is nothing to change":                               {jsonpatch.Patch{guard("7")}, "8", nil},
		"a test of another field is not taken for the guard":              {jsonpatch.Patch{jsonpatch.Test("/a", "x"), change}, "7", jsonpatch.Patch{guard("7"), jsonpatch.Test("/a", "x"), change}},
		"a patch from nowhere is guarded by a version that no object has": {jsonpatch.Patch{change}, "", jsonpatch.Patch{guard(""), change}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.patch.Guarded(tc.version)); diff != "" {
				t.Errorf("guarded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGuardedLeavesThePatchItself(t *testing.T) {
	// Room behind the slice's end is what a careless append would write into.
	patch := make(jsonpatch.Patch, 0, 8)
	patch = append(patch, jsonpatch.Add("/a", int64(1)), jsonpatch.Add("/b", int64(2)))
	before := append(jsonpatch.Patch{}, patch...)
	first, second := patch.Guarded("7"), patch.Guarded("8")
	if diff := cmp.Diff(before, patch); diff != "" {
		t.Errorf("the patch changed (-before +after):\n%s", diff)
	}
	if first[0].Value != "7" || second[0].Value != "8" {
		t.Errorf("guards = %v and %v, want 7 and 8", first[0].Value, second[0].Value)
	}
}

// apply is what an API server does with the body.
func apply(document string, patch jsonpatch.Patch) (string, error) {
	body, err := patch.Marshal()
	if err != nil {
		return "", err
	}
	decoded, err := evanphx.DecodePatch(body)
	if err != nil {
		return "", err
	}
	out, err := decoded.Apply([]byte(document))
	return string(out), err
}

func TestAGuardedPatchAppliesOnlyToItsVersion(t *testing.T) {
	document := `{"metadata":{"resourceVersion":"7"},"spec":{"a":1}}`
	patch := jsonpatch.Patch{jsonpatch.Add("/spec/a", int64(2))}
	got, err := apply(document, patch.Guarded("7"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"metadata":{"resourceVersion":"7"},"spec":{"a":2}}`; got != want {
		t.Errorf("patched = %s, want %s", got, want)
	}
	for _, version := range []string{"6", "8", ""} {
		if got, err := apply(document, patch.Guarded(version)); err == nil {
			t.Errorf("the patch for version %q was applied to version 7: %s", version, got)
		}
	}
}

func TestAnyNameCanBePointedAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		value := rapid.Int64Range(-1<<40, 1<<40).Draw(t, "value")
		document, err := json.Marshal(map[string]any{"labels": map[string]any{"other": "x"}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := apply(string(document), jsonpatch.Patch{jsonpatch.Add(jsonpatch.Pointer("labels", name), value)})
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(map[string]any{"labels": with(map[string]any{"other": "x"}, name, value)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decode(t, string(want)), decode(t, got)); diff != "" {
			t.Errorf("label %q (-want +got):\n%s", name, diff)
		}
	})
}

func with(fields map[string]any, name string, value any) map[string]any {
	fields[name] = value
	return fields
}

func decode(t *rapid.T, document string) (content any) {
	if err := json.Unmarshal([]byte(document), &content); err != nil {
		t.Fatal(err)
	}
	return content
}
