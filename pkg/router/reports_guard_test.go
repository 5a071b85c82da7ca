package router

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// ofReplicas is a host-level Rollout of a size and with steps of these weights.
func ofReplicas(replicas int32, weights ...int32) *v1alpha1.Rollout {
	ro := rollout(hostConfig)
	ro.Spec.Replicas = &replicas
	if len(weights) > 0 {
		ro.Spec.Strategy.Canary.Steps = nil
	}
	for _, weight := range weights {
		ro.Spec.Strategy.Canary.Steps = append(ro.Spec.Strategy.Canary.Steps, v1alpha1.CanaryStep{SetWeight: &weight})
	}
	return ro
}

// argo-rollouts#3470: a negative weight after an abort; argo-rollouts#4424: more than
// 100 with a canary larger than spec.replicas.
func TestWeightsThatTheControllerMiscountsAreBroughtIntoRange(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	w.setWeights("60/40")
	mustSet(t, r, rollout(hostConfig), -140)
	w.wantWeights(t, "-140", "100/0")
	ro := ofReplicas(2)
	ro.Status.PromoteFull = true
	ro.Spec.Strategy.Canary.DynamicStableScale = true
	w.pods("new", 4, 4)
	w.pods("old", 2, 2)
	mustSet(t, r, ro, 200)
	w.wantWeights(t, "200 with 4 pods of 2", "0/100")
	w.pods("new", 1, 2)
	mustSet(t, r, ro, 50)
	w.wantWeights(t, "50 with 1 pod of 2", "50/50")
}

// argo-rollouts#3470: the same for the shares of experiments.
func TestSharesOfExperimentsAreNeverNegativeAndNeverMoreThanAll(t *testing.T) {
	ctx := context.Background()
	w, r := hostCanary(t, hostVirtualService)
	w.templates["h"], w.templates["h2"] = 1, 1
	ro := rollout(hostConfig)
	must(t, r.SetWeight(ctx, ro, 50, []v1alpha1.WeightDestination{share("exp", "h", -30)}))
	w.wantWeights(t, "-30", "50/50/0")
	must(t, r.SetWeight(ctx, ro, math.MinInt32, []v1alpha1.WeightDestination{share("exp", "h", math.MaxInt32), share("exp2", "h2", math.MaxInt32)}))
	w.wantWeights(t, "all that an int32 can hold", "0/0/50/50")
}

// Gateway API plugin #124: the stable's share was fixed during an experiment.
func TestDuringAnExperimentTheStableHasWhatIsLeftAndThePortIsTheStables(t *testing.T) {
	ctx := context.Background()
	w, r := hostCanary(t, virtualServiceOf("cart", `  http: [{name: primary, route: [{destination: {host: cart-stable, port: {number: 8080}}, weight: 100}, {destination: {host: cart-canary, port: {number: 8080}}, weight: 0}]}]`))
	w.templates["h1"], w.templates["h2"] = 1, 1
	ro := rollout(hostConfig)
	must(t, r.SetWeight(ctx, ro, 0, []v1alpha1.WeightDestination{share("e1", "h1", 15), share("e2", "h2", 15)}))
	w.wantWeights(t, "15 and 15", "70/0/15/15")
	wantEqual(t, "the new destination", fmt.Sprint(w.httpRoute(0)["route"].([]any)[2]), "map[destination:map[host:e1.shop.svc.cluster.local port:map[number:8080]] weight:15]")
	err := r.SetWeight(ctx, ro, 10, []v1alpha1.WeightDestination{share("e1", "h1", 10), share("e1", "h1", 10)})
	wantError(t, err, `"e1" and "e1"`)
	w.wantWeights(t, "one service twice", "70/0/15/15")
	mustSet(t, r, ro, 10)
	w.wantWeights(t, "it has ended", "90/10")
}

// argo-rollouts#3941: a rollback within rollbackWindow sent everything to one pod.
func TestARollbackNeverHasMoreThanTheSharesOfItsPodsWhateverIsAsked(t *testing.T) {
	for _, request := range []int32{70, 100} {
		for available, most := range map[int32]int32{0: 0, 1: 10, 5: 50, 9: 90, 10: 100} {
			w, r := hostCanary(t, hostVirtualService)
			w.pods("old", 10, 10)
			w.pods("new", available, 10)
			for range 5 {
				mustSet(t, r, ofReplicas(10, request), request)
			}
			want := min(request, most)
			w.wantWeights(t, fmt.Sprintf("%d with %d pods of 10", request, available), fmt.Sprintf("%d/%d", 100-want, want))
			if len(w.writes) > 1 {
				t.Errorf("the weight moves while the pods do not: %v", w.writes)
			}
		}
	}
}

