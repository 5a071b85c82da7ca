package destinationrule_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
)

const everything = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: web
  namespace: shop
  uid: u-1
  resourceVersion: "7"
  generation: 3
  labels: {team: shop}
  annotations: {argo-rollouts.argoproj.io/managed-by-rollouts: web, note: long, istio.argoproj-labs.io/experiments: '{"shop/cart":["probe"]}'}
  managedFields:
  - manager: our-plugin
    operation: Update
    time: "2024-05-01T12:00:00Z"
    fieldsV1: {"f:spec": {"f:subsets": {}}}
  - {manager: kubectl, operation: Apply, time: "2024-06-01T12:00:00Z"}
spec:
  host: web.shop
  trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}
  subsets:
  - name: stable
    labels: {app: web, rollouts-pod-template-hash: s1}
    trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST}}
  - name: canary
    labels: {}
  - name: legacy
`

func TestParseReadsWhatRoutingNeeds(t *testing.T) {
	want := &destinationrule.DestinationRule{
		TypeMeta:         metav1.TypeMeta{APIVersion: "networking.istio.io/v1", Kind: "DestinationRule"},
		ObjectMeta:       metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u-1", ResourceVersion: "7", Generation: 3},
		Host:             "web.shop",
		NativeAnnotation: true,
		Experiments:      ownership.Account{Entries: map[string]json.RawMessage{"shop/cart": json.RawMessage(`["probe"]`)}, Annotated: true},
		Ours:             true,
		Subsets: []destinationrule.Subset{
			{Index: 0, Name: "stable", Labels: map[string]string{"app": "web", hashKey: "s1"}, HasLabels: true},
			{Index: 1, Name: "canary", Labels: map[string]string{}, HasLabels: true},
			{Index: 2, Name: "legacy"},
		},
	}
	if diff := cmp.Diff(want, destinationrule.Parse(fromYAML(t, everything), manager)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}

func TestParseLeavesTheObjectAlone(t *testing.T) {
	u := fromYAML(t, everything)
	view := destinationrule.Parse(u, manager)
	if diff := cmp.Diff(fromYAML(t, everything), u); diff != "" {
		t.Errorf("the object changed (-want +got):\n%s", diff)
	}
	u.Object["spec"].(fields)["subsets"].([]any)[0].(fields)["labels"].(fields)["app"] = "spoiled"
	u.Object["spec"].(fields)["subsets"].([]any)[1] = "spoiled"
	if diff := cmp.Diff(destinationrule.Parse(fromYAML(t, everything), manager), view); diff != "" {
		t.Errorf("the view follows the object (-want +got):\n%s", diff)
	}
}

func TestMalformedObjects(t *testing.T) {
	for sentence, tc := range map[string]struct {
		u    *unstructured.Unstructured
		want string
	}{
		"no object":                   {nil, "object: want an object, found null"},
		"metadata of the wrong type":  {&unstructured.Unstructured{Object: fields{"metadata": "x"}}, "metadata: want an object, found text"},
		"a spec that is text":         {ruleOf("x"), "spec: want an object, found text"},
		"a host that is a list":       {ruleOf(fields{"host": []any{}}), "spec.host: want text, found a list"},
		"subsets that are an object":  {ruleOf(fields{"subsets": fields{}}), "spec.subsets: want a list, found an object"},
		"the first of several faults": {ruleOf(fields{"host": true, "subsets": "x"}), "spec.host: want text, found a boolean"},
	} {
		t.Run(sentence, func(t *testing.T) {
			dr := destinationrule.Parse(tc.u, manager)
			mention(t, dr.Malformed, tc.want)
			_, err := dr.Hash("canary")
			mention(t, err, "DestinationRule", "malformed", tc.want)
			_, _, err = dr.Set(sides("c", "s"))
			mention(t, err, "DestinationRule", "malformed", tc.want)
		})
	}
}

func TestMalformedSubsets(t *testing.T) {
	for sentence, tc := range map[string]struct {
		canary any
		want   string
	}{
		"labels that are a list":    {fields{"name": "canary", "labels": []any{}}, "spec.subsets[1].labels: want an object, found a list"},
		"a label that is a number":  {subset("canary", "app", int64(1)), "spec.subsets[1].labels.app: want text, found an integer"},
		"a label that is null":      {subset("canary", "app", nil), "spec.subsets[1].labels.app: want text, found null"},
		"a hash that is not text":   {subset("canary", hashKey, int64(12345)), "spec.subsets[1].labels." + hashKey + ": want text"},
		"labels that are plain yes": {fields{"name": "canary", "labels": true}, "spec.subsets[1].labels: want an object, found a boolean"},
	} {
		t.Run(sentence, func(t *testing.T) {
			dr := destinationrule.Parse(rule(subset("stable"), tc.canary), manager)
			if dr.Malformed != nil {
				t.Fatalf("the whole object is malformed: %v", dr.Malformed)
			}
			_, err := dr.Hash("canary")
			mention(t, err, `DestinationRule shop/web: subset "canary" is malformed`, tc.want)
			_, _, err = dr.Set(sides("c", "s"))
			mention(t, err, `DestinationRule shop/web: subset "canary" is malformed`, tc.want)
		})
	}
}

func TestEntriesThatAreNoSubsets(t *testing.T) {
	dr := destinationrule.Parse(rule(nil, "x", fields{"name": int64(1)}, fields{}), manager)
	for i, want := range []string{
		"spec.subsets[0]: want an object, found null", "spec.subsets[1]: want an object, found text", "spec.subsets[2].name: want text, found an integer",
	} {
		if dr.Subsets[i].Index != i {
			t.Errorf("subset %d has the index %d", i, dr.Subsets[i].Index)
		}
		mention(t, dr.Subsets[i].Malformed, want)
	}
	if err := dr.Subsets[3].Malformed; err != nil {
		t.Errorf("an empty subset is malformed: %v", err)
	}
}

func TestTheNativeAnnotation(t *testing.T) {
	for sentence, tc := range map[string]struct {
		u    *unstructured.Unstructured
		want bool
	}{
		"no annotations":              {rule(), false},
		"annotations that are null":   {annotated(rule(), nil), false},
		"annotations of another type": {annotated(rule(), "x"), false},
		"other annotations":           {annotated(rule(), fields{"note": "1"}), false},
		"the annotation":              {annotated(rule(), fields{native: "web"}), true},
		"the annotation, empty":       {annotated(rule(), fields{native: ""}), true},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := destinationrule.Parse(tc.u, manager).NativeAnnotation; got != tc.want {
				t.Errorf("native annotation = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTheViewIsAKubernetesObject(t *testing.T) {
	var object runtime.Object = destinationrule.Parse(fromYAML(t, everything), manager)
	if got := object.GetObjectKind().GroupVersionKind().String(); got != "networking.istio.io/v1, Kind=DestinationRule" {
		t.Errorf("kind = %q", got)
	}
	accessor, ok := object.(metav1.Object)
	if !ok || accessor.GetNamespace() != "shop" || accessor.GetName() != "web" || accessor.GetResourceVersion() != "7" {
		t.Errorf("accessor = %+v", accessor)
	}
}

func TestDeepCopySharesNothing(t *testing.T) {
	original := destinationrule.Parse(fromYAML(t, everything), manager)
	duplicate, ok := original.DeepCopyObject().(*destinationrule.DestinationRule)
	if !ok {
		t.Fatal("the copy has another type")
	}
	if diff := cmp.Diff(original, duplicate); diff != "" {
		t.Fatalf("copy (-want +got):\n%s", diff)
	}
	duplicate.Subsets[0].Labels["app"] = "changed"
	duplicate.Subsets[1].Name = "changed"
	copy(duplicate.Experiments.Entries["shop/cart"], "spoil")
	delete(duplicate.Experiments.Entries, "shop/cart")
	if diff := cmp.Diff(destinationrule.Parse(fromYAML(t, everything), manager), original); diff != "" {
		t.Errorf("the original changed with the copy (-want +got):\n%s", diff)
	}
	if got := (*destinationrule.DestinationRule)(nil).DeepCopy(); got != nil {
		t.Errorf("copy of nil = %v", got)
	}
}
