package router

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

const (
	edgeRule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: edge}
spec:
  host: cart.example.com
  subsets:
  - {name: live, labels: {app: cart}}
  - {name: next, labels: {app: cart}}
`
	edgeVirtualService = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge}
spec:
  hosts: [cart.example.com]
  http:
  - route:
    - {destination: {host: cart.example.com, subset: live}, weight: 100}
    - {destination: {host: cart.example.com, subset: next}, weight: 0}
`
	twoRulesConfig = `{"virtualServices": [{"name": "cart"}, {"name": "edge"}], "destinationRules": [` +
		`{"name": "cart", "canarySubsetName": "canary", "stableSubsetName": "stable"},` +
		`{"name": "edge", "canarySubsetName": "next", "stableSubsetName": "live"}]}`
)

// twoRules is a canary "c2" with all of its pods beside the stable "s1", behind two
// hosts.
func twoRules(t *testing.T) (*world, *Router, *v1alpha1.Rollout) {
	w := newWorld(t, subsetVirtualService, subsetDestinationRule, edgeVirtualService, edgeRule)
	w.pods("s1", 20, 20)
	w.pods("c2", 20, 20)
	w.pass(time.Minute)
	ro := rollout(twoRulesConfig)
	ro.Status.StableRS, ro.Status.CurrentPodHash = "s1", "c2"
	w.rollouts["shop/cart"] = ro
	return w, w.calledRouter(), ro
}

// twoRulesAt is twoRules with its labels and a weight in place.
func twoRulesAt(t *testing.T, weight int32) (*world, *Router, *v1alpha1.Rollout) {
	t.Helper()
	w, r, ro := twoRules(t)
	mustUpdate(t, r, ro, "c2", "s1")
	mustSet(t, r, ro, weight)
	w.wantBoth(t, "to begin with", weights(weight), "stable=s1 canary=c2 live=s1 next=c2")
	w.writes, w.events = nil, nil
	return w, r, ro
}

func weights(canary int32) string {
	return map[int32]string{0: "100/0", 20: "80/20", 50: "50/50"}[canary]
}

// wantBoth checks that both VirtualServices have the weights, and the labels of both
// DestinationRules.
func (w *world) wantBoth(t *testing.T, when, weights, labels string) {
	t.Helper()
	wantEqual(t, when+", weights", w.lists("cart", "http")+" "+w.lists("edge", "http"), "primary="+weights+" ="+weights)
	wantEqual(t, when+", labels", w.labels()+" "+w.labelsOf("edge"), labels)
}

func TestSeveralDestinationRulesGoTogetherFromTheFirstWeightToThePromotion(t *testing.T) {
	w, r, ro := twoRulesAt(t, 50)
	mustSet(t, r, ro, 100)
	if verified, err := r.VerifyWeight(context.Background(), ro, 100, nil); !verified || err != nil {
		t.Errorf("verified %t, error %v", verified, err)
	}
	ro.Status.StableRS = "c2"
	mustUpdate(t, r, ro, "c2", "c2")
	mustSet(t, r, ro, 0)
	w.wantBoth(t, "promoted", "100/0", "stable=c2 canary=c2 live=c2 next=c2")
	writes := len(w.writes)
	mustUpdate(t, r, ro, "c2", "c2")
	mustSet(t, r, ro, 0)
	if len(w.writes) != writes {
		t.Errorf("a second reconcile wrote %v", w.writes[writes:])
	}
}

func TestOneOfSeveralDestinationRulesThatNamesAPodlessRevisionCapsTheWeightOfAllRoutes(t *testing.T) {
	w, r, ro := twoRulesAt(t, 50)
	w.relabel("edge", "next", "gone")
	must(t, r.SetWeight(context.Background(), ro, 50, nil))
	w.wantBoth(t, "one label names nobody", "100/0", "stable=s1 canary=c2 live=s1 next=gone")
}

func TestEachOfSeveralDestinationRulesMovesItsLabelWhenThatIsSafe(t *testing.T) {
	w, r, ro := twoRulesAt(t, 50)
	w.pods("c3", 0, 20)
	ro.Status.CurrentPodHash = "c3"
	w.relabel("edge", "next", "c3") // this one is there already
	wantError(t, updateHash(r, ro, "c3", "s1"), "has to go down to 0 first")
	w.wantBoth(t, "one subset has to lose its weight first, and all routes with it", "100/0", "stable=s1 canary=c2 live=s1 next=c3")
	w.pass(2 * time.Second)
	mustUpdate(t, r, ro, "c3", "s1")
	w.wantBoth(t, "after settle", "100/0", "stable=s1 canary=c3 live=s1 next=c3")
}

