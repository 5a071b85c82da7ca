// Package router turns what the controller asks for into what is written.
//
// Each call goes the same way: read the Rollout's configuration, look at the
// objects it names and at the ReplicaSets behind them, let the guard decide,
// compute the patches, write them, tell. Looking and writing go through the
// interfaces Cluster, Mesh and Health; deciding and computing are the pure packages
// guard, virtualservice, destinationrule, verification and gate.
//
// All objects of a call are read and checked before the first is written. When a
// later write fails the error says which objects were written and which not, and
// the next call brings them together again: every call writes what should be
// there, never a difference to what was. What gives the canary less is written all
// the same, to whatever can be written.
//
// # Between the calls
//
// The watch looks at a Rollout when its pods or its objects have changed. First it
// takes from the canary what its pods cannot serve; that needs nobody's leave
// (relieve.go). Then it puts back what others changed of what the last call brought
// about, if that is still this process's to do (drift.go): not for a Rollout that is
// gone, has moved on or names another router, not where another process of the plugin
// has written, not in a quarrel, and not without a call within the lease.
//
// # What waits
//
// A side that has just got its first pod, or whose Service has just been given other
// pods, gets its first request once the mesh knows them: by the clock, or where
// verify.level says where to look (fresh.go). Some of the calls that find this, or a
// label that waits for settle, answer when it is over (passing.go). VerifyWeight looks at
// the mesh for a short time, with the Rollout's turn given back (verify.go, mesh.go), and
// has the controller come back where that has counted pods which this process has not
// heard of (behind.go). The health gate is asked last; its rollback is carried out by the
// watch (health.go).
//
// # What is kept
//
// The memory of a Rollout is what the controller last said (hashes, weight,
// experiment), what the objects were last brought to, what was last reported, and
// since when a weight has been held. The claims say which Rollout handles which
// route. All of it comes back within one reconcile of a new process; nothing is
// stored but, in the objects, which destinations and subsets are an experiment's, and
// on the Rollout the mark of a rollback.
//
// # What it does not do
//
// It has no rollout policy: it never gives the canary more than the controller asks
// for, and ends, aborts or retries nothing, but for a Rollout that has a health gate.
package router
