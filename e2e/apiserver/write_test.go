package apiserver

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

func TestAVirtualServiceChangedBetweenReadAndWriteKeepsBothChanges(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	var theirs *unstructured.Unstructured
	calls := 0
	_, changed, err := s.UpdateVirtualService(within(t, 10*time.Second), s.namespace, name,
		func(vs *virtualservice.VirtualService) (jsonpatch.Patch, error) {
			if calls++; calls == 1 {
				defer func() { theirs = meanwhile(t, virtualServices, s.namespace, addRouteAndMore) }()
			}
			return setWeight("second", 30)(vs)
		})
	if err != nil || !changed {
		t.Fatalf("changed %t, %v", changed, err)
	}
	weigh(theirs, "second", 30)
	if diff := cmp.Diff(content(theirs), content(stored(t, virtualServices, s.namespace))); diff != "" {
		t.Errorf("not their object with our two weights (-want +got):\n%s", diff)
	}
	if got := s.patches(t, "virtualservices", name); !cmp.Equal(got, []int{422, 200}) {
		t.Errorf("patches were answered with %v, want one lost race and one success", got)
	}
}

// addRouteAndMore moves every route by one, so that a patch computed from the
// object before would write into the wrong route.
func addRouteAndMore(u *unstructured.Unstructured) {
	inList(u, "http", "second")["timeout"] = "7s"
	routes, _, _ := unstructured.NestedSlice(u.Object, "spec", "http")
	added := map[string]any{"name": "added", "route": []any{
		map[string]any{"destination": map[string]any{"host": "elsewhere"}, "weight": int64(1)},
		map[string]any{"destination": map[string]any{"host": "anywhere"}, "weight": int64(99)},
	}}
	_ = unstructured.SetNestedSlice(u.Object, append([]any{added}, routes...), "spec", "http")
	u.SetAnnotations(map[string]string{"somebody/was": "here"})
	u.SetLabels(nil)
}

func TestADestinationRuleChangedBetweenReadAndWriteKeepsBothChanges(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	var theirs *unstructured.Unstructured
	calls := 0
	_, changed, err := s.UpdateDestinationRule(within(t, 10*time.Second), s.namespace, name,
		func(dr *destinationrule.DestinationRule) (jsonpatch.Patch, error) {
			if calls++; calls == 1 {
				defer func() { theirs = meanwhile(t, destinationRules, s.namespace, dropSubsetAndMore) }()
			}
			return setHashes("newhash", "oldhash")(dr)
		})
	if err != nil || !changed {
		t.Fatalf("changed %t, %v", changed, err)
	}
	for subset, hash := range map[string]string{"canary": "newhash", "stable": "oldhash"} {
		inList(theirs, "subsets", subset)["labels"].(map[string]any)[hashLabel] = hash
	}
	if diff := cmp.Diff(content(theirs), content(stored(t, destinationRules, s.namespace))); diff != "" {
		t.Errorf("not their object with our two labels (-want +got):\n%s", diff)
	}
}

func dropSubsetAndMore(u *unstructured.Unstructured) {
	subsets, _, _ := unstructured.NestedSlice(u.Object, "spec", "subsets")
	_ = unstructured.SetNestedSlice(u.Object, subsets[1:], "spec", "subsets")
	inList(u, "subsets", "canary")["labels"].(map[string]any)["zone"] = "a"
	_ = unstructured.SetNestedField(u.Object, int64(9), "spec", "trafficPolicy", "connectionPool", "tcp", "maxConnections")
}

func TestAnObjectThatOthersKeepChangingEndsAtTheDeadlineAndLosesNothing(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	const deadline = 2 * time.Second
	calls, began := 0, time.Now()
	_, changed, err := s.UpdateVirtualService(within(t, deadline), s.namespace, name,
		func(vs *virtualservice.VirtualService) (jsonpatch.Patch, error) {
			calls++
			meanwhile(t, virtualServices, s.namespace, func(u *unstructured.Unstructured) {
				u.SetAnnotations(map[string]string{"calls": strconv.Itoa(calls)})
			})
			return setWeight("first", 30)(vs)
		})
	took := time.Since(began)
	if changed || err == nil || !strings.Contains(err.Error(), "VirtualService "+s.namespace+"/"+name) {
		t.Errorf("changed %t, %v, want an error that names the object", changed, err)
	}
	if took > deadline+time.Second {
		t.Errorf("it took %s", took)
	}
	if calls < 3 || calls > 20 {
		t.Errorf("%d attempts in %s, want several that are paced", calls, deadline)
	}
	left := stored(t, virtualServices, s.namespace)
	if got := left.GetAnnotations()["calls"]; got != strconv.Itoa(calls) {
		t.Errorf("the last change of the others was %d, the object has %q", calls, got)
	}
	if weight, found := inList(left, "http", "first")["route"].([]any)[1].(map[string]any)["weight"]; found {
		t.Errorf("a write that was reported as failed left weight %v", weight)
	}
}

