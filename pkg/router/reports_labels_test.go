package router

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// argo-rollouts#1238: a subset's trafficPolicy went away with its first hash;
// argo-rollouts#4332: subsets of others went away too.
func TestOfARichDestinationRuleOnlyTwoLabelsChange(t *testing.T) {
	w, r, ro := subsetCanary(t, richDestinationRule)
	before := w.destinationRule()
	mustUpdate(t, r, ro, "c2", "s1")
	wantEqual(t, "changed", changes(before, w.destinationRule()),
		`/spec/subsets/0/labels/rollouts-pod-template-hash: "s0" -> "s1"; /spec/subsets/1/labels/rollouts-pod-template-hash: "c0" -> "c2"`)
	w.wantLabels(t, "order", "stable=s1 canary=c2 legacy=")
}

// argo-rollouts#3420: a subset of the experiment's name without labels was a panic.
func TestASubsetWithoutLabelsThatAnExperimentFindsIsUsed(t *testing.T) {
	ctx := context.Background()
	w, r, ro := subsetCanary(t, strings.Replace(richDestinationRule, "  - {name: legacy", "  - {name: exp}\n  - {name: legacy", 1))
	mustUpdate(t, r, ro, "c2", "s1")
	w.templates["h"] = 1
	exp := []v1alpha1.WeightDestination{share("exp", "h", 15)}
	must(t, r.UpdateHash(ctx, ro, "c2", "s1", exp))
	must(t, r.SetWeight(ctx, ro, 20, exp))
	w.wantLabels(t, "subsets", "stable=s1 canary=c2 exp=h legacy=")
	w.wantWeights(t, "weights", "65/20/15")
}

// argo-rollouts#3420: the subset that carries an experiment's traffic got the label
// of a second experiment's pods before there were any.
func TestAnExperimentsSubsetInUseIsRelabelledAfterItsShareIsGone(t *testing.T) {
	ctx := context.Background()
	w, r, ro := subsetCanary(t, subsetDestinationRule)
	w.templates["h"], w.templates["h2"] = 1, 0
	first := []v1alpha1.WeightDestination{share("exp", "h", 15)}
	must(t, r.UpdateHash(ctx, ro, "c2", "s1", first))
	must(t, r.SetWeight(ctx, ro, 20, first))
	w.wantWeights(t, "the first", "65/20/15")
	second := []v1alpha1.WeightDestination{share("exp", "h2", 15)}
	must(t, r.UpdateHash(ctx, ro, "c2", "s1", second))
	w.wantLabels(t, "its share is still there", "stable=s1 canary=c2 exp=h")
	must(t, r.SetWeight(ctx, ro, 20, second))
	w.wantWeights(t, "without pods", "80/20")
	w.pass(time.Minute)
	w.templates["h2"] = 1
	must(t, r.UpdateHash(ctx, ro, "c2", "s1", second))
	soon(t, w, func() error { return r.SetWeight(ctx, ro, 20, second) })
	w.wantLabels(t, "the second", "stable=s1 canary=c2 exp=h2")
	w.wantWeights(t, "the second", "65/20/15")
}

// argo-rollouts#3125: a subset of others that shares the route and the rule.
func TestAForeignSubsetInTheRouteKeepsItsShare(t *testing.T) {
	w, r, ro := subsetCanary(t, richDestinationRule)
	w.apply(virtualServiceOf("cart", "  http: [{name: x, "+toThreeSubsets+"}]"))
	mustUpdate(t, r, ro, "c2", "s1")
	mustSet(t, r, ro, 10)
	w.wantWeights(t, "10", "72/8/20")
	w.wantLabels(t, "subsets", "stable=s1 canary=c2 legacy=")
}

