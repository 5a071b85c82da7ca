// Package mesh plays canaries under load in a mesh: a lab with istiod, pods that
// answer, and clients that send requests by what istiod says. It counts the
// requests that are lost, holds the share of each revision against the weight,
// and tells what a canary costs istiod, for the native router and for the plugin.
//
// It has to run in a network namespace of package namespace. A [Stage] is the
// mesh, a [Story] something that happens in it, and a [Result] what became of it:
// the recorded timeline, the record of the requests, and the row of a table.
//
// The tests of this package are the plugin's targets; the command evidence plays
// everything with both routers and writes docs/evidence.md. What a pod is belongs
// to package backend, sending to package fleet, the workloads to package scenarios.
package mesh
