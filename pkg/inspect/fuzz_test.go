package inspect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// readable are the resources that a fuzzed cluster may refuse, as bits of hidden.
var readable = []string{"virtualservices", "destinationrules", "replicasets", "pods", "services", "endpointslices", "events", "rollouts"}

// FuzzLook looks at clusters whose objects are anything, and of which any kind may be
// forbidden or not be served. The seeds are all scenes. A Reader can only read: what is left
// to see is that it hands out what it has, and that this stays as it is.
func FuzzLook(f *testing.F) {
	for _, name := range scenesInOrder() {
		w, o := running(f), options()
		scenes[name].make(w, &o)
		var objects []any
		for _, object := range w.objects {
			objects = append(objects, object.Object)
		}
		body, err := kubejson.Marshal(objects)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, byte(0), byte(0), int64(0))
	}
	f.Add([]byte(`[{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web", "namespace": "shop"}}]`), byte(255), byte(0), int64(-1))
	f.Add([]byte(`[{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": "many"}}]`), byte(0), byte(127), int64(1)<<62)
	f.Fuzz(func(t *testing.T, body []byte, hidden, unknown byte, later int64) {
		var content []map[string]any
		if kubejson.Unmarshal(body, &content) != nil {
			return
		}
		w := &world{t: t, refuse: map[string]error{}}
		for _, object := range content {
			if object != nil {
				w.objects = append(w.objects, unstructured.Unstructured{Object: object})
			}
		}
		for i, resource := range readable {
			if hidden>>i&1 == 1 {
				w.refuse[resource] = forbidden(resource)
			} else if unknown>>i&1 == 1 {
				w.refuse[resource] = unserved()
			}
		}
		lookAtAnything(t, w, now.Add(time.Duration(later)))
	})
}

func scenesInOrder() []string {
	var names []string
	for name := range scenes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// lookAtAnything fails the test where a look panics, changes something, or is not told.
func lookAtAnything(t interface{ Errorf(string, ...any) }, w *world, at time.Time) {
	before := make([]unstructured.Unstructured, len(w.objects))
	for i := range w.objects {
		before[i] = *w.objects[i].DeepCopy()
	}
	o := options()
	o.Now = func() time.Time { return at }
	seen, err := Look(context.Background(), w, o, "shop", "web")
	if !equality.Semantic.DeepEqual(before, w.objects) {
		t.Errorf("a look changed an object")
	}
	if err != nil {
		if !strings.HasPrefix(err.Error(), "Rollout shop/web") && !strings.Contains(err.Error(), "Rollout") || seen.Rollout != nil {
			t.Errorf("%v, and %+v", err, seen)
		}
		return
	}
	r := Compose(seen)
	if r.Namespace != "shop" || r.Name != "web" || seen.Explanation == nil && seen.Unread == nil && r.Worst() != lint.Error {
		t.Errorf("%+v", r)
	}
	assertReadable(t, r)
}

// oddities are what a field may hold that should hold something else.
func oddities() []any {
	return []any{nil, "", "0", "new", "x\n\x1b[2J\x7f", int64(0), int64(-1), int64(1) << 40, 1.5, true, []any{}, []any{nil}, map[string]any{}, map[string]any{"new": nil}}
}

// damage changes one field of an object: any, at any depth.
func damage(t *rapid.T, in any) any {
	if rapid.IntRange(0, 5).Draw(t, "here") == 0 {
		return oddities()[rapid.IntRange(0, len(oddities())-1).Draw(t, "oddity")]
	}
	switch in := in.(type) {
	case map[string]any:
		if keys := slices.Sorted(maps.Keys(in)); len(keys) > 0 {
			key := rapid.SampledFrom(keys).Draw(t, "key")
			if rapid.IntRange(0, 3).Draw(t, "without") == 0 {
				delete(in, key)
			} else {
				in[key] = damage(t, in[key])
			}
		}
		return in
	case []any:
		if len(in) > 0 {
			at := rapid.IntRange(0, len(in)-1).Draw(t, "at")
			in[at] = damage(t, in[at])
		}
		return in
	}
	return oddities()[rapid.IntRange(0, len(oddities())-1).Draw(t, "oddity")]
}

// damaged is a scene in which objects are gone or have fields that they should not have, and
// kinds cannot be read.
func damaged(t *testing.T, rt *rapid.T) *world {
	w, o := running(t), options()
	scenes[rapid.SampledFrom(scenesInOrder()).Draw(rt, "scene")].make(w, &o)
	body, err := kubejson.Marshal(w.objects) // numbers as a client has them
	if err != nil {
		t.Fatal(err)
	}
	w.objects = nil
	if err := kubejson.Unmarshal(body, &w.objects); err != nil {
		t.Fatal(err)
	}
	for range rapid.IntRange(0, 6).Draw(rt, "damages") {
		at := rapid.IntRange(0, len(w.objects)-1).Draw(rt, "object")
		object := &w.objects[at]
		for _, part := range []string{"spec", "status", "metadata", "endpoints"} {
			if content, there := object.Object[part]; there && rapid.Bool().Draw(rt, part) {
				object.Object[part] = damage(rt, content)
			}
		}
	}
	if gone := rapid.IntRange(-1, len(w.objects)-1).Draw(rt, "gone"); gone >= 0 {
		w.objects = slices.Delete(w.objects, gone, gone+1)
	}
	for _, resource := range readable {
		switch rapid.IntRange(0, 15).Draw(rt, resource) {
		case 1:
			w.refuse[resource] = forbidden(resource)
		case 2:
			w.refuse[resource] = unserved()
		case 3:
			w.refuse[resource] = errors.New("the server is away")
		}
	}
	return w
}

func TestWhateverTheClusterHasIsLookedAt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { lookAtAnything(rt, damaged(t, rt), now) })
}

func FuzzWhateverTheClusterHasIsLookedAt(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		rapid.MakeFuzz(func(rt *rapid.T) { lookAtAnything(rt, damaged(t, rt), now) })(t, data)
	})
}
