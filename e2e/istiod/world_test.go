package istiod

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/verification"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

const (
	hashLabel = "rollouts-pod-template-hash"
	oldHash   = "5f8d"
	newHash   = "7c9b"
	// rollout is the one whose mesh is looked at.
	rollout types.UID = "rollout"
)

// objects are what every world has: one host with two subsets.
const objects = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80}, {name: grpc-more, port: 81}, {name: tcp-other, port: 82}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web}
spec:
  host: web
  subsets:
  - {name: stable, labels: {rollouts-pod-template-hash: 5f8d}}
  - {name: canary, labels: {rollouts-pod-template-hash: 7c9b}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web}
spec:
  hosts: [web]
  http:
  - name: primary
    route:
    - {destination: {host: web, subset: stable}, weight: 90}
    - {destination: {host: web, subset: canary}, weight: 10}
`

// world is a namespace with objects and pods, looked at as the plugin does.
type world struct {
	namespace string
	cluster   *cluster.Cluster
	client    *mesh.Client
	counts    verification.Counts
	labels    map[string]string // of the canary's pods
}

// newWorld applies the objects and waits until the pods of both revisions are ready.
func newWorld(t *testing.T, options mesh.Options) *world {
	t.Helper()
	w := &world{namespace: newNamespace(t), counts: verification.Counts{Canary: 1, Stable: 2}}
	w.labels = map[string]string{hashLabel: newHash}
	apply(t, w.namespace, objects)
	owner := w.owner(t)
	w.addPods(t, owner, oldHash, 2)
	w.addPods(t, owner, newHash, 1)
	config, err := shared.ConfigFor(lab.User{Name: "plugin-" + w.namespace, Groups: []string{"system:masters"}})
	if err != nil {
		t.Fatal(err)
	}
	if w.cluster, err = cluster.New(config, cluster.Options{Namespace: w.namespace}, hclog.NewNullLogger()); err != nil {
		t.Fatal(err)
	}
	w.until(t, "the pods of both revisions", func(ctx context.Context) bool {
		if w.cluster.Ready(ctx) != nil || w.cluster.AwaitEndpoints(ctx) != nil {
			return false
		}
		ok, _ := w.plan(t).JudgeEndpoints(w.endpoints(t), w.counts)
		return ok
	})
	w.client = newClient(t, options)
	w.follow(t)
	return w
}

// owner is a Rollout that no controller looks after: ReplicaSets without one that
// exists are collected as garbage.
func (w *world) owner(t *testing.T) metav1.OwnerReference {
	t.Helper()
	u, err := shared.Dynamic.Resource(schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}).Namespace(w.namespace).
		Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": map[string]any{"name": "web"},
			"spec": map[string]any{"replicas": int64(1), "strategy": map[string]any{"canary": map[string]any{}}},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *metav1.NewControllerRef(u, u.GroupVersionKind())
}

// addPods makes a ReplicaSet as the controller would.
func (w *world) addPods(t *testing.T, owner metav1.OwnerReference, hash string, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": "web", hashLabel: hash}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web-" + hash, Labels: labels, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
			},
		},
	}
	lab.OnNode(&set.Spec.Template)
	if _, err := shared.Client.AppsV1().ReplicaSets(w.namespace).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) host() string { return "web." + w.namespace + ".svc.cluster.local" }

func (w *world) service() types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: "web"}
}

// plan is made of the objects as they are in the caches.
func (w *world) plan(t *testing.T) *verification.Plan {
	t.Helper()
	vs, err := w.cluster.VirtualService(w.namespace, "web")
	if err != nil {
		t.Fatal(err)
	}
	return w.planOf(vs)
}

func (w *world) planOf(vs *virtualservice.VirtualService) *verification.Plan {
	namespace := w.namespace
	if w.client != nil {
		namespace = w.client.Namespace(w.namespace)
	}
	return verification.NewPlan(verification.Facts{
		Namespace: namespace, Max: 100, Ports: w.cluster.ServicePorts, VirtualServices: []*virtualservice.VirtualService{vs},
		Pairs: []verification.Pair{{
			Canary: verification.Side{Side: virtualservice.Side{Host: w.host(), Subset: "canary"}, Labels: w.labels},
			Stable: verification.Side{Side: virtualservice.Side{Host: w.host(), Subset: "stable"}, Labels: map[string]string{hashLabel: oldHash}},
		}},
	})
}

func (w *world) endpoints(t *testing.T) verification.Endpoints {
	t.Helper()
	endpoints, err := w.cluster.Endpoints(w.namespace, "web")
	if err != nil {
		t.Fatal(err)
	}
	return verification.Endpoints{w.service(): endpoints}
}

func (w *world) follow(t *testing.T) {
	t.Helper()
	w.client.Follow(rollout, w.namespace, w.plan(t).Want())
}

// until waits as long as it takes.
func (w *world) until(t *testing.T, what string, holds func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := lab.Until(ctx, what, func(ctx context.Context) (bool, error) { return holds(ctx), nil }); err != nil {
		t.Fatal(err)
	}
}

// arrives waits until istiod serves what the plan says.
func (w *world) arrives(t *testing.T, plan *verification.Plan, what string) {
	t.Helper()
	waiting := "nothing has been served"
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s: the last judgement was: %s", what, waiting)
		}
	})
	await(t, w.client, rollout, what, func(s mesh.Served) (ok bool) {
		ok, waiting = plan.Judge(s, w.endpoints(t), w.counts)
		return ok
	})
}

// waits waits until the judgement says that something is missing.
func (w *world) waits(t *testing.T, judge func(mesh.Served) (bool, string), what string) {
	t.Helper()
	var waiting string
	await(t, w.client, rollout, "a judgement that says "+what, func(s mesh.Served) bool {
		var ok bool
		ok, waiting = judge(s)
		return !ok && strings.Contains(waiting, what)
	})
}

var (
	virtualServices  = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
	destinationRules = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "destinationrules"}
)

// patch changes an object and returns it when the API server has taken it.
func (w *world) patch(t *testing.T, resource schema.GroupVersionResource, patch string) *unstructured.Unstructured {
	t.Helper()
	u, err := shared.Dynamic.Resource(resource).Namespace(w.namespace).Patch(t.Context(), "web", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// setWeight gives the canary that weight, and returns the plan for it.
func (w *world) setWeight(t *testing.T, canary int) *verification.Plan {
	t.Helper()
	u := w.patch(t, virtualServices, fmt.Sprintf(`[{"op":"replace","path":"/spec/http/0/route/0/weight","value":%d},{"op":"replace","path":"/spec/http/0/route/1/weight","value":%d}]`, 100-canary, canary))
	return w.planOf(virtualservice.Parse(u, "test"))
}