func TestTheWatchPutsBackTheLabelsOfTheDestinationRuleThatSomebodyChanged(t *testing.T) {
	w, r, _ := twoRulesAt(t, 20)
	w.relabel("edge", "live", "c2")
	settled(t, w, r)
	w.wantBoth(t, "after the watch's look", "80/20", "stable=s1 canary=c2 live=s1 next=c2")
	if slices.Contains(w.writes, "DestinationRule shop/cart") {
		t.Errorf("the other was written, too: %v", w.writes)
	}
	told := slices.ContainsFunc(w.events, func(event string) bool {
		return strings.Contains(event, "DriftCorrected: DestinationRule shop/edge: subset labels")
	})
	if !told {
		t.Errorf("the correction names another object: %q", w.events)
	}
}

func TestAMissingDestinationRuleStopsRisesAndNotFallsOnTheOtherHost(t *testing.T) {
	w, r, ro := twoRulesAt(t, 20)
	delete(w.objects, "DestinationRule shop/edge")
	wantError(t, r.SetWeight(context.Background(), ro, 50, nil), "DestinationRule shop/edge", "not found")
	wantError(t, updateHash(r, ro, "c2", "s1"), "DestinationRule shop/edge", "not found")
	w.wantWeights(t, "no rise", "80/20")
	wantError(t, r.SetWeight(context.Background(), ro, 0, nil), "DestinationRule shop/edge", "not found")
	w.wantWeights(t, "a fall where the host is known", "100/0")
}

func TestALateFailureSaysWhichDestinationRuleIsWritten(t *testing.T) {
	w, r, ro := twoRules(t)
	w.refuse["DestinationRule shop/edge"] = errors.New("no quota")
	wantError(t, updateHash(r, ro, "c2", "s1"), "no quota", "already written: DestinationRule shop/cart")
	wantEqual(t, "labels of the second", w.labelsOf("edge"), "live= next=")
	delete(w.refuse, "DestinationRule shop/edge")
	mustUpdate(t, r, ro, "c2", "s1")
	w.wantBoth(t, "the next call", "100/0", "stable=s1 canary=c2 live=s1 next=c2")
}

func TestASubsetThatIsMissingInOneOfThemIsAnErrorBeforeAnyIsWritten(t *testing.T) {
	w, r, ro := twoRules(t)
	w.apply(strings.Replace(edgeRule, "name: next", "name: other", 1))
	wantError(t, updateHash(r, ro, "c2", "s1"), "DestinationRule shop/edge", `no subset "next"`)
	if len(w.writes) > 0 {
		t.Errorf("written: %v", w.writes)
	}
}

func TestASubsetThatIsMissingInOneOfThemStopsNoFallOnTheOtherHost(t *testing.T) {
	w, r, ro := twoRulesAt(t, 20)
	w.apply(strings.Replace(edgeRule, "name: next", "name: other", 1))
	wantError(t, r.SetWeight(context.Background(), ro, 0, nil), "DestinationRule shop/edge", `no subset "next"`)
	w.wantWeights(t, "a fall where the subsets are known", "100/0")
}

func TestASubsetOfAnExperimentThatOneOfThemRefusesIsAnErrorBeforeAnyIsWritten(t *testing.T) {
	w, r, ro := twoRulesAt(t, 20)
	w.apply(strings.Replace(edgeRule, "{name: edge}", `{name: edge, annotations: {istio.argoproj-labs.io/experiments: '{"shop/other":["exp-a"]}'}}`, 1))
	w.relabel("edge", "live", "s1")
	w.relabel("edge", "next", "c2")
	err := r.UpdateHash(context.Background(), ro, "c2", "s1", []v1alpha1.WeightDestination{share("exp-a", "ha", 15)})
	wantError(t, err, "DestinationRule shop/edge", "belongs to Rollout shop/other")
	if len(w.writes) > 0 {
		t.Errorf("written: %v", w.writes)
	}
}

func TestTheWatchPutsBackTheSubsetOfAnExperimentInOneOfThem(t *testing.T) {
	w, r, ro := twoRulesAt(t, 20)
	w.templates["ha"] = 1
	exp := []v1alpha1.WeightDestination{share("exp-a", "ha", 15)}
	must(t, r.UpdateHash(context.Background(), ro, "c2", "s1", exp))
	must(t, r.SetWeight(context.Background(), ro, 20, exp))
	w.events = nil
	w.relabel("edge", "exp-a", "other")
	watched(t, r) // takes the share away from pods that are not the experiment's
	settled(t, w, r)
	must(t, r.SetWeight(context.Background(), ro, 20, exp))
	w.wantBoth(t, "after the watch's looks and the next call", "65/20/15", "stable=s1 canary=c2 exp-a=ha live=s1 next=c2 exp-a=ha")
	told := slices.ContainsFunc(w.events, func(event string) bool {
		return strings.Contains(event, "DriftCorrected: DestinationRule shop/edge: subset labels")
	})
	if !told {
		t.Errorf("no Event names the object: %q", w.events)
	}
}

