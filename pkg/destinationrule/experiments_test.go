package destinationrule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
)

const owner = "shop/cart"

// noted has an account among its annotations.
func noted(text string, subsets ...any) *unstructured.Unstructured {
	return annotated(rule(subsets...), fields{"note": "1", ownership.Annotation: text})
}

// trial is a target whose two sides are as pair makes them.
func trial(experiments []destinationrule.Experiment, drop ...string) destinationrule.Target {
	t := sides("c", "s")
	t.Owner, t.Experiments, t.Drop = owner, experiments, drop
	return t
}

func running(experiments ...destinationrule.Experiment) []destinationrule.Experiment {
	return experiments
}

// with are the usual two subsets and more, after them.
func with(more ...any) []any { return append(pair("c", "s"), more...) }

// names are the subsets as "name=hash".
func names(u *unstructured.Unstructured) []string {
	var names []string
	for _, subset := range destinationrule.Parse(u, manager).Subsets {
		names = append(names, subset.Name+"="+subset.Labels[hashKey])
	}
	return names
}

func TestExperimentSubsets(t *testing.T) {
	type change = destinationrule.Change
	probe := destinationrule.Experiment{Subset: "probe", Hash: "p1"}
	base := destinationrule.Experiment{Subset: "base", Hash: "b1"}
	for sentence, tc := range map[string]struct {
		u       *unstructured.Unstructured
		target  destinationrule.Target
		want    []string // subsets with their hashes, after canary and stable
		account string
		changes []change
	}{
		"two that are not there are appended": {rule(with()...), trial(running(probe, base)),
			[]string{"probe=p1", "base=b1"}, `{"shop/cart":["base","probe"]}`, []change{{Subset: "probe", To: "p1"}, {Subset: "base", To: "b1"}}},
		"one is appended after all others": {noted("", with(subset("legacy", hashKey, "old"))...), trial(running(probe)),
			[]string{"legacy=old", "probe=p1"}, `{"shop/cart":["probe"]}`, []change{{Subset: "probe", To: "p1"}}},
		"one asked for twice is appended once": {rule(with()...), trial(running(probe, probe)),
			[]string{"probe=p1"}, `{"shop/cart":["probe"]}`, []change{{Subset: "probe", To: "p1"}}},
		"one that is there without labels gets them": {rule(with(fields{"name": "probe"})...), trial(running(probe)),
			[]string{"probe=p1"}, `{"shop/cart":["probe"]}`, []change{{Subset: "probe", To: "p1"}}},
		"one that is there with labels that are null": {rule(with(fields{"name": "probe", "labels": nil})...), trial(running(probe)),
			[]string{"probe=p1"}, `{"shop/cart":["probe"]}`, []change{{Subset: "probe", To: "p1"}}},
		"one that is there with another hash": {noted(`{"shop/cart":["probe"]}`, with(subset("probe", hashKey, "p0"))...), trial(running(probe)),
			[]string{"probe=p1"}, `{"shop/cart":["probe"]}`, []change{{Subset: "probe", From: "p0", To: "p1"}}},
		"one that is as wanted is taken over": {rule(with(subset("probe", hashKey, "p1"))...), trial(running(probe)),
			[]string{"probe=p1"}, `{"shop/cart":["probe"]}`, nil},
		"one that is ours and as wanted": {noted(`{"shop/cart":["probe"]}`, with(subset("probe", hashKey, "p1"))...), trial(running(probe)),
			[]string{"probe=p1"}, `{"shop/cart":["probe"]}`, nil},
		"two of three may go": {noted(`{"shop/cart":["one","two","three"]}`, with(subset("one"), subset("legacy"), subset("two", hashKey, "t"), subset("three"))...), trial(nil, "three", "one"),
			[]string{"legacy=", "two=t"}, `{"shop/cart":["two"]}`, []change{{Subset: "three"}, {Subset: "one"}}},
		"the last one takes the annotation along": {noted(`{"shop/cart":["probe"]}`, with(subset("probe", hashKey, "p1"))...), trial(nil, "probe"),
			nil, "", []change{{Subset: "probe", From: "p1"}}},
		"the entries of others stay": {noted(`{"shop/cart":["probe"],"shop/other":["theirs"],"x":1}`, with(subset("probe"), subset("theirs"))...), trial(nil, "probe", "theirs"),
			[]string{"theirs="}, `{"shop/other":["theirs"],"x":1}`, []change{{Subset: "probe"}}},
		"one that is nobody's stays": {noted(`{"shop/cart":["probe"]}`, with(subset("legacy"), subset("probe"))...), trial(nil, "legacy", "probe"),
			[]string{"legacy="}, "", []change{{Subset: "probe"}}},
		"one that is gone already is only forgotten": {noted(`{"shop/cart":["probe"]}`, with()...), trial(nil, "probe"), nil, "", nil},
		"one that still runs does not go":            {noted(`{"shop/cart":["probe"]}`, with(subset("probe", hashKey, "p1"))...), trial(running(probe), "probe"), []string{"probe=p1"}, `{"shop/cart":["probe"]}`, nil},
		"one is replaced by another": {noted(`{"shop/cart":["base"]}`, with(subset("base", hashKey, "b1"), subset("legacy"))...), trial(running(probe), "base"),
			[]string{"legacy=", "probe=p1"}, `{"shop/cart":["probe"]}`, []change{{Subset: "probe", To: "p1"}, {Subset: "base", From: "b1"}}},
		"a malformed one that is ours goes":         {noted(`{"shop/cart":["probe"]}`, with(subset("probe", "app", true))...), trial(nil, "probe"), nil, "", []change{{Subset: "probe"}}},
		"a malformed annotation that nobody needs":  {noted(`probe`, with(subset("probe"))...), trial(nil), []string{"probe="}, "probe", nil},
		"one that became the canary's subset stays": {noted(`{"shop/cart":["canary"]}`, with()...), trial(nil, "canary"), nil, "", nil},
		"what is neither wanted nor to go stays":    {noted(`{"shop/cart":["base"]}`, with(subset("base", hashKey, "b0"))...), trial(nil), []string{"base=b0"}, `{"shop/cart":["base"]}`, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			patch, changes, err := destinationrule.Parse(tc.u, manager).Set(tc.target)
			if err != nil {
				t.Fatal(err)
			}
			after := apply(t, tc.u, patch)
			if diff := cmp.Diff(append([]string{"canary=c", "stable=s"}, tc.want...), names(after)); diff != "" {
				t.Errorf("subsets (-want +got):\n%s", diff)
			}
			if got := after.GetAnnotations()[ownership.Annotation]; got != tc.account {
				t.Errorf("the account is %s, want %s", got, tc.account)
			}
			if diff := cmp.Diff(tc.changes, changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			again, changes, err := destinationrule.Parse(after, manager).Set(tc.target)
			if err != nil || len(again) != 0 || len(changes) != 0 {
				t.Errorf("the second time: patch %v, changes %v, error %v", again, changes, err)
			}
		})
	}
}

