package destinationrule

import (
	"fmt"
	"strconv"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
)

// Change is what a patch does to the hash of one subset.
type Change struct {
	Subset string
	// From is empty if the subset named no hash.
	From, To string
}

// String is fit for an event: canary: 5f8d -> 7c9b.
func (c Change) String() string {
	if c.From == "" {
		return fmt.Sprintf("%s: no hash -> %s", c.Subset, c.To)
	}
	return fmt.Sprintf("%s: %s -> %s", c.Subset, c.From, c.To)
}

// SetHashes computes the patch after which the two subsets name these pod-template
// hashes. An empty hash leaves the label of that subset as it is, be it there or
// not. The annotation of the native router is removed in the same patch, and alone if
// no hash differs. The patch is empty if there is nothing to do; changes has one
// entry for each hash that moves, so it may be empty when the patch is not.
//
// The patch is not guarded: it is right only for the version that dr was parsed
// from. Both hashes may be the same (at promotion they are), both subsets may not.
//
// Errors are for the user to solve and name the object, the subset and the remedy:
// a malformed object or subset, and a subset that is missing or there twice. Both
// subsets are checked even if one of the hashes is empty, so that a wrong name shows
// before it hurts.
func (dr *DestinationRule) SetHashes(canarySubset, canaryHash, stableSubset, stableHash string) (jsonpatch.Patch, []Change, error) {
	if canarySubset == stableSubset {
		return nil, nil, dr.errorf("canarySubsetName and stableSubsetName are both %q: they must differ", canarySubset)
	}
	canary, err := dr.subset(canarySubset)
	if err != nil {
		return nil, nil, err
	}
	stable, err := dr.subset(stableSubset)
	if err != nil {
		return nil, nil, err
	}
	var patch jsonpatch.Patch
	var changes []Change
	for _, want := range []struct {
		subset Subset
		hash   string
	}{{canary, canaryHash}, {stable, stableHash}} {
		from := want.subset.Labels[hashLabel]
		if want.hash == "" || want.hash == from {
			continue
		}
		patch = append(patch, want.subset.set(want.hash))
		changes = append(changes, Change{Subset: want.subset.Name, From: from, To: want.hash})
	}
	if dr.NativeAnnotation {
		patch = append(patch, jsonpatch.Remove(jsonpatch.Pointer("metadata", "annotations", nativeAnnotation)))
	}
	return patch, changes, nil
}

// set names the hash in the subset. Where there are no labels yet, the label cannot
// be added to them, so they are added with it.
func (s Subset) set(hash string) jsonpatch.Op {
	labels := []string{"spec", "subsets", strconv.Itoa(s.Index), "labels"}
	if !s.HasLabels {
		return jsonpatch.Add(jsonpatch.Pointer(labels...), map[string]string{hashLabel: hash})
	}
	return jsonpatch.Add(jsonpatch.Pointer(append(labels, hashLabel)...), hash)
}
