// Package matrix plays the basic stories of the plugin on every combination of what
// it is said to work with: the releases of the Argo Rollouts controller, each with
// its own definitions and ClusterRole, and the versions in which Istio's kinds may
// be served, each of them as the only one.
//
// A [Ground] is such a combination, a [Cell] one story at one level, and an
// [Outcome] what became of it there. What a release is known to lack is expected of
// it, see [Story]: should it work one day, or fail in another way, that is a fault.
//
// The command matrix plays everything and writes the table of docs/compatibility.md;
// this package's test plays a sample. What the plugin does in detail is tested in
// package scenarios, with the newest release.
package matrix
