package destinationrule

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
)

// Target is what one Rollout wants of the subsets.
type Target struct {
	// Owner is the Rollout, "namespace/name". It is needed only where Experiments or
	// Drop has entries.
	Owner string
	// CanarySubset and StableSubset must be there, once each, and differ. An empty hash
	// leaves the label of that subset as it is, be it there or not. Both hashes may be
	// the same; at promotion they are.
	CanarySubset, CanaryHash string
	StableSubset, StableHash string
	// Experiments are the subsets of the experiments that run.
	Experiments []Experiment
	// Drop are names of experiment subsets that may go now. Only those that stand under
	// Owner in the annotation are removed; so any name may be given, and one that is
	// also in Experiments stays.
	Drop []string
}

// Experiment is a subset that must be there with exactly this pod-template hash.
type Experiment struct {
	Subset, Hash string
}

// Change is what a patch does to the hash of one subset.
type Change struct {
	Subset string
	// From is empty if the subset named no hash, or was not there.
	From string
	// To is empty if the subset is removed.
	To string
}

// String is fit for an event: canary: 5f8d -> 7c9b.
func (c Change) String() string {
	switch {
	case c.To == "":
		return c.Subset + ": removed"
	case c.From == "":
		return fmt.Sprintf("%s: no hash -> %s", c.Subset, c.To)
	}
	return fmt.Sprintf("%s: %s -> %s", c.Subset, c.From, c.To)
}

