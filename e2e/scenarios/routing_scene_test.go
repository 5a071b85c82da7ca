package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

const (
	// pluginManager and someone are the field managers of the plugin and of
	// [Scene.Merge] and its like.
	pluginManager = "rollouts-plugin-trafficrouter-istio"
	someone       = "somebody"
)

var virtualServices = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}

// block is a JSON object.
type block = map[string]any

// routed is a workload whose routing is the test's own.
type routed struct {
	Workload
	// config is the plugin's block; nil leaves the workload's.
	config block
	// managed are the names under managedRoutes.
	managed []string
	// max is maxTrafficWeight, 0 leaves it out.
	max int32
	// objects are applied before the Rollout, in the place of the workload's own.
	objects []any
	// subject changes what is recorded; nil leaves the workload's.
	subject func(*timeline.Subject)
}

// playRouted is play for a routed workload.
func playRouted(t *testing.T, c *lab.Controller, r routed, acts ...act) timeline.Timeline {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := openRouted(ctx, c, r)
	if err != nil {
		t.Fatal(err)
	}
	err = perform(ctx, s, acts...)
	recorded := s.Close(context.WithoutCancel(ctx))
	explain(t, c, s.Namespace, recorded)
	if err != nil {
		t.Error(err)
	}
	for _, line := range faults(t, c) {
		t.Errorf("in the controller's log, which holds what the plugin says: %s", line)
	}
	return recorded
}

func openRouted(ctx context.Context, c *lab.Controller, r routed) (*Scene, error) {
	namespace, err := shared.Namespace(ctx, "routed-"+string(r.Level))
	if err != nil {
		return nil, err
	}
	subject := r.Workload.subject(namespace)
	subject.MaxWeight = r.max
	if r.subject != nil {
		r.subject(&subject)
	}
	s := &Scene{
		Namespace: namespace, lab: shared, workload: r.Workload, labels: c.Labels(),
		rollouts: shared.Dynamic.Resource(rolloutsResource).Namespace(namespace),
		recorder: timeline.NewRecorder(shared.Dynamic, subject),
	}
	if s.Gate, err = shared.Gate(ctx, namespace); err != nil {
		return nil, err
	}
	if err := s.recorder.Start(ctx); err != nil {
		return nil, err
	}
	manifests, err := documents(append(slices.Clone(r.objects), r.rollout(s.labels))...)
	if err != nil {
		return nil, err
	}
	_, err = shared.Apply(ctx, namespace, manifests)
	return s, err
}

// rollout is the workload's with the routing of r.
func (r routed) rollout(controller map[string]string) *v1alpha1.Rollout {
	ro := r.Workload.rollout(controller)
	routing := ro.Spec.Strategy.Canary.TrafficRouting
	if r.config != nil {
		raw, err := json.Marshal(r.config)
		if err != nil {
			panic(err) // maps of texts and numbers always marshal
		}
		routing.Plugins = map[string]json.RawMessage{lab.DefaultPluginName: raw}
	}
	for _, managed := range r.managed {
		routing.ManagedRoutes = append(routing.ManagedRoutes, v1alpha1.MangedRoutes{Name: managed})
	}
	if r.max != 0 {
		routing.MaxTrafficWeight = &r.max
	}
	return ro
}

// act is one thing that somebody does, or waits for, in a scene.
type act func(ctx context.Context, s *Scene) error

// perform does one act after the other, until one fails.
func perform(ctx context.Context, s *Scene, acts ...act) error {
	for i, do := range acts {
		if err := do(ctx, s); err != nil {
			return fmt.Errorf("act %d of %d: %w", i+1, len(acts), err)
		}
	}
	return nil
}

func deploy(mark string, version int) act {
	return func(ctx context.Context, s *Scene) error { return s.Deploy(ctx, mark, version) }
}

func goOn(ctx context.Context, s *Scene) error { return s.Resume(ctx) }

func promotedAfter(mark string) act {
	return func(ctx context.Context, s *Scene) error { return promoted(ctx, s, mark) }
}

func healthyAfter(mark string) act {
	return func(ctx context.Context, s *Scene) error {
		_, err := s.AwaitPhase(ctx, mark, "Healthy")
		return err
	}
}

// wait lets so much time pass.
func wait(d time.Duration) act {
	return func(ctx context.Context, _ *Scene) error { return sleep(ctx, d) }
}