// argo-rollouts#2507: at the migration from a Deployment the label of pods that were
// not ready yet took all traffic from those that were.
func TestTheFirstRolloutGetsItsLabelOnceItsPodsAreThere(t *testing.T) {
	for sentence, tc := range map[string]struct{ canary, virtualService string }{
		"no canary yet":           {"", subsetVirtualService},
		"canary and stable alike": {"h1", subsetVirtualService},
		"no weights written": {
			"h1", strings.NewReplacer(", weight: 100", "", ", weight: 0", "").Replace(subsetVirtualService),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, tc.virtualService, subsetDestinationRule)
			r, ro := w.router(), rollout(subsetConfig)
			ro.Status.StableRS, ro.Status.CurrentPodHash = "", "h1"
			w.pods("h1", 0, 3)
			before := w.destinationRule()
			wantError(t, updateHash(r, ro, tc.canary, "h1"), "waiting for replicas of h1, 0 of 3 available")
			wantEqual(t, "changed", changes(before, w.destinationRule()), "")
			w.pods("h1", 20, 20)
			wantError(t, updateHash(r, ro, "h1", "h1"), "canary subset still names no hash, not h1")
			w.pass(time.Second)
			mustUpdate(t, r, ro, "h1", "h1")
			wantEqual(t, "changed", changes(before, w.destinationRule()),
				`/spec/subsets/0/labels/rollouts-pod-template-hash: -> "h1"; /spec/subsets/1/labels/rollouts-pod-template-hash: -> "h1"`)
		})
	}
}

// argo-rollouts#4775: the label moved milliseconds after the weight, before a proxy
// had heard of either; argo-rollouts#4390: "success" with the old label in place had
// the pods behind it taken away.
func TestASupersededCanaryKeepsItsLabelForSettleAfterTheControllersOwnWeight(t *testing.T) {
	for sentence, pods := range map[string]int32{"no pod of the next": 0, "a pod of the next": 1} {
		t.Run(sentence, func(t *testing.T) {
			w, r, ro := subsetCanaryAt(t, 5)
			w.pass(time.Hour)
			ro.Status.CurrentPodHash = "c3"
			w.pods("c3", pods, 1)
			mustSet(t, r, ro, 0)
			w.wantWeights(t, "asked for", "100/0")
			wantError(t, updateHash(r, ro, "c3", "s1"), "canary subset still names c2, not c3")
			w.wantLabels(t, "back to back", "stable=s1 canary=c2")
			w.pass(1500 * time.Millisecond)
			mustUpdate(t, r, ro, "c3", "s1")
			w.wantLabels(t, "after settle", "stable=s1 canary=c3")
		})
	}
}

// argo-rollouts#4390: one of two VirtualServices cannot be lowered.
func TestALabelStaysWhileOneOfTwoVirtualServicesStillLeadsToIt(t *testing.T) {
	spec := "  http: [{name: x, route: [{destination: {host: cart, subset: stable}, weight: 100}, {destination: {host: cart, subset: canary}, weight: 0}]}]"
	w, r, ro := subsetCanary(t, subsetDestinationRule)
	w.apply(virtualServiceOf("a", spec))
	w.apply(virtualServiceOf("b", spec))
	two := rollout(strings.Replace(subsetConfig, `"virtualService": {"name": "cart"}`, `"virtualServices": [{"name": "a"}, {"name": "b"}]`, 1))
	two.Status = ro.Status
	mustUpdate(t, r, two, "c2", "s1")
	mustSet(t, r, two, 30)
	w.pass(time.Minute)
	two.Status.CurrentPodHash = "c3"
	w.pods("c3", 0, 5)
	w.refuse["VirtualService shop/b"] = errors.New("webhook says no")
	for range 5 {
		wantError(t, updateHash(r, two, "c3", "s1"), "webhook says no")
		w.wantLabels(t, "b leads there", "stable=s1 canary=c2")
		wantEqual(t, "a is lowered, b cannot be", w.lists("a", "http")+" "+w.lists("b", "http"), "x=100/0 x=70/30")
		w.pass(time.Second)
	}
	clear(w.refuse)
	_ = updateHash(r, two, "c3", "s1") // lowers b; the label waits for settle
	w.pass(2 * time.Second)
	mustUpdate(t, r, two, "c3", "s1")
	w.wantLabels(t, "nothing leads there", "stable=s1 canary=c3")
}

// argo-rollouts#4839: a sick stable stopped the canary that would have been the cure.
func TestASickStableHoldsUpItsOwnLabelAndNotTheCanarys(t *testing.T) {
	w, r, ro := subsetCanary(t, subsetDestinationRule)
	w.pods("c1", 20, 20)
	mustUpdate(t, r, ro, "c1", "s1")
	w.pods("s1", 3, 20)
	mustUpdate(t, r, ro, "c2", "s1")
	w.wantLabels(t, "the canary's", "stable=s1 canary=c2")
	w.pods("s2", 0, 20)
	wantError(t, updateHash(r, ro, "c2", "s2"), "s2")
	w.wantLabels(t, "the stable's", "stable=s1 canary=c2")
}