func TestAnExperimentHasItsSubsetOnEachHostAndLeavesNone(t *testing.T) {
	w, r, ro := twoRulesAt(t, 20)
	w.templates["ha"] = 1
	call := func(exp ...v1alpha1.WeightDestination) {
		t.Helper()
		must(t, r.UpdateHash(context.Background(), ro, "c2", "s1", exp))
		must(t, r.SetWeight(context.Background(), ro, 20, exp))
	}
	call(share("exp-a", "ha", 15))
	w.wantBoth(t, "while it runs", "65/20/15", "stable=s1 canary=c2 exp-a=ha live=s1 next=c2 exp-a=ha")
	for name, host := range map[string]string{"cart": "cart.shop.svc.cluster.local", "edge": "cart.example.com"} {
		if got := w.destination(name, 2); got != host+"/exp-a" {
			t.Errorf("VirtualService %s sends the share to %s", name, got)
		}
	}
	call()
	w.pass(3 * time.Second)
	call()
	settled(t, w, r)
	w.wantBoth(t, "after it", "80/20", "stable=s1 canary=c2 live=s1 next=c2")
}

func TestTheSameSubsetsMayStandInTheDestinationRulesOfSeveralNamespaces(t *testing.T) {
	w := newWorld(t, subsetVirtualService, subsetDestinationRule,
		strings.Replace(strings.Replace(subsetDestinationRule, "name: cart", "name: clients", 1), "host: cart", "host: cart.shop.svc.cluster.local", 1))
	w.pods("s1", 20, 20)
	w.pods("c2", 20, 20)
	ro := rollout(`{"virtualService": {"name": "cart"}, "destinationRules": [` +
		`{"name": "cart", "canarySubsetName": "canary", "stableSubsetName": "stable"},` +
		`{"name": "clients", "canarySubsetName": "canary", "stableSubsetName": "stable"}]}`)
	ro.Status.StableRS, ro.Status.CurrentPodHash = "s1", "c2"
	r := w.calledRouter()
	mustUpdate(t, r, ro, "c2", "s1")
	mustSet(t, r, ro, 50)
	w.wantWeights(t, "one pair of subsets", "50/50")
	wantEqual(t, "both", w.labels()+" "+w.labelsOf("clients"), "stable=s1 canary=c2 stable=s1 canary=c2")
}

func TestASubsetOfTheSecondDestinationRuleBelongsToOneRolloutOnly(t *testing.T) {
	w, _, ro := twoRules(t)
	ro.CreationTimestamp.Time = w.clock.Now().Add(-time.Hour)
	other := rollout(`{"virtualService": {"name": "other"}, "destinationRule": {"name": "edge", "canarySubsetName": "next", "stableSubsetName": "mine"}}`)
	other.Name, other.UID, other.CreationTimestamp.Time = "other", types.UID("uid-2"), w.clock.Now()
	w.rollouts["shop/other"] = other
	w.apply(strings.ReplaceAll(edgeRule, "spec:\n  host: cart.example.com\n  subsets:", "spec:\n  host: cart.example.com\n  subsets:\n  - {name: mine}"))
	w.apply(strings.NewReplacer("name: edge", "name: other", "subset: live", "subset: mine").Replace(edgeVirtualService))
	r := w.calledRouter()
	mustUpdate(t, r, ro, "c2", "s1")
	wantError(t, updateHash(r, other, "x", "y"), `subset "next"`, "is handled by Rollout shop/cart already")
}

func TestPodsHaveToCarryWhatEachOfTheHostsAsksFor(t *testing.T) {
	w, r, ro := twoRulesAt(t, 20)
	w.apply(strings.ReplaceAll(edgeRule, "{app: cart}", "{app: basket}"))
	_ = updateHash(r, ro, "c2", "s1")
	must(t, r.SetWeight(context.Background(), ro, 50, nil))
	wantEqual(t, "a canary that one host cannot reach", w.lists("cart", "http"), "primary=100/0")
	told := slices.ContainsFunc(w.events, func(event string) bool {
		return strings.Contains(event, "SubsetMatchesNoPods") && strings.Contains(event, "host cart.example.com, subset next") && strings.Contains(event, "app=basket")
	})
	if !told {
		t.Errorf("no Event names the host and its label: %q", w.events)
	}
}

// relabel names another hash in a subset of a DestinationRule, as a person would.
func (w *world) relabel(rule, subset, hash string) {
	w.t.Helper()
	u := w.objects["DestinationRule shop/"+rule].DeepCopy()
	for _, s := range u.Object["spec"].(map[string]any)["subsets"].([]any) {
		if m := s.(map[string]any); m["name"] == subset {
			m["labels"].(map[string]any)[v1alpha1.DefaultRolloutUniqueLabelKey] = hash
		}
	}
	w.byHand(u)
	w.store(u)
}

// destination is "host/subset" of an entry of the last http route.
func (w *world) destination(name string, entry int) string {
	routes, _, _ := unstructured.NestedSlice(w.virtualService(name).Object, "spec", "http")
	d := routes[len(routes)-1].(map[string]any)["route"].([]any)[entry].(map[string]any)["destination"].(map[string]any)
	return d["host"].(string) + "/" + d["subset"].(string)
}
