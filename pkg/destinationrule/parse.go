package destinationrule

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch/object"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
)

// Parse reads the view out of u, which is neither changed nor referred to
// afterwards. fieldManager is the name under which the plugin writes; it is used
// for Ours alone.
//
// Parse never fails and never panics. Content of the wrong type is left out and
// reported where it matters: in Malformed if the object itself, its metadata, spec,
// host or the list of subsets cannot be read, otherwise in the Malformed of the
// subset.
func Parse(u *unstructured.Unstructured, fieldManager string) *DestinationRule {
	identity, err := object.IdentityOf(u)
	root := object.ContentOf(u)
	spec, annotations := root.Field("spec"), root.Field("metadata").Field("annotations")
	host, hostErr := spec.Field("host").Text()
	subsets, subsetsErr := parseSubsets(spec.Field("subsets"))
	return &DestinationRule{
		TypeMeta:   identity.TypeMeta,
		ObjectMeta: identity.ObjectMeta,
		Host:       host,
		Subsets:    subsets,
		// The annotation is to be removed whatever stands in it, so its type does not
		// matter.
		NativeAnnotation: !annotations.Field(nativeAnnotation).Absent(),
		Experiments:      ownership.Parse(u),
		Ours:             object.Owns(u, fieldManager, "spec", "subsets"),
		Malformed:        cmp.Or(err, spec.Object(), hostErr, subsetsErr),
	}
}

// parseSubsets reads the list; the error is about the list, not about what one of
// the subsets holds.
func parseSubsets(list object.Node) ([]Subset, error) {
	entries, err := list.Items()
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	subsets := make([]Subset, len(entries))
	for i, entry := range entries {
		subsets[i] = parseSubset(i, entry)
	}
	return subsets, nil
}

// parseSubset keeps the index even of what is no subset at all: those of the
// others must not move.
func parseSubset(index int, entry object.Node) Subset {
	if entry.Absent() {
		return Subset{Index: index, Malformed: entry.Wrong("an object")}
	}
	name, nameErr := entry.Field("name").Text()
	labels, labelsErr := entry.Field("labels").Labels()
	return Subset{
		Index:     index,
		Name:      name,
		Labels:    labels,
		HasLabels: labels != nil,
		Malformed: cmp.Or(entry.Object(), nameErr, labelsErr),
	}
}
