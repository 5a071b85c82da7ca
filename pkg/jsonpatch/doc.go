// Package jsonpatch writes JSON patches (RFC 6902) as plain values.
//
// Patches are how the plugin changes other people's objects: an operation names
// one field and its new value, so every other field of the object, known to this
// client or not, stays as it is. A patch that must not overtake another writer is
// guarded by the resourceVersion it was computed from:
//
//	patch := jsonpatch.Patch{jsonpatch.Add("/spec/http/0/route/1/weight", int64(30))}
//	body, err := patch.Guarded(object.GetResourceVersion()).Marshal()
//	// PATCH with Content-Type application/json-patch+json
//
// The package neither applies patches nor sends them, and it does not know what
// the API server answers when a guard does not hold: that is read by the package
// that talks to the cluster. Package object beside it is the reading half: typed
// values out of a cached object.
//
// All types are values without hidden state and safe for concurrent reading.
package jsonpatch
