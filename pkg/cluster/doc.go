// Package cluster is the plugin's only door to the Kubernetes API: shared
// caches for reading, guarded JSON patches for writing, Events for telling.
//
// It knows kinds, namespaces and permissions, and nothing of canaries: which
// weight or hash is right is decided elsewhere, and arrives here as a function
// from an object to a patch.
//
// Reading costs no API request, but for Rollout. Each kind is watched once, stripped
// to what the plugin needs before it is stored, and a read after a write of this
// process returns that write even when the watch has not brought it yet. What a
// read returns is shared: it must not be changed. Of pods the API server sends
// the metadata only, and what is kept is how many have which labels.
//
// Writing is one JSON patch for one object, guarded by the resourceVersion that
// the patch was computed from. On a conflict the object is read afresh from the
// API and the patch is computed again, until the caller's deadline. Of a Rollout only an
// annotation and status.abort are written, and only for a health gate; Rollouts are not
// cached, so that is a read and a merge patch with the same guard.
//
// VirtualServices and DestinationRules may live in another cluster. Its
// credentials may change at any time: the clients and the two caches are then made
// anew, and take over once they work. So it is when the API server turns out not to
// serve a version of Istio's API any more in which an object is watched and written.
// Everything else stays in the controller's own.
//
// Nothing here needs more than the ClusterRole that Argo Rollouts ships, or, with
// Options.Namespace, a Role with its rules in that namespace:
//
//	virtualservices, destinationrules (networking.istio.io)  get list watch patch
//	replicasets (apps), services, pods                        list watch
//	rollouts (argoproj.io)                                    get patch
//	rollouts/status (argoproj.io)                             patch
//	events                                                    create patch
//	secrets                                                   list watch
//
// Endpoints alone needs more, once it is called: list and watch of endpointslices
// (discovery.k8s.io). It begins its watch then, and nothing else waits for it.
//
// Secrets only if the mesh's kubeconfig is in one, and in its namespace. Where the
// mesh is in another cluster, the first line is for the user of that kubeconfig, there.
package cluster
