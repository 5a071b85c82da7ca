package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// destinationRule reads the subset-level part. It answers nil only when the block
// has none, which means host-level.
func (c *checker) destinationRule(block object, s scope) *DestinationRule {
	n, ok := block.find("destinationRule")
	if !ok {
		return nil
	}
	dr := &DestinationRule{}
	o, ok := c.object(n, block.at.Child("destinationRule"), destinationRuleFields)
	if !ok {
		return dr
	}
	// Unlike a VirtualService's, a DestinationRule's name is never taken apart:
	// native does not either.
	if dr.Name = o.requiredText("name", "name the DestinationRule that holds the two subsets"); dr.Name != "" {
		c.isObjectName(dr.Name, o.at.Child("name"), "a DestinationRule")
	}
	dr.Namespace, _ = o.namespace(s)
	dr.CanarySubsetName = c.subset(o, "canarySubsetName", "name the subset that follows the canary pods")
	dr.StableSubsetName = c.subset(o, "stableSubsetName", "name the subset that follows the stable pods")
	dr.AdditionalSubsetNames = o.texts("additionalSubsetNames")
	c.differentSubsets(o, dr)
	return dr
}

// differentSubsets reports one subset in two roles: the second label written would
// overwrite the first.
func (c *checker) differentSubsets(o object, dr *DestinationRule) {
	if dr.CanarySubsetName != "" && dr.CanarySubsetName == dr.StableSubsetName {
		c.add(repeated(o.at.Child("stableSubsetName"), dr.StableSubsetName,
			"is the canary subset too: give canary and stable a subset each"))
	}
	// Not list: that would report a value of another kind for the second time.
	additional, _ := o.find("additionalSubsetNames")
	for i, n := range additional.items {
		if n.kind == kindString && n.text != "" && (n.text == dr.CanarySubsetName || n.text == dr.StableSubsetName) {
			c.add(field.Invalid(o.at.Child("additionalSubsetNames").Index(i), show(n.text),
				"is the canary or stable subset, which the Rollout controls: remove it here"))
		}
	}
}

// subset reads a subset name that must be there.
func (c *checker) subset(o object, name, remedy string) string {
	value := o.requiredText(name, remedy)
	if value != "" && !isSubsetName(value) {
		c.add(field.Invalid(o.at.Child(name), show(value),
			"cannot be the name of a subset: Istio takes at most 63 letters, digits and '-', with a letter or digit at both ends"))
	}
	return value
}

// isSubsetName is Istio's own rule, which unlike Kubernetes' takes capital
// letters.
func isSubsetName(name string) bool {
	if len(name) > 63 || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	for i := range len(name) {
		b := name[i]
		if b != '-' && (b < '0' || b > '9') && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z') {
			return false
		}
	}
	return true
}