// argo-rollouts#4841: an aborted rollout keeps a few percent for ever.
func TestAnAbortedRolloutThatIsStillRoutedIsObeyedAndToldOnce(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	ro := rollout(hostConfig)
	ro.Status.Abort = true
	for range 5 {
		mustSet(t, r, ro, 5)
		w.pass(time.Minute)
	}
	w.wantWeights(t, "obeyed", "95/5")
	if told := strings.Join(w.eventsSince(), "\n"); strings.Count(told, EventAbortedStillRouted) != 1 {
		t.Errorf("Events:\n%s", told)
	}
}

// argo-rollouts#2939: a rollback hurries through the steps while its pods come and go.
func TestStepsInOneSecondAreEachHeldToThePodsOfTheirMoment(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	ro := ofReplicas(3, 20, 50, 100)
	w.pods("old", 3, 3)
	for i, c := range []struct {
		available, request int32
		want               string
	}{{3, 20, "80/20"}, {1, 50, "75/25"}, {1, 100, "67/33"}, {2, 100, "34/66"}, {3, 100, "0/100"}} {
		w.pods("new", c.available, 3)
		ro.Status.CurrentStepIndex = ptr.To(int32(min(i, 3)))
		mustSet(t, r, ro, c.request)
		w.wantWeights(t, fmt.Sprintf("%d with %d pods of 3", c.request, c.available), c.want)
	}
}

// argo-rollouts#1681: with promote-full and dynamicStableScale the controller itself
// follows the pods.
func TestAFullPromotionThatFollowsItsPodsPassesUnchanged(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	ro := ofReplicas(10)
	ro.Status.PromoteFull = true
	ro.Spec.Strategy.Canary.DynamicStableScale = true
	w.pods("old", 10, 10)
	for _, available := range []int32{1, 4, 10, 4, 3} {
		w.pods("new", available, 10)
		mustSet(t, r, ro, 10*available)
		w.wantWeights(t, fmt.Sprintf("%d pods of 10", available), fmt.Sprintf("%d/%d", 100-10*available, 10*available))
	}
}

// argo-rollouts#3686: no replicas and promote-full divided by zero.
func TestWithoutReplicasToCountNothingIsHeldAndNothingPanics(t *testing.T) {
	for sentence, replicas := range map[string]*int32{"0": ptr.To[int32](0), "none given": nil, "below 0": ptr.To[int32](-3)} {
		for _, steps := range [][]v1alpha1.CanaryStep{rollout(hostConfig).Spec.Strategy.Canary.Steps, nil} {
			t.Run(fmt.Sprintf("%s, %d steps", sentence, len(steps)), func(t *testing.T) {
				w, r := hostCanary(t, hostVirtualService)
				ro := rollout(hostConfig)
				ro.Spec.Replicas, ro.Spec.Strategy.Canary.Steps, ro.Status.PromoteFull = replicas, steps, true
				w.pods("new", 1, 1)
				mustSet(t, r, ro, 100)
				w.wantWeights(t, "100", "0/100")
				mustSet(t, r, ro, 0)
				w.wantWeights(t, "0", "100/0")
			})
		}
	}
}

// argo-rollouts#4458: replicaProgressThreshold was not looked at by the router.
func TestACanaryThatHasMetItsThresholdIsNotHeld(t *testing.T) {
	percent := func(n int32) *v1alpha1.ReplicaProgressThreshold {
		return &v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ProgressTypePercentage, Value: n}
	}
	for sentence, tc := range map[string]struct {
		available int32
		threshold *v1alpha1.ReplicaProgressThreshold
		want      string
		promoted  bool
	}{
		"9 of 10 with 90 %":   {9, percent(90), "0/100", true},
		"8 of 10 with 90 %":   {8, percent(90), "20/80", false},
		"8 of 10 with 8 pods": {8, &v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ProgressTypePods, Value: 8}, "0/100", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r, ro := subsetCanary(t, subsetDestinationRule)
			ro.Spec.Replicas = ptr.To[int32](10)
			ro.Spec.Strategy.Canary.ReplicaProgressThreshold = tc.threshold
			w.pods("s1", 10, 10)
			w.pods("c2", tc.available, 10)
			mustUpdate(t, r, ro, "c2", "s1")
			mustSet(t, r, ro, 100)
			w.wantWeights(t, sentence, tc.want)
			if verified, err := r.VerifyWeight(context.Background(), ro, 100, nil); verified != tc.promoted {
				t.Errorf("verified %v, error %v", verified, err)
			}
			if !tc.promoted {
				return
			}
			ro.Status.StableRS = "c2"
			mustUpdate(t, r, ro, "c2", "c2")
			w.wantLabels(t, "promoted", "stable=c2 canary=c2")
		})
	}
}