// Set computes the patch after which the subsets are as t wants them. The patch is
// empty if they are. The annotation of the native router is removed in the same
// patch, and alone if nothing else differs. changes has one entry for each subset
// that gets another hash or is removed, so it may be empty when the patch is not.
//
// A subset for an experiment that is not there is appended with its name and the
// hash label; one that is there without an owner is taken over, and so removed with
// its experiment one day. What has been added or taken over stands in the
// annotation that package ownership keeps.
//
// The patch is not guarded: it is right only for the version that dr was parsed
// from.
//
// Errors are for the user to solve and name the object, the subset and the remedy:
// a malformed object or subset, a subset of ours that is missing or there twice, an
// experiment's subset that has the name of the canary's or the stable's or belongs
// to another Rollout, and an annotation that is needed and cannot be read. Both of
// our subsets are checked even if one of the hashes is empty, so that a wrong name
// shows before it hurts.
func (dr *DestinationRule) Set(t Target) (jsonpatch.Patch, []Change, error) {
	e := &edit{dr: dr, target: t}
	for _, step := range []func() error{e.sides, e.experiments, e.drop} {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	if dr.NativeAnnotation {
		e.patch = append(e.patch, jsonpatch.Remove(jsonpatch.Pointer("metadata", "annotations", nativeAnnotation)))
	}
	return e.patch, e.changes, nil
}

// ExperimentSubsets are the subsets that stand under the Rollout owner
// ("namespace/name") in the annotation, sorted; none if it cannot be read, which is
// an error of Set as soon as it matters. That a subset stands there does not mean
// that it is still there.
func (dr *DestinationRule) ExperimentSubsets(owner string) []string {
	names, err := dr.Experiments.Names(owner)
	if err != nil {
		return nil
	}
	return names
}

// edit collects a patch. Its steps are in the order of their operations: labels and
// new subsets first, removals after them, so that no index moves before it is used.
type edit struct {
	dr      *DestinationRule
	target  Target
	patch   jsonpatch.Patch
	changes []Change
}

// sides lets the two subsets of the canary name their hashes.
func (e *edit) sides() error {
	t := e.target
	if t.CanarySubset == t.StableSubset {
		return e.dr.errorf("canarySubsetName and stableSubsetName are both %q: they must differ", t.CanarySubset)
	}
	canary, err := e.dr.subset(t.CanarySubset)
	if err != nil {
		return err
	}
	stable, err := e.dr.subset(t.StableSubset)
	if err != nil {
		return err
	}
	e.label(canary, t.CanaryHash)
	e.label(stable, t.StableHash)
	return nil
}

// label names a hash in a subset that is there.
func (e *edit) label(subset Subset, hash string) {
	if from := subset.Labels[hashLabel]; hash != "" && hash != from {
		e.patch = append(e.patch, subset.set(hash))
		e.changes = append(e.changes, Change{Subset: subset.Name, From: from, To: hash})
	}
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

// experiments lets a subset name the hash of each experiment.
func (e *edit) experiments() error {
	done := map[string]string{}
	for _, want := range e.target.Experiments {
		if hash, again := done[want.Subset]; again && hash == want.Hash {
			continue
		} else if again {
			return e.dr.errorf("experiment subset %q is wanted with the hashes %q and %q: it can have one", want.Subset, hash, want.Hash)
		}
		done[want.Subset] = want.Hash
		if err := e.experiment(want); err != nil {
			return err
		}
	}
	return nil
}

func (e *edit) experiment(want Experiment) error {
	if err := e.refuse(want); err != nil {
		return err
	}
	found := e.dr.named(want.Subset)
	switch {
	case len(found) > 1:
		return e.dr.errorf("%d experiment subsets %q: leave one of them", len(found), want.Subset)
	case len(found) == 1 && found[0].Malformed != nil:
		return e.dr.errorf("experiment subset %q is malformed: %w", want.Subset, found[0].Malformed)
	case len(found) == 1:
		e.label(found[0], want.Hash)
		return nil
	}
	e.patch = append(e.patch, jsonpatch.Add(jsonpatch.Pointer("spec", "subsets", "-"), newSubset{
		Name: want.Subset, Labels: map[string]string{hashLabel: want.Hash},
	}))
	e.changes = append(e.changes, Change{Subset: want.Subset, To: want.Hash})
	return nil
}

// newSubset is a subset as we write it.
type newSubset struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// refuse tells why an experiment cannot have the subset that it wants.
func (e *edit) refuse(want Experiment) error {
	switch {
	case want.Subset == "" || want.Hash == "":
		return e.dr.errorf("experiment subset %q with the hash %q: both are needed", want.Subset, want.Hash)
	case e.ofSide(want.Subset):
		return e.dr.errorf("experiment subset %q has the name of the canary's or the stable's subset: rename one of them", want.Subset)
	}
	if other := e.dr.Experiments.Other(e.target.Owner, want.Subset); other != "" {
		return e.dr.errorf("experiment subset %q belongs to Rollout %s: use another name, or remove it from the annotation if that Rollout is gone", want.Subset, other)
	}
	return nil
}

// ofSide tells whether a name is that of one of the canary's two subsets.
func (e *edit) ofSide(name string) bool {
	return name == e.target.CanarySubset || name == e.target.StableSubset
}

// drop removes what may go and brings the annotation up to date.
func (e *edit) drop() error {
	if len(e.target.Experiments) == 0 && len(e.target.Drop) == 0 {
		return nil
	}
	if e.target.Owner == "" {
		return e.dr.errorf("experiment subsets without a Rollout that they belong to")
	}
	owned, err := e.dr.Experiments.Names(e.target.Owner)
	if err != nil {
		return e.dr.errorf("%w", err)
	}
	stay, leave := e.target.divide(owned)
	if err := e.remove(leave); err != nil {
		return err
	}
	account, err := e.dr.Experiments.Set(e.target.Owner, stay)
	if err != nil {
		return e.dr.errorf("%w", err)
	}
	e.patch = append(e.patch, account...)
	return nil
}

// divide tells which names belong to the owner from now on, and which of those
// that it has do no longer.
func (t Target) divide(owned []string) (stay, leave []string) {
	for _, want := range t.Experiments {
		stay = append(stay, want.Subset)
	}
	for _, name := range owned {
		switch {
		case slices.Contains(stay, name):
		case slices.Contains(t.Drop, name):
			leave = append(leave, name)
		default:
			stay = append(stay, name)
		}
	}
	return stay, leave
}

// remove takes subsets out, from the highest index down. One that has the name of
// the canary's or the stable's is the user's by now: it stays.
func (e *edit) remove(names []string) error {
	for _, subset := range slices.Backward(e.dr.Subsets) {
		if !slices.Contains(names, subset.Name) || e.ofSide(subset.Name) {
			continue
		}
		if found := len(e.dr.named(subset.Name)); found > 1 {
			return e.dr.errorf("%d experiment subsets %q, one of them to be removed: leave one of them", found, subset.Name)
		}
		e.patch = append(e.patch, jsonpatch.Remove(jsonpatch.Pointer("spec", "subsets", strconv.Itoa(subset.Index))))
		e.changes = append(e.changes, Change{Subset: subset.Name, From: subset.Labels[hashLabel]})
	}
	return nil
}
