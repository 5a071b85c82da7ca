package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"pgregory.net/rapid"
)

// pod is a pod as the API server sends it.
func pod(name, replicaSet string, labels map[string]string) *metav1.PartialObjectMetadata {
	p := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "shop", ResourceVersion: "7", Labels: labels, GenerateName: "cart-7c9b-",
		Annotations:   map[string]string{"note": "long"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}}
	if replicaSet != "" {
		controller := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: replicaSet, UID: types.UID(replicaSet), Controller: &controller}}
	}
	return p
}

func deleting(p *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	p.DeletionTimestamp = &metav1.Time{}
	return p
}

func nothing() {}

func newTestPods(t testing.TB, changed func(types.UID)) *pods {
	t.Helper()
	scheme := apiruntime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return newPods(metadatafake.NewSimpleMetadataClient(scheme), "", changed, nothing)
}

// stripped is what the cache keeps.
func stripped(t testing.TB, p *pods, full *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	t.Helper()
	object, err := p.strip(full)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*metav1.PartialObjectMetadata)
}

func TestOfAPodOnlyWhatIsCountedIsKept(t *testing.T) {
	p := newTestPods(t, nil)
	labels := map[string]string{"app": "cart", hashLabel: "7c9b"}
	controller := true
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: "shop", ResourceVersion: "7", Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", UID: "rs", Controller: &controller}},
	}}
	first := stripped(t, p, pod("a", "rs", labels))
	if diff := gocmp.Diff(want, first); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	second := stripped(t, p, pod("b", "rs", maps.Clone(labels)))
	second.Labels["seen"] = "in both"
	if first.Labels["seen"] != "in both" || &first.OwnerReferences[0] != &second.OwnerReferences[0] {
		t.Error("two pods of a ReplicaSet have labels or an owner of their own")
	}
	for sentence, other := range map[string]*metav1.PartialObjectMetadata{
		"one that is being deleted": deleting(pod("c", "rs", labels)),
		"one that nobody controls":  pod("c", "", labels),
		"one that a Job controls":   {ObjectMeta: metav1.ObjectMeta{Labels: labels, OwnerReferences: []metav1.OwnerReference{{Kind: "Job", UID: "rs", Controller: &controller}}}},
	} {
		if got := stripped(t, p, other); got.Labels != nil || got.OwnerReferences != nil {
			t.Errorf("%s: labels %v and owners %v are kept", sentence, got.Labels, got.OwnerReferences)
		}
	}
}

// counting plays events to a tally and tells whose Rollout would be told.
type counting struct {
	tally tally
}

func (c *counting) event(name string, now *metav1.PartialObjectMetadata) []types.UID {
	if now != nil && !counts(now) {
		now = nil
	}
	if now != nil {
		now = now.DeepCopy()
		now.Labels, now.OwnerReferences = c.tally.share(now)
	}
	return c.tally.move(types.NamespacedName{Namespace: "shop", Name: name}, now)
}

func TestWhatIsNewsAboutPods(t *testing.T) {
	plain, odd := map[string]string{"app": "cart"}, map[string]string{"app": "cart", "moved": "yes"}
	live := func(labels map[string]string) *metav1.PartialObjectMetadata { return pod("", "rs", labels) }
	for sentence, tc := range map[string]struct {
		before map[string]*metav1.PartialObjectMetadata
		pod    string
		now    *metav1.PartialObjectMetadata
		want   []types.UID
	}{
		"a first pod comes":                         {nil, "a", live(plain), nil},
		"one more like the others comes":            {map[string]*metav1.PartialObjectMetadata{"a": live(plain)}, "b", live(plain), nil},
		"one unlike the others comes":               {map[string]*metav1.PartialObjectMetadata{"a": live(plain)}, "b", live(odd), []types.UID{"rs"}},
		"a pod gets another label":                  {map[string]*metav1.PartialObjectMetadata{"a": live(plain)}, "a", live(odd), []types.UID{"rs"}},
		"a pod is seen again as it was":             {map[string]*metav1.PartialObjectMetadata{"a": live(plain), "b": live(odd)}, "a", live(plain), nil},
		"one of equals goes":                        {map[string]*metav1.PartialObjectMetadata{"a": live(plain), "b": live(plain)}, "b", nil, nil},
		"one of equals is about to go":              {map[string]*metav1.PartialObjectMetadata{"a": live(plain), "b": live(plain)}, "b", deleting(live(plain)), nil},
		"the odd one goes":                          {map[string]*metav1.PartialObjectMetadata{"a": live(plain), "b": live(odd)}, "b", nil, []types.UID{"rs"}},
		"one of two odd ones goes":                  {map[string]*metav1.PartialObjectMetadata{"a": live(plain), "b": live(odd), "c": live(odd)}, "c", nil, []types.UID{"rs"}},
		"a pod is released by its ReplicaSet":       {map[string]*metav1.PartialObjectMetadata{"a": live(plain), "b": live(plain)}, "b", pod("", "", odd), nil},
		"a pod is taken over by another ReplicaSet": {map[string]*metav1.PartialObjectMetadata{"a": live(plain)}, "a", pod("", "rs-2", plain), []types.UID{"rs", "rs-2"}},
		"a pod that was never seen goes":            {nil, "a", nil, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := &counting{}
			for name, p := range tc.before {
				c.event(name, p)
			}
			got := c.event(tc.pod, tc.now)
			slices.Sort(got)
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("news of (-want +got):\n%s", diff)
			}
		})
	}
}

