// The list of licences. A module of its own, so that what classifies them is no
// requirement of the plugin.
module github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/hack/licences

go 1.26.1

require github.com/google/licensecheck v0.3.1
