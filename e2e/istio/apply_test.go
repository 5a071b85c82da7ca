package istio

import (
	"flag"
	"fmt"
	"os"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
)

// manager is the field manager; which one it is does not matter here.
const manager = "rollouts-plugin-trafficrouter-istio"

// cases is how many objects each property is tried on, unless -rapid.checks says
// otherwise.
const cases = "500"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", cases); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

type fields = map[string]any

// asJSON is the object as it lies in the API server.
func asJSON(t *rapid.T, u *unstructured.Unstructured) []byte {
	t.Helper()
	body, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// patched applies a patch as the API server would.
func patched(t *rapid.T, u *unstructured.Unstructured, patch jsonpatch.Patch) *unstructured.Unstructured {
	t.Helper()
	body := asJSON(t, u)
	if len(patch) > 0 {
		text, err := patch.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := evanphx.DecodePatch(text)
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if body, err = decoded.Apply(body); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(body); err != nil {
		t.Fatal(err)
	}
	return out
}

// accepted fails the test when Istio refuses what a patch made of an object.
func accepted(t *rapid.T, before, after *unstructured.Unstructured, patch jsonpatch.Patch) {
	t.Helper()
	_, err := Validate(asJSON(t, after))
	if err == nil {
		return
	}
	text, _ := patch.Marshal()
	t.Fatalf("Istio refuses the result: %v\nbefore: %s\npatch: %s", err, asJSON(t, before), text)
}

// tally counts what a property was tried on. A property of which every case is
// refused before it begins holds for nothing.
type tally struct{ refused, failed, empty, patched int }

// count notes how one attempt ended and tells whether there is a patch to judge.
func (c *tally) count(patch jsonpatch.Patch, err error) bool {
	switch {
	case err != nil:
		c.failed++
	case len(patch) == 0:
		c.empty++
	default:
		c.patched++
	}
	return err == nil
}

// enough fails the test when too few cases led to a patch.
func (c *tally) enough(t *testing.T, least int) {
	t.Helper()
	t.Logf("refused by Istio before: %d; errors: %d; nothing to do: %d; patched: %d", c.refused, c.failed, c.empty, c.patched)
	if !t.Failed() && c.patched < least {
		t.Errorf("%d patches judged, want at least %d", c.patched, least)
	}
}

// maybe adds a field, or leaves it out.
func maybe(t *rapid.T, to fields, name string, values ...any) {
	if rapid.Bool().Draw(t, name) {
		to[name] = rapid.SampledFrom(values).Draw(t, name+" value")
	}
}
