package lint

import (
	"fmt"
	"slices"
	"strings"
)

// served are the kinds that are looked at, with the versions in which API servers have,
// or have had, them.
var served = map[groupKind][]string{
	rolloutKind:         {"v1alpha1"},
	virtualServiceKind:  {"v1", "v1beta1", "v1alpha3"},
	destinationRuleKind: {"v1", "v1beta1", "v1alpha3"},
	serviceEntryKind:    {"v1", "v1beta1", "v1alpha3"},
	httpRouteKind:       {"v1", "v1beta1", "v1alpha2"},
	serviceKind:         {"v1"},
	namespaceKind:       {"v1"},
	deploymentKind:      {"v1", "v1beta2", "v1beta1"},
	autoscalerKind:      {"v2", "v1", "v2beta2", "v2beta1"},
	scaledObjectKind:    {"v1alpha1"},
	applicationKind:     {"v1alpha1"},
	applicationSetKind:  {"v1alpha1"},
	helmReleaseKind:     {"v2", "v2beta2", "v2beta1"},
}

// known tells a kind that is looked at, whatever its version.
func (o *object) known() bool { return served[o.groupKind] != nil }

// versionError is what is wrong with the apiVersion or the kind of an object that is
// meant to be of a kind that is looked at; empty if nothing is.
func versionError(o *object) (field, message string) {
	version := o.text("apiVersion")
	if o.known() {
		_, short, found := strings.Cut(version, "/")
		if !found {
			short = version
		}
		if slices.Contains(served[o.groupKind], short) {
			return "", ""
		}
		return "apiVersion", fmt.Sprintf("there is no %s of %s, but of %s", o.kind, cut(version), o.versions())
	}
	for kind := range served {
		switch {
		case kind.group == o.group && strings.EqualFold(strings.TrimSuffix(strings.ToLower(o.kind), "s"), kind.kind):
			return "kind", fmt.Sprintf("%s has no kind %s, but %s; the object was not looked at", cut(version), cut(o.kind), kind.kind)
		case kind.kind == o.kind && o.group == "" && !slices.Contains(ambiguous, kind):
			return "apiVersion", fmt.Sprintf("there is no %s of %s, but of %s; the object was not looked at", o.kind, cut(version), kind.versions())
		}
	}
	return "", ""
}

// ambiguous are kinds whose name others use as well.
var ambiguous = []groupKind{applicationKind, applicationSetKind}

func (k groupKind) versions() string {
	var all []string
	for _, version := range served[k] {
		if k.group != "" {
			version = k.group + "/" + version
		}
		all = append(all, version)
	}
	return strings.Join(all, ", ")
}
