package router

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// The reports_*_test.go files play what users have reported about the native router
// and about its neighbours, and what lies beside each report.

const (
	// toBoth is the destinations of a route, all of its traffic on the stable.
	toBoth = "route: [{destination: {host: cart-stable}, weight: 100}, {destination: {host: cart-canary}, weight: 0}]"
	// toThree is toBoth with a fifth of the traffic for somebody else's service.
	toThree = "route: [{destination: {host: cart-stable}, weight: 80}, {destination: {host: cart-canary}, weight: 0}, {destination: {host: legacy}, weight: 20}]"
	// toThreeSubsets is the same with subsets.
	toThreeSubsets = "route: [{destination: {host: cart, subset: stable}, weight: 80}, {destination: {host: cart, subset: canary}, weight: 0}, {destination: {host: cart, subset: legacy}, weight: 20}]"

	primaryConfig = `{"virtualService": {"name": "cart", "routes": ["primary"]}}`
	twoConfig     = `{"virtualServices": [{"name": "a"}, {"name": "b"}]}`
)

// hostCanary is a canary "new" with all of its pods beside the stable "old", at
// host level.
func hostCanary(t *testing.T, objects ...string) (*world, *Router) {
	w := newWorld(t, objects...)
	w.services["shop/cart-stable"], w.services["shop/cart-canary"] = "old", "new"
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	w.pass(time.Minute)
	return w, w.calledRouter()
}

// subsetCanary is a canary "c2" with all of its pods beside the stable "s1", at
// subset level.
func subsetCanary(t *testing.T, destinationRule string) (*world, *Router, *v1alpha1.Rollout) {
	w := newWorld(t, subsetVirtualService, destinationRule)
	w.pods("s1", 20, 20)
	w.pods("c2", 20, 20)
	w.pass(time.Minute)
	ro := rollout(subsetConfig)
	ro.Status.StableRS, ro.Status.CurrentPodHash = "s1", "c2"
	return w, w.calledRouter(), ro
}

// calledRouter is a new process that the controller talks to, so that it may write
// without being asked.
func (w *world) calledRouter() *Router {
	r := w.router()
	r.Called()
	return r
}

// subsetCanaryAt is subsetCanary with its labels and a weight in place.
func subsetCanaryAt(t *testing.T, weight int32) (*world, *Router, *v1alpha1.Rollout) {
	t.Helper()
	w, r, ro := subsetCanary(t, subsetDestinationRule)
	mustUpdate(t, r, ro, "c2", "s1")
	mustSet(t, r, ro, weight)
	return w, r, ro
}

func mustSet(t *testing.T, r *Router, ro *v1alpha1.Rollout, weight int32) {
	t.Helper()
	must(t, setWeight(t, r, ro, weight))
}

// soon makes a call that finds pods which have just become available, and makes it
// again once the proxies have had the time to learn of them.
func soon(t *testing.T, w *world, call func() error) {
	t.Helper()
	wantError(t, call(), "only just become available, the proxies get 2s to learn of it")
	w.pass(2 * time.Second)
	must(t, call())
}

