package cluster

import (
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// full is a ReplicaSet as the API server has it.
func full(kind, apiVersion string) *appsv1.ReplicaSet {
	yes, size := true, int32(5)
	labels := map[string]string{"app": "cart", hashLabel: "6d4c7b9f58"}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "cart-6d4c7b9f58", UID: "rs-1", ResourceVersion: "7", CreationTimestamp: metav1.Unix(1000, 0),
			Labels: labels, Annotations: map[string]string{"note": "long"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody"}},
			OwnerReferences: []metav1.OwnerReference{
				{Kind: "Rollout", APIVersion: "argoproj.io/v1alpha1", Name: "other", UID: "no controller"},
				{Kind: kind, APIVersion: apiVersion, Name: "cart", UID: "owner-1", Controller: &yes},
			},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &size, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "cart"}}},
		}},
		Status: appsv1.ReplicaSetStatus{Replicas: 4, ReadyReplicas: 3, AvailableReplicas: 2},
	}
}

// cached puts a ReplicaSet through what every object goes through.
func cached(t *testing.T, r *replicaSets, from *appsv1.ReplicaSet) {
	t.Helper()
	kept, err := stripReplicaSet(from)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := stripReplicaSet(kept); err != nil || again != kept {
		t.Errorf("stripped again it is another one: %v, %v", again, err)
	}
	if err := r.informer.GetStore().Add(kept); err != nil {
		t.Fatal(err)
	}
}

func TestOfAReplicaSetIsKeptWhatCounts(t *testing.T) {
	r := newReplicaSets(nil, "", podNews{}, nothing)
	c := &Cluster{replicaSets: r}
	cached(t, r, full("Rollout", "argoproj.io/v1alpha1"))
	got, err := c.ReplicaSets("owner-1")
	if err != nil {
		t.Fatal(err)
	}
	want := []ReplicaSet{{
		Name: "cart-6d4c7b9f58", UID: "rs-1", Created: time.Unix(1000, 0), Hash: "6d4c7b9f58", Size: 5, Available: 2,
		Labels: map[string]string{"app": "cart", hashLabel: "6d4c7b9f58"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReplicaSetsAreFoundByWhoControlsThem(t *testing.T) {
	for name, test := range map[string]struct {
		kind, apiVersion    string
		rollout, experiment bool
	}{
		"a Rollout":                            {"Rollout", "argoproj.io/v1alpha1", true, false},
		"a Rollout of a later version":         {"Rollout", "argoproj.io/v2", true, false},
		"an Experiment":                        {"Experiment", "argoproj.io/v1alpha1", false, true},
		"a Deployment":                         {"Deployment", "apps/v1", false, false},
		"somebody's Rollout of another group":  {"Rollout", "example.com/v1", false, false},
		"an Experiment of another group, alas": {"Experiment", "example.com/v1", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var rollouts, experiments []string
			r := newReplicaSets(nil, "", podNews{
				rollout:    func(uid types.UID) { rollouts = append(rollouts, string(uid)) },
				experiment: func(namespace, hash string) { experiments = append(experiments, namespace+" "+hash) },
			}, nothing)
			c := &Cluster{replicaSets: r}
			cached(t, r, full(test.kind, test.apiVersion))
			sets, err := c.ReplicaSets("owner-1")
			if err != nil || (len(sets) == 1) != test.rollout {
				t.Errorf("of the Rollout: %v, %v", sets, err)
			}
			if got := c.ExperimentAvailable("shop", "6d4c7b9f58"); (got == 2) != test.experiment {
				t.Errorf("of the Experiment: %d pods", got)
			}
			r.tellOf("rs-1")
			if (len(rollouts) == 1 && rollouts[0] == "owner-1") != test.rollout || (len(experiments) == 1 && experiments[0] == "shop 6d4c7b9f58") != test.experiment {
				t.Errorf("told %v and %v", rollouts, experiments)
			}
		})
	}
}

func TestACopyOfWhatIsKeptIsOnesOwn(t *testing.T) {
	kept, err := stripReplicaSet(full("Rollout", "argoproj.io/v1alpha1"))
	if err != nil {
		t.Fatal(err)
	}
	rs := kept.(*replicaSet)
	other := rs.DeepCopyObject().(*replicaSet)
	other.pods["app"], other.Name = "other", "other"
	if rs.pods["app"] != "cart" || rs.Name != "cart-6d4c7b9f58" {
		t.Error("a change of the copy has changed the original")
	}
	stripped, err := stripService(&corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "cart"}, Ports: []corev1.ServicePort{{Port: 80}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := stripped.(*service)
	second := s.DeepCopyObject().(*service)
	second.selector["app"], second.ports[0].Port = "other", 81
	if s.selector["app"] != "cart" || s.ports[0].Port != 80 {
		t.Error("a change of the copy has changed the original")
	}
}

// Thousands of them are kept: a field of the API's own types is soon a megabyte.
func TestWhatIsKeptIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(replicaSet{}); size > 400 {
		t.Errorf("a ReplicaSet takes %d bytes", size)
	}
	if size := unsafe.Sizeof(service{}); size > 400 {
		t.Errorf("a Service takes %d bytes", size)
	}
	one, other := sharedLabels(map[string]string{"app": string([]byte("cart"))}), sharedLabels(map[string]string{"app": string([]byte("cart"))})
	if unsafe.StringData(one["app"]) != unsafe.StringData(other["app"]) {
		t.Error("equal labels are kept twice")
	}
	if sharedLabels(nil) != nil {
		t.Error("no labels have become some")
	}
}
