package apiserver

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// in are the VirtualServices of a version.
func in(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "networking.istio.io", Version: version, Resource: "virtualservices"}
}

// serveOnly waits until the API server answers in these versions only.
func serveOnly(t *testing.T, whole map[string]*unstructured.Unstructured, versions ...string) {
	t.Helper()
	for _, definition := range whole {
		define(t, served(definition, versions...))
	}
	eventually(t, time.Minute, "no other version than "+strings.Join(versions, ", "), func() bool {
		for _, resource := range []schema.GroupVersionResource{virtualServices, destinationRules} {
			_, err := shared.Dynamic.Resource(resource).List(t.Context(), metav1.ListOptions{})
			if !apierrors.IsNotFound(err) || isServed("v1", resource.Resource) {
				return false
			}
		}
		return true
	})
}

// setWeightByCall is one call of the controller.
func (s stock) setWeightByCall(t *testing.T, weight int64) (version string, err error) {
	t.Helper()
	ctx := within(t, 15*time.Second)
	if err := s.Ready(ctx); err != nil {
		return "", err
	}
	vs, _, err := s.UpdateVirtualService(ctx, s.namespace, name, setWeight("first", weight))
	if err != nil {
		return "", err
	}
	if got := canaryWeight(s.Cluster, s.namespace, "first"); got != weight {
		t.Errorf("after the write of %d it reads %d", weight, got)
	}
	return vs.APIVersion, nil
}

// assertSeen checks that the watch brings what somebody else writes.
func (s stock) assertSeen(t *testing.T, version string, weight int64) {
	t.Helper()
	meanwhile(t, in(version), s.namespace, func(u *unstructured.Unstructured) { weigh(u, "second", weight) })
	eventually(t, time.Minute, "the change of somebody else", func() bool {
		return canaryWeight(s.Cluster, s.namespace, "second") == weight
	})
}

// None of these is parallel: while one runs nobody else can use Istio's definitions.
func TestAVersionThatIsWithdrawnInMidCanaryIsFollowedByAnother(t *testing.T) {
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	if version, err := s.setWeightByCall(t, 20); err != nil || version != "networking.istio.io/v1" {
		t.Fatalf("in %q, error %v", version, err)
	}
	whole := map[string]*unstructured.Unstructured{}
	for _, name := range []string{virtualServiceDefinition, destinationRuleDefinition} {
		whole[name] = borrowDefinition(t, name)
	}
	serveOnly(t, whole, "v1beta1", "v1alpha3")

	// The first call fails, unless the watch has found it before. So do those that come
	// within a second of the last asking, which in a test may be all of a canary.
	version := ""
	eventually(t, 30*time.Second, "a call that succeeds", func() bool {
		v, err := s.setWeightByCall(t, 30)
		if err != nil {
			says(t, err, "does not serve virtualservices in networking.istio.io/v1 any more", "at the next call")
			if apierrors.IsNotFound(err) {
				t.Errorf("%v is the NotFound of an object", err)
			}
		}
		version = v
		return err == nil
	})
	if version != "networking.istio.io/v1beta1" {
		t.Fatalf("in %q", version)
	}
	if dr, _, err := s.UpdateDestinationRule(within(t, 10*time.Second), s.namespace, name, setHashes("new", "old")); err != nil || dr.APIVersion != version {
		t.Errorf("DestinationRule: %v", err)
	}
	s.assertSeen(t, "v1beta1", 70)

	restoreDefinitions(t, whole)
	if _, err := s.setWeightByCall(t, 40); err != nil {
		t.Errorf("with all versions back: %v", err)
	}
	s.assertSeen(t, "v1", 80)
}

func TestAVersionThatIsWithdrawnIsFollowedByAnotherWithoutACall(t *testing.T) {
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	whole := map[string]*unstructured.Unstructured{virtualServiceDefinition: borrowDefinition(t, virtualServiceDefinition)}
	define(t, served(whole[virtualServiceDefinition], "v1alpha3"))
	eventually(t, time.Minute, "the VirtualService in v1alpha3", func() bool {
		vs, err := s.VirtualService(s.namespace, name)
		return err == nil && vs.APIVersion == "networking.istio.io/v1alpha3"
	})
	s.assertSeen(t, "v1alpha3", 70)
	// What the plugin does when pods are lost.
	if _, changed, err := s.UpdateVirtualService(within(t, 10*time.Second), s.namespace, name, setWeight("first", 10)); err != nil || !changed {
		t.Errorf("changed %t, %v", changed, err)
	}
}

func TestDefinitionsThatGoAreMissedAtEachCallUntilTheyAreBack(t *testing.T) {
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	whole := map[string]*unstructured.Unstructured{}
	for _, name := range []string{virtualServiceDefinition, destinationRuleDefinition} {
		whole[name] = takeDefinition(t, name)
	}
	eventually(t, time.Minute, "an error that says so", func() bool {
		err := s.Ready(within(t, 10*time.Second))
		return err != nil && strings.Contains(err.Error(), "does not serve VirtualService") && strings.Contains(err.Error(), "install Istio's CRDs")
	})
	notReady(t, s.Cluster, "VirtualService", "DestinationRule", "it is tried again at the next call")
	restoreDefinitions(t, whole)
	makeReady(t, s.Cluster, time.Minute)
	applyObjects(t, s.Cluster, s.namespace)
	if _, err := s.setWeightByCall(t, 30); err != nil {
		t.Error(err)
	}
}

// The answers by which pkg/cluster tells the two: a new API server may have others.
func TestTheAPIServersAnswersToAVersionAndToAnObjectThatAreNotThere(t *testing.T) {
	namespace := newNamespace(t)
	for what, tc := range map[string]struct {
		version string
		bySelf  bool
	}{
		"a version that is not there": {"v9", false},
		"an object that is not there": {"v1", true},
	} {
		_, err := shared.Dynamic.Resource(in(tc.version)).Namespace(namespace).
			Patch(t.Context(), name, types.JSONPatchType, []byte("[]"), metav1.PatchOptions{})
		unexpected := apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
		if !apierrors.IsNotFound(err) || unexpected == tc.bySelf {
			t.Errorf("%s: %#v", what, err)
		}
	}
}