func mark(name string) act {
	return func(_ context.Context, s *Scene) error {
		s.Mark(name)
		return nil
	}
}

// pausedAt waits for the pause that is the step of that index.
func pausedAt(step int32) act {
	return func(ctx context.Context, s *Scene) error {
		_, err := s.Await(ctx, fmt.Sprintf("the pause of step %d", step), func(st timeline.State) bool {
			return st.Is("Paused") && st.Rollout.StepIndex == step
		})
		return err
	}
}

// left waits until the Rollout is not at that step any more.
func left(step int32) act {
	return func(ctx context.Context, s *Scene) error {
		_, err := s.Await(ctx, fmt.Sprintf("another step than %d", step), func(st timeline.State) bool { return st.Rollout.StepIndex != step })
		return err
	}
}

// weighed waits for a weight of the canary.
func weighed(weight int32) act {
	return func(ctx context.Context, s *Scene) error {
		_, err := s.Await(ctx, fmt.Sprintf("canary weight %d", weight), func(st timeline.State) bool { return st.CanaryWeight == weight })
		return err
	}
}

// newPods limits how many pods become ready of all revisions but the stable one.
func newPods(limit int) act {
	return func(_ context.Context, s *Scene) error {
		return s.Gate.Limit(fmt.Sprintf("%[1]s,%[1]s!=%[2]s", v1alpha1.DefaultRolloutUniqueLabelKey, s.Now().Rollout.StableRS), limit)
	}
}

// object reads one of the objects around the Rollout.
func (s *Scene) object(ctx context.Context, resource schema.GroupVersionResource, object string) (*unstructured.Unstructured, error) {
	found, err := s.lab.Dynamic.Resource(resource).Namespace(s.Namespace).Get(ctx, object, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s %s/%s: %w", resource.Resource, s.Namespace, object, err)
	}
	return found, nil
}

// update changes an object as a person does with kubectl replace.
func update(resource schema.GroupVersionResource, object string, change func(spec block)) act {
	return func(ctx context.Context, s *Scene) error {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			found, err := s.object(ctx, resource, object)
			if err != nil {
				return err
			}
			change(found.Object["spec"].(block))
			_, err = s.lab.Dynamic.Resource(resource).Namespace(s.Namespace).Update(ctx, found, metav1.UpdateOptions{FieldManager: someone})
			return err
		})
		if err != nil {
			return fmt.Errorf("update %s %s/%s: %w", resource.Resource, s.Namespace, object, err)
		}
		return nil
	}
}

// becomes waits until an object is as it should be; what says how it is not.
func becomes(resource schema.GroupVersionResource, object string, what func(*unstructured.Unstructured) string) act {
	return func(ctx context.Context, s *Scene) error {
		amiss := ""
		err := lab.Until(ctx, resource.Resource+" "+object, func(ctx context.Context) (bool, error) {
			found, err := s.object(ctx, resource, object)
			if err != nil {
				return false, err
			}
			amiss = what(found)
			return amiss == "", nil
		})
		if err != nil {
			return fmt.Errorf("%w: %s", err, amiss)
		}
		return nil
	}
}

// keeps looks at an object once.
func keeps(t *testing.T, resource schema.GroupVersionResource, object string, what func(*unstructured.Unstructured) string) act {
	return func(ctx context.Context, s *Scene) error {
		found, err := s.object(ctx, resource, object)
		if err != nil {
			return err
		}
		if amiss := what(found); amiss != "" {
			t.Errorf("%s %s: %s", resource.Resource, object, amiss)
		}
		return nil
	}
}

// hasRoutes says how the names of the http routes differ from these.
func hasRoutes(want ...string) func(*unstructured.Unstructured) string {
	return func(vs *unstructured.Unstructured) string {
		var got []string
		for _, route := range httpOf(vs) {
			got = append(got, fmt.Sprint(route["name"]))
		}
		return cmp.Diff(want, got)
	}
}

// snapshot is an object at some moment, to be compared with later.
type snapshot struct{ object *unstructured.Unstructured }

// take keeps the object as it is now.
func (k *snapshot) take(resource schema.GroupVersionResource, object string) act {
	return func(ctx context.Context, s *Scene) (err error) {
		k.object, err = s.object(ctx, resource, object)
		return err
	}
}

