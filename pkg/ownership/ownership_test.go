package ownership_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
)

const path = "/metadata/annotations/istio.argoproj-labs.io~1experiments"

// object has these annotations, which may be of any type.
func object(annotations any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"kind": "DestinationRule", "metadata": map[string]any{"name": "web", "annotations": annotations},
	}}
}

// noted has an account among its annotations.
func noted(text any) *unstructured.Unstructured {
	return object(map[string]any{"note": "1", ownership.Annotation: text})
}

func TestSet(t *testing.T) {
	text := func(text string) jsonpatch.Patch { return jsonpatch.Patch{jsonpatch.Add(path, text)} }
	for sentence, tc := range map[string]struct {
		u     *unstructured.Unstructured
		names []string
		want  jsonpatch.Patch
	}{
		"a first entry in an object without annotations": {object(nil), []string{"b", "a"},
			jsonpatch.Patch{jsonpatch.Add("/metadata/annotations", map[string]string{ownership.Annotation: `{"shop/cart":["a","b"]}`})}},
		"a first entry beside other annotations":    {object(map[string]any{"note": "1"}), []string{"a"}, text(`{"shop/cart":["a"]}`)},
		"a first entry where nothing is written":    {noted(""), []string{"a"}, text(`{"shop/cart":["a"]}`)},
		"a name more":                               {noted(`{"shop/cart": ["a"]}`), []string{"a", "b"}, text(`{"shop/cart":["a","b"]}`)},
		"a name less":                               {noted(`{"shop/cart": ["a", "b"]}`), []string{"b"}, text(`{"shop/cart":["b"]}`)},
		"the same names in another order, repeated": {noted(`{"shop/cart": ["b", "a", "b"]}`), []string{"b", "a", "a"}, nil},
		"no names, and none before":                 {noted(`{"shop/other": ["a"]}`), nil, nil},
		"no names, and no annotation before":        {object(nil), nil, nil},
		"the last entry takes the annotation along": {noted(`{"shop/cart": ["a"]}`), nil, jsonpatch.Patch{jsonpatch.Remove(path)}},
		"an empty entry goes, too":                  {noted(`{"shop/cart": []}`), nil, jsonpatch.Patch{jsonpatch.Remove(path)}},
		"the entries of others stay, whatever they are": {noted(`{"z/z": 7, "shop/cart": ["a"], "a/a": ["x", "a"]}`), nil,
			text(`{"a/a":["x","a"],"z/z":7}`)},
	} {
		t.Run(sentence, func(t *testing.T) {
			before := tc.u.DeepCopy()
			got, err := ownership.Parse(tc.u).Set("shop/cart", tc.names)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.u); diff != "" {
				t.Errorf("the object changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeReadIsAnErrorThatNamesTheRemedy(t *testing.T) {
	for sentence, tc := range map[string]struct {
		u    *unstructured.Unstructured
		want string
	}{
		"no JSON":                       {noted("probe"), `want a JSON object like {"namespace/rollout": ["name"]}: correct it, or remove the annotation`},
		"a list":                        {noted(`["probe"]`), "want a JSON object"},
		"an annotation that is no text": {noted(int64(1)), "want text, found an integer"},
		"annotations that are a list":   {object([]any{}), "metadata.annotations: want an object, found a list"},
		"an entry that is no list":      {noted(`{"shop/cart": "probe"}`), `want a list of names under "shop/cart": correct it`},
		"an entry of numbers":           {noted(`{"shop/cart": [1]}`), `want a list of names under "shop/cart"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			account := ownership.Parse(tc.u)
			_, namesErr := account.Names("shop/cart")
			patch, setErr := account.Set("shop/cart", []string{"probe"})
			if patch != nil {
				t.Errorf("a patch beside the error: %v", patch)
			}
			for _, err := range []error{namesErr, setErr} {
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "metadata.annotations") {
					t.Errorf("error %v, want %q", err, tc.want)
				}
			}
		})
	}
}

func TestOther(t *testing.T) {
	account := ownership.Parse(noted(`{"shop/z": ["a", "b"], "shop/cart": ["a"], "shop/b": ["b"], "shop/bad": "c"}`))
	for name, want := range map[string]string{"a": "shop/z", "b": "shop/b", "c": "", "d": ""} {
		if got := account.Other("shop/cart", name); got != want {
			t.Errorf("%s belongs to %q, want %q", name, got, want)
		}
	}
	if got := ownership.Parse(noted("no JSON")).Other("shop/cart", "a"); got != "" {
		t.Errorf("an account that cannot be read says that it belongs to %q", got)
	}
}

// apply does to the object what the API server would.
func apply(t *rapid.T, u *unstructured.Unstructured, patch jsonpatch.Patch) *unstructured.Unstructured {
	document, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	body, err := patch.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := evanphx.DecodePatch(body)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := decoded.Apply(document)
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(patched); err != nil {
		t.Fatal(err)
	}
	return out
}

// drawObject has an account of a few Rollouts, or none.
func drawObject(t *rapid.T, owners []string) *unstructured.Unstructured {
	entries := map[string]any{}
	for _, owner := range rapid.SliceOfDistinct(rapid.SampledFrom(owners), rapid.ID[string]).Draw(t, "owners") {
		entries[owner] = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "<é\">"}), 0, 3).Draw(t, owner)
	}
	text, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	return rapid.SampledFrom([]*unstructured.Unstructured{object(nil), object(map[string]any{"note": "1"}), noted(string(text)), noted(string(text))}).Draw(t, "object")
}

func TestSetChangesOneEntryAndNothingElse(t *testing.T) {
	owners := []string{"shop/cart", "shop/other", "~/<\"", ""}
	rapid.Check(t, func(t *rapid.T) {
		before := drawObject(t, owners)
		owner := rapid.SampledFrom(owners).Draw(t, "owner")
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "<é\">"}), 0, 3).Draw(t, "names")
		patch, err := ownership.Parse(before).Set(owner, names)
		if err != nil {
			t.Fatal(err)
		}
		after := apply(t, before, patch)
		for _, each := range owners {
			want, err := ownership.Parse(before).Names(each)
			if err != nil {
				t.Fatal(err)
			}
			if each == owner {
				want = slices.Compact(slices.Sorted(slices.Values(names)))
			}
			got, err := ownership.Parse(after).Names(each)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s: names %q, error %v, want %q", each, got, err, want)
			}
		}
		if text, found := after.GetAnnotations()[ownership.Annotation]; found && len(names) == 0 && text == "{}" && len(patch) > 0 {
			t.Fatal("an empty annotation is left")
		}
		if again, err := ownership.Parse(after).Set(owner, names); err != nil || len(again) != 0 {
			t.Fatalf("the second time: patch %v, error %v", again, err)
		}
		dropAccount(after)
		dropAccount(before)
		if diff := cmp.Diff(before.Object, after.Object); diff != "" {
			t.Fatalf("more than the annotation changed (-before +after):\n%s", diff)
		}
	})
}

// dropAccount takes the account away, and with it the field if nothing else is in it.
func dropAccount(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	delete(annotations, ownership.Annotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	u.SetAnnotations(annotations)
}

// FuzzSet reads and writes any text.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{``, `{}`, `null`, `[]`, `{"shop/cart":["a"]}`, `{"shop/cart":[null,1],"b/b":{}}`, `{"shop/cart":null}`, `{"a":1,"a":["x"]}`, "\xff"} {
		f.Add(seed, "shop/cart", "a")
	}
	f.Fuzz(func(t *testing.T, text, owner, name string) {
		account := ownership.Parse(noted(text))
		if diff := cmp.Diff(account.Entries, account.DeepCopy().Entries); diff != "" {
			t.Errorf("copy (-original +copy):\n%s", diff)
		}
		patch, err := account.Set(owner, []string{name})
		if err != nil || len(patch) == 0 {
			return
		}
		after := ownership.Parse(noted(patch[0].Value))
		if after.Malformed != nil {
			t.Fatalf("wrote %v, which cannot be read: %v", patch, after.Malformed)
		}
		// JSON has no other characters than these.
		owner, name = string([]rune(owner)), string([]rune(name))
		if names, err := after.Names(owner); err != nil || !slices.Equal(names, []string{name}) {
			t.Errorf("wrote %v, read %q, error %v", patch, names, err)
		}
		if len(after.Entries) < len(account.Entries) {
			t.Errorf("entries were lost: %v", patch)
		}
	})
}