// argo-rollouts#1552: what cannot be written in one place must not keep traffic on
// pods that are gone in the next.
func TestAFallReachesEveryVirtualServiceThatCanBeWritten(t *testing.T) {
	spec := "  http: [{name: x, " + toBoth + "}]"
	for sentence, fall := range map[string]func(*testing.T, *Router, *v1alpha1.Rollout) error{
		"by a call": func(t *testing.T, r *Router, ro *v1alpha1.Rollout) error { return setWeight(t, r, ro, 0) },
		"by the watch": func(_ *testing.T, r *Router, _ *v1alpha1.Rollout) error {
			_, err := r.watchLook(context.Background(), "uid-1")
			return err
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r := hostCanary(t, virtualServiceOf("a", spec), virtualServiceOf("b", spec))
			ro := rollout(twoConfig)
			mustSet(t, r, ro, 100)
			w.refuse["VirtualService shop/a"] = errors.New("webhook says no")
			w.pods("new", 0, 20)
			wantError(t, fall(t, r, ro), "webhook says no")
			wantEqual(t, "b can be written", w.lists("b", "http"), "x=100/0")
			clear(w.refuse)
			must(t, fall(t, r, ro))
			wantEqual(t, "a can be written again", w.lists("a", "http"), "x=100/0")
		})
	}
}

// argo-rollouts#3681, argo-rollouts#4195: the stable's pods went before the proxies
// had heard that they have no traffic any more.
func TestWithDynamicStableScaleTheFullWeightIsVerifiedAfterSettle(t *testing.T) {
	for sentence, tc := range map[string]struct {
		dynamic bool
		weight  int32
		atOnce  bool
	}{
		"the full weight with dynamicStableScale": {true, 100, false},
		"a part with dynamicStableScale":          {true, 70, true},
		"the full weight without it":              {false, 100, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r, ro := subsetCanary(t, subsetDestinationRule)
			ro.Spec.Strategy.Canary.DynamicStableScale = tc.dynamic
			mustUpdate(t, r, ro, "c2", "s1")
			mustSet(t, r, ro, tc.weight)
			w.wantWeights(t, "written", fmt.Sprintf("%d/%d", 100-tc.weight, tc.weight))
			verify := func(when string, want bool) {
				t.Helper()
				if verified, err := r.VerifyWeight(context.Background(), ro, tc.weight, nil); verified != want || err != nil {
					t.Errorf("%s: verified %v, error %v", when, verified, err)
				}
			}
			verify("at once", tc.atOnce)
			w.pass(900 * time.Millisecond)
			verify("before settle", tc.atOnce)
			w.pass(200 * time.Millisecond)
			verify("after settle", true)
		})
	}
}

// argo-rollouts#3926: what was verified was not what was there.
func TestOnlyAWeightThatIsThereIsVerified(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	ro := rollout(hostConfig)
	verify := func() (bool, error) { return r.VerifyWeight(context.Background(), ro, 50, nil) }
	mustSet(t, r, ro, 50)
	w.setWeights("60/40")
	if verified, err := verify(); verified {
		t.Errorf("60/40 verified as 50, error %v", err)
	}
	mustSet(t, r, ro, 50)
	if verified, err := verify(); !verified || err != nil {
		t.Errorf("50/50: verified %v, error %v", verified, err)
	}
	delete(w.objects, "VirtualService shop/cart")
	if verified, err := verify(); verified || err == nil {
		t.Errorf("no VirtualService: verified %v, error %v", verified, err)
	}
}

