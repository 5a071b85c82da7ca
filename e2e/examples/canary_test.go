package examples

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

var (
	rollouts         = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	virtualServices  = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
	destinationRules = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "destinationrules"}
)

// patience bounds one example. A good run takes a fifth of it; the machines that
// run the tests are small and shared.
const patience = 4 * time.Minute

// example is one set of the examples, being recorded.
type example struct {
	*testing.T
	ctx      context.Context
	subject  timeline.Subject
	recorder *timeline.Recorder
}

// hostLevel and subsetLevel name what the two kinds of sets have in common: all
// objects of a set carry the Rollout's name.
func hostLevel(name string) timeline.Subject {
	return timeline.Subject{Rollout: name, VirtualServices: []string{name}, CanaryService: name + "-canary", StableService: name + "-stable"}
}

func subsetLevel(name string) timeline.Subject {
	return timeline.Subject{Rollout: name, VirtualServices: []string{name}, DestinationRule: name, CanarySubset: "canary", StableSubset: "stable"}
}

// open records a new namespace, prints the recording should the test fail, and
// applies the files.
func open(t *testing.T, subject timeline.Subject, files ...string) *example {
	t.Helper()
	subject.Namespace = newNamespace(t)
	return openIn(t, subject, files...)
}

// openIn is open for the namespace that the subject names.
func openIn(t *testing.T, subject timeline.Subject, files ...string) *example {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	e := &example{T: t, ctx: ctx, subject: subject, recorder: timeline.NewRecorder(shared.Dynamic, subject)}
	if err := e.recorder.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		recorded := e.recorder.Stop()
		if t.Failed() {
			_ = timeline.Print(t.Output(), recorded)
		}
	})
	e.apply(files...)
	return e
}

func (e *example) apply(files ...string) {
	e.Helper()
	apply(e.ctx, e.T, e.subject.Namespace, files...)
}

// mark names this moment; "" is the beginning.
func (e *example) mark(name string) { e.recorder.Mark(name) }

func (e *example) await(what string, holds func(timeline.State) bool) timeline.State {
	e.Helper()
	state, err := e.recorder.Wait(e.ctx, holds)
	if err != nil {
		e.Fatalf("waiting for %s: %v", what, err)
	}
	return state
}

// healthy waits until the Rollout is at rest after a mark.
func (e *example) healthy(mark string) {
	e.Helper()
	if _, err := e.recorder.WaitPhase(e.ctx, mark, "Healthy"); err != nil {
		e.Fatal(err)
	}
}

func (e *example) patch(body string, subresources ...string) {
	e.Helper()
	_, err := shared.Dynamic.Resource(rollouts).Namespace(e.subject.Namespace).
		Patch(e.ctx, e.subject.Rollout, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
	if err != nil {
		e.Fatal(err)
	}
}

// setImage and promote do what the two commands of the Rollouts CLI do.
func (e *example) setImage(image string) {
	e.Helper()
	ro, err := shared.Dynamic.Resource(rollouts).Namespace(e.subject.Namespace).Get(e.ctx, e.subject.Rollout, metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(ro.Object, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["image"] = image
	if err := unstructured.SetNestedSlice(ro.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		e.Fatal(err)
	}
	body, err := (&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": ro.GetAPIVersion(), "kind": ro.GetKind(),
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}},
	}}).MarshalJSON()
	if err != nil {
		e.Fatal(err)
	}
	e.patch(string(body))
}

func (e *example) promote() {
	e.Helper()
	e.patch(`{"status":{"pauseConditions":null}}`, "status")
}

// canary brings out another image and goes through the steps of the examples,
// which pause at 10 and at 50.
func (e *example) canary(image string) {
	e.Helper()
	before := e.await("the present", func(timeline.State) bool { return true })
	e.mark(image)
	e.setImage(image)
	e.pauseAt(1, 10)
	e.promote()
	e.pauseAt(3, 50)
	e.promote()
	e.healthy(image)
	end := e.await("all traffic on the new stable", func(s timeline.State) bool {
		return s.CanaryWeight == 0 && s.StableWeight == s.Max && s.StableHash == s.Rollout.PodHash && s.CanaryHash == s.Rollout.PodHash
	})
	if end.StableHash == before.StableHash {
		e.Errorf("the stable is still %s", end.StableHash)
	}
	e.checkWeights(image)
}

// pauseAt waits for a pause with that weight and pods for it.
func (e *example) pauseAt(step, weight int32) {
	e.Helper()
	e.await(fmt.Sprintf("the pause at %d", weight), func(s timeline.State) bool {
		return s.Rollout.Phase == "Paused" && s.Rollout.StepIndex == step && s.CanaryWeight == weight &&
			s.Pods[s.CanaryHash].Available*s.Max >= weight*s.Rollout.Replicas
	})
}

// checkWeights holds the recorded weights of the last canary against its steps
// and its pods.
func (e *example) checkWeights(mark string) {
	e.Helper()
	since, err := e.recorder.Timeline().Since(mark)
	if err != nil {
		e.Fatal(err)
	}
	seen := []int32{}
	last := int32(0)
	for _, s := range since.States() {
		if s.CanaryWeight != last {
			seen, last = append(seen, s.CanaryWeight), s.CanaryWeight
		}
	}
	if steps := []int32{10, 50, 100, 0}; !timeline.FollowSteps(seen, steps) {
		e.Errorf("canary weights %v do not follow the steps %v", seen, steps)
	}
	if got := since.Measure().Canary.Points; got > 0.5 {
		e.Errorf("the canary had %.1f points more than its pods can take", got)
	}
}