func TestAWriteThatValidationRefusesFailsAtOnceAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	refused := func(path string) (jsonpatch.Patch, error) {
		return jsonpatch.Patch{jsonpatch.Add(path, map[string]any{"not": "allowed"})}, nil
	}
	calls := 0
	_, _, vsErr := s.UpdateVirtualService(within(t, 10*time.Second), s.namespace, name,
		func(*virtualservice.VirtualService) (jsonpatch.Patch, error) {
			calls++
			return refused("/spec/http/0/route/0/weight")
		})
	_, _, drErr := s.UpdateDestinationRule(within(t, 10*time.Second), s.namespace, name,
		func(*destinationrule.DestinationRule) (jsonpatch.Patch, error) {
			calls++
			return refused("/spec/subsets/0/labels/" + hashLabel)
		})
	for object, err := range map[string]error{"VirtualService": vsErr, "DestinationRule": drErr} {
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), object+" "+s.namespace+"/"+name) {
			t.Errorf("%s: %v, want the refusal with the object's name", object, err)
		}
	}
	if !strings.Contains(vsErr.Error(), "spec.http[0].route[0].weight") {
		t.Errorf("the error does not say which field is refused: %v", vsErr)
	}
	if calls != 2 {
		t.Errorf("%d attempts for two refusals", calls)
	}
	for _, resource := range []string{"virtualservices", "destinationrules"} {
		if got := s.patches(t, resource, name); !cmp.Equal(got, []int{422}) {
			t.Errorf("%s: patches were answered with %v, want a single 422", resource, got)
		}
	}
}

func TestAnErrorOfTheEditOrAnEmptyPatchSendsNothing(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	failure := errors.New("does not fit")
	for what, answer := range map[string]error{"an error": failure, "an empty patch": nil} {
		_, changed, err := s.UpdateVirtualService(within(t, 10*time.Second), s.namespace, name,
			func(*virtualservice.VirtualService) (jsonpatch.Patch, error) { return nil, answer })
		if changed || !errors.Is(err, answer) {
			t.Errorf("%s: changed %t, %v", what, changed, err)
		}
	}
	if got := s.patches(t, "virtualservices", name); len(got) > 0 {
		t.Errorf("patches were sent: %v", got)
	}
}

func TestTwoWritersOfOneVirtualServiceLoseNoUpdate(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	before := stored(t, virtualServices, s.namespace)
	const writes = 20
	ctx := within(t, time.Minute)
	write := func(c *cluster.Cluster, route string) func() {
		return func() {
			for weight := int64(1); weight <= writes; weight++ {
				if _, changed, err := c.UpdateVirtualService(ctx, s.namespace, name, setWeight(route, weight)); err != nil || !changed {
					t.Errorf("route %s, weight %d: changed %t, %v", route, weight, changed, err)
				}
				if got := canaryWeight(c, s.namespace, route); got != weight {
					t.Errorf("route %s: reads %d after writing %d", route, got, weight)
				}
			}
		}
	}
	every(write(s.Cluster, "first"), write(s.Cluster, "second"))
	after := stored(t, virtualServices, s.namespace)
	if got := after.GetGeneration() - before.GetGeneration(); got != 2*writes {
		t.Errorf("the object was written %d times, want %d", got, 2*writes)
	}
	weigh(before, "first", writes)
	weigh(before, "second", writes)
	if diff := cmp.Diff(content(before), content(after)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestADeletedObjectIsSaidToBeMissingUntilItIsBack(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	ctx := within(t, time.Minute)
	if _, _, err := s.UpdateVirtualService(ctx, s.namespace, name, setWeight("first", 40)); err != nil {
		t.Fatal(err)
	}
	deleteObject(t, virtualServices, s.namespace)
	// At once the cache may still have it; the API server has not.
	_, _, err := s.UpdateVirtualService(ctx, s.namespace, name, setWeight("first", 50))
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), s.namespace+"/"+name) {
		t.Errorf("writing a deleted object: %v, want not found with its name", err)
	}
	eventually(t, 30*time.Second, "the read to say so too", func() bool {
		_, err := s.VirtualService(s.namespace, name)
		return apierrors.IsNotFound(err)
	})
	applyObjects(t, s.Cluster, s.namespace)
	if got := canaryWeight(s.Cluster, s.namespace, "first"); got != 0 {
		t.Errorf("the new object's weight reads %d: that is the deleted one's", got)
	}
}
