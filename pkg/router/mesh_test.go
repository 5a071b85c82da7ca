package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
)

const cartHost = "cart.shop.svc.cluster.local"

// istiod is a mesh in memory; what it serves is set by hand.
type istiod struct {
	mu       sync.Mutex
	served   mesh.Served
	err      error
	proxies  []mesh.Proxy
	followed map[types.UID]mesh.Want
}

func (i *istiod) Namespace(rollout string) string { return rollout }

func (i *istiod) Follow(rollout types.UID, _ string, want mesh.Want) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.followed[rollout] = want
}

func (i *istiod) Forget(rollout types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.followed, rollout)
}

func (i *istiod) Served(types.UID) (mesh.Served, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.served, i.err
}

func (i *istiod) Proxies(context.Context) ([]mesh.Proxy, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.proxies, i.err
}

// serves sets the canary's weight and the pods behind both subsets.
func (i *istiod) serves(canary uint32, stablePods, canaryPods []cluster.Endpoint) {
	name := func(subset string) string { return "outbound|80|" + subset + "|" + cartHost }
	var clusters []mesh.Weighted // as istiod does: nothing with weight 0 beside others
	for _, c := range []mesh.Weighted{{Cluster: name("stable"), Weight: 100 - canary}, {Cluster: name("canary"), Weight: canary}} {
		if c.Weight > 0 {
			clusters = append(clusters, c)
		}
	}
	listed := func(pods []cluster.Endpoint) mesh.Cluster {
		c := mesh.Cluster{Asked: true, Exists: true, Listed: true}
		for _, pod := range pods {
			c.Endpoints = append(c.Endpoints, mesh.Endpoint{Address: pod.Address, Port: 8080, Healthy: true})
		}
		return c
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.served = mesh.Served{
		Routes: map[mesh.Host][]mesh.Route{
			{Name: cartHost, Port: 80}: {{Name: "primary", VirtualService: types.NamespacedName{Namespace: "shop", Name: "cart"}, Clusters: clusters}},
		},
		Clusters: map[string]mesh.Cluster{name("stable"): listed(stablePods), name("canary"): listed(canaryPods)},
	}
}

// endpoints are ready pods of a revision.
func endpoints(hash string, n int) []cluster.Endpoint {
	var all []cluster.Endpoint
	for i := range n {
		all = append(all, cluster.Endpoint{
			Address: fmt.Sprintf("10.0.%d.%d", len(hash), i), Ready: true, Serving: true, Pod: fmt.Sprintf("cart-%s-%d", hash, i),
			Labels: map[string]string{"app": "cart", v1alpha1.DefaultRolloutUniqueLabelKey: hash},
		})
	}
	return all
}

// verified is a world at subset level with verify in the configuration, and 20 pods of
// either revision: "old" and "canary1".
func verified(t *testing.T, verify string) (*world, *Router, *istiod, *v1alpha1.Rollout) {
	t.Helper()
	w := newWorld(t, subsetVirtualService, subsetDestinationRule)
	w.pods("old", 20, 20)
	w.pods("canary1", 20, 20)
	w.ports = map[string][]cluster.ServicePort{"shop/cart": {{Port: 80, Name: "http"}}}
	w.slices = map[string][]cluster.Endpoint{"shop/cart": append(endpoints("old", 20), endpoints("canary1", 20)...)}
	i := &istiod{followed: map[types.UID]mesh.Want{}}
	i.serves(0, endpoints("old", 20), endpoints("canary1", 20))
	r := w.calledRouter()
	r.options.Mesh = i
	ro := rollout(strings.TrimSuffix(subsetConfig, "}") + `, "verify": ` + verify + "}")
	ro.Status.StableRS, ro.Status.CurrentPodHash = "old", "canary1"
	mustUpdate(t, r, ro, "canary1", "old")
	return w, r, i, ro
}

// wantVerified checks the two answers of VerifyWeight; no parts mean no error.
func wantVerified(t *testing.T, when string, r *Router, ro *v1alpha1.Rollout, weight int32, want bool, parts ...string) {
	t.Helper()
	got, err := r.VerifyWeight(context.Background(), ro, weight, nil)
	if got != want {
		t.Errorf("%s: verified %t, error %v", when, got, err)
	}
	if len(parts) > 0 {
		wantError(t, err, parts...)
	} else if err != nil {
		t.Errorf("%s: error %v", when, err)
	}
}

func TestAWeightIsVerifiedOnceIstiodServesIt(t *testing.T) {
	_, r, i, ro := verified(t, `{"level": "Mesh"}`)
	mustSet(t, r, ro, 20)
	wantVerified(t, "istiod still serves 0", r, ro, 20, false)
	i.serves(20, endpoints("old", 20), endpoints("canary1", 20))
	wantVerified(t, "istiod serves it", r, ro, 20, true)
	mustSet(t, r, ro, 100)
	wantVerified(t, "all is scaled: after an error the controller would not come back by itself", r, ro, 100, false)
	i.serves(100, endpoints("old", 20), endpoints("canary1", 20))
	wantVerified(t, "all of it", r, ro, 100, true)
	if want, ok := i.followed["uid-1"]; !ok || len(want.Routes) == 0 || len(want.Clusters) == 0 {
		t.Errorf("followed: %+v", want)
	}
}

func TestAMissingRightIsToldThoughTheMeshCouldNotBeAskedBefore(t *testing.T) {
	w, r, _, ro := verified(t, `{"level": "Endpoints"}`)
	mustSet(t, r, ro, 20)
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "endpointslices"}, "", errors.New("no right"))
	for _, err := range []error{errors.New("not listed yet"), fmt.Errorf("cannot watch: %w", refused), errors.New("the API server is away")} {
		w.slicesErr = err
		for range 2 {
			wantVerified(t, err.Error(), r, ro, 20, true)
		}
	}
	told := slices.DeleteFunc(w.eventsSince(), func(event string) bool { return !strings.Contains(event, EventVerificationUnavailable) })
	if len(told) != 2 || !strings.Contains(told[0], "not listed yet") || !strings.Contains(told[1], "no right") {
		t.Errorf("told: %q", told)
	}
}

