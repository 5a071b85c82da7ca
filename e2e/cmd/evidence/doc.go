// Command evidence plays every story of package mesh with the native Istio router
// and with the plugin, at the same time and under the same load, and writes what
// became of the requests into the tables of docs/evidence.md, between the markers
// of each. It also plays a plain canary and the incident with one router at a time
// and writes what each cost istiod.
//
// It runs again in a network namespace of its own, with all traffic inside. It
// judges nothing: the tests of package mesh do. It exits with an error when a
// story could not be played, and leaves the page as it was.
package main
