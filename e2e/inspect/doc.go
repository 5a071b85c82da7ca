// Package inspect tests the command inspect as people run it: the plugin's own binary
// against a real API server, a real controller and real endpoints, while a canary is held.
// What it says is compared with what the cluster and the controller's status say. It is asked
// without rights, with the Role of docs/cli.md, and without kinds that it needs, as only a real
// API server answers then. How each situation is told is tested with pkg/inspect, without a
// cluster.
package inspect
