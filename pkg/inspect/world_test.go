package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
)

// now is when all tests look.
var now = time.Date(2026, 3, 4, 15, 16, 17, 0, time.UTC)

// world is a cluster in memory.
type world struct {
	t       testing.TB
	objects []unstructured.Unstructured
	// refuse makes reads of a resource fail.
	refuse map[string]error
	reads  []string
}

var kinds = map[string]string{
	"rollouts": "Rollout", "replicasets": "ReplicaSet", "pods": "Pod", "services": "Service", "events": "Event",
	"endpointslices": "EndpointSlice", "virtualservices": "VirtualService", "destinationrules": "DestinationRule",
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New(`User "jane" has no such right`))
}

// unserved is what an API server answers about a kind that it does not serve.
func unserved() error {
	return apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "404 page not found", 0, true)
}

// apply stores one document, in place of the one of its name.
func (w *world) apply(format string, args ...any) {
	w.t.Helper()
	body, err := yaml.YAMLToJSON(fmt.Appendf(nil, format, args...))
	if err != nil {
		w.t.Fatal(err)
	}
	o := unstructured.Unstructured{}
	if err := json.Unmarshal(body, &o.Object); err != nil {
		w.t.Fatal(err)
	}
	if o.GetNamespace() == "" {
		o.SetNamespace("shop")
	}
	for i := range w.objects {
		if w.objects[i].GetKind() == o.GetKind() && w.objects[i].GetName() == o.GetName() {
			w.objects[i] = o
			return
		}
	}
	w.objects = append(w.objects, o)
}

// store is apply for a typed object.
func (w *world) store(object any) {
	w.t.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply("%s", body)
}

func (w *world) Get(_ context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	w.reads = append(w.reads, "get "+resource.Resource)
	if err := w.refuse[resource.Resource]; err != nil {
		return nil, err
	}
	for i := range w.objects {
		o := &w.objects[i]
		if o.GetKind() == kinds[resource.Resource] && o.GetNamespace() == namespace && o.GetName() == name && o.GroupVersionKind().Version == resource.Version {
			return o.DeepCopy(), nil
		}
	}
	return nil, apierrors.NewNotFound(resource.GroupResource(), name)
}

func (w *world) Select(_ context.Context, resource schema.GroupVersionResource, namespace, byLabels, byFields string) ([]unstructured.Unstructured, error) {
	w.reads = append(w.reads, "list "+resource.Resource)
	if err := w.refuse[resource.Resource]; err != nil {
		return nil, err
	}
	labelled, err := labels.Parse(byLabels)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	fielded, err := fields.ParseSelector(byFields)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var found []unstructured.Unstructured
	for _, o := range w.objects {
		kind, _, _ := unstructured.NestedString(o.Object, "involvedObject", "kind")
		name, _, _ := unstructured.NestedString(o.Object, "involvedObject", "name")
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		set := fields.Set{"involvedObject.kind": kind, "involvedObject.name": name, "status.phase": phase}
		if o.GetKind() == kinds[resource.Resource] && o.GetNamespace() == namespace && labelled.Matches(labels.Set(o.GetLabels())) && fielded.Matches(set) {
			found = append(found, o)
		}
	}
	return found, nil
}

