package router

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// ownWrites are the versions that this process wrote last, by object. Whoever
// finds routes that the plugin wrote and this process did not has met another
// process of the plugin: the one of the new leader. The zero value is ready.
type ownWrites struct {
	mu sync.Mutex
	of map[string]string
}

// note keeps a version, unless a later one is known: writers that meet may come
// here in another order than the API server served them.
func (o *ownWrites) note(kind, namespace, name, version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[string]string{}
	}
	key := objectKey(kind, namespace, name)
	if order, err := resourceversion.CompareResourceVersion(version, o.of[key]); err != nil || order > 0 {
		o.of[key] = version
	}
}

// wrote tells whether this process wrote exactly this version.
func (o *ownWrites) wrote(kind, namespace, name, version string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of[objectKey(kind, namespace, name)] == version
}

// forget drops the objects of a Rollout that nobody asks about any more. Should
// another Rollout share one, its next write comes back here.
func (o *ownWrites) forget(objects []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range objects {
		delete(o.of, key)
	}
}
