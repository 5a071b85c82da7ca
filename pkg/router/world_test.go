package router

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	patches "github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// world is a Cluster in memory: real patches on real JSON, no API server. It
// keeps every version of every object, so that a test can ask what a client of
// the mesh could have seen at any moment. The same calls against a real API
// server are tested in the e2e module.
type world struct {
	t        *testing.T
	clock    *clocktesting.FakeClock
	mu       sync.Mutex
	version  int
	objects  map[string]*unstructured.Unstructured // "Kind namespace/name"
	sets     map[string]cluster.ReplicaSet         // by hash
	services map[string]string                     // "namespace/name" to hash
	// templates are the available pods of experiments' templates, by hash.
	templates map[string]int32
	// podLabels are those of pods that were changed since they were made, by hash.
	podLabels map[string][]cluster.PodGroup
	// rollouts are those that can be read, by "namespace/name".
	rollouts map[string]*v1alpha1.Rollout
	events   []string
	writes   []string
	// refuse makes the write of an object fail, by "Kind namespace/name".
	refuse map[string]error
	// ports are those of Services and slices what is behind them, by "namespace/name";
	// slicesErr is why that cannot be read.
	ports     map[string][]cluster.ServicePort
	slices    map[string][]cluster.Endpoint
	slicesErr error
	// marks and aborts are what was done to the Rollout, markErr and abortErr why it
	// cannot be.
	marks, aborts     []string
	markErr, abortErr error
	// afterWrite is called after each write, with the world as it then is.
	afterWrite func()
}

func newWorld(t *testing.T, objects ...string) *world {
	w := &world{
		t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		objects: map[string]*unstructured.Unstructured{}, sets: map[string]cluster.ReplicaSet{},
		services: map[string]string{}, refuse: map[string]error{},
		templates: map[string]int32{}, podLabels: map[string][]cluster.PodGroup{}, rollouts: map[string]*v1alpha1.Rollout{},
	}
	for _, text := range objects {
		w.apply(text)
	}
	return w
}

// apply puts an object into the world, as a person with kubectl would.
func (w *world) apply(text string) {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		w.t.Fatalf("%v in\n%s", err, text)
	}
	if err := u.UnmarshalJSON(body); err != nil {
		w.t.Fatalf("%v in\n%s", err, text)
	}
	if u.GetNamespace() == "" {
		u.SetNamespace("shop")
	}
	w.byHand(u)
	w.store(u)
}

// byHand makes the object look as if somebody else had written it.
func (w *world) byHand(u *unstructured.Unstructured) {
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate,
		Time: &metav1.Time{Time: w.clock.Now().Truncate(time.Second)},
	}})
}

func (w *world) store(u *unstructured.Unstructured) {
	w.version++
	u.SetResourceVersion(strconv.Itoa(w.version))
	w.objects[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] = u
}

func (w *world) find(kind, namespace, name string) (*unstructured.Unstructured, error) {
	u, ok := w.objects[kind+" "+namespace+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(kind) + "s"}, name)
	}
	return u, nil
}

// patch applies one guarded patch exactly as the API server would.
func (w *world) patch(kind, namespace, name string, p patches.Patch) error {
	key := kind + " " + namespace + "/" + name
	if err := w.refuse[key]; err != nil {
		return err
	}
	u := w.objects[key]
	before, err := u.MarshalJSON()
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := p.Guarded(u.GetResourceVersion()).Marshal()
	if err != nil {
		w.t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(body)
	if err != nil {
		w.t.Fatalf("%v in %s", err, body)
	}
	after, err := decoded.Apply(before)
	if err != nil {
		w.t.Fatalf("%v: %s on %s", err, body, before)
	}
	if err := keepWritten(before, after); err != nil {
		w.t.Fatal(err)
	}
	fresh := &unstructured.Unstructured{}
	if err := fresh.UnmarshalJSON(after); err != nil {
		w.t.Fatal(err)
	}
	fresh.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: cluster.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate,
		Time:     &metav1.Time{Time: w.clock.Now().Truncate(time.Second)},
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:http":{},"f:tls":{},"f:tcp":{},"f:subsets":{}}}`)},
	}})
	w.store(fresh)
	w.writes = append(w.writes, key)
	if w.afterWrite != nil {
		w.afterWrite()
	}
	return nil
}