const yellow = "argoproj/rollouts-demo:yellow"

func TestHostLevel(t *testing.T) {
	t.Parallel()
	e := open(t, hostLevel("demo-host-level"),
		"host-level/services.yaml", "host-level/virtual-service.yaml", "host-level/rollout.yaml")
	e.healthy("")
	e.canary(yellow)
}

func TestSubsetLevel(t *testing.T) {
	t.Parallel()
	e := open(t, subsetLevel("demo-subset-level"),
		"subset-level/service.yaml", "subset-level/destination-rule.yaml", "subset-level/virtual-service.yaml", "subset-level/rollout.yaml")
	e.healthy("")
	e.canary(yellow)
}

func TestHeaderRoute(t *testing.T) {
	t.Parallel()
	e := open(t, subsetLevel("demo-header-route"), "header-route/routing.yaml", "header-route/rollout.yaml")
	e.healthy("")
	if diff := cmp.Diff([]string{"status", "primary"}, e.httpRoutes()); diff != "" {
		t.Fatalf("routes at first (-want +got):\n%s", diff)
	}
	e.mark(yellow)
	e.setImage(yellow)
	e.await("the first pause", func(s timeline.State) bool { return s.Rollout.Phase == "Paused" && s.Rollout.StepIndex == 3 })
	if diff := cmp.Diff([]string{"status", "testers", "shadow", "primary"}, e.httpRoutes()); diff != "" {
		t.Errorf("routes at the pause (-want +got):\n%s", diff)
	}
	e.promote()
	e.await("the second pause", func(s timeline.State) bool { return s.Rollout.Phase == "Paused" && s.CanaryWeight == 40 })
	if diff := cmp.Diff([]string{"status", "testers", "primary"}, e.httpRoutes()); diff != "" {
		t.Errorf("routes at 40 (-want +got):\n%s", diff)
	}
	e.promote()
	e.healthy(yellow)
	e.await("no managed route", func(timeline.State) bool { return cmp.Equal([]string{"status", "primary"}, e.httpRoutes()) })
}

// httpRoutes are the names of the VirtualService's http routes.
func (e *example) httpRoutes() []string {
	e.Helper()
	vs, err := shared.Dynamic.Resource(virtualServices).Namespace(e.subject.Namespace).Get(e.ctx, e.subject.VirtualServices[0], metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}
	http, _, _ := unstructured.NestedSlice(vs.Object, "spec", "http")
	var names []string
	for _, route := range http {
		names = append(names, fmt.Sprint(route.(map[string]any)["name"]))
	}
	return names
}

// managedByNative is what the native router writes on a DestinationRule.
const managedByNative = "argo-rollouts.argoproj.io/managed-by-rollouts"

func TestMigrationFromNativeAndBackAtRestMovesNothing(t *testing.T) {
	t.Parallel()
	e := open(t, subsetLevel("demo-migration"), "migrate-from-native/routing.yaml", "migrate-from-native/before.yaml")
	e.healthy("")
	e.routedBy("native", true)

	e.migrate("to the plugin", "migrate-from-native/after.yaml", false)
	e.migrate("back to native", "migrate-from-native/before.yaml", true)
	e.migrate("to the plugin again", "migrate-from-native/after.yaml", false)
	e.canary(yellow)
	e.routedBy("the plugin after a canary", false)
}

// migrate applies the other Rollout and checks that this starts no canary and
// moves no traffic.
func (e *example) migrate(mark, file string, native bool) {
	e.Helper()
	e.mark(mark)
	e.apply(file)
	e.healthy(mark)
	e.routedBy(mark, native)
	since, err := e.recorder.Timeline().Since(mark)
	if err != nil {
		e.Fatal(err)
	}
	for _, s := range since.States() {
		if s.CanaryWeight != 0 || s.StableWeight != s.Max {
			e.Errorf("%s: stable/canary were %d/%d", mark, s.StableWeight, s.CanaryWeight)
		}
		if len(s.Pods) != 1 {
			e.Errorf("%s: %d ReplicaSets, want one", mark, len(s.Pods))
		}
	}
}

// routedBy waits until the DestinationRule has both hashes and native's
// annotation is there or gone, and stays so.
func (e *example) routedBy(what string, native bool) {
	e.Helper()
	right := func() bool {
		rule, err := shared.Dynamic.Resource(destinationRules).Namespace(e.subject.Namespace).Get(e.ctx, e.subject.DestinationRule, metav1.GetOptions{})
		if err != nil {
			e.Fatal(err)
		}
		_, annotated := rule.GetAnnotations()[managedByNative]
		return annotated == native && bothHashes(rule)
	}
	deadline := time.Now().Add(time.Minute)
	for !right() {
		if time.Now().After(deadline) {
			e.Fatalf("%s: the hashes are not there or the annotation is not %t", what, native)
		}
		time.Sleep(100 * time.Millisecond)
	}
	// The controller takes back what it thinks is left behind a moment later.
	time.Sleep(2 * time.Second)
	if !right() {
		e.Errorf("%s: hashes or annotation did not stay", what)
	}
}

func bothHashes(rule *unstructured.Unstructured) bool {
	subsets, _, _ := unstructured.NestedSlice(rule.Object, "spec", "subsets")
	for _, s := range subsets {
		hash, _, _ := unstructured.NestedString(s.(map[string]any), "labels", "rollouts-pod-template-hash")
		if hash == "" {
			return false
		}
	}
	return len(subsets) == 2
}
