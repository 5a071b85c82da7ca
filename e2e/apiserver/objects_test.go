package apiserver

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

const hashLabel = "rollouts-pod-template-hash"

// name is that of every object.
const name = "cart"

// manifests hold fields of every sort that must survive a write.
const manifests = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: cart
  labels: {team: shop}
  annotations: {"example.com/note": "a/b~c"}
spec:
  hosts: [cart, cart.example.com]
  gateways: [mesh]
  http:
  - name: first
    match: [{uri: {prefix: /first}, headers: {x-user: {exact: a}}}]
    timeout: 5s
    retries: {attempts: 3, perTryTimeout: 2s, retryOn: "5xx"}
    fault: {delay: {percentage: {value: 0.1}, fixedDelay: 5s}}
    route:
    - {destination: {host: cart, subset: stable, port: {number: 80}}, weight: 100, headers: {request: {set: {x-side: stable}}}}
    - {destination: {host: cart, subset: canary}}
  - name: second
    rewrite: {uri: /}
    route:
    - {destination: {host: cart, subset: stable}, weight: 100}
    - {destination: {host: cart, subset: canary}, weight: 0}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: cart
  annotations: {"example.com/note": kept}
spec:
  host: cart
  trafficPolicy: {connectionPool: {tcp: {maxConnections: 7}}}
  subsets:
  - name: other
    labels: {version: v0}
  - name: stable
    labels: {app: cart}
    trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST}}
  - name: canary
    labels: {app: cart}
`

var (
	virtualServices  = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
	destinationRules = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "destinationrules"}
)

// applyObjects puts the manifests into a namespace and waits until the cluster
// has them.
func applyObjects(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	if _, err := shared.Apply(t.Context(), namespace, []byte(manifests)); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the objects in the caches", func() bool {
		_, vsErr := c.VirtualService(namespace, name)
		_, drErr := c.DestinationRule(namespace, name)
		return vsErr == nil && drErr == nil
	})
}

func stored(t *testing.T, resource schema.GroupVersionResource, namespace string) *unstructured.Unstructured {
	t.Helper()
	u, err := shared.Dynamic.Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// meanwhile changes an object as another actor, who knows nothing of the plugin.
func meanwhile(t *testing.T, resource schema.GroupVersionResource, namespace string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	u := stored(t, resource, namespace)
	change(u)
	u, err := shared.Dynamic.Resource(resource).Namespace(namespace).Update(t.Context(), u, metav1.UpdateOptions{FieldManager: "somebody"})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// content is an object without what the API server changes with each write.
func content(u *unstructured.Unstructured) map[string]any {
	c := u.DeepCopy()
	c.SetManagedFields(nil)
	c.SetResourceVersion("")
	c.SetGeneration(0)
	return c.Object
}

// inList returns the entry of a list in spec that has a name.
func inList(u *unstructured.Unstructured, list, entry string) map[string]any {
	items, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", list)
	for _, item := range items.([]any) {
		if m := item.(map[string]any); m["name"] == entry {
			return m
		}
	}
	panic("no " + list + " " + entry)
}

// weigh does to an object what setWeight does to the stored one.
func weigh(u *unstructured.Unstructured, route string, weight int64) {
	destinations := inList(u, "http", route)["route"].([]any)
	destinations[0].(map[string]any)["weight"] = 100 - weight
	destinations[1].(map[string]any)["weight"] = weight
}

// setWeight is an edit as the router makes it: it finds its route in the object
// that it is given.
func setWeight(route string, weight int64) cluster.Edit[*virtualservice.VirtualService] {
	return func(vs *virtualservice.VirtualService) (jsonpatch.Patch, error) {
		for _, r := range vs.HTTP {
			if r.Name != route {
				continue
			}
			if r.Destinations[1].HasWeight && r.Destinations[1].Weight == weight {
				return nil, nil
			}
			at := func(i int) string {
				return jsonpatch.Pointer("spec", "http", strconv.Itoa(r.Index), "route", strconv.Itoa(i), "weight")
			}
			return jsonpatch.Patch{jsonpatch.Add(at(0), 100-weight), jsonpatch.Add(at(1), weight)}, nil
		}
		return nil, fmt.Errorf("no route %s", route)
	}
}

// canaryWeight is what a read says of a route; -1 when it cannot be read.
func canaryWeight(c *cluster.Cluster, namespace, route string) int64 {
	vs, err := c.VirtualService(namespace, name)
	if err != nil {
		return -1
	}
	for _, r := range vs.HTTP {
		if r.Name == route {
			return r.Destinations[1].Weight
		}
	}
	return -1
}

func setHashes(canary, stable string) cluster.Edit[*destinationrule.DestinationRule] {
	return func(dr *destinationrule.DestinationRule) (jsonpatch.Patch, error) {
		patch, _, err := dr.Set(destinationrule.Target{CanarySubset: "canary", CanaryHash: canary, StableSubset: "stable", StableHash: stable})
		return patch, err
	}
}
