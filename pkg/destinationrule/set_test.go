package destinationrule_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
)

func label(index int, hash string) jsonpatch.Op {
	return jsonpatch.Op{Op: "add", Path: fmt.Sprintf("/spec/subsets/%d/labels/%s", index, hashKey), Value: hash}
}

func TestSetMovesHashes(t *testing.T) {
	unmarked := jsonpatch.Op{Op: "remove", Path: "/metadata/annotations/argo-rollouts.argoproj.io~1managed-by-rollouts"}
	created := func(index int, hash string) jsonpatch.Op {
		return jsonpatch.Op{Op: "add", Path: fmt.Sprintf("/spec/subsets/%d/labels", index), Value: map[string]string{hashKey: hash}}
	}
	type changes = []destinationrule.Change
	for sentence, tc := range map[string]struct {
		u              *unstructured.Unstructured
		canary, stable string
		want           jsonpatch.Patch
		changes        changes
	}{
		"both hashes move": {rule(pair("c1", "s1")...), "c2", "s2", jsonpatch.Patch{label(0, "c2"), label(1, "s2")},
			changes{{Subset: "canary", From: "c1", To: "c2"}, {Subset: "stable", From: "s1", To: "s2"}}},
		"only the canary moves": {rule(pair("c1", "s1")...), "c2", "s1", jsonpatch.Patch{label(0, "c2")},
			changes{{Subset: "canary", From: "c1", To: "c2"}}},
		"only the stable moves": {rule(pair("c1", "s1")...), "c1", "s2", jsonpatch.Patch{label(1, "s2")},
			changes{{Subset: "stable", From: "s1", To: "s2"}}},
		"at promotion both name the new hash": {rule(pair("h2", "h1")...), "h2", "h2", jsonpatch.Patch{label(1, "h2")},
			changes{{Subset: "stable", From: "h1", To: "h2"}}},
		"nothing moves": {rule(pair("c1", "s1")...), "c1", "s1", nil, nil},
		"an empty canary hash leaves its label": {rule(pair("c1", "s1")...), "", "s2", jsonpatch.Patch{label(1, "s2")},
			changes{{Subset: "stable", From: "s1", To: "s2"}}},
		"an empty stable hash leaves its label": {rule(pair("c1", "s1")...), "c2", "", jsonpatch.Patch{label(0, "c2")},
			changes{{Subset: "canary", From: "c1", To: "c2"}}},
		"two empty hashes leave everything":           {rule(pair("c1", "s1")...), "", "", nil, nil},
		"an empty hash does not name an absent label": {rule(subset("canary"), subset("stable")), "", "", nil, nil},
		// The first deployment, or a rule that served a Deployment before.
		"a label is added to those that are there": {rule(subset("stable", "app", "web"), subset("canary", "app", "web")), "h", "h",
			jsonpatch.Patch{label(1, "h"), label(0, "h")},
			changes{{Subset: "canary", To: "h"}, {Subset: "stable", To: "h"}}},
		"a label is added to empty labels": {rule(subset("canary"), subset("stable")), "c", "",
			jsonpatch.Patch{label(0, "c")}, changes{{Subset: "canary", To: "c"}}},
		"absent labels are created": {rule(fields{"name": "canary"}, subset("stable")), "c", "",
			jsonpatch.Patch{created(0, "c")}, changes{{Subset: "canary", To: "c"}}},
		"labels that are null are created": {rule(subset("canary"), fields{"name": "stable", "labels": nil}), "", "s",
			jsonpatch.Patch{created(1, "s")}, changes{{Subset: "stable", To: "s"}}},
		// argo-rollouts#4332: other subsets of the rule were dropped.
		"other subsets stay where and what they are": {
			rule(subset("legacy", hashKey, "old"), subset("canary", hashKey, "c1"), "x", nil, subset("stable", hashKey, "s1"), subset("legacy", "app", int64(1))),
			"c2", "s2", jsonpatch.Patch{label(1, "c2"), label(4, "s2")},
			changes{{Subset: "canary", From: "c1", To: "c2"}, {Subset: "stable", From: "s1", To: "s2"}}},
		"the native annotation goes in the same patch": {annotated(rule(pair("c1", "s1")...), fields{native: "web", "note": "1"}), "c2", "s1",
			jsonpatch.Patch{label(0, "c2"), unmarked}, changes{{Subset: "canary", From: "c1", To: "c2"}}},
		"the native annotation goes even if no hash moves": {annotated(rule(pair("c1", "s1")...), fields{native: "web"}), "c1", "s1",
			jsonpatch.Patch{unmarked}, nil},
		"other annotations stay": {annotated(rule(pair("c1", "s1")...), fields{"note": "1"}), "c1", "s1", nil, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			patch, got, err := set(tc.u, tc.canary, tc.stable)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, patch); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.changes, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			again, got, err := set(apply(t, tc.u, patch), tc.canary, tc.stable)
			if err != nil || len(again) != 0 || len(got) != 0 {
				t.Errorf("the second time: patch %v, changes %v, error %v", again, got, err)
			}
		})
	}
}