// argo-rollouts#4390: a stable's hash without pods, and a rollback to the stable in
// mid-canary, leave the canary's label and weight as they are.
func TestAStableWithoutPodsAndARollbackToTheStableMoveNoLabel(t *testing.T) {
	w, r, ro := subsetCanaryAt(t, 30)
	w.pass(time.Minute)
	w.pods("s2", 0, 20)
	wantError(t, updateHash(r, ro, "c2", "s2"), "s2")
	w.wantLabels(t, "no pod of s2", "stable=s1 canary=c2")
	w.wantWeights(t, "no pod of s2", "70/30")
	ro.Status.CurrentPodHash = "s1"
	mustUpdate(t, r, ro, "c2", "s1")
	mustSet(t, r, ro, 30)
	w.wantLabels(t, "back to s1", "stable=s1 canary=c2")
	w.wantWeights(t, "back to s1", "70/30")
}

// argo-rollouts#1838: after an abort the canary's subset names pods that are gone;
// nothing leads there.
func TestAfterAnAbortTheCanarysSubsetKeepsItsHashWithoutWeight(t *testing.T) {
	w, r, ro := subsetCanaryAt(t, 30)
	ro.Status.Abort = true
	w.pods("c2", 0, 0)
	mustUpdate(t, r, ro, "c2", "s1")
	mustSet(t, r, ro, 0)
	w.wantLabels(t, "aborted", "stable=s1 canary=c2")
	w.wantWeights(t, "aborted", "100/0")
}

// argo-rollouts#1734: after the last step traffic went back to the old pods, as the
// weight moved before the stable's label had.
func TestAPromotionThatCannotMoveTheLabelKeepsTheTrafficOnTheNewPods(t *testing.T) {
	for sentence, mode := range map[string]string{"Enforce": "Enforce", "Observe": "Observe", "Off": "Off", "Enforce, and the process is new": "Enforce"} {
		t.Run(sentence, func(t *testing.T) {
			w, r, ro := subsetCanary(t, subsetDestinationRule)
			ro.Spec.Strategy.Canary.TrafficRouting.Plugins["argoproj-labs/istio"] = []byte(strings.Replace(subsetConfig, `{"virtualService"`, `{"guard": {"mode": "`+mode+`"}, "virtualService"`, 1))
			mustUpdate(t, r, ro, "c2", "s1")
			mustSet(t, r, ro, 100)
			ro.Status.StableRS = "c2"
			w.refuse["DestinationRule shop/cart"] = errors.New("conflict for ever")
			if mode != sentence {
				w.rollouts["shop/cart"] = ro
				r = w.calledRouter()
			} else {
				wantError(t, updateHash(r, ro, "c2", "c2"), "conflict for ever")
			}
			wantError(t, setWeight(t, r, ro, 0), "conflict for ever")
			w.wantWeights(t, "the label is old", "0/100")
			clear(w.refuse)
			mustUpdate(t, r, ro, "c2", "c2")
			mustSet(t, r, ro, 0)
			w.wantLabels(t, "the label can move", "stable=c2 canary=c2")
			w.wantWeights(t, "the label has moved", "100/0")
		})
	}
}

// argo-rollouts#1718: the same while the old pods are gone already and the watch looks.
func TestTheWatchDoesNotSendTrafficBackToAStableWithoutPods(t *testing.T) {
	w, r, ro := subsetCanaryAt(t, 100)
	w.pass(time.Minute)
	done := ro.DeepCopy()
	done.Status.StableRS = "c2"
	w.rollouts["shop/cart"] = done
	w.pods("s1", 0, 0)
	w.refuse["DestinationRule shop/cart"] = errors.New("conflict for ever")
	for range 3 {
		wantError(t, updateHash(r, done, "c2", "c2"), "conflict for ever")
		wantError(t, setWeight(t, r, done, 0), "conflict for ever")
		_, _ = r.watchLook(context.Background(), "uid-1") // may meet the refused write too
		w.wantWeights(t, "the label is old", "0/100")
	}
	clear(w.refuse)
	mustUpdate(t, r, done, "c2", "c2")
	mustSet(t, r, done, 0)
	w.wantLabels(t, "promoted", "stable=c2 canary=c2")
	w.wantWeights(t, "promoted", "100/0")
}