func TestAWeightThatIsLateIsToldOnce(t *testing.T) {
	w, r, i, ro := verified(t, `{"level": "Mesh"}`)
	late := func() (told []string) {
		return slices.DeleteFunc(w.eventsSince(), func(event string) bool { return !strings.Contains(event, EventWeightNotInEffect) })
	}
	for _, weight := range []int32{20, 100} {
		mustSet(t, r, ro, weight)
		wantVerified(t, "it has not waited, as without a seat", r, ro, weight, false)
		if told := late(); len(told) != 0 {
			t.Errorf("told of %d though it is not late yet: %q", weight, told)
		}
		for range 3 {
			w.pass(time.Second)
			wantVerified(t, "it is late", r, ro, weight, false)
		}
		if told := late(); len(told) != 1 || !strings.Contains(told[0], fmt.Sprintf("weight %d is written and not in effect yet: istiod still serves", weight)) {
			t.Errorf("told of %d: %q", weight, told)
		}
		i.serves(uint32(weight), endpoints("old", 20), endpoints("canary1", 20))
		wantVerified(t, "it is there", r, ro, weight, true)
	}
}

func TestAtTheFullWeightTheStableKeepsItsPodsUntilTheMeshHasIt(t *testing.T) {
	w, r, i, ro := verified(t, `{"level": "Mesh"}`)
	ro.Spec.Strategy.Canary.DynamicStableScale = true
	ro.Spec.Strategy.Canary.TrafficRouting.MaxTrafficWeight = nil
	mustSet(t, r, ro, 100)
	wantVerified(t, "not yet: without an error nothing is scaled", r, ro, 100, false)
	w.pass(601 * time.Second)
	wantVerified(t, "for longer than maxHold", r, ro, 100, false, "istiod")
	i.serves(100, endpoints("old", 20), endpoints("canary1", 20))
	wantVerified(t, "at once, whatever settle says", r, ro, 100, true)
}