func (w *world) VirtualService(namespace, name string) (*virtualservice.VirtualService, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u, err := w.find("VirtualService", namespace, name)
	if err != nil {
		return nil, err
	}
	return virtualservice.Parse(u, cluster.FieldManager), nil
}

func (w *world) UpdateVirtualService(_ context.Context, namespace, name string, edit cluster.Edit[*virtualservice.VirtualService]) (*virtualservice.VirtualService, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return update(w, "VirtualService", namespace, name, edit, virtualservice.Parse)
}

func (w *world) DestinationRule(namespace, name string) (*destinationrule.DestinationRule, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u, err := w.find("DestinationRule", namespace, name)
	if err != nil {
		return nil, err
	}
	return destinationrule.Parse(u, cluster.FieldManager), nil
}

func (w *world) UpdateDestinationRule(_ context.Context, namespace, name string, edit cluster.Edit[*destinationrule.DestinationRule]) (*destinationrule.DestinationRule, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return update(w, "DestinationRule", namespace, name, edit, destinationrule.Parse)
}

type parsed interface {
	*virtualservice.VirtualService | *destinationrule.DestinationRule
}

func update[T parsed](w *world, kind, namespace, name string, edit func(T) (patches.Patch, error), parse func(*unstructured.Unstructured, string) T) (T, bool, error) {
	u, err := w.find(kind, namespace, name)
	if err != nil {
		return nil, false, err
	}
	view := parse(u, cluster.FieldManager)
	p, err := edit(view)
	if err != nil || len(p) == 0 {
		return view, false, err
	}
	if err := w.patch(kind, namespace, name, p); err != nil {
		return view, false, err
	}
	u, err = w.find(kind, namespace, name)
	return parse(u, cluster.FieldManager), true, err
}

func (w *world) ReplicaSets(types.UID) ([]cluster.ReplicaSet, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []cluster.ReplicaSet
	for hash, set := range w.sets {
		set.Hash, set.UID = hash, types.UID("rs-"+hash)
		out = append(out, set)
	}
	return out, nil
}

func (w *world) PodLabels(set types.UID) []cluster.PodGroup {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.podLabels[strings.TrimPrefix(string(set), "rs-")]
}

func (w *world) ExperimentAvailable(_, hash string) int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.templates[hash]
}

func (w *world) Rollout(_ context.Context, namespace, name string) (*v1alpha1.Rollout, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rollouts[namespace+"/"+name], nil
}

func (w *world) ServiceSelector(namespace, name string) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	hash, there := w.services[namespace+"/"+name]
	if !there {
		return nil
	}
	selector := map[string]string{"app": "cart"}
	if hash != "" {
		selector[v1alpha1.DefaultRolloutUniqueLabelKey] = hash
	}
	return selector
}

func (w *world) MarkRollout(_ context.Context, rollout corev1.ObjectReference, hash, annotation, value string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marks = append(w.marks, annotation+"="+value)
	return w.markErr
}

func (w *world) AbortRollout(_ context.Context, _ corev1.ObjectReference, hash string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.aborts = append(w.aborts, hash)
	return w.abortErr
}

func (w *world) ServicePorts(namespace, name string) []cluster.ServicePort {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ports[namespace+"/"+name]
}

func (w *world) Endpoints(namespace, service string) ([]cluster.Endpoint, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slices[namespace+"/"+service], w.slicesErr
}

func (w *world) Event(_ corev1.ObjectReference, warning bool, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := "Normal"
	if warning {
		kind = "Warning"
	}
	w.events = append(w.events, kind+" "+reason+": "+message)
}

// pods says how many of a hash's pods are available, and how many are wanted.
func (w *world) pods(hash string, available, size int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sets[hash] = cluster.ReplicaSet{
		Name: "cart-" + hash, Available: available, Size: size,
		Labels: map[string]string{"app": "cart", v1alpha1.DefaultRolloutUniqueLabelKey: hash},
	}
}

// weights returns "stable/canary" of the last http route of VirtualService
// shop/cart: managed routes stand before it.
func (w *world) weights() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.weightsLocked()
}

func (w *world) weightsLocked() string {
	u := w.objects["VirtualService shop/cart"]
	routes, _, _ := unstructured.NestedSlice(u.Object, "spec", "http")
	var out []string
	for _, d := range routes[len(routes)-1].(map[string]any)["route"].([]any) {
		weight, ok := d.(map[string]any)["weight"]
		if !ok {
			weight = 0
		}
		out = append(out, fmt.Sprint(weight))
	}
	return strings.Join(out, "/")
}

