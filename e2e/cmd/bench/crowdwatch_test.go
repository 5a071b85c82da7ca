package main

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// object reads a manifest.
func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte("{apiVersion: v1, kind: Any, " + manifest[1:]))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return u
}

func rolloutAt(t *testing.T, phase, observed, current, stable string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{metadata: {name: shop, generation: 2}, status: {phase: `+phase+`, observedGeneration: "`+observed+`", currentPodHash: `+current+`, stableRS: `+stable+`}}`)
}

const (
	ruleAtRest = `{metadata: {name: shop}, spec: {subsets: [{name: stable, labels: {rollouts-pod-template-hash: new}}, {name: canary, labels: {rollouts-pod-template-hash: new}}]}}`
	weightZero = `{metadata: {name: shop}, spec: {http: [{name: health}, {name: primary, route: [{destination: {subset: stable}, weight: 100}, {destination: {subset: canary}, weight: 0}]}]}}`
	weightFull = `{metadata: {name: shop}, spec: {http: [{name: primary, route: [{destination: {subset: stable}, weight: 0}, {destination: {subset: canary}, weight: 100}]}]}}`
)

func TestACanaryEndsWithItsOwnRevisionAndNotWithTheOneBefore(t *testing.T) {
	w := &crowdWatch{members: map[string]*progress{}, counts: versions{}}
	w.take("rollouts", rolloutAt(t, "Healthy", "2", "old", "old"))
	w.begins("shop")
	for name, step := range map[string]*unstructured.Unstructured{
		"still the one before":          rolloutAt(t, "Healthy", "2", "old", "old"),
		"the status is of another spec": rolloutAt(t, "Healthy", "1", "new", "new"),
		"on its way":                    rolloutAt(t, "Progressing", "2", "new", "old"),
		"not yet the stable":            rolloutAt(t, "Healthy", "2", "new", "old"),
	} {
		if w.take("rollouts", step); len(w.took()) != 0 {
			t.Errorf("%s: it is taken to have ended", name)
		}
	}
	time.Sleep(time.Millisecond)
	w.take("rollouts", rolloutAt(t, "Healthy", "2", "new", "new"))
	first := w.took()
	if len(first) != 1 || first[0] < time.Millisecond {
		t.Fatalf("took %v", first)
	}
	time.Sleep(time.Millisecond)
	if w.take("rollouts", rolloutAt(t, "Healthy", "2", "new", "new")); w.took()[0] != first[0] {
		t.Error("what comes later makes it longer")
	}
}

func TestItIsAtRestOnceTheRoutingIs(t *testing.T) {
	w := &crowdWatch{members: map[string]*progress{}, counts: versions{}}
	w.take("rollouts", rolloutAt(t, "Healthy", "2", "new", "new"))
	w.take("destinationrules", object(t, ruleAtRest))
	w.take("virtualservices", object(t, weightFull))
	if w.atRest() != 0 {
		t.Error("at rest with the traffic on the canary")
	}
	w.take("virtualservices", object(t, weightZero))
	if w.atRest() != 1 {
		t.Error("not at rest")
	}
	w.take("destinationrules", object(t, `{metadata: {name: shop}, spec: {subsets: [{name: stable, labels: {rollouts-pod-template-hash: old}}]}}`))
	if w.atRest() != 0 {
		t.Error("at rest with the stable subset on the old pods")
	}
}

func TestAWeightThatCannotBeReadIsNotZero(t *testing.T) {
	if got := canaryWeight(object(t, `{metadata: {name: shop}, spec: {http: [{name: other}]}}`)); got != -1 {
		t.Errorf("weight %d", got)
	}
}