func TestWithoutSettleTheMeshSaysWhenTheFullWeightIsThere(t *testing.T) {
	_, r, i, ro := verified(t, `{"level": "Mesh"}`)
	ro.Spec.Strategy.Canary.DynamicStableScale = true
	i.serves(100, endpoints("old", 20), endpoints("canary1", 20))
	mustSet(t, r, ro, 100)
	wantVerified(t, "written this moment, and served", r, ro, 100, true)
}

func TestAStepThatTheMeshGetsDuringTheCallIsVerifiedByIt(t *testing.T) {
	w, r, i, ro := verified(t, `{"level": "Mesh"}`)
	mustSet(t, r, ro, 20)
	r.patience = 30 * time.Second
	time.AfterFunc(50*time.Millisecond, func() {
		// The watch is not kept from its work meanwhile.
		w.pods("canary1", 0, 20)
		if again, err := r.watchLook(context.Background(), "uid-1"); err != nil || again != 0 {
			t.Errorf("the watch: again %s, error %v", again, err)
		}
		w.wantWeights(t, "while VerifyWeight looks", "100/0")
		w.pods("canary1", 20, 20)
		i.serves(20, endpoints("old", 20), endpoints("canary1", 20))
	})
	if got, err := r.VerifyWeight(context.Background(), ro, 20, nil); got || err != nil {
		t.Errorf("a weight that was lowered during the call is verified: %t, %v", got, err)
	}
}

func TestALookThatFindsTheWeightServedEndsTheCall(t *testing.T) {
	_, r, i, ro := verified(t, `{"level": "Mesh"}`)
	mustSet(t, r, ro, 20)
	r.patience = 30 * time.Second
	time.AfterFunc(50*time.Millisecond, func() { i.serves(20, endpoints("old", 20), endpoints("canary1", 20)) })
	wantVerified(t, "served after a moment", r, ro, 20, true)
}

func TestAMeshThatTakesNoWeightsKeepsFewOfTheWorkers(t *testing.T) {
	_, r, i, ro := verified(t, `{"level": "Mesh"}`)
	mustSet(t, r, ro, 20)
	r.patience = time.Hour
	for range seats {
		r.looking <- struct{}{}
	}
	i.serves(0, endpoints("old", 20), nil)
	wantVerified(t, "all seats are taken", r, ro, 20, false)
	<-r.looking
	time.AfterFunc(50*time.Millisecond, func() { i.serves(20, endpoints("old", 20), endpoints("canary1", 20)) })
	wantVerified(t, "a seat is free", r, ro, 20, true)
	if len(r.looking) != seats-1 {
		t.Errorf("%d seats are taken after the call", len(r.looking))
	}
}

func TestAMeshThatTakesTheWeightSoonSendsNobodyBack(t *testing.T) {
	_, r, i, ro := verified(t, `{"level": "Mesh"}`)
	mustSet(t, r, ro, 20)
	r.patience = verifyPatience
	for range seats {
		r.looking <- struct{}{} // by as many others, all the time
	}
	time.AfterFunc(150*time.Millisecond, func() { i.serves(20, endpoints("old", 20), endpoints("canary1", 20)) })
	wantVerified(t, "served as fast as ever", r, ro, 20, true)
}