func TestTheOrderInOnePatch(t *testing.T) {
	u := annotated(rule(subset("old-1"), subset("stable", hashKey, "s1"), subset("old-2"), subset("canary", hashKey, "c1"), fields{"name": "known", "trafficPolicy": fields{"x": "y"}}),
		fields{native: "web", ownership.Annotation: `{"shop/cart":["old-1","old-2","known"]}`})
	target := sides("c2", "s2")
	target.Owner, target.Drop = owner, []string{"old-1", "old-2"}
	target.Experiments = running(destinationrule.Experiment{Subset: "new", Hash: "n"}, destinationrule.Experiment{Subset: "known", Hash: "k"})
	patch, changes, err := destinationrule.Parse(u, manager).Set(target)
	if err != nil {
		t.Fatal(err)
	}
	body, err := patch.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"op":"add","path":"/spec/subsets/3/labels/rollouts-pod-template-hash","value":"c2"},` +
		`{"op":"add","path":"/spec/subsets/1/labels/rollouts-pod-template-hash","value":"s2"},` +
		`{"op":"add","path":"/spec/subsets/-","value":{"name":"new","labels":{"rollouts-pod-template-hash":"n"}}},` +
		`{"op":"add","path":"/spec/subsets/4/labels","value":{"rollouts-pod-template-hash":"k"}},` +
		`{"op":"remove","path":"/spec/subsets/2"},{"op":"remove","path":"/spec/subsets/0"},` +
		`{"op":"add","path":"/metadata/annotations/istio.argoproj-labs.io~1experiments","value":"{\"shop/cart\":[\"known\",\"new\"]}"},` +
		`{"op":"remove","path":"/metadata/annotations/argo-rollouts.argoproj.io~1managed-by-rollouts"}]`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"stable=s2", "canary=c2", "known=k", "new=n"}, names(apply(t, u, patch))); diff != "" {
		t.Errorf("subsets (-want +got):\n%s", diff)
	}
	if len(changes) != 6 {
		t.Errorf("changes %v", changes)
	}
}

func TestExperimentSubsetsThatAreRefused(t *testing.T) {
	probe := running(destinationrule.Experiment{Subset: "probe", Hash: "p1"})
	named := func(subset, hash string) []destinationrule.Experiment {
		return running(destinationrule.Experiment{Subset: subset, Hash: hash})
	}
	nobody := trial(probe)
	nobody.Owner = ""
	for sentence, tc := range map[string]struct {
		u      *unstructured.Unstructured
		target destinationrule.Target
		want   []string
	}{
		"the canary's name":         {rule(with()...), trial(named("canary", "p1")), []string{`"canary"`, "rename one"}},
		"the stable's name":         {rule(with()...), trial(named("stable", "p1")), []string{`"stable"`, "rename one"}},
		"no name":                   {rule(with()...), trial(named("", "p1")), []string{`""`, `"p1"`, "both are needed"}},
		"no hash":                   {rule(with()...), trial(named("probe", "")), []string{`"probe"`, "both are needed"}},
		"one name with two hashes":  {rule(with()...), trial(append(named("probe", "p2"), probe...)), []string{`"probe"`, `"p1"`, `"p2"`}},
		"no Rollout":                {rule(with()...), nobody, []string{"without a Rollout"}},
		"another Rollout's":         {noted(`{"shop/other":["probe"]}`, with(subset("probe"))...), trial(probe), []string{`"probe"`, "shop/other", "another name"}},
		"two of that name":          {rule(with(subset("probe"), subset("probe"))...), trial(probe), []string{`2 experiment subsets "probe"`, "leave one"}},
		"labels of the wrong type":  {rule(with(fields{"name": "probe", "labels": "x"})...), trial(probe), []string{`"probe" is malformed`, "spec.subsets[2].labels"}},
		"a malformed annotation":    {noted(`probe`, with()...), trial(probe), []string{ownership.Annotation, "JSON object", "remove the annotation"}},
		"a malformed entry of ours": {noted(`{"shop/cart":1}`, with()...), trial(nil, "probe"), []string{ownership.Annotation, `"shop/cart"`}},
		"two of the name to be removed": {noted(`{"shop/cart":["probe"]}`, with(subset("probe"), subset("probe"))...), trial(nil, "probe"),
			[]string{`2 experiment subsets "probe"`, "leave one"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			patch, changes, err := destinationrule.Parse(tc.u, manager).Set(tc.target)
			mention(t, err, append(tc.want, "DestinationRule shop/web: ")...)
			if patch != nil || changes != nil {
				t.Errorf("patch %v and changes %v beside the error", patch, changes)
			}
		})
	}
}

func TestTheAccountIsReadForOneRollout(t *testing.T) {
	for text, want := range map[string][]string{
		`{"shop/cart":["b","a","b"],"shop/other":["c"]}`: {"a", "b"},
		`{"shop/other":["c"]}`:                           nil,
		`{"shop/cart":1}`:                                nil,
		`probe`:                                          nil,
		``:                                               nil,
	} {
		if diff := cmp.Diff(want, destinationrule.Parse(noted(text), manager).ExperimentSubsets(owner)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestANewSubsetHasNothingButNameAndHash(t *testing.T) {
	patch, _, err := destinationrule.Parse(rule(with()...), manager).Set(trial(running(destinationrule.Experiment{Subset: "probe", Hash: "p1"})))
	if err != nil {
		t.Fatal(err)
	}
	subsets := apply(t, rule(with()...), patch).Object["spec"].(fields)["subsets"].([]any)
	if diff := cmp.Diff(subset("probe", hashKey, "p1"), subsets[2]); diff != "" {
		t.Errorf("subset (-want +got):\n%s", diff)
	}
}
