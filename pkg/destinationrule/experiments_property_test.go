package destinationrule_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
)

// tried are the names that experiments have in the generated rules.
var tried = []string{"base", "probe", "shadow"}

func some(t *rapid.T, label string, from ...string) []string {
	return rapid.SliceOfDistinct(rapid.SampledFrom(from), rapid.ID[string]).Draw(t, label)
}

// drawTrial returns a rule, in which some of the tried subsets are there and some
// are the owner's, a target, and the names that are the owner's.
func drawTrial(t *rapid.T) (*unstructured.Unstructured, destinationrule.Target, []string) {
	u, _, _ := drawRule(t)
	spec := u.Object["spec"].(fields)
	subsets := spec["subsets"].([]any)
	for _, name := range some(t, "there", tried...) {
		at := rapid.IntRange(0, len(subsets)).Draw(t, "place")
		subsets = slices.Insert(subsets, at, any(ourSubset(t, name)))
	}
	spec["subsets"] = subsets
	owned := some(t, "owned", tried...)
	if text := account(owned); text != "{}" || rapid.Bool().Draw(t, "empty account") {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[ownership.Annotation] = text
		u.SetAnnotations(annotations)
	}
	target := sides(hash(t, "canary hash"), hash(t, "stable hash"))
	target.Owner, target.Drop = owner, some(t, "drop", append(tried, "legacy", "v2")...)
	for _, name := range some(t, "experiments", tried...) {
		target.Experiments = append(target.Experiments, destinationrule.Experiment{Subset: name, Hash: rapid.SampledFrom([]string{"h1", "e1"}).Draw(t, name)})
	}
	return apply(t, u, nil), target, owned
}

// account is what the annotation holds for these names.
func account(names []string) string {
	entries := map[string][]string{}
	if len(names) > 0 {
		entries[owner] = slices.Compact(slices.Sorted(slices.Values(names)))
	}
	text, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// tryOut does to a copy of the object what is wanted, subset by subset.
func tryOut(u *unstructured.Unstructured, target destinationrule.Target, owned []string) *unstructured.Unstructured {
	out := u.DeepCopy()
	hashes := map[string]string{"canary": target.CanaryHash, "stable": target.StableHash}
	mine := slices.Clone(owned)
	for _, experiment := range target.Experiments {
		hashes[experiment.Subset] = experiment.Hash
		mine = append(mine, experiment.Subset)
	}
	leaves := func(name string) bool {
		return slices.Contains(owned, name) && slices.Contains(target.Drop, name) && hashes[name] == ""
	}
	kept, seen := []any{}, map[string]bool{}
	for _, each := range out.Object["spec"].(fields)["subsets"].([]any) {
		content, _ := each.(fields)
		name, _ := content["name"].(string)
		seen[name] = true
		if leaves(name) {
			continue
		}
		if hash := hashes[name]; hash != "" {
			labels, _ := content["labels"].(fields)
			if labels == nil {
				labels = fields{}
				content["labels"] = labels
			}
			labels[hashKey] = hash
		}
		kept = append(kept, each)
	}
	for _, experiment := range target.Experiments {
		if !seen[experiment.Subset] {
			kept = append(kept, subset(experiment.Subset, hashKey, experiment.Hash))
		}
	}
	out.Object["spec"].(fields)["subsets"] = kept
	annotate(out, slices.DeleteFunc(mine, leaves), len(owned) > 0)
	return out
}

// annotate writes the account as it has to be, and drops the native annotation.
func annotate(u *unstructured.Unstructured, mine []string, before bool) {
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, native)
	switch {
	case len(mine) > 0:
		annotations[ownership.Annotation] = account(mine)
	case before:
		delete(annotations, ownership.Annotation)
	}
	u.SetAnnotations(annotations)
}

func TestOnlyWhatIsOwnedComesAndGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, target, owned := drawTrial(t)
		before := u.DeepCopy()
		patch, _, err := destinationrule.Parse(u, manager).Set(target)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, u); diff != "" {
			t.Fatalf("the cached object changed (-before +after):\n%s", diff)
		}
		after := apply(t, u, patch)
		want := tryOut(u, target, owned)
		got := after.DeepCopy()
		// An object without annotations and one with none are the same.
		if len(got.GetAnnotations()) == 0 {
			got.SetAnnotations(map[string]string{})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("object (-want +got):\n%s", diff)
		}
		if again, changes, err := destinationrule.Parse(after, manager).Set(target); err != nil || len(again) != 0 || len(changes) != 0 {
			t.Fatalf("the second time: patch %v, changes %v, error %v", again, changes, err)
		}
	})
}