// same says how an object's spec, labels and annotations differ from the kept ones.
func (k *snapshot) same(now *unstructured.Unstructured) string {
	return cmp.Diff(apartFromServer(k.object), apartFromServer(now))
}

// apartFromServer is what people write of an object.
func apartFromServer(object *unstructured.Unstructured) block {
	return block{"spec": object.Object["spec"], "labels": object.GetLabels(), "annotations": object.GetAnnotations()}
}

// httpOf are the http routes of a VirtualService. Not to be changed.
func httpOf(vs *unstructured.Unstructured) []block { return listOf(vs.Object["spec"], "http") }

// listOf is a list of objects within an object.
func listOf(in any, field string) []block {
	object, _ := in.(block)
	items, _ := object[field].([]any)
	list := make([]block, 0, len(items))
	for _, item := range items {
		entry, _ := item.(block)
		list = append(list, entry)
	}
	return list
}

// weightsOf are the weights of a route's destinations, in their order.
func weightsOf(route block) []int64 {
	var weights []int64
	for _, d := range listOf(route, "route") {
		weight, _ := d["weight"].(int64)
		weights = append(weights, weight)
	}
	return weights
}

// routeOf is the first http route of that name, empty where there is none.
func routeOf(vs *unstructured.Unstructured, name string) block {
	for _, route := range httpOf(vs) {
		if route["name"] == name {
			return route
		}
	}
	return block{}
}

// weighs says how the weights of a route differ from these.
func weighs(route string, want ...int64) func(*unstructured.Unstructured) string {
	return func(vs *unstructured.Unstructured) string { return cmp.Diff(want, weightsOf(routeOf(vs, route))) }
}

// versions are the versions of an object that were written, in order.
func versions(recorded timeline.Timeline, kind timeline.Kind, name string) []timeline.Entry {
	var found []timeline.Entry
	for _, e := range recorded.Entries {
		if e.Object != nil && !e.Deleted && e.Fact.Kind() == kind && e.Name == name {
			found = append(found, e)
		}
	}
	return found
}

// mended is how long it took from somebody's first write of an object after a
// mark to the plugin's next one.
func mended(t *testing.T, recorded timeline.Timeline, after string, kind timeline.Kind, name string) time.Duration {
	t.Helper()
	cut, err := recorded.Since(after)
	if err != nil {
		t.Fatal(err)
	}
	harmed := time.Duration(-1)
	for _, e := range versions(cut, kind, name) {
		switch {
		case e.Found:
		case harmed < 0 && e.Manager == someone:
			harmed = e.At
		case harmed >= 0 && e.Manager == pluginManager:
			return e.At - harmed
		}
	}
	t.Errorf("after %q: no write of %s %s by the plugin followed on one by somebody (%s)", after, kind, name, harmed)
	return 0
}

// mendedInTime logs the time that a correction took. 2 s is what is promised; a
// machine that is busy with other tests is given more.
func mendedInTime(t *testing.T, recorded timeline.Timeline, after string, kind timeline.Kind, name string) {
	t.Helper()
	took := mended(t, recorded, after, kind, name)
	t.Logf("%s: the %s was put right after %s", after, kind, took.Round(time.Millisecond))
	if took > 10*time.Second {
		t.Errorf("%s: the %s was put right only after %s", after, kind, took)
	}
}

// sides are the destinations of the workload at a level, stable first.
func sides(level Level, most int32) []any {
	stable, canary := block{"host": name, "subset": "stable"}, block{"host": name, "subset": "canary"}
	if level == Host {
		stable, canary = block{"host": name + "-stable"}, block{"host": name + "-canary"}
	}
	return []any{block{"destination": stable, "weight": most}, block{"destination": canary, "weight": 0}}
}

// virtualServiceOf is a VirtualService with that spec.
func virtualServiceOf(name string, spec block) block {
	return block{
		"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
		"metadata": block{"name": name}, "spec": spec,
	}
}

// around are the objects that a workload needs beside VirtualServices.
func around(level Level) []any {
	if level == Subset {
		return []any{Workload{}.destinationRule(), service(name)}
	}
	return []any{service(name), service(name + "-stable"), service(name + "-canary")}
}

// pods counts the pods of the namespace that a selector matches.
func (s *Scene) pods(ctx context.Context, selector string) (int, error) {
	list, err := s.lab.Client.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return 0, fmt.Errorf("pods %s in %s: %w", selector, s.Namespace, err)
	}
	return len(list.Items), nil
}
