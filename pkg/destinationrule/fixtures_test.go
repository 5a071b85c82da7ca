package destinationrule_test

import (
	"strings"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
)

const (
	manager = "our-plugin"
	hashKey = "rollouts-pod-template-hash"
	native  = "argo-rollouts.argoproj.io/managed-by-rollouts"
)

// fields is one object in the notation of the tests.
type fields = map[string]any

// rule is shop/web, version 7, with these subsets.
func rule(subsets ...any) *unstructured.Unstructured {
	return ruleOf(fields{"host": "web", "subsets": subsets})
}

func ruleOf(spec any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: fields{
		"apiVersion": "networking.istio.io/v1",
		"kind":       "DestinationRule",
		"metadata": fields{
			"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "generation": int64(3),
		},
		"spec": spec,
	}}
}

// annotated adds annotations to an object.
func annotated(u *unstructured.Unstructured, annotations any) *unstructured.Unstructured {
	u.Object["metadata"].(fields)["annotations"] = annotations
	return u
}

// subset has labels given as key, value, key, value.
func subset(name string, labels ...any) any {
	all := fields{}
	for i := 0; i+1 < len(labels); i += 2 {
		all[labels[i].(string)] = labels[i+1]
	}
	return fields{"name": name, "labels": all}
}

// pair is the usual two subsets, canary first to be sure that order is kept.
func pair(canaryHash, stableHash string) []any {
	return []any{subset("canary", hashKey, canaryHash, "app", "web"), subset("stable", hashKey, stableHash, "app", "web")}
}

// fromYAML decodes as a client does.
func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	document, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(document); err != nil {
		t.Fatal(err)
	}
	return u
}

// fataler is what *testing.T and *rapid.T have in common here.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// apply does to the object what the API server would, guard included, and decodes
// the result as a client would.
func apply(t fataler, u *unstructured.Unstructured, patch jsonpatch.Patch) *unstructured.Unstructured {
	t.Helper()
	document, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	body, err := patch.Guarded(u.GetResourceVersion()).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := evanphx.DecodePatch(body)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := decoded.Apply(document)
	if err != nil {
		t.Fatal(err.Error() + ": patch " + string(body))
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(patched); err != nil {
		t.Fatal(err)
	}
	return out
}

// sides is a target without experiments.
func sides(canaryHash, stableHash string) destinationrule.Target {
	return destinationrule.Target{CanarySubset: "canary", CanaryHash: canaryHash, StableSubset: "stable", StableHash: stableHash}
}

// set is what a caller does with one object.
func set(u *unstructured.Unstructured, canaryHash, stableHash string) (jsonpatch.Patch, []destinationrule.Change, error) {
	return destinationrule.Parse(u, manager).Set(sides(canaryHash, stableHash))
}

// mention reports each of the wanted pieces that the error does not have.
func mention(t *testing.T, err error, wanted ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", wanted)
	}
	for _, want := range wanted {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not mention %q", err, want)
		}
	}
}