func mustSetSoon(t *testing.T, w *world, r *Router, ro *v1alpha1.Rollout, weight int32) {
	t.Helper()
	soon(t, w, func() error { return setWeight(t, r, ro, weight) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantEqual(t *testing.T, when, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, want %s", when, got, want)
	}
}

// wantError checks that there is an error with all of the parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

func (w *world) wantWeights(t *testing.T, when, want string) {
	t.Helper()
	wantEqual(t, when, w.weights(), want)
}

func (w *world) wantLabels(t *testing.T, when, want string) {
	t.Helper()
	wantEqual(t, when, w.labels(), want)
}

// virtualServiceOf is a VirtualService of shop with the given rest of its spec.
func virtualServiceOf(name, spec string) string {
	return "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: " + name + "}\nspec:\n  hosts: [" + name + "]\n" + spec
}

func (w *world) virtualService(name string) *unstructured.Unstructured {
	return w.objects["VirtualService shop/"+name]
}

func (w *world) destinationRule() *unstructured.Unstructured {
	return w.objects["DestinationRule shop/cart"]
}

// lists returns "name=stable/canary" of a VirtualService's routes of one protocol.
func (w *world) lists(name, protocol string) string {
	routes, _, _ := unstructured.NestedSlice(w.virtualService(name).Object, "spec", protocol)
	var out []string
	for _, route := range routes {
		r := route.(map[string]any)
		var weights []string
		destinations, _ := r["route"].([]any)
		for _, d := range destinations {
			weight, there := d.(map[string]any)["weight"]
			if !there {
				weight = 0
			}
			weights = append(weights, fmt.Sprint(weight))
		}
		routeName, _ := r["name"].(string)
		out = append(out, routeName+"="+strings.Join(weights, "/"))
	}
	return strings.Join(out, " ")
}

// httpRoute is one http route of VirtualService shop/cart.
func (w *world) httpRoute(i int) map[string]any {
	http, _, _ := unstructured.NestedSlice(w.virtualService("cart").Object, "spec", "http")
	return http[i].(map[string]any)
}

// withoutHTTP is a copy of an object without the http routes from one index to before
// another.
func withoutHTTP(u *unstructured.Unstructured, from, to int) *unstructured.Unstructured {
	u = u.DeepCopy()
	spec := u.Object["spec"].(map[string]any)
	spec["http"] = slices.Delete(spec["http"].([]any), from, to)
	return u
}

// changes are all values that differ, as "/path: before -> after", whatever the type
// of object. Versions and owners of fields are left out.
func changes(before, after *unstructured.Unstructured) string {
	a, b := leaves(before), leaves(after)
	var out []string
	for path, value := range a {
		if b[path] != value {
			out = append(out, fmt.Sprintf("%s: %s -> %s", path, value, b[path]))
		}
	}
	for path, value := range b {
		if _, there := a[path]; !there {
			out = append(out, fmt.Sprintf("%s: -> %s", path, value))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// leaves are an object's values by their paths.
func leaves(u *unstructured.Unstructured) map[string]string {
	u = u.DeepCopy()
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	out := map[string]string{}
	addLeaves(out, "", u.Object)
	return out
}

func addLeaves(out map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			out[path] = "{}"
		}
		for key, inner := range v {
			addLeaves(out, path+"/"+key, inner)
		}
	case []any:
		if len(v) == 0 {
			out[path] = "[]"
		}
		for i, inner := range v {
			addLeaves(out, fmt.Sprintf("%s/%d", path, i), inner)
		}
	default:
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // it came from JSON
		}
		out[path] = string(text)
	}
}

const richVirtualService = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, labels: {a: b}, annotations: {c: d}}
spec:
  hosts: [cart]
  gateways: [mesh]
  exportTo: ["."]
  futureTop: {z: 1}
  http:
  - name: primary
    match: [{uri: {prefix: /a}, withoutHeaders: {x-no: {}}, sourceLabels: {app: web}}]
    rewrite: {uri: /b}
    timeout: 5s
    retries: {attempts: 3, perTryTimeout: 2s, retryOn: "5xx"}
    corsPolicy: {allowOrigins: [{exact: "*"}], maxAge: 24h}
    headers: {request: {set: {q: w}}}
    fault: {delay: {fixedDelay: 1s, percentage: {value: 0.1}}}
    futureField: {a: 1, big: 9007199254740993}
    route:
    - {destination: {host: cart-stable, port: {number: 80}}, weight: 100, headers: {response: {add: {s: t}}}, futureDest: [1, 2]}
    - {destination: {host: cart-canary, port: {number: 80}}, weight: 0, headers: {response: {add: {s: u}}}}
  - name: other
    match: [{withoutHeaders: {q: {exact: z}}}]
    redirect: {uri: /x}
    futureRoute: 1
`

const richDestinationRule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart}
spec:
  host: cart
  exportTo: ["."]
  workloadSelector: {matchLabels: {a: b}}
  trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}
  futureTop: {x: 1}
  subsets:
  - {name: stable, labels: {app: cart, rollouts-pod-template-hash: s0}, trafficPolicy: {portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: LEAST_REQUEST}}], outlierDetection: {consecutive5xxErrors: 3}}, futureField: {a: [1]}}
  - {name: canary, labels: {app: cart, rollouts-pod-template-hash: c0}, trafficPolicy: {loadBalancer: {simple: RANDOM}}, futureField: {a: 2}}
  - {name: legacy, labels: {app: legacy}, trafficPolicy: {loadBalancer: {simple: RANDOM}}}
`
