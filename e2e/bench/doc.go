// Package bench has the benchmarks that need the plugin as a process of its own
// and a real API server.
//
//	go test -run '^$' -bench . -benchmem ./bench     # or make bench
//
// BenchmarkNoChange is one whole reconcile in which nothing is to be changed,
// with a Rollout of 40 KB, through the plugin and through one that answers at
// once (package empty). Both pay for the same bytes on the same wire, so the
// ratio is what the plugin's own work costs. B/op and allocs/op are those of the
// caller's side.
//
// BenchmarkReaction is the time from the change of a ReplicaSet's status to the
// patched VirtualService in somebody's watch, with 1 000 Rollouts known to the
// plugin.
//
// Both use etcd and kube-apiserver as package lab builds them, but no controller:
// the benchmarks play it, and nobody but they changes a ReplicaSet.
//
// The package has no code of its own, and no test: how fast a shared machine is
// today is not for a test to judge.
package bench
