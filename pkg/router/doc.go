// Package router turns what the controller asks for into what is written.
//
// Each call goes the same way: read the Rollout's configuration, look at the
// objects it names and at the ReplicaSets behind them, let the guard decide,
// compute the patches, write them, tell. Looking and writing go through the
// Cluster interface; deciding and computing are the pure packages guard,
// virtualservice and destinationrule.
//
// All objects of a call are read and checked before the first is written. When a
// later write fails the error says which objects were written and which not, and
// the next call brings them together again: every call writes what should be
// there, never a difference to what was.
//
// The memory of a Rollout is what the controller last said (hashes and weight),
// what was last reported, and since when a weight has been held. All of it comes
// back within one reconcile of a new process.
package router