func TestWhatCannotBeVerifiedGoesOnOrWaits(t *testing.T) {
	for sentence, tc := range map[string]struct {
		verify string
		harm   func(*world, *Router, *istiod)
		want   bool
		event  []string
	}{
		"istiod is away: on by default": {
			`{"level": "Mesh"}`, func(_ *world, _ *Router, i *istiod) {
				i.err = fmt.Errorf("%w: connection refused", mesh.ErrUnavailable)
			},
			true, []string{"connection refused", "goes on with what the objects say", "verify.onUnavailable: Proceed"},
		},
		"istiod is away: it waits if asked to": {
			`{"level": "Mesh", "onUnavailable": "Hold"}`, func(_ *world, _ *Router, i *istiod) { i.err = mesh.ErrUnavailable },
			false, []string{"no weight is verified until it can"},
		},
		"nobody has said where istiod is": {
			`{"level": "Mesh"}`, func(_ *world, r *Router, _ *istiod) { r.options.Mesh = nil },
			true, []string{"--istiod-address"},
		},
		"the EndpointSlices cannot be read": {
			`{"level": "Endpoints"}`, func(w *world, _ *Router, _ *istiod) { w.slicesErr = errors.New("may not list endpointslices") },
			true, []string{"verify.level Endpoints cannot be met", "may not list endpointslices"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r, i, ro := verified(t, tc.verify)
			mustSet(t, r, ro, 20)
			i.serves(20, endpoints("old", 20), endpoints("canary1", 20))
			mesh := r.options.Mesh
			tc.harm(w, r, i)
			w.events = nil
			for range 3 {
				wantVerified(t, "unavailable", r, ro, 20, tc.want)
			}
			told := slices.DeleteFunc(w.eventsSince(), func(event string) bool { return !strings.Contains(event, EventVerificationUnavailable) })
			if len(told) != 1 {
				t.Fatalf("told %d times: %q", len(told), told)
			}
			for _, part := range tc.event {
				if !strings.Contains(told[0], part) {
					t.Errorf("Event %q lacks %q", told[0], part)
				}
			}
			i.err, w.slicesErr, r.options.Mesh = nil, nil, mesh
			wantVerified(t, "available again", r, ro, 20, true)
		})
	}
}

func TestASideWithWeightNeedsThePodsThatWereCountedOnBehindItsService(t *testing.T) {
	w, r, _, ro := verified(t, `{"level": "Endpoints"}`)
	mustSet(t, r, ro, 20)
	w.slices["shop/cart"] = append(endpoints("old", 20), endpoints("canary1", 19)...)
	wantVerified(t, "one is missing", r, ro, 20, false)
	w.slices["shop/cart"] = append(endpoints("old", 20), endpoints("canary1", 20)...)
	wantVerified(t, "all are there", r, ro, 20, true)
}

func TestProxiesThatLagBehindHoldAStepWhereThatIsAskedFor(t *testing.T) {
	_, r, i, ro := verified(t, `{"level": "Mesh", "proxies": true}`)
	mustSet(t, r, ro, 20)
	i.serves(20, endpoints("old", 20), endpoints("canary1", 20))
	i.proxies = []mesh.Proxy{{Name: "web-1.shop", Stale: true}}
	wantVerified(t, "one is stale", r, ro, 20, false)
	i.proxies[0].Stale = false
	wantVerified(t, "none is", r, ro, 20, true)
}

func TestProxiesOfWhichIstiodTellsNothingAreNotTakenForOnesThatAreInStep(t *testing.T) {
	w, r, i, ro := verified(t, `{"level": "Mesh", "proxies": true, "onUnavailable": "Hold"}`)
	mustSet(t, r, ro, 20)
	i.serves(20, endpoints("old", 20), endpoints("canary1", 20))
	i.proxies = []mesh.Proxy{{Name: "web-1.other"}}
	wantVerified(t, "none of the Rollout's namespace", r, ro, 20, false)
	if !slices.ContainsFunc(w.eventsSince(), func(event string) bool { return strings.Contains(event, "names no proxy of these namespaces") }) {
		t.Error("no Event says so")
	}
}

func TestALabelThatOnlyTheMeshPutsOnEndpointsIsNotAskedOfPods(t *testing.T) {
	w, r, i, ro := verified(t, `{"level": "Mesh"}`)
	w.apply(strings.ReplaceAll(subsetDestinationRule, "{app: cart}", "{app: cart, topology.istio.io/network: n1}"))
	mustUpdate(t, r, ro, "canary1", "old")
	mustSet(t, r, ro, 20)
	i.serves(20, endpoints("old", 20), endpoints("canary1", 20))
	wantVerified(t, "the pods have no such label", r, ro, 20, true)
}

