// Package apiserver holds the tests of pkg/cluster against a real API server:
// conflicts, refusals, missing permissions and definitions, outages, Events, what
// is told of pods and routing; and, against two, a mesh in another cluster.
//
// There is no controller and no canary here: what the plugin writes, and when,
// is the matter of package scenarios.
package apiserver
