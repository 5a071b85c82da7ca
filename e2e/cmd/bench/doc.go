// Command bench measures this plugin beside the native Istio router of Argo Rollouts,
// on a real control plane, and writes the tables of docs/benchmarks.md.
//
//	go run ./cmd/bench                                  # everything, as make bench does
//	go run ./cmd/bench --parts=idle --idle=1,1000       # the memory of the plugin
//	go run ./cmd/bench --parts=crowd --canaries=20 --out=-
//
// It has four parts, each in a lab of its own. A crowd is many canaries that begin at
// once; both routers play one at the same time, each under a controller of its own.
// Idle Rollouts are copies of one that the controller brought to rest, written with
// their ReplicaSets, status and routing, so that nobody has anything to do but to ask
// the plugin once about each. The canary and the incident are the stories of package
// scenarios.
//
// Times and counts come from watches, from the API server's audit log, which tells a
// plugin from its controller, from its metrics, and from /proc: so the part idle needs
// Linux.
//
// Each table goes into the page and to stdout as soon as all of it was measured. The
// first error ends the play, as Ctrl-C does: tables that were complete stay, those that
// were not are in the page as before, and the exit code is 1.
//
// The command judges nothing and exits with an error only where something could not
// be measured. What is expected of the figures stands in the page, and in the tests
// of other packages.
package main
