// Command lab builds and runs the control plane of package lab by hand: `lab
// build` before tests that should not wait for compilers, `lab up` to look at a
// Rollout with kubectl. It only calls the package; scenarios live elsewhere.
package main
