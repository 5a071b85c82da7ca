package router

import "sync"

// ownWrites are the versions that this process wrote last, by object. Whoever
// finds routes that the plugin wrote and this process did not has met another
// process of the plugin: the one of the new leader. The zero value is ready.
type ownWrites struct {
	mu sync.Mutex
	of map[string]string
}

func (o *ownWrites) note(kind, namespace, name, version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[string]string{}
	}
	o.of[objectKey(kind, namespace, name)] = version
}

// wrote tells whether this process wrote exactly this version.
func (o *ownWrites) wrote(kind, namespace, name, version string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of[objectKey(kind, namespace, name)] == version
}