// fleet is what is true of pods: their ReplicaSet and labels by name.
type fleet map[string]*metav1.PartialObjectMetadata

func (f fleet) groups(replicaSet string) []PodGroup {
	var out []PodGroup
	for _, p := range f {
		if controllerOf(p).UID != types.UID(replicaSet) {
			continue
		}
		i := slices.IndexFunc(out, func(g PodGroup) bool { return maps.Equal(g.Labels, p.Labels) })
		if i < 0 {
			i, out = len(out), append(out, PodGroup{Labels: p.Labels})
		}
		out[i].Count++
	}
	return sorted(out)
}

func sorted(groups []PodGroup) []PodGroup {
	slices.SortFunc(groups, func(a, b PodGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(fmt.Sprint(a.Labels), fmt.Sprint(b.Labels)))
	})
	return groups
}

func TestPodsAreCountedWhateverHappensToThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, f := &counting{}, fleet{}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			name := strconv.Itoa(rapid.IntRange(0, 6).Draw(t, "pod"))
			set := rapid.SampledFrom([]string{"rs-1", "rs-2"}).Draw(t, "replica set")
			now := pod(name, set, map[string]string{"v": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "label")})
			before := map[string][]PodGroup{"rs-1": f.groups("rs-1"), "rs-2": f.groups("rs-2")}
			_, known := f[name]
			switch rapid.SampledFrom([]string{"seen", "seen", "deleting", "released", "gone"}).Draw(t, "event") {
			case "seen":
				f[name] = now
			case "deleting":
				now = deleting(now)
				delete(f, name)
			case "released":
				now.OwnerReferences = nil
				delete(f, name)
			case "gone":
				now = nil
				delete(f, name)
			}
			news := c.event(name, now)
			for set, was := range before {
				is := f.groups(set)
				if diff := gocmp.Diff(is, sorted(c.tally.groups(types.UID(set)))); diff != "" {
					t.Fatalf("%s (-want +got):\n%s", set, diff)
				}
				// Where pods differ, nothing may change unsaid.
				if (len(was) > 1 || len(is) > 1) && gocmp.Diff(was, is) != "" && !slices.Contains(news, types.UID(set)) {
					t.Fatalf("%s: from %v to %v, and nobody is told", set, was, is)
				}
			}
			if len(news) > 0 && !known && len(before["rs-1"])+len(before["rs-2"]) == 0 {
				t.Fatalf("the first pod of all is news of %v", news)
			}
		}
		for name := range f {
			c.event(name, nil)
		}
		if len(c.tally.of) != 0 || len(c.tally.at) != 0 {
			t.Fatalf("without pods there is left %v and %v", c.tally.of, c.tally.at)
		}
	})
}

// BenchmarkPods says what the cache of pods weighs.
func BenchmarkPods(b *testing.B) {
	const sets, size = 200, 50
	labels := func(set int) map[string]string {
		return map[string]string{
			"app.kubernetes.io/name": "cart", "app.kubernetes.io/part-of": "shop", "team": "checkout", "zone": "a",
			"service.istio.io/canonical-name": "cart", "security.istio.io/tlsMode": "istio", hashLabel: "7c9b" + strconv.Itoa(set),
		}
	}
	for range b.N {
		before := heap()
		p := newTestPods(b, nil)
		for i := range sets * size {
			set := i % sets
			full := pod(fmt.Sprintf("cart-7c9b5d6f-%d-%05d", set, i), fmt.Sprintf("6f1c2d3e-0000-4000-8000-%012d", set), labels(set))
			object := stripped(b, p, full)
			if err := p.informer.GetStore().Add(object); err != nil {
				b.Fatal(err)
			}
			p.tally.move(types.NamespacedName{Namespace: object.Namespace, Name: object.Name}, object)
		}
		b.ReportMetric(float64(heap()-before)/(sets*size), "B/pod")
		if got := len(p.tally.groups(types.UID(fmt.Sprintf("6f1c2d3e-0000-4000-8000-%012d", 0)))); got != 1 {
			b.Fatalf("%d groups", got)
		}
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkPodLabels says what one question costs.
func BenchmarkPodLabels(b *testing.B) {
	c := &counting{}
	for i := range 1000 {
		c.event(strconv.Itoa(i), pod("", "rs", map[string]string{"odd": strconv.FormatBool(i%100 == 0)}))
	}
	for b.Loop() {
		if groups := c.tally.groups("rs"); len(groups) != 2 || groups[0].Count != 990 {
			b.Fatal(groups)
		}
	}
}
