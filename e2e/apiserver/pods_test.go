package apiserver

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
)

// createOwner makes a Rollout or an Experiment that no controller looks after. Its
// ReplicaSets need one that exists: others are collected as garbage.
func createOwner(t *testing.T, namespace, kind, name string) metav1.OwnerReference {
	t.Helper()
	specs := map[string]map[string]any{
		"Rollout":    {"replicas": int64(1), "strategy": map[string]any{"canary": map[string]any{}}},
		"Experiment": {"templates": []any{}},
	}
	resource := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: map[string]string{"Rollout": "rollouts", "Experiment": "experiments"}[kind]}
	u, err := shared.Dynamic.Resource(resource).Namespace(namespace).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": specs[kind],
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *metav1.NewControllerRef(u, u.GroupVersionKind())
}

// createSet makes a ReplicaSet as the controller would, and waits for its pods.
func createSet(t *testing.T, namespace string, owner metav1.OwnerReference, hash string, replicas int32) types.UID {
	t.Helper()
	labels := map[string]string{"app": "cart", hashLabel: hash}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name + "-" + hash, Labels: labels, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "cart", hashLabel: hash, "version": "v1"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
			},
		},
	}
	lab.OnNode(&set.Spec.Template)
	set, err := shared.Client.AppsV1().ReplicaSets(namespace).Create(t.Context(), set, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return set.UID
}

// news collects what a cluster tells, as text. It is safe for concurrent use.
type news struct {
	mu   sync.Mutex
	told []string
}

func (n *news) add(parts ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told = append(n.told, fmt.Sprint(parts...))
}

// count is how often a text was told.
func (n *news) count(text string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, told := range n.told {
		if told == text {
			count++
		}
	}
	return count
}

func TestThePodsOfAnExperimentAreCountedByNamespaceAndHash(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	told := &news{}
	s.OnExperimentPodsChanged(func(namespace, hash string) { told.add(namespace, "/", hash) })
	s.OnPodsChanged(func(rollout types.UID) { told.add("rollout ", rollout) })
	experiment := createOwner(t, s.namespace, "Experiment", "probe")
	rollout := createOwner(t, s.namespace, "Rollout", "cart")
	createSet(t, s.namespace, experiment, "7c9b", 2)
	createSet(t, s.namespace, createOwner(t, s.namespace, "Experiment", "other"), "7c9b", 1)
	createSet(t, s.namespace, rollout, "5f8d", 3)
	eventually(t, time.Minute, "3 available pods of Experiments", func() bool { return s.ExperimentAvailable(s.namespace, "7c9b") == 3 })
	eventually(t, time.Minute, "3 available pods of the Rollout", func() bool {
		sets, err := s.ReplicaSets(rollout.UID)
		return err == nil && len(sets) == 1 && sets[0].Available == 3
	})
	for what, got := range map[string]int32{
		"a Rollout's hash":      s.ExperimentAvailable(s.namespace, "5f8d"),
		"no hash":               s.ExperimentAvailable(s.namespace, ""),
		"another namespace":     s.ExperimentAvailable("default", "7c9b"),
		"a hash that is longer": s.ExperimentAvailable(s.namespace, "7c9b0"),
	} {
		if got != 0 {
			t.Errorf("%s: %d available pods", what, got)
		}
	}
	if sets, err := s.ReplicaSets(experiment.UID); err != nil || len(sets) != 0 {
		t.Errorf("an Experiment is taken for a Rollout: %v, %v", sets, err)
	}
	eventually(t, time.Minute, "news of both", func() bool {
		return told.count(s.namespace+"/7c9b") >= 2 && told.count("rollout "+string(rollout.UID)) > 0
	})
	if told.count("rollout "+string(experiment.UID))+told.count(s.namespace+"/5f8d") > 0 {
		t.Errorf("told the wrong ones: %q", told.told)
	}
	before := told.count(s.namespace + "/7c9b")
	if err := shared.Client.AppsV1().ReplicaSets(s.namespace).Delete(t.Context(), "probe-7c9b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the pods to be gone", func() bool {
		return s.ExperimentAvailable(s.namespace, "7c9b") == 1 && told.count(s.namespace+"/7c9b") > before
	})
}

