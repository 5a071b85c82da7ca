// Command matrix plays the stories of package matrix on every release of the Argo
// Rollouts controller and with every version of Istio's kinds, prints the outcomes
// as a table and writes it into docs/compatibility.md, between its markers.
//
// It exits with an error when anything was not as expected, tells what happened
// there, and leaves the page as it was.
package main
