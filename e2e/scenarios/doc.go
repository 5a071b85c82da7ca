// Package scenarios plays canaries on a real controller and records them: the
// workloads, the things that people and pods do to them, and the rule that the
// recorded timeline is held against.
//
// The tests of this package are the plugin's behaviour tests. The demo plays
// the same incident. What a control plane is made of belongs to package lab,
// what a timeline is to package timeline.
package scenarios
