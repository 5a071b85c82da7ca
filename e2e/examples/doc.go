// Package examples holds the tests that apply the files of examples/, as they
// are, to a control plane with a controller and the plugin, and play a canary
// with each. That the files fit together and hold what they say is tested
// beside them, without a cluster.
package examples