func TestALabelMovesWhenIstiodServesTheLowerWeightAndNotWhenTheClockSaysSo(t *testing.T) {
	for sentence, tc := range map[string]struct {
		serves uint32
		after  time.Duration
		moves  bool
	}{
		"served at once":                                   {serves: 0, after: 0, moves: true},
		"not served, and settle is long over":              {serves: 20, after: 20 * time.Second},
		"not served for so long that waiting does no good": {serves: 20, after: 31 * time.Second, moves: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r, i, ro := verified(t, `{"level": "Mesh"}`)
			mustSet(t, r, ro, 20)
			i.serves(20, endpoints("old", 20), endpoints("canary1", 20))
			w.pods("c3", 0, 20)
			ro.Status.CurrentPodHash = "c3"
			wantError(t, updateHash(r, ro, "c3", "old"), "has to go down to 0 first")
			i.serves(tc.serves, endpoints("old", 20), endpoints("canary1", 20))
			w.pass(tc.after)
			err := updateHash(r, ro, "c3", "old")
			if tc.moves != (err == nil) {
				t.Errorf("error %v", err)
			}
			w.wantLabels(t, sentence, map[bool]string{true: "stable=old canary=c3", false: "stable=old canary=canary1"}[tc.moves])
		})
	}
}

func TestTheFirstRequestWaitsForTheFirstPodToBeSeen(t *testing.T) {
	first := endpoints("canary1", 1)
	for sentence, tc := range map[string]struct {
		verify string
		seen   func(*world, *istiod)
	}{
		"by the clock": {`{"level": "Object"}`, func(w *world, _ *istiod) { w.pass(2 * time.Second) }},
		"behind its Service": {`{"level": "Endpoints"}`, func(w *world, _ *istiod) {
			w.slices["shop/cart"] = append(endpoints("old", 20), first...)
		}},
		"in istiod": {`{"level": "Mesh"}`, func(w *world, i *istiod) {
			w.slices["shop/cart"] = append(endpoints("old", 20), first...)
			i.serves(0, endpoints("old", 20), first)
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r, i, ro := verified(t, tc.verify)
			w.pods("canary1", 0, 20)
			w.slices["shop/cart"] = endpoints("old", 20)
			i.serves(0, endpoints("old", 20), nil)
			mustSet(t, r, ro, 100)
			w.pods("canary1", 1, 20)
			wantError(t, setWeight(t, r, ro, 100), "no first request yet: canary canary1: ")
			w.wantWeights(t, "available and not seen", "100/0")
			tc.seen(w, i)
			mustSet(t, r, ro, 100)
			w.wantWeights(t, "seen", "95/5")
			w.pods("canary1", 2, 20)
			mustSet(t, r, ro, 100)
			w.wantWeights(t, "further pods wait for nothing", "90/10")
		})
	}
}

func TestAtTheFullWeightPodsThatAreNotSeenLetTheControllerComeBack(t *testing.T) {
	w, r, i, ro := verified(t, `{"level": "Mesh"}`)
	w.pods("canary1", 0, 20)
	mustSet(t, r, ro, 0)
	w.pods("canary1", 20, 20)
	w.slices["shop/cart"] = endpoints("old", 20)
	i.serves(0, endpoints("old", 20), nil)
	wantError(t, setWeight(t, r, ro, 100), "no first request yet: canary canary1: ")
	w.pass(meshSettleMost)
	mustSet(t, r, ro, 100)
	w.wantWeights(t, "no pod is seen", "100/0")
	// With an error it would come back when a pod comes, and they are all there.
	wantVerified(t, "no pod is seen", r, ro, 100, false)
	w.pass(601 * time.Second)
	wantVerified(t, "for longer than maxHold", r, ro, 100, false, "canary held at 0 of 100")
}

