// Package oracle holds what the plugin reckons by itself against the code that it has to agree with.
//
// pkg/guard writes a few lines of the Argo Rollouts controller anew, because the package that has them imports
// k8s.io/kubernetes, which a plugin should not carry. Here that package is at hand: the tests generate Rollouts and
// ReplicaSets and compare. They are the place to look after an upgrade of argo-rollouts.
//
// The package has no code of its own.
package oracle