// setWeights writes "stable/canary" into the last http route of VirtualService
// shop/cart, as a person with kubectl edit would.
func (w *world) setWeights(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.objects["VirtualService shop/cart"].DeepCopy()
	http, _, _ := unstructured.NestedSlice(u.Object, "spec", "http")
	for i, weight := range strings.Split(text, "/") {
		n, err := strconv.ParseInt(weight, 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		http[len(http)-1].(map[string]any)["route"].([]any)[i].(map[string]any)["weight"] = n
	}
	if err := unstructured.SetNestedSlice(u.Object, http, "spec", "http"); err != nil {
		w.t.Fatal(err)
	}
	w.byHand(u)
	w.store(u)
}

// managedLocked tells whether there is a managed route.
func (w *world) managedLocked() bool {
	routes, _, _ := unstructured.NestedSlice(w.objects["VirtualService shop/cart"].Object, "spec", "http")
	return len(routes) > 1
}

// labels returns "stable=hash canary=hash" of DestinationRule shop/cart.
func (w *world) labels() string { return w.labelsOf("cart") }

// labelsOf is labels for another DestinationRule of the namespace.
func (w *world) labelsOf(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.objects["DestinationRule shop/"+name]
	subsets, _, _ := unstructured.NestedSlice(u.Object, "spec", "subsets")
	var out []string
	for _, subset := range subsets {
		m := subset.(map[string]any)
		hash, _, _ := unstructured.NestedString(m, "labels", v1alpha1.DefaultRolloutUniqueLabelKey)
		out = append(out, fmt.Sprintf("%v=%s", m["name"], hash))
	}
	return strings.Join(out, " ")
}

// hashOfLocked is the hash that a subset of DestinationRule shop/cart names.
func (w *world) hashOfLocked(subset string) string {
	u := w.objects["DestinationRule shop/cart"]
	subsets, _, _ := unstructured.NestedSlice(u.Object, "spec", "subsets")
	for _, s := range subsets {
		if m := s.(map[string]any); m["name"] == subset {
			hash, _, _ := unstructured.NestedString(m, "labels", v1alpha1.DefaultRolloutUniqueLabelKey)
			return hash
		}
	}
	return ""
}

// eventsSince returns the Events recorded since the last call.
func (w *world) eventsSince() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.events
	w.events = nil
	return out
}

// router returns a Router of this world, as a new process would have it.
func (w *world) router() *Router {
	r := newRouter(w, Options{}, hclog.NewNullLogger(), w.clock)
	r.patience, r.staying = 0, 0
	return r
}

// pass lets time go by.
func (w *world) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

const (
	hostVirtualService = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec:
  hosts: [cart]
  http:
  - name: primary
    route:
    - {destination: {host: cart-stable}, weight: 100}
    - {destination: {host: cart-canary}, weight: 0}
`
	subsetVirtualService = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec:
  hosts: [cart]
  http:
  - name: primary
    route:
    - {destination: {host: cart, subset: stable}, weight: 100}
    - {destination: {host: cart, subset: canary}, weight: 0}
`
	subsetDestinationRule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart}
spec:
  host: cart
  subsets:
  - {name: stable, labels: {app: cart}}
  - {name: canary, labels: {app: cart}}
`
	hostConfig   = `{"virtualService": {"name": "cart"}}`
	subsetConfig = `{"virtualService": {"name": "cart"}, "destinationRule": {"name": "cart", "canarySubsetName": "canary", "stableSubsetName": "stable"}}`
)

// rollout is a Rollout of 20 replicas behind the given plugin configuration.
func rollout(config string) *v1alpha1.Rollout {
	replicas, end := int32(20), int32(1)
	weight := int32(100)
	return &v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "uid-1"},
		Spec: v1alpha1.RolloutSpec{
			Replicas: &replicas,
			Strategy: v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{
				CanaryService: "cart-canary", StableService: "cart-stable",
				Steps: []v1alpha1.CanaryStep{{SetWeight: &weight}},
				TrafficRouting: &v1alpha1.RolloutTrafficRouting{
					Plugins: map[string]json.RawMessage{"argoproj-labs/istio": json.RawMessage(config)},
				},
			}},
		},
		// A rollback within rollbackWindow: the controller stands at the end of
		// the steps at once.
		Status: v1alpha1.RolloutStatus{StableRS: "old", CurrentPodHash: "new", CurrentStepIndex: &end},
	}
}
