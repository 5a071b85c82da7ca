// Package release holds the tests that install the plugin as people do: the real
// controller fetches it from where argo-rollouts-config says, and a canary goes
// through. Then everything that goes wrong on the way is tried, and what the
// controller says is held against docs/troubleshooting.md.
//
// The controller runs as its own Deployment has it: in a root file system that is
// read-only, with plugin-bin and a temporary folder as volumes. The binary is the
// lab's build; that the release's files have the names that are told is tested in
// hack/configmap-snippet, and that they can be built again by hack/rebuild.sh.
package release