// pods makes a ReplicaSet of the Rollout with that many available pods, behind Service web.
func (w *world) pods(hash string, revision int, available, size int32) {
	w.t.Helper()
	w.apply(`
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-%[1]s
  uid: rs-%[1]s
  creationTimestamp: "2026-03-0%[2]dT10:00:00Z"
  labels: {app: web, rollouts-pod-template-hash: %[1]s}
  ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web, uid: uid-web, controller: true}]
spec:
  replicas: %[4]d
  template: {metadata: {labels: {app: web, rollouts-pod-template-hash: %[1]s}}}
status: {replicas: %[4]d, availableReplicas: %[3]d}
`, hash, revision, available, size)
	endpoints := []map[string]any{}
	for i := range available {
		name := fmt.Sprintf("web-%s-%d", hash, i)
		w.apply(`
apiVersion: v1
kind: Pod
metadata:
  name: %[1]s
  labels: {app: web, rollouts-pod-template-hash: %[2]s}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-%[2]s, uid: rs-%[2]s, controller: true}]
status: {phase: Running}
`, name, hash)
		endpoints = append(endpoints, map[string]any{
			"addresses": []string{address(hash, i)}, "conditions": map[string]any{"ready": true}, "targetRef": map[string]any{"kind": "Pod", "name": name},
		})
	}
	for _, service := range []string{"web", map[string]string{"new": "web-canary", "old": "web-stable"}[hash]} {
		w.store(map[string]any{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "endpoints": endpoints,
			"metadata": map[string]any{"name": service + "-of-" + hash, "labels": map[string]string{"kubernetes.io/service-name": service}},
		})
	}
}

func address(hash string, i int32) string { return fmt.Sprintf("10.%d.0.%d", hash[0], i) }

func (w *world) service(name, hash string) {
	selector := map[string]string{"app": "web"}
	if hash != "" {
		selector[hashLabel] = hash
	}
	w.store(map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"selector": selector, "ports": []map[string]any{{"name": "http", "port": 80}}},
	})
}

func (w *world) rule(canary, stable string) {
	w.apply(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web}
spec:
  host: web
  subsets:
  - {name: stable, labels: {app: web, rollouts-pod-template-hash: %s}}
  - {name: canary, labels: {app: web, rollouts-pod-template-hash: %s}}
`, stable, canary)
}

// routes makes VirtualService web with this weight for the canary.
func (w *world) routes(canary int) {
	w.apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: web
  managedFields:
  - {manager: rollouts-plugin-trafficrouter-istio, operation: Update, time: "2026-03-04T15:00:00Z", fieldsV1: {"f:spec": {"f:http": {}}}}
spec:
  hosts: [web]
  http:
  - name: primary
    route:
    - {destination: {host: web, subset: stable}, weight: %d}
    - {destination: {host: web, subset: canary}, weight: %d}
`, 100-canary, canary)
}

func (w *world) event(ago time.Duration, count int32, kind, reason, message string) {
	at := metav1.NewTime(now.Add(-ago))
	w.store(corev1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web.%d", len(w.objects))},
		InvolvedObject: corev1.ObjectReference{Kind: "Rollout", Name: "web", UID: "uid-web"},
		LastTimestamp:  at, Count: count, Type: kind, Reason: reason, Message: message,
	})
}

const subsetBlock = `{"virtualService": {"name": "web"}, "destinationRule": {"name": "web", "canarySubsetName": "canary", "stableSubsetName": "stable"}`

// rollout is web with 20 replicas at step 2 of 4: paused at 20 until a person promotes it.
func rollout(more string) *v1alpha1.Rollout {
	replicas, step, generation := int32(20), int32(1), "7"
	pause := intstr.FromString("10m")
	twenty, fifty := int32(20), int32(50)
	verified := true
	return &v1alpha1.Rollout{
		TypeMeta:   metav1.TypeMeta{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", Generation: 7, Annotations: map[string]string{}},
		Spec: v1alpha1.RolloutSpec{
			Replicas: &replicas,
			Strategy: v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{
				Steps: []v1alpha1.CanaryStep{
					{SetWeight: &twenty}, {Pause: &v1alpha1.RolloutPause{}}, {SetWeight: &fifty}, {Pause: &v1alpha1.RolloutPause{Duration: &pause}},
				},
				TrafficRouting: &v1alpha1.RolloutTrafficRouting{Plugins: map[string]json.RawMessage{config.DefaultPluginName: json.RawMessage(subsetBlock + more + "}")}},
			}},
		},
		Status: v1alpha1.RolloutStatus{
			ObservedGeneration: generation, StableRS: "old", CurrentPodHash: "new", CurrentStepIndex: &step, AvailableReplicas: 24,
			Phase: v1alpha1.RolloutPhasePaused, Message: "CanaryPauseStep", ControllerPause: true,
			PauseConditions: []v1alpha1.PauseCondition{{Reason: v1alpha1.PauseReasonCanaryPauseStep, StartTime: metav1.NewTime(now.Add(-time.Minute))}},
			Canary: v1alpha1.CanaryStatus{Weights: &v1alpha1.TrafficWeights{
				Canary: v1alpha1.WeightDestination{Weight: 20, PodTemplateHash: "new"}, Stable: v1alpha1.WeightDestination{Weight: 80, PodTemplateHash: "old"}, Verified: &verified,
			}},
		},
	}
}

