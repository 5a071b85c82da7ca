package cluster

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tally counts the pods of each ReplicaSet by their labels. It remembers where it
// counted a pod: the last event of one may not say what the pod was before. It is
// safe for concurrent use: a watch strips and counts in different goroutines.
type tally struct {
	mu sync.Mutex
	of map[types.UID][]*group
	at map[types.NamespacedName]place
}

// group are the pods of a ReplicaSet with equal labels. There are seldom two of
// them in a ReplicaSet, so a list is searched faster than anything else.
type group struct {
	labels map[string]string
	owners []metav1.OwnerReference
	count  int32
}

// place is where a pod is counted.
type place struct {
	replicaSet types.UID
	group      *group
}

// share returns the labels and the owner of a pod that counts, as those of its
// group: of a new one, if need be, which is counted when the event is handled.
func (t *tally) share(pod *metav1.PartialObjectMetadata) (map[string]string, []metav1.OwnerReference) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.place(pod).group
	return g.labels, g.owners
}

// place finds the group of a pod that counts, or makes one.
func (t *tally) place(pod *metav1.PartialObjectMetadata) place {
	owner := controllerOf(pod)
	for _, g := range t.of[owner.UID] {
		if maps.Equal(g.labels, pod.Labels) {
			return place{owner.UID, g}
		}
	}
	if t.of == nil {
		t.of, t.at = map[types.UID][]*group{}, map[types.NamespacedName]place{}
	}
	controller := true
	g := &group{labels: pod.Labels, owners: []metav1.OwnerReference{{Kind: owner.Kind, UID: owner.UID, Controller: &controller}}}
	t.of[owner.UID] = append(t.of[owner.UID], g)
	return place{owner.UID, g}
}

// move counts a pod where it is now instead of where it was; nil is nowhere. It
// returns the ReplicaSets about whose labels that is news: where a pod has other
// labels than before, and where pods come and go of which not all have the same.
func (t *tally) move(pod types.NamespacedName, to *metav1.PartialObjectMetadata) []types.UID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var next place
	if to != nil {
		next = t.place(to)
	}
	from := t.at[pod]
	if from == next {
		return nil
	}
	changed := from.group != nil && next.group != nil
	var news []types.UID
	// In this order: what has no pod is forgotten.
	for _, step := range []struct {
		place
		by int32
	}{{next, 1}, {from, -1}} {
		if step.group == nil {
			continue
		}
		if t.count(step.place, step.by) || changed {
			news = append(news, step.replicaSet)
		}
	}
	if delete(t.at, pod); next.group != nil {
		t.at[pod] = next
	}
	return slices.Compact(news)
}

// labels are those of a pod that counts, nil for any other.
func (t *tally) labels(pod types.NamespacedName) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.at[pod].group; g != nil {
		return g.labels
	}
	return nil
}

// count adds to a group, forgets groups without pods, and tells whether the
// ReplicaSet has, or had until now, pods with different labels.
func (t *tally) count(at place, by int32) bool {
	before := t.counted(at.replicaSet)
	at.group.count += by
	after := t.counted(at.replicaSet)
	if t.of[at.replicaSet] = slices.DeleteFunc(t.of[at.replicaSet], func(g *group) bool { return g.count <= 0 }); after == 0 {
		delete(t.of, at.replicaSet)
	}
	return before > 1 || after > 1
}

// counted is how many groups of a ReplicaSet have pods.
func (t *tally) counted(replicaSet types.UID) int {
	counted := 0
	for _, g := range t.of[replicaSet] {
		if g.count > 0 {
			counted++
		}
	}
	return counted
}

// groups are those with pods, the largest first.
func (t *tally) groups(replicaSet types.UID) []PodGroup {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []PodGroup
	for _, g := range t.of[replicaSet] {
		if g.count > 0 {
			out = append(out, PodGroup{Labels: g.labels, Count: g.count})
		}
	}
	slices.SortStableFunc(out, func(a, b PodGroup) int { return cmp.Compare(b.Count, a.Count) })
	return out
}
