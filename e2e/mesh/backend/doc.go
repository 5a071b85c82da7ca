// Package backend answers for the lab's pods. It listens on every address of its
// network namespace, and the address that a client has connected to says which
// pod is meant; it knows the pods from a watch.
//
// Each pod is a gRPC server of its own that answers one method, [Method], with
// the pod's name. It behaves as a good production pod does: it serves from when
// its containers run, through its termination, and until it is gone; then it
// says goodbye to its clients, and its address refuses.
//
// A pod has a capacity, see [Backend.SetCapacity]. Beyond it the pod is slow,
// then it refuses with UNAVAILABLE, which is HTTP's 503, and then it fails its
// readiness probe until the load is gone: that is how overload spreads. A pod
// that is unready for another reason, [lab.Lab.SetUnready], still serves.
//
// The package decides nothing about traffic: who sends what to which pod is the
// matter of the clients and of istiod.
package backend