func TestAPodThatIsNeverSeenCountsAsNotAvailableAndStopsNothingElse(t *testing.T) {
	for _, level := range []string{"Endpoints", "Mesh"} {
		t.Run(level, func(t *testing.T) {
			w, r, i, ro := verified(t, `{"level": "`+level+`"}`)
			w.pods("canary1", 0, 20)
			mustSet(t, r, ro, 20)
			w.pods("canary1", 20, 20)
			w.slices["shop/cart"] = endpoints("old", 20)
			i.serves(0, endpoints("old", 20), nil)
			wantError(t, setWeight(t, r, ro, 20), "no first request yet: canary canary1: ")
			w.pass(meshSettleMost)
			for range 2 {
				mustSet(t, r, ro, 20) // no error: scaling, deadline and abort go on
				w.wantWeights(t, "not seen for longer than a push can take", "100/0")
				wantVerified(t, "the canary has nothing", r, ro, 20, false)
			}
			told := slices.DeleteFunc(w.eventsSince(), func(event string) bool { return !strings.Contains(event, EventCanaryPodsNotSeen) })
			if len(told) != 1 || !strings.Contains(told[0], "canary1") {
				t.Errorf("told: %q", told)
			}
			w.slices["shop/cart"] = append(endpoints("old", 20), endpoints("canary1", 20)...)
			i.serves(0, endpoints("old", 20), endpoints("canary1", 20))
			mustSet(t, r, ro, 20)
			w.wantWeights(t, "seen at last", "80/20")
		})
	}
}

func TestAProcessThatHasNotSeenTheCanaryInTheMeshLooksBeforeTheFirstRequest(t *testing.T) {
	w, _, i, ro := verified(t, `{"level": "Endpoints"}`)
	w.pods("canary1", 20, 20)
	w.slices["shop/cart"] = endpoints("old", 20)
	i.serves(0, endpoints("old", 20), nil)
	r := w.calledRouter() // it knows no time at which the pods came
	wantError(t, setWeight(t, r, ro, 20), "no first request yet: canary canary1: ")
	w.wantWeights(t, "not seen", "100/0")
	w.slices["shop/cart"] = append(endpoints("old", 20), endpoints("canary1", 20)...)
	mustSet(t, r, ro, 20)
	w.wantWeights(t, "seen", "80/20")
}

// promotedAtHostLevel is a canary with all of the traffic, promoted this moment: the
// controller has moved the stable Service's selector, and nothing is behind it yet.
func promotedAtHostLevel(t *testing.T, verify string) (*world, *Router, *v1alpha1.Rollout) {
	t.Helper()
	w, r := hostCanary(t, hostVirtualService)
	w.ports = map[string][]cluster.ServicePort{"shop/cart-stable": {{Port: 80, Name: "http"}}, "shop/cart-canary": {{Port: 80, Name: "http"}}}
	w.slices = map[string][]cluster.Endpoint{"shop/cart-stable": endpoints("old", 20), "shop/cart-canary": endpoints("new", 20)}
	ro := rollout(strings.TrimSuffix(hostConfig, "}") + `, "verify": ` + verify + "}")
	mustUpdate(t, r, ro, "new", "old")
	mustSet(t, r, ro, 100)
	w.wantWeights(t, "before the promotion", "0/100")
	w.services["shop/cart-stable"], w.slices["shop/cart-stable"] = "new", nil
	ro.Status.StableRS = "new"
	mustUpdate(t, r, ro, "new", "new")
	mustSet(t, r, ro, 0)
	w.wantWeights(t, "promoted, and nothing is behind the stable Service", "0/100")
	return w, r, ro
}