func TestAReplicaSetSaysWhoItIsAndWhenItWasMade(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	rollout := createOwner(t, s.namespace, "Rollout", "cart")
	began := time.Now().Add(-2 * time.Second)
	uid := createSet(t, s.namespace, rollout, "5f8d", 0)
	var sets []cluster.ReplicaSet
	eventually(t, time.Minute, "the ReplicaSet", func() bool {
		sets, _ = s.ReplicaSets(rollout.UID)
		return len(sets) == 1
	})
	if got := sets[0]; got.UID != uid || got.Created.Before(began) || got.Created.After(time.Now()) || got.Hash != "5f8d" {
		t.Errorf("ReplicaSet %+v, want UID %s", got, uid)
	}
	if groups := s.PodLabels(uid); len(groups) != 0 {
		t.Errorf("without pods it has %v", groups)
	}
}

// relabel changes labels of a pod as its owner never would; a nil value removes.
func relabel(t *testing.T, namespace, pod, patch string) {
	t.Helper()
	if _, err := shared.Client.CoreV1().Pods(namespace).Patch(t.Context(), pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func podNames(t *testing.T, namespace, hash string) []string {
	t.Helper()
	pods, err := shared.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: hashLabel + "=" + hash})
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(pods.Items))
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

func TestPodsAreCountedByTheLabelsThatTheyHaveByNow(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	told := &news{}
	s.OnPodsChanged(func(rollout types.UID) { told.add(rollout) })
	rollout := createOwner(t, s.namespace, "Rollout", "cart")
	uid := createSet(t, s.namespace, rollout, "5f8d", 3)
	plain := map[string]string{"app": "cart", hashLabel: "5f8d", "version": "v1"}
	odd := maps.Clone(plain)
	odd["version"] = "v2"
	// want waits until the groups are these and stay so for the news that is due.
	want := func(what string, atLeast int, groups ...cluster.PodGroup) {
		t.Helper()
		var last []cluster.PodGroup
		eventually(t, time.Minute, what, func() bool {
			last = s.PodLabels(uid)
			return cmp.Equal(groups, last) && told.count(string(rollout.UID)) >= atLeast
		})
	}
	want("three equal pods", 1, cluster.PodGroup{Labels: plain, Count: 3})
	eventually(t, time.Minute, "all pods to be available", func() bool {
		sets, err := s.ReplicaSets(rollout.UID)
		return err == nil && len(sets) == 1 && sets[0].Available == 3
	})
	pods := podNames(t, s.namespace, "5f8d")

	before := told.count(string(rollout.UID))
	relabel(t, s.namespace, pods[0], `{"metadata":{"labels":{"version":"v2"}}}`)
	want("one pod with another label", before+1, cluster.PodGroup{Labels: plain, Count: 2}, cluster.PodGroup{Labels: odd, Count: 1})

	before = told.count(string(rollout.UID))
	relabel(t, s.namespace, pods[0], `{"metadata":{"labels":{"version":"v1"}}}`)
	want("the label as it was", before+1, cluster.PodGroup{Labels: plain, Count: 3})

	// A write that leaves the labels alone is no news.
	before = told.count(string(rollout.UID))
	relabel(t, s.namespace, pods[1], `{"metadata":{"annotations":{"note":"1"}}}`)
	// Without its hash a pod is nobody's, and the ReplicaSet makes another.
	relabel(t, s.namespace, pods[2], `{"metadata":{"labels":{"`+hashLabel+`":null}}}`)
	want("another pod in place of the one that left", before, cluster.PodGroup{Labels: plain, Count: 3})
	eventually(t, time.Minute, "the one that left to be replaced", func() bool {
		return !slices.Contains(podNames(t, s.namespace, "5f8d"), pods[2]) && len(podNames(t, s.namespace, "5f8d")) == 3
	})

	// One that has ended is none, however long it stays.
	ended := []byte(`{"status":{"phase":"Failed"}}`)
	if _, err := shared.Client.CoreV1().Pods(s.namespace).Patch(t.Context(), pods[0], types.MergePatchType, ended, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "another pod in place of the one that has ended", func() bool {
		return len(podNames(t, s.namespace, "5f8d")) == 4 && cmp.Equal(s.PodLabels(uid), []cluster.PodGroup{{Labels: plain, Count: 3}})
	})

	if err := shared.Client.AppsV1().ReplicaSets(s.namespace).Delete(t.Context(), "cart-5f8d", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want("no pods", 0)
}

func TestPodsAreOnlyListedAndWatched(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	requests, err := shared.Requests(func(r lab.Request) bool { return r.User == s.Name && r.Resource == "pods" })
	if err != nil {
		t.Fatal(err)
	}
	if len(requests) == 0 {
		t.Fatal("pods are not asked for at all")
	}
	for _, r := range requests {
		if r.Verb != "list" && r.Verb != "watch" {
			t.Errorf("it asks to %s pods, which the stock role need not allow", r.Verb)
		}
	}
}
