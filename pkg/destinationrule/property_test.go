package destinationrule_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	networking "istio.io/client-go/pkg/apis/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
)

// rich has the fields that routers have been seen to lose (argo-rollouts#1238).
const rich = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: web
  namespace: shop
  resourceVersion: "7"
  annotations: {argo-rollouts.argoproj.io/managed-by-rollouts: web, note: "1"}
spec:
  host: web
  exportTo: ["."]
  workloadSelector: {matchLabels: {app: front}}
  trafficPolicy:
    tls: {mode: ISTIO_MUTUAL}
    outlierDetection: {consecutive5xxErrors: 7, interval: 5m0s}
  subsets:
  - name: canary
    labels: {app: web, rollouts-pod-template-hash: c1}
    trafficPolicy:
      loadBalancer: {consistentHash: {httpHeaderName: x-user}}
      portLevelSettings:
      - port: {number: 8080}
        connectionPool: {tcp: {maxConnections: 100}}
  - name: stable
    trafficPolicy: {connectionPool: {http: {http2MaxRequests: 10}}}
  - name: legacy
    labels: {version: v0}
`

func typed(t *testing.T, u *unstructured.Unstructured) *networking.DestinationRule {
	t.Helper()
	document, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	out := &networking.DestinationRule{}
	if err := json.Unmarshal(document, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The patched object, read by Istio's own types, differs from the original in what
// was set here by hand.
func TestIstioReadsThePatchedObject(t *testing.T) {
	u := fromYAML(t, rich)
	patch, _, err := set(u, "c2", "s2")
	if err != nil {
		t.Fatal(err)
	}
	want := typed(t, u)
	want.Spec.Subsets[0].Labels[hashKey] = "c2"
	want.Spec.Subsets[1].Labels = map[string]string{hashKey: "s2"}
	delete(want.Annotations, native)
	if diff := cmp.Diff(want, typed(t, apply(t, u, patch)), protocmp.Transform()); diff != "" {
		t.Errorf("typed object (-want +got):\n%s", diff)
	}
}

// anything is JSON content such as a field that this client has never heard of.
func anything() *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any]("x/~ \"<é"), rapid.Just[any](1.5),
		rapid.Map(rapid.Int64Range(-5, 1<<40), func(i int64) any { return i }))
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(leaf, 0, 3), func(list []any) any { return list }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"labels", "name", hashKey, "a/b", "~", ""}), leaf, 0, 3), func(m map[string]any) any { return m }))
}

// sprinkle adds fields that are nobody's business to content.
func sprinkle(t *rapid.T, content fields, names ...string) fields {
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), func(s string) string { return s }).Draw(t, "extra") {
		content[name] = anything().Draw(t, name)
	}
	return content
}

// hash may be empty, or one of few, so that equal ones are drawn too.
func hash(t *rapid.T, name string) string {
	return rapid.SampledFrom([]string{"", "h1", "h2", "5f8d7c9b"}).Draw(t, name)
}

// ourSubset has labels of every degree of being there.
func ourSubset(t *rapid.T, name string) fields {
	content := sprinkle(t, fields{"name": name}, "trafficPolicy", "futureField")
	switch rapid.SampledFrom([]string{"absent", "null", "labels", "labels"}).Draw(t, "labels") {
	case "null":
		content["labels"] = nil
	case "labels":
		labels := fields{}
		for key, value := range rapid.MapOfN(rapid.SampledFrom([]string{"app", "a/b", "~1"}), rapid.StringN(0, 3, 9), 0, 3).Draw(t, "others") {
			labels[key] = value
		}
		if old := hash(t, "old"); old != "" {
			labels[hashKey] = old
		}
		content["labels"] = labels
	}
	return content
}

func otherSubset(t *rapid.T) any {
	return rapid.SampledFrom([]any{
		subset("legacy", hashKey, "h0"), subset("legacy", "app", int64(1)), subset("Canary"), fields{}, nil, "x", []any{},
		fields{"name": int64(1), "labels": "x"}, fields{"name": "v2", "labels": []any{}},
	}).Draw(t, "other")
}

// drawRule returns a rule and the places of canary and stable in it.
func drawRule(t *rapid.T) (u *unstructured.Unstructured, canary, stable int) {
	var subsets []any
	for range rapid.IntRange(0, 4).Draw(t, "others") {
		subsets = append(subsets, otherSubset(t))
	}
	add := func(name string) int {
		at := rapid.IntRange(0, len(subsets)).Draw(t, "at")
		subsets = append(subsets[:at], append([]any{ourSubset(t, name)}, subsets[at:]...)...)
		return at
	}
	stable = add("stable")
	canary = add("canary")
	if canary <= stable {
		stable++
	}
	u = ruleOf(sprinkle(t, fields{"host": "web", "subsets": subsets}, "trafficPolicy", "exportTo", "workloadSelector", "futureField"))
	if rapid.Bool().Draw(t, "annotations") {
		annotations := fields{"note": "1", "a/~b": "x"}
		if rapid.Bool().Draw(t, "native") {
			annotations[native] = "web"
		}
		annotated(u, annotations)
	}
	return apply(t, u, nil), canary, stable
}

// expected is the object with nothing but hashes and annotation changed, computed
// from what the generator knows.
func expected(u *unstructured.Unstructured, hashes map[int]string) *unstructured.Unstructured {
	out := u.DeepCopy()
	for index, hash := range hashes {
		if hash == "" {
			continue
		}
		content := out.Object["spec"].(fields)["subsets"].([]any)[index].(fields)
		labels, _ := content["labels"].(fields)
		if labels == nil {
			labels = fields{}
			content["labels"] = labels
		}
		labels[hashKey] = hash
	}
	if annotations, found := out.Object["metadata"].(fields)["annotations"].(fields); found {
		delete(annotations, native)
	}
	return out
}

func TestOnlyTwoLabelsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, canary, stable := drawRule(t)
		canaryHash, stableHash := hash(t, "canary hash"), hash(t, "stable hash")
		before := u.DeepCopy()
		patch, _, err := set(u, canaryHash, stableHash)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, u); diff != "" {
			t.Fatalf("the cached object changed (-before +after):\n%s", diff)
		}
		after := apply(t, u, patch)
		if diff := cmp.Diff(expected(u, map[int]string{canary: canaryHash, stable: stableHash}), after); diff != "" {
			t.Fatalf("object (-want +got):\n%s", diff)
		}
		if again, changes, err := set(after, canaryHash, stableHash); err != nil || len(again) != 0 || len(changes) != 0 {
			t.Fatalf("the second time: patch %v, changes %v, error %v", again, changes, err)
		}
		dr := destinationrule.Parse(after, manager)
		for name, want := range map[string]string{"canary": canaryHash, "stable": stableHash} {
			if got, err := dr.Hash(name); err != nil || want != "" && got != want {
				t.Fatalf("%s hash = %q, error %v, want %q", name, got, err, want)
			}
		}
	})
}
