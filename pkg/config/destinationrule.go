package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// destinationRules reads either form of the subset-level part. It answers nil only
// when the block has none, which means host-level.
func (c *checker) destinationRules(block object, s scope) []DestinationRule {
	single, hasSingle := block.find("destinationRule")
	switch {
	case hasSingle && block.has("destinationRules"):
		c.add(field.Forbidden(block.at.Child("destinationRules"),
			"destinationRule is there too: keep one of them, all DestinationRules in destinationRules"))
		return []DestinationRule{{}}
	case hasSingle:
		return []DestinationRule{c.destinationRule(single, block.at.Child("destinationRule"), s)}
	case block.has("destinationRules"):
		return c.destinationRuleList(block, s)
	}
	return nil
}

// destinationRuleList reads the list form. A list that is there is never host-level,
// not even an empty one: that is a rendering gone wrong.
func (c *checker) destinationRuleList(block object, s scope) []DestinationRule {
	at := block.at.Child("destinationRules")
	n, _ := block.find("destinationRules")
	if n.kind == kindList && len(n.items) == 0 {
		c.add(field.Required(at, "the list is empty: name at least one DestinationRule, or remove the field for a split by Services"))
	}
	var all []DestinationRule
	first := map[string]int{}
	for i, item := range block.list("destinationRules") {
		dr := c.destinationRule(item, at.Index(i), s)
		key := dr.Namespace + "/" + dr.Name
		if earlier, twice := first[key]; twice && dr.Name != "" {
			c.add(repeated(at.Index(i).Child("name"), key, fmt.Sprintf("is the same object as %s: remove one of them", at.Index(earlier))))
			continue
		}
		first[key] = i
		all = append(all, dr)
	}
	if len(all) == 0 {
		return []DestinationRule{{}}
	}
	return all
}

func (c *checker) destinationRule(n node, at *field.Path, s scope) (dr DestinationRule) {
	o, ok := c.object(n, at, destinationRuleFields)
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
func (c *checker) differentSubsets(o object, dr DestinationRule) {
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
