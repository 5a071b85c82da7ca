// Command demo shows what this project is for, on a real control plane: a
// rollback that sends all traffic to 2 of 20 pods under the native Istio router,
// and what the pods can take under the plugin; how long a plain canary takes under
// each; what a flapping pod costs under each; and how many requests of real clients
// the rollback loses.
//
// Both routers are played at the same time, in one lab, under one controller,
// and begin each story at the same moment. A machine that is busy with something
// else slows both down alike, so that their times may be compared; times of two
// runs may not.
//
// The command only tells stories: the lab is package lab, the stories are package
// scenarios, the requests are package mesh, measures, table and picture are package
// timeline, flags are read as package cmdline has it. It exits with an error when
// something could not be played, and not when a measure turns out worse than hoped: the
// report says so.
package main
