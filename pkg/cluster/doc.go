// Package cluster is the plugin's only door to the Kubernetes API: shared
// caches for reading, guarded JSON patches for writing, Events for telling.
//
// It knows kinds, namespaces and permissions, and nothing of canaries: which
// weight or hash is right is decided elsewhere, and arrives here as a function
// from an object to a patch.
//
// Reading costs no API request. Each kind is watched once, stripped to what the
// plugin needs before it is stored, and a read after a write of this process
// returns that write even when the watch has not brought it yet. What a read
// returns is shared: it must not be changed.
//
// Writing is one JSON patch for one object, guarded by the resourceVersion that
// the patch was computed from. On a conflict the object is read afresh from the
// API and the patch is computed again, until the caller's deadline.
//
// Nothing here needs more than the ClusterRole that Argo Rollouts ships.
package cluster
