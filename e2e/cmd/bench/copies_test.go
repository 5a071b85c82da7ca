package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/utils/hash"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

func TestACopyIsWhatTheControllerWouldHaveMadeUnderItsName(t *testing.T) {
	of := func(name string) (*appsv1.ReplicaSet, string) {
		template := member{name: name, router: scenarios.Plugin}.template()
		h := hash.ComputePodTemplateHash(&template, nil)
		template.Labels[v1alpha1.DefaultRolloutUniqueLabelKey] = h
		set := &appsv1.ReplicaSet{}
		set.Name, set.UID, set.Labels, set.Spec.Template = name+"-"+h, "of the model", template.Labels, template
		return set, h
	}
	set, _ := of(modelName)
	p := pattern{name: modelName}
	if err := p.addSet(*set); err != nil {
		t.Fatal(err)
	}
	objects, err := p.under("shop-00042")
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	want, h := of("shop-00042")
	got := objects[0]
	label, _, _ := unstructured.NestedString(got.Object, "spec", "template", "metadata", "labels", v1alpha1.DefaultRolloutUniqueLabelKey)
	if got.GetName() != want.Name || got.GetLabels()[v1alpha1.DefaultRolloutUniqueLabelKey] != h || label != h {
		t.Errorf("%s with the hashes %v and %s, want %s with %s", got.GetName(), got.GetLabels(), label, want.Name, h)
	}
	if got.GetUID() != "" || set.Labels[v1alpha1.DefaultRolloutUniqueLabelKey] == "" {
		t.Errorf("UID %q; the model has the labels %v", got.GetUID(), set.Labels)
	}
}

func TestACopyOfARolloutIsOfTheFirstGeneration(t *testing.T) {
	p := pattern{name: modelName}
	ro := object(t, `{metadata: {name: shop-model, generation: 9, resourceVersion: "5"}, status: {observedGeneration: "9", phase: Healthy}}`)
	if err := p.add(rolloutResource, ro); err != nil {
		t.Fatal(err)
	}
	objects, err := p.under("shop-00001")
	if err != nil {
		t.Fatal(err)
	}
	observed, _, _ := unstructured.NestedString(objects[0].Object, "status", "observedGeneration")
	if observed != "1" || objects[0].GetResourceVersion() != "" || objects[0].GetName() != "shop-00001" {
		t.Errorf("copied %v", objects[0].Object)
	}
}