func TestAfterAPromotionTheTrafficGoesBackOnceThePodsAreBehindTheStableService(t *testing.T) {
	for sentence, tc := range map[string]struct {
		verify string
		seen   func(*world)
	}{
		"by the clock":       {`{}`, func(w *world) { w.pass(5 * time.Second) }},
		"behind the Service": {`{"level": "Endpoints"}`, func(w *world) { w.slices["shop/cart-stable"] = endpoints("new", 20) }},
		"one of them is, after a time": {`{"level": "Endpoints"}`, func(w *world) {
			w.slices["shop/cart-stable"] = endpoints("new", 1)
			w.pass(meshSettleMost)
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r, ro := promotedAtHostLevel(t, tc.verify)
			if again := watched(t, r); again != freshPoll {
				t.Errorf("the watch comes back after %s", again)
			}
			w.wantWeights(t, "not yet", "0/100")
			tc.seen(w)
			if again := watched(t, r); again != 0 {
				t.Errorf("done, and the watch comes back after %s", again)
			}
			w.wantWeights(t, "by the watch", "100/0")
			mustSet(t, r, ro, 0)
			w.wantWeights(t, "the next call", "100/0")
		})
	}
}

func TestAfterAPromotionTheTrafficNeverGoesBackToAServiceThatIsSeenToBeEmpty(t *testing.T) {
	w, r, ro := promotedAtHostLevel(t, `{"level": "Endpoints"}`)
	w.pass(10 * meshSettleMost)
	if again := watched(t, r); again != freshPoll {
		t.Errorf("the watch comes back after %s", again)
	}
	mustSet(t, r, ro, 0) // no error: nothing else waits for it
	w.wantWeights(t, "nothing is behind the stable Service", "0/100")
	w.slices["shop/cart-stable"] = endpoints("new", 1)
	mustSet(t, r, ro, 0)
	w.wantWeights(t, "a pod is", "100/0")
}

func TestAProcessThatBeginsDuringAPromotionTakesItForJustBegun(t *testing.T) {
	w, _, ro := promotedAtHostLevel(t, `{}`)
	r := w.calledRouter()
	mustUpdate(t, r, ro, "new", "new")
	mustSet(t, r, ro, 0)
	w.wantWeights(t, "the new process's first call", "0/100")
	w.pass(5 * time.Second)
	mustSet(t, r, ro, 0)
	w.wantWeights(t, "and a later one", "100/0")
}

func TestARevisionThatComesRightAfterAPromotionFindsNoWeight(t *testing.T) {
	w, r, ro := promotedAtHostLevel(t, `{}`)
	ro.Status.CurrentPodHash = "next"
	w.pods("next", 0, 20)
	mustUpdate(t, r, ro, "next", "new")
	mustSet(t, r, ro, 0)
	w.wantWeights(t, "the canary Service is about to have another revision", "100/0")
}

func TestACanaryServiceThatSelectsOtherPodsGetsItsFirstRequestLater(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	ro := rollout(hostConfig)
	w.services["shop/cart-canary"] = "old"
	mustUpdate(t, r, ro, "new", "old")
	mustSet(t, r, ro, 0)
	w.services["shop/cart-canary"] = "new" // whose pods have been there for long
	wantError(t, setWeight(t, r, ro, 20), "its Service has only just selected it, the proxies get 2s to learn of it")
	w.wantWeights(t, "not yet", "100/0")
	w.pass(2 * time.Second)
	mustSet(t, r, ro, 20)
	w.wantWeights(t, "later", "80/20")
}

func TestAtLevelEndpointsACanaryServiceIsLookedAtAgainWhenItHasSelectedOtherPods(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	w.ports = map[string][]cluster.ServicePort{"shop/cart-stable": {{Port: 80, Name: "http"}}, "shop/cart-canary": {{Port: 80, Name: "http"}}}
	w.slices = map[string][]cluster.Endpoint{"shop/cart-stable": endpoints("old", 20), "shop/cart-canary": endpoints("new", 20)}
	ro := rollout(strings.TrimSuffix(hostConfig, "}") + `, "verify": {"level": "Endpoints"}}`)
	mustUpdate(t, r, ro, "new", "old")
	mustSet(t, r, ro, 20)
	w.wantWeights(t, "seen behind the canary Service", "80/20")
	mustSet(t, r, ro, 0)
	w.services["shop/cart-canary"], w.slices["shop/cart-canary"] = "old", endpoints("old", 20)
	mustSet(t, r, ro, 0)
	w.services["shop/cart-canary"], w.slices["shop/cart-canary"] = "new", nil
	wantError(t, setWeight(t, r, ro, 20), "no first request yet: canary new: ")
	w.wantWeights(t, "not behind it any more", "100/0")
	w.slices["shop/cart-canary"] = endpoints("new", 1)
	mustSet(t, r, ro, 20)
	w.wantWeights(t, "behind it again", "80/20")
}

