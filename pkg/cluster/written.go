package cluster

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// written holds what this process wrote, until the watch has brought it. Without
// it a call that follows a write would compute its patch from the object before
// that write, and lose a race against itself. It has as many entries as the
// watch is writes behind, and no limit in time: in an outage of the watch an
// entry is the newest that is known for as long as the outage lasts. It is safe
// for concurrent use.
type written[T view] struct {
	mu sync.Mutex
	of map[string]T
}

// keep remembers an object, unless a newer version of it is known. Writers that
// meet may come here in another order than the API server served them.
// brought answers what the watch has brought of an object, if it has brought any.
func (w *written[T]) keep(object T, brought func(key string) (T, bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string]T{}
	}
	key := keyOf(object.GetNamespace(), object.GetName())
	if known, ok := w.of[key]; !ok || newer(object, known) {
		w.of[key] = object
	}
	w.sweep(brought)
}

// sweep forgets what the watch has brought, or has seen deleted.
func (w *written[T]) sweep(brought func(key string) (T, bool)) {
	for key, object := range w.of {
		if seen, ok := brought(key); !ok || !newer(object, seen) {
			delete(w.of, key)
		}
	}
}

// newest returns the newer one of what the watch has brought and what was written.
func (w *written[T]) newest(brought T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := keyOf(brought.GetNamespace(), brought.GetName())
	object, ok := w.of[key]
	if ok && newer(object, brought) {
		return object
	}
	delete(w.of, key)
	return brought
}

// newer reports whether a is a later version than b. The API server's versions
// are numbers that grow; with what is none, the watch is believed.
func newer(a, b view) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}

// keyOf is the key under which informers store an object.
func keyOf(namespace, name string) string { return namespace + "/" + name }
