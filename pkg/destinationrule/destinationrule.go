package destinationrule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
)

// The names that the Rollouts controller gives to what we write and remove.
const (
	hashLabel        = v1alpha1.DefaultRolloutUniqueLabelKey
	nativeAnnotation = v1alpha1.ManagedByRolloutsKey
)

// DestinationRule is the plugin's view of one DestinationRule in one version. It
// must not be changed once parsed, and may then be used from any number of
// goroutines.
//
// Of the metadata only name, namespace, uid, resourceVersion and generation are
// kept, and what stands in two annotations and in managedFields: the rest is most of what a cached object weighs.
type DestinationRule struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// Host is as written: a short name belongs to the namespace of this object.
	Host string
	// Subsets are in the order of the object.
	Subsets []Subset
	// NativeAnnotation tells that the native router's annotation is there.
	NativeAnnotation bool
	// Experiments is the account of the subsets that were added for experiments.
	Experiments ownership.Account
	// Ours tells that our field manager owns spec.subsets or a part of it, by the
	// object's managedFields. Istio's definition treats the list as one value, so it
	// belongs to whoever was the last to change anything in it.
	Ours bool
	// Malformed is why the object cannot be read at all, and names the field. Every
	// method returns it. What is wrong inside one subset is in Subset.Malformed.
	Malformed error
}

// Subset is one entry of spec.subsets.
type Subset struct {
	// Index is the place in the list, from 0.
	Index int
	Name  string
	// Labels select the pods, together with the Service of Host.
	Labels map[string]string
	// HasLabels tells that there is a "labels" field, even if it is empty.
	HasLabels bool
	// Malformed is the first thing in the subset that has the wrong type, by path. It
	// matters only for the two subsets that are asked for.
	Malformed error
}

var (
	_ runtime.Object = (*DestinationRule)(nil)
	_ metav1.Object  = (*DestinationRule)(nil)
)

// Hash is the pod-template hash that the subset names, empty if it names none.
//
// It is an error, for the user to solve, if the object or the subset is malformed, or
// if there is not exactly one subset of that name.
func (dr *DestinationRule) Hash(subset string) (string, error) {
	found, err := dr.subset(subset)
	return found.Labels[hashLabel], err
}

// subset finds the one subset of that name.
func (dr *DestinationRule) subset(name string) (Subset, error) {
	if dr.Malformed != nil {
		return Subset{}, dr.errorf("it is malformed: %w", dr.Malformed)
	}
	found := dr.named(name)
	switch {
	case len(found) == 0:
		return Subset{}, dr.errorf("no subset %q: add it, or correct canarySubsetName or stableSubsetName; it has %s", name, dr.names())
	case len(found) > 1:
		return Subset{}, dr.errorf("%d subsets %q: leave one of them; it has %s", len(found), name, dr.names())
	case found[0].Malformed != nil:
		return Subset{}, dr.errorf("subset %q is malformed: %w", name, found[0].Malformed)
	}
	return found[0], nil
}

// named are the subsets of that name; those without a name have none.
func (dr *DestinationRule) named(name string) []Subset {
	var found []Subset
	for _, subset := range dr.Subsets {
		if name != "" && subset.Name == name {
			found = append(found, subset)
		}
	}
	return found
}

// mostNamed bounds an error message.
const mostNamed = 20

// names are the subsets that there are, for somebody who asked for another.
func (dr *DestinationRule) names() string {
	if len(dr.Subsets) == 0 {
		return "no subsets"
	}
	var names []string
	for _, subset := range dr.Subsets[:min(len(dr.Subsets), mostNamed)] {
		names = append(names, fmt.Sprintf("%q", subset.Name))
	}
	list := strings.Join(names, ", ")
	if more := len(dr.Subsets) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", list, more)
	}
	return list
}

// errorf is an error about this object.
func (dr *DestinationRule) errorf(format string, args ...any) error {
	return fmt.Errorf("DestinationRule %s/%s: %w", dr.Namespace, dr.Name, fmt.Errorf(format, args...))
}

// DeepCopyObject is a copy that shares nothing with dr but strings and errors,
// neither of which can be changed.
func (dr *DestinationRule) DeepCopyObject() runtime.Object {
	return dr.DeepCopy()
}

// DeepCopy is DeepCopyObject with its own type; the copy of nil is nil.
func (dr *DestinationRule) DeepCopy() *DestinationRule {
	if dr == nil {
		return nil
	}
	out := *dr
	dr.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Experiments = dr.Experiments.DeepCopy()
	out.Subsets = slices.Clone(dr.Subsets)
	for i := range out.Subsets {
		out.Subsets[i].Labels = maps.Clone(out.Subsets[i].Labels)
	}
	return &out
}