// going lets the Rollout be in the middle of this step, from 0, without a pause.
func going(ro *v1alpha1.Rollout, step int32) *v1alpha1.Rollout {
	ro.Status.CurrentStepIndex, ro.Status.PauseConditions, ro.Status.ControllerPause = &step, nil, false
	ro.Status.Phase, ro.Status.Message = v1alpha1.RolloutPhaseProgressing, "more replicas need to be updated"
	ro.Status.Canary.Weights.Verified = new(bool)
	return ro
}

// running is a world in which all is as it should be at 20.
func running(t testing.TB) *world {
	w := &world{t: t, refuse: map[string]error{}}
	w.store(rollout(""))
	w.service("web", "")
	w.rule("new", "old")
	w.routes(20)
	w.pods("old", 1, 20, 20)
	w.pods("new", 2, 4, 4)
	w.event(62*time.Second, 1, "Normal", "RolloutPaused", "Rollout is paused (CanaryPauseStep)")
	w.event(75*time.Second, 1, "Normal", router.EventVirtualServiceUpdated, `VirtualService shop/web: stable/canary of http[0] "primary" 100/0 -> 80/20`)
	return w
}

// istiod serves what it is told.
type istiod struct {
	served mesh.Served
	err    error
}

func (i *istiod) Namespace(rollout string) string               { return rollout }
func (i *istiod) Follow(types.UID, string, mesh.Want)           {}
func (i *istiod) Forget(types.UID)                              {}
func (i *istiod) Served(types.UID) (mesh.Served, error)         { return i.served, i.err }
func (i *istiod) Proxies(context.Context) ([]mesh.Proxy, error) { return nil, i.err }

// serving is an istiod with this weight for the canary.
func serving(canary uint32) *istiod {
	host := mesh.Host{Name: "web.shop.svc.cluster.local", Port: 80}
	name := func(subset string) string { return "outbound|80|" + subset + "|" + host.Name }
	var weights []mesh.Weighted
	for _, one := range []mesh.Weighted{{Cluster: name("stable"), Weight: 100 - canary}, {Cluster: name("canary"), Weight: canary}} {
		if one.Weight > 0 {
			weights = append(weights, one)
		}
	}
	cluster := func(hash string, n int32) mesh.Cluster {
		c := mesh.Cluster{Asked: true, Exists: true, Listed: true}
		for i := range n {
			c.Endpoints = append(c.Endpoints, mesh.Endpoint{Address: address(hash, i), Port: 8080, Healthy: true})
		}
		return c
	}
	return &istiod{served: mesh.Served{
		Routes:   map[mesh.Host][]mesh.Route{host: {{Name: "primary", VirtualService: types.NamespacedName{Namespace: "shop", Name: "web"}, Clusters: weights}}},
		Clusters: map[string]mesh.Cluster{name("stable"): cluster("old", 20), name("canary"): cluster("new", 4)},
	}}
}

func options() Options {
	return Options{Events: 5, Now: func() time.Time { return now }, Router: router.Options{Config: config.Options{
		PluginName: config.DefaultPluginName, Prometheus: config.PrometheusAddresses{Default: "http://prometheus.example:9090", Any: true},
	}}}
}

func without(objects []unstructured.Unstructured, kind string) []unstructured.Unstructured {
	var kept []unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() != kind {
			kept = append(kept, o)
		}
	}
	return kept
}
