// Package istio asks Istio what it thinks of VirtualServices and
// DestinationRules: the validation that istiod's admission webhook runs,
// istio.io/istio/pkg/config/validation, at the version in go.mod.
//
//	warnings, err := istio.Validate(object) // the object as JSON
//
// The property tests of this package hold it against pkg/virtualservice and
// pkg/destinationrule: what Istio accepted before a patch of the plugin, it
// accepts after it. The command cmd/validate does the same for objects that
// other tests wrote; see [Check] for the format.
//
// It is a module of its own, because istio.io/istio asks for newer versions of
// Kubernetes' modules than the plugin and the lab are built with. It does not
// judge whether a route leads anywhere: Istio's validation looks at one object
// at a time.
package istio