func TestACanaryThatWasSeenOnceIsNotWaitedForAgain(t *testing.T) {
	w, r, _, ro := verified(t, `{"level": "Endpoints"}`)
	w.slices["shop/cart"] = append(endpoints("old", 20), endpoints("canary1", 20)...)
	mustSet(t, r, ro, 20)
	mustSet(t, r, ro, 0)
	w.slices["shop/cart"] = endpoints("old", 20) // an EndpointSlice is being written anew
	mustSet(t, r, ro, 20)
	w.wantWeights(t, "what there is of it is for VerifyWeight to say", "80/20")
}

func TestAPodThatComesBackWaitsLikeTheFirst(t *testing.T) {
	w, r, _, ro := verified(t, `{}`)
	mustSet(t, r, ro, 20)
	w.pods("canary1", 0, 20)
	mustSet(t, r, ro, 20)
	w.pods("canary1", 20, 20)
	wantError(t, setWeight(t, r, ro, 20), "its first pod has only just become available")
	w.wantWeights(t, "they have just come back", "100/0")
	w.pass(2 * time.Second)
	mustSet(t, r, ro, 20)
	w.wantWeights(t, "after twice settle", "80/20")
}

func TestPodsThatWereReadyForLongBeforeTheyBecameAvailableWaitForNothing(t *testing.T) {
	w, r, _, ro := verified(t, `{}`)
	ro.Spec.MinReadySeconds = 2
	w.pods("canary1", 0, 20)
	mustSet(t, r, ro, 20)
	w.pods("canary1", 20, 20)
	mustSet(t, r, ro, 20)
	w.wantWeights(t, "minReadySeconds is as long as twice settle", "80/20")
}

func TestObserveWritesWhatIsAskedForWithoutWaiting(t *testing.T) {
	w, r, _, ro := verified(t, `{}, "guard": {"mode": "Observe"}`)
	w.pods("canary1", 0, 20)
	mustSet(t, r, ro, 0)
	w.pods("canary1", 1, 20)
	mustSet(t, r, ro, 20)
	w.wantWeights(t, "observed", "80/20")
}

func TestARolloutThatIsForgottenIsNotFollowedAnyMore(t *testing.T) {
	_, r, i, ro := verified(t, `{"level": "Mesh"}`)
	mustSet(t, r, ro, 0)
	r.forgotten("uid-1", r.memories.known("uid-1").subject)
	if len(i.followed) > 0 {
		t.Errorf("still followed: %v", i.followed)
	}
}

func TestWhatTheMeshCannotShowIsToldOnce(t *testing.T) {
	w, r, i, ro := verified(t, `{"level": "Mesh"}`)
	w.apply(strings.Replace(subsetVirtualService, "hosts: [cart]", "hosts: [cart]\n  gateways: [public]", 1))
	for range 3 {
		mustSet(t, r, ro, 20)
		i.serves(20, endpoints("old", 20), endpoints("canary1", 20))
		wantVerified(t, "clusters and endpoints are there", r, ro, 20, true)
	}
	told := slices.DeleteFunc(w.eventsSince(), func(event string) bool { return !strings.Contains(event, EventVerificationPartial) })
	if len(told) != 1 || !strings.Contains(told[0], "gateway") {
		t.Errorf("told: %q", told)
	}
}
