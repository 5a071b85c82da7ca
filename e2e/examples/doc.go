// Package examples holds the tests that apply the files of examples/, as they
// are, to a control plane with a controller and the plugin, and play a canary
// with each. The controllers are installed from the overlays of examples/install and
// have the rights of those manifests and no others; what the plugins ask the API server
// for is held against examples/install/rights.yaml, and that against docs/rbac.md. That
// the files fit together and hold what they say is tested beside them, without a
// cluster.
package examples
