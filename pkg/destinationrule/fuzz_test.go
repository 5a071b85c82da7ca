package destinationrule_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
)

// seeds are specs of every kind that the tables know, and some of no kind.
var seeds = []string{
	`{}`,
	`null`,
	`{"host":"web","subsets":[{"name":"stable","labels":{"app":"web","rollouts-pod-template-hash":"s1"}},{"name":"canary","labels":{}}]}`,
	`{"host":"web","subsets":[{"name":"stable"},{"name":"canary","labels":null,"trafficPolicy":{}},{"name":"legacy"}]}`,
	`{"subsets":[{"name":"stable"},{"name":"stable"},{"name":"canary","labels":{"rollouts-pod-template-hash":1}}]}`,
	`{"subsets":[null,"x",[],{"name":1},{"name":"canary","labels":[]}]}`,
	`{"host":1,"subsets":{}}`,
}

// decode makes an object around any bytes, as a client would, or nil.
func decode(metadata, spec []byte) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	document := `{"apiVersion":"networking.istio.io/v1","kind":"DestinationRule","metadata":{"name":"web","namespace":"shop","resourceVersion":"7","annotations":` +
		string(metadata) + `},"spec":` + string(spec) + `}`
	if u.UnmarshalJSON([]byte(document)) != nil || u.GetResourceVersion() != "7" {
		return nil
	}
	return u
}

// byText compares errors as people do.
func byText() cmp.Option {
	return cmp.Comparer(func(a, b error) bool {
		return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
	})
}

// FuzzParse reads any bytes, as the whole object and as a spec.
func FuzzParse(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
		f.Add([]byte(`{"kind":"DestinationRule","metadata":{"annotations":{"argo-rollouts.argoproj.io/managed-by-rollouts":"web"}},"spec":` + seed + `}`))
	}
	f.Add([]byte(`{"kind":"x","metadata":[]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		whole := &unstructured.Unstructured{}
		_ = whole.UnmarshalJSON(document)
		for _, u := range []*unstructured.Unstructured{whole, decode([]byte("null"), document)} {
			dr := destinationrule.Parse(u, manager)
			if diff := cmp.Diff(dr.DeepCopy(), dr, byText()); diff != "" {
				t.Errorf("copy (-copy +original):\n%s", diff)
			}
			if again := destinationrule.Parse(u, manager); cmp.Diff(again, dr, byText()) != "" {
				t.Error("reading twice gives two views")
			}
			for i, subset := range dr.Subsets {
				if subset.Index != i || subset.HasLabels != (subset.Labels != nil) {
					t.Errorf("subset %d is %+v", i, subset)
				}
			}
		}
	})
}

// FuzzSet sets any hashes in any object, with an experiment that comes and one
// that goes.
func FuzzSet(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(`null`), []byte(seed), "canary", "c2", "stable", "s2", "probe", "p1", "")
		f.Add([]byte(`{"argo-rollouts.argoproj.io/managed-by-rollouts":"web"}`), []byte(seed), "", "", "legacy", "a/~b", "", "", "legacy")
		f.Add([]byte(`{"istio.argoproj-labs.io/experiments":"{\"shop/cart\":[\"legacy\"]}"}`), []byte(seed), "canary", "", "stable", "", "probe", "", "legacy")
	}
	f.Fuzz(func(t *testing.T, annotations, spec []byte, canary, canaryHash, stable, stableHash, probe, probeHash, drop string) {
		u := decode(annotations, spec)
		if u == nil {
			return
		}
		target := destinationrule.Target{Owner: owner, CanarySubset: canary, CanaryHash: canaryHash, StableSubset: stable, StableHash: stableHash, Drop: []string{drop}}
		if probe != "" {
			target.Experiments = []destinationrule.Experiment{{Subset: probe, Hash: probeHash}}
		}
		before := destinationrule.Parse(u, manager)
		patch, changes, err := before.Set(target)
		if err != nil {
			if patch != nil || changes != nil {
				t.Errorf("patch %v and changes %v beside error %v", patch, changes, err)
			}
			return
		}
		after := destinationrule.Parse(apply(t, u, patch), manager)
		if after.NativeAnnotation {
			t.Error("the native annotation is still there")
		}
		want := map[string]string{canary: canaryHash, stable: stableHash}
		if probe != "" {
			want[probe] = probeHash
		}
		for name, want := range want {
			if got, err := after.Hash(valid(name)); err != nil || want != "" && got != valid(want) {
				t.Errorf("subset %q names %q, error %v, want %q", name, got, err, want)
			}
		}
		assertOthers(t, before, after, probe, drop)
	})
}

// assertOthers checks that a subset is gone only if it was ours and was to go.
func assertOthers(t *testing.T, before, after *destinationrule.DestinationRule, probe, drop string) {
	t.Helper()
	gone := len(before.Subsets) - len(after.Subsets)
	owned := slices.Contains(before.ExperimentSubsets(owner), drop) && drop != probe
	if gone > 1 || gone == 1 && !owned {
		t.Errorf("%d of %d subsets are gone", gone, len(before.Subsets))
	}
	if owned && slices.Contains(after.ExperimentSubsets(owner), drop) {
		t.Errorf("%q is still ours", drop)
	}
}

// valid is the text as JSON can carry it.
func valid(text string) string {
	return string([]rune(text))
}