func TestSetRefuses(t *testing.T) {
	var many []any
	for i := range 500 {
		many = append(many, subset(fmt.Sprintf("s-%d", i)))
	}
	for sentence, tc := range map[string]struct {
		u              *unstructured.Unstructured
		canary, stable string // names
		want           []string
	}{
		"no canary subset":    {rule(subset("stable"), subset("legacy")), "canary", "stable", []string{`no subset "canary"`, "canarySubsetName", `it has "stable", "legacy"`}},
		"no stable subset":    {rule(subset("canary")), "canary", "stable", []string{`no subset "stable"`, "stableSubsetName", `it has "canary"`}},
		"no subsets":          {rule(), "canary", "stable", []string{`no subset "canary"`, "it has no subsets"}},
		"no spec":             {ruleOf(nil), "canary", "stable", []string{"it has no subsets"}},
		"two canary subsets":  {rule(append(pair("c", "s"), subset("canary"))...), "canary", "stable", []string{`2 subsets "canary"`, "leave one", `"canary", "stable", "canary"`}},
		"two stable subsets":  {rule(append(pair("c", "s"), subset("stable"))...), "canary", "stable", []string{`2 subsets "stable"`}},
		"one name for both":   {rule(pair("c", "s")...), "canary", "canary", []string{`both "canary"`, "must differ"}},
		"names in other case": {rule(pair("c", "s")...), "Canary", "stable", []string{`no subset "Canary"`}},
		"an empty name does not mean a subset without one": {rule(fields{}, subset("stable")), "", "stable", []string{`no subset ""`}},
		"a malformed subset that is asked for":             {rule(subset("canary"), subset("stable", "app", true)), "canary", "stable", []string{`subset "stable" is malformed`}},
		"many subsets":                                     {rule(many...), "canary", "stable", []string{`"s-19" and 480 more`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			dr := destinationrule.Parse(tc.u, manager)
			// An empty hash does not hide a wrong name.
			for _, hash := range []string{"h", ""} {
				patch, changes, err := dr.Set(destinationrule.Target{CanarySubset: tc.canary, CanaryHash: hash, StableSubset: tc.stable, StableHash: hash})
				mention(t, err, append(tc.want, "DestinationRule shop/web: ")...)
				if patch != nil || changes != nil {
					t.Errorf("patch %v and changes %v beside the error", patch, changes)
				}
			}
		})
	}
}

func TestHash(t *testing.T) {
	dr := destinationrule.Parse(rule(subset("stable", hashKey, "s1", "app", "web"), subset("canary", "app", "web"), fields{"name": "bare"}, subset("two"), subset("two")), manager)
	for sentence, tc := range map[string]struct {
		subset, want, wantErr string
	}{
		"a subset with a hash":    {subset: "stable", want: "s1"},
		"a subset without a hash": {subset: "canary"},
		"a subset without labels": {subset: "bare"},
		"a subset that is missing": {subset: "cnary",
			wantErr: `DestinationRule shop/web: no subset "cnary": add it, or correct canarySubsetName or stableSubsetName; it has "stable", "canary", "bare", "two", "two"`},
		"a subset that is there twice": {subset: "two", wantErr: `2 subsets "two"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := dr.Hash(tc.subset)
			if tc.wantErr != "" {
				mention(t, err, tc.wantErr)
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("hash = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestChangesAreWrittenForPeople(t *testing.T) {
	for want, change := range map[string]destinationrule.Change{
		"canary: c1 -> c2":      {Subset: "canary", From: "c1", To: "c2"},
		"canary: no hash -> c2": {Subset: "canary", To: "c2"},
		"probe: removed":        {Subset: "probe", From: "p1"},
	} {
		if got := change.String(); got != want {
			t.Errorf("change = %q, want %q", got, want)
		}
	}
}
