package apiserver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
)

// told are the namespace's Events, once there are as many as wanted.
func told(t *testing.T, namespace string, want int) []corev1.Event {
	t.Helper()
	var list *corev1.EventList
	eventually(t, time.Minute, "Events", func() bool {
		var err error
		list, err = shared.Client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) >= want
	})
	return list.Items
}

func TestAnEventIsAboutTheRolloutAndSaysWhoTells(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	rollout := corev1.ObjectReference{
		APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Namespace: s.namespace, Name: "cart",
		UID: types.UID("6f1c"), ResourceVersion: "12",
	}
	s.Event(rollout, true, "CanaryWeightCapped", "capped at 10 of 100")
	s.Event(rollout, false, "CanaryWeightReleased", "released")
	got := map[string]corev1.Event{}
	for _, e := range told(t, s.namespace, 2) {
		got[e.Reason] = e
	}
	for reason, want := range map[string]corev1.Event{
		"CanaryWeightCapped":   {Type: corev1.EventTypeWarning, Message: "capped at 10 of 100"},
		"CanaryWeightReleased": {Type: corev1.EventTypeNormal, Message: "released"},
	} {
		e := got[reason]
		if e.InvolvedObject != rollout || e.Type != want.Type || e.Message != want.Message || e.Count != 1 ||
			e.Source.Component != cluster.FieldManager || e.FirstTimestamp.IsZero() {
			t.Errorf("Event %s: %+v", reason, e)
		}
	}
}

// A long canary writes more Events than client-go lets through by default.
func TestAHundredEventsOfOneRolloutAllArrive(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	rollout := corev1.ObjectReference{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Namespace: s.namespace, Name: "cart", UID: "6f1d"}
	const events = 100
	for i := range events {
		// Another reason each time, as Events of one reason are counted together.
		s.Event(rollout, false, "Step"+string(rune('A'+i/26))+string(rune('a'+i%26)), "went on")
	}
	if got := len(told(t, s.namespace, events)); got != events {
		t.Errorf("%d Events, want %d", got, events)
	}
}

func TestAnEventToldAgainIsCountedNotRepeated(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	rollout := corev1.ObjectReference{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Namespace: s.namespace, Name: "cart", UID: "6f1e"}
	for range 3 {
		s.Event(rollout, false, "VirtualServiceUpdated", "to 10")
	}
	eventually(t, time.Minute, "a count of 3", func() bool {
		all := told(t, s.namespace, 1)
		return len(all) == 1 && all[0].Count == 3
	})
}

func TestWritesCarryTheNameOfThePluginInManagedFields(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	ctx := within(t, 10*time.Second)
	before := time.Now().Add(-2 * time.Second)
	vs, _, err := s.UpdateVirtualService(ctx, s.namespace, name, setWeight("first", 20))
	if err != nil {
		t.Fatal(err)
	}
	dr, _, err := s.UpdateDestinationRule(ctx, s.namespace, name, setHashes("new", "old"))
	if err != nil {
		t.Fatal(err)
	}
	if at := vs.LastChange; at.Before(before) || at.After(time.Now()) {
		t.Errorf("VirtualService: the last change is said to be of %s", at)
	}
	if !vs.LastChangedByUs(vs.HTTP) || !dr.Ours {
		t.Errorf("the routes are said to be changed by us: %v, the subsets: %v", vs.LastChangedByUs(vs.HTTP), dr.Ours)
	}
	want := map[string]metav1.ManagedFieldsOperationType{"lab": metav1.ManagedFieldsOperationApply, cluster.FieldManager: metav1.ManagedFieldsOperationUpdate}
	for kind, u := range map[string][]metav1.ManagedFieldsEntry{
		"VirtualService":  stored(t, virtualServices, s.namespace).GetManagedFields(),
		"DestinationRule": stored(t, destinationRules, s.namespace).GetManagedFields(),
	} {
		got := map[string]metav1.ManagedFieldsOperationType{}
		for _, entry := range u {
			got[entry.Manager] = entry.Operation
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: managers (-want +got):\n%s", kind, diff)
		}
	}
}
