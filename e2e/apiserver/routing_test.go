package apiserver

import (
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// versions collects, for each object, what a read returned when it was told of.
type versions struct {
	mu   sync.Mutex
	read map[string][]string
}

// listen notes the resourceVersion that a read has at the moment of the news, or
// "gone".
func listen(c *cluster.Cluster, namespace string) *versions {
	v := &versions{read: map[string][]string{}}
	c.OnRoutingChanged(func(kind, ns, name string) {
		if ns != namespace {
			return
		}
		version := "gone"
		if kind == "VirtualService" {
			if vs, err := c.VirtualService(ns, name); err == nil {
				version = vs.ResourceVersion
			}
		} else if dr, err := c.DestinationRule(ns, name); err == nil {
			version = dr.ResourceVersion
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.read[kind+" "+name] = append(v.read[kind+" "+name], version)
	})
	return v
}

func (v *versions) last(object string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if read := v.read[object]; len(read) > 0 {
		return read[len(read)-1]
	}
	return ""
}

func (v *versions) of(object string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.read[object])
}

func TestEachNewVersionOfTheRoutingIsToldOnceAReadReturnsIt(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	told := listen(s.Cluster, s.namespace)
	applyObjects(t, s.Cluster, s.namespace)
	want := func(what, object string, resource schema.GroupVersionResource) {
		t.Helper()
		version := stored(t, resource, s.namespace).GetResourceVersion()
		eventually(t, time.Minute, "news of "+what, func() bool { return told.last(object) == version })
	}
	const vs, dr = "VirtualService cart", "DestinationRule cart"
	want("a new VirtualService", vs, virtualServices)
	want("a new DestinationRule", dr, destinationRules)

	meanwhile(t, virtualServices, s.namespace, func(u *unstructured.Unstructured) { weigh(u, "second", 70) })
	want("a VirtualService that others wrote", vs, virtualServices)
	meanwhile(t, destinationRules, s.namespace, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) })
	want("a DestinationRule that others wrote", dr, destinationRules)

	ctx := within(t, time.Minute)
	if _, _, err := s.UpdateVirtualService(ctx, s.namespace, name, setWeight("first", 30)); err != nil {
		t.Fatal(err)
	}
	want("a VirtualService that this process wrote", vs, virtualServices)
	if _, _, err := s.UpdateDestinationRule(ctx, s.namespace, name, setHashes("new", "old")); err != nil {
		t.Fatal(err)
	}
	want("a DestinationRule that this process wrote", dr, destinationRules)

	for object, resource := range map[string]schema.GroupVersionResource{vs: virtualServices, dr: destinationRules} {
		deleteObject(t, resource, s.namespace)
		eventually(t, time.Minute, "news of the deletion of "+object, func() bool { return told.last(object) == "gone" })
		if got := told.of(object); len(got) != 4 {
			t.Errorf("%s: told of %v, want four versions", object, got)
		}
	}
}

func TestWritesConflictsAndSignsOfLifeAreTold(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.grant(t, stockRole(t).Rules)
	told := &news{}
	c := newCluster(t, a.config(t, nil), cluster.Options{
		Namespace: a.namespace,
		Written:   func(kind string) { told.add("written ", kind) },
		Conflict:  func(kind string) { told.add("conflict ", kind) },
		Heard:     func(resource string) { told.add("heard ", resource) },
	})
	makeReady(t, c, time.Minute)
	for _, resource := range []string{"virtualservices.networking.istio.io", "destinationrules.networking.istio.io", "replicasets.apps", "services", "pods"} {
		if told.count("heard "+resource) == 0 {
			t.Errorf("nothing is heard of %s, which was listed", resource)
		}
	}
	applyObjects(t, c, a.namespace)
	ctx := within(t, time.Minute)
	calls := 0
	_, _, err := c.UpdateVirtualService(ctx, a.namespace, name, func(vs *virtualservice.VirtualService) (jsonpatch.Patch, error) {
		if calls++; calls == 1 {
			defer meanwhile(t, virtualServices, a.namespace, func(u *unstructured.Unstructured) { weigh(u, "second", 70) })
		}
		return setWeight("first", 30)(vs)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.UpdateDestinationRule(ctx, a.namespace, name, setHashes("new", "old")); err != nil {
		t.Fatal(err)
	}
	// The second time there is nothing to write.
	if _, _, err := c.UpdateDestinationRule(ctx, a.namespace, name, setHashes("new", "old")); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]int{
		"written VirtualService": 1, "written DestinationRule": 1, "conflict VirtualService": 1, "conflict DestinationRule": 0,
	} {
		if got := told.count(what); got != want {
			t.Errorf("%s is told %d times, want %d", what, got, want)
		}
	}
	before := told.count("heard services")
	if _, err := shared.Apply(t.Context(), a.namespace, []byte("{apiVersion: v1, kind: Service, metadata: {name: cart}, spec: {ports: [{port: 80}]}}")); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "a sign of life of Services", func() bool { return told.count("heard services") > before })
}

func TestARolloutIsReadWithItsUIDAndOneThatIsNotThereIsNone(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	owner := createOwner(t, s.namespace, "Rollout", "cart")
	ctx := within(t, time.Minute)
	ro, err := s.Rollout(ctx, s.namespace, "cart")
	if err != nil || ro == nil || ro.UID != owner.UID || ro.Spec.Replicas == nil || *ro.Spec.Replicas != 1 {
		t.Errorf("Rollout %v, error %v, want UID %s", ro, err, owner.UID)
	}
	if ro, err := s.Rollout(ctx, s.namespace, "none"); err != nil || ro != nil {
		t.Errorf("Rollout %v, error %v, want none", ro, err)
	}
	if err := shared.Dynamic.Resource(schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}).
		Namespace(s.namespace).Delete(t.Context(), "cart", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if ro, err := s.Rollout(ctx, s.namespace, "cart"); err != nil || ro != nil {
		t.Errorf("a deleted Rollout is %v, error %v", ro, err)
	}
}