// argo-rollouts#1026: the canary had traffic before it had a pod.
func TestWithoutAPodThereIsNeitherWeightNorHeaderRoute(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	ro := stepped(hostConfig, 1)
	for _, request := range []int32{1, 10, 50, 99, 100, 200} {
		w.pods("new", 0, 3)
		must(t, r.SetHeaderRoute(context.Background(), ro, headerStep("hdr", true)))
		mustSet(t, r, ro, request)
		w.wantRoutes(t, fmt.Sprintf("%d without a pod", request), "primary 100/0")
		w.pods("new", 1, 3)
		mustSetSoon(t, w, r, ro, request)
		if got := w.routes(); !strings.HasPrefix(got, "hdr 100, primary ") || strings.HasSuffix(got, " 100/0") {
			t.Errorf("%d with a pod: %s", request, got)
		}
		w.pods("new", 3, 3)
		mustSet(t, r, ro, 0)
		w.wantRoutes(t, "0 with all pods", "hdr 100, primary 100/0")
	}
}

// argo-rollouts#1026: the same at subset level, with an experiment that has its pods.
func TestAnExperimentsShareDoesNotDependOnTheCanarysPods(t *testing.T) {
	ctx := context.Background()
	w, r, ro := subsetCanary(t, subsetDestinationRule)
	w.pods("c2", 0, 0)
	for _, request := range []int32{1, 50, 100} {
		mustUpdate(t, r, ro, "c2", "s1")
		mustSet(t, r, ro, request)
		w.wantWeights(t, fmt.Sprintf("%d without a pod", request), "100/0")
	}
	w.templates["h"] = 1
	exp := []v1alpha1.WeightDestination{share("exp", "h", 15)}
	must(t, r.UpdateHash(ctx, ro, "c2", "s1", exp))
	must(t, r.SetWeight(ctx, ro, 50, exp))
	w.wantWeights(t, "an experiment", "85/0/15")
}

// pingPong is a Rollout whose stable is the named one of the services ping and pong.
func pingPong(stable v1alpha1.PingPongType) *v1alpha1.Rollout {
	ro := rollout(hostConfig)
	canary := ro.Spec.Strategy.Canary
	canary.CanaryService, canary.StableService = "", ""
	canary.PingPong = &v1alpha1.PingPongSpec{PingService: "ping", PongService: "pong"}
	ro.Status.Canary.StablePingPong = stable
	return ro
}

const toPingPong = "  http: [{name: primary, route: [{destination: {host: ping}, weight: 0}, {destination: {host: pong}, weight: 100}]}]"

// argo-rollouts#5006: at the first rollout the stable's Service selects all pods.
func TestAPingPongStableThatSelectsAllPodsIsToldAndTheWeightsAreRight(t *testing.T) {
	w, r := hostCanary(t, virtualServiceOf("cart", toPingPong))
	w.services["shop/pong"], w.services["shop/ping"] = "", "new"
	ro := pingPong(v1alpha1.PPPong)
	mustUpdate(t, r, ro, "new", "old")
	mustSet(t, r, ro, 0)
	if told := strings.Join(w.eventsSince(), "\n"); !strings.Contains(told, EventStableServiceNotPinned) {
		t.Errorf("Events:\n%s", told)
	}
	w.wantWeights(t, "ping/pong at 0", "0/100")
	mustSet(t, r, ro, 100)
	w.wantWeights(t, "ping/pong at 100", "100/0")
	done := pingPong(v1alpha1.PPPing)
	done.Status.StableRS = "new"
	mustUpdate(t, r, done, "new", "new")
	mustSet(t, r, done, 0)
	w.wantWeights(t, "ping/pong promoted", "100/0")
}

// argo-rollouts#5006: the sides have changed and no call has come yet.
func TestAfterAPingPongPromotionTheOldSplitIsNotVerified(t *testing.T) {
	w, r := hostCanary(t, virtualServiceOf("cart", toPingPong))
	w.services["shop/pong"], w.services["shop/ping"] = "old", "new"
	mustSet(t, r, pingPong(v1alpha1.PPPong), 40)
	w.wantWeights(t, "ping/pong", "40/60")
	done := pingPong(v1alpha1.PPPing)
	done.Status.StableRS = "new"
	if verified, err := r.VerifyWeight(context.Background(), done, 0, nil); verified {
		t.Errorf("ping/pong 40/60 verified as 0 for the canary pong, error %v", err)
	}
}
