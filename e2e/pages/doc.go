// Package pages holds the test that applies the blocks of YAML of the README and the
// documentation, as a reader would, to an API server that has the definitions of
// Argo Rollouts and Istio. How blocks are marked is told by package docs/markdown;
// what can be told without an API server is tested in docs.
package pages
