package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// withSteps is a host-level Rollout with these steps at the first of them, and the
// managed route hdr.
func withSteps(config string, steps ...v1alpha1.CanaryStep) *v1alpha1.Rollout {
	ro := rollout(config)
	ro.Spec.Strategy.Canary.Steps = steps
	ro.Spec.Strategy.Canary.TrafficRouting.ManagedRoutes = []v1alpha1.MangedRoutes{{Name: "hdr"}}
	ro.Status.CurrentStepIndex = ptr.To[int32](0)
	return ro
}

// argo-rollouts#2266, argo-rollouts#2767: fields of routes went away with managed routes.
func TestManagedRoutesOfARichRouteHaveItsFieldsAndLeaveNothing(t *testing.T) {
	ctx := context.Background()
	w, r := hostCanary(t, richVirtualService)
	mustSet(t, r, stepped(primaryConfig, 0), 10)
	before := w.virtualService("cart")
	must(t, r.SetHeaderRoute(ctx, stepped(primaryConfig, 1), headerStep("hdr", true)))
	must(t, r.SetMirrorRoute(ctx, stepped(primaryConfig, 3), mirrorStep("mir", true)))
	mustSet(t, r, stepped(primaryConfig, 3), 10)
	for i, name := range []string{"hdr", "mir"} {
		made, source := w.httpRoute(i), w.httpRoute(2)
		wantEqual(t, "managed route", fmt.Sprint(made["name"]), name)
		for _, field := range []string{"rewrite", "timeout", "retries", "corsPolicy", "headers", "fault", "futureField"} {
			wantEqual(t, name+" "+field, fmt.Sprint(made[field]), fmt.Sprint(source[field]))
		}
	}
	const common = "sourceLabels:map[app:web] uri:map[prefix:/a] withoutHeaders:map[x-no:map[]]]]"
	wantEqual(t, "hdr", fmt.Sprint(w.httpRoute(0)["match"]), "[map[headers:map[x:map[exact:y]] "+common)
	wantEqual(t, "mir", fmt.Sprint(w.httpRoute(1)["match"]), "[map[method:map[exact:GET] "+common)
	wantEqual(t, "the rest", changes(before, withoutHTTP(w.virtualService("cart"), 0, 2)), "")
	must(t, r.RemoveManagedRoutes(ctx, stepped(primaryConfig, 3)))
	wantEqual(t, "removed", changes(before, w.virtualService("cart")), "")
}

// argo-rollouts#2501: the first VirtualService has no http routes, or is gone.
func TestAManagedRouteGoesFromTheSecondVirtualServiceWhateverTheFirstIs(t *testing.T) {
	ctx := context.Background()
	second := virtualServiceOf("b", "  http: [{name: hdr, match: [{headers: {x: {exact: y}}}], route: [{destination: {host: cart-canary}, weight: 100}]}, {name: primary, "+toBoth+"}]")
	for sentence, first := range map[string][]string{"tls only": {virtualServiceOf("a", tlsToBoth)}, "it does not exist": nil} {
		t.Run(sentence, func(t *testing.T) {
			w, r := hostCanary(t, append(first, second)...)
			must(t, r.RemoveManagedRoutes(ctx, withSteps(twoConfig)))
			wantEqual(t, "b", w.lists("b", "http"), "primary=100/0")
		})
	}
}

// argo-rollouts#2501: a header route beside a VirtualService that cannot have one.
func TestAHeaderRouteIsMadeWhereThereIsAnHTTPRoute(t *testing.T) {
	w, r := hostCanary(t, virtualServiceOf("a", tlsToBoth), virtualServiceOf("b", "  http: [{name: primary, "+toBoth+"}]"))
	ro := stepped(twoConfig, 1)
	must(t, r.SetHeaderRoute(context.Background(), ro, headerStep("hdr", true)))
	mustSet(t, r, ro, 10)
	wantEqual(t, "both", w.lists("a", "tls")+" "+w.lists("b", "http"), "=90/10 hdr=100 primary=90/10")
}

// argo-rollouts#3141: a header route without weight was refused; Gateway API plugin
// #158: the weight was written into the header route too.
func TestAHeaderRouteHasAllOfItsTrafficOnTheCanaryAtEveryWeight(t *testing.T) {
	ctx := context.Background()
	w, r, status := subsetCanary(t, richDestinationRule)
	at := func(index int32) *v1alpha1.Rollout {
		ro := stepped(subsetConfig, index)
		ro.Status.StableRS, ro.Status.CurrentPodHash = status.Status.StableRS, status.Status.CurrentPodHash
		return ro
	}
	mustUpdate(t, r, at(1), "c2", "s1")
	mustSet(t, r, at(1), 20)
	must(t, r.SetHeaderRoute(ctx, at(1), headerStep("hdr", true)))
	for _, weight := range []int32{0, 10, 100, 0} {
		mustSet(t, r, at(1), weight)
		w.wantRoutes(t, fmt.Sprint(weight), fmt.Sprintf("hdr 100, primary %d/%d", 100-weight, weight))
	}
	w.apply(virtualServiceOf("cart", "  http: [{name: x, "+toThreeSubsets+"}]"))
	w.templates["h"] = 1
	exp := []v1alpha1.WeightDestination{share("exp", "h", 10)}
	must(t, r.UpdateHash(ctx, at(1), "c2", "s1", exp))
	must(t, r.SetWeight(ctx, at(1), 10, exp))
	w.wantRoutes(t, "a foreign subset and an experiment", "hdr 100, x 64/8/20/8")
	must(t, r.SetWeight(ctx, at(3), 10, exp))
	w.wantRoutes(t, "a mirror route has them all", "hdr 100, mir 64/8/20/8 mirrored, x 64/8/20/8")
}

// argo-rollouts#2526: a VirtualService with a delegate was refused when its managed
// route was removed.
func TestRemovingManagedRoutesLeavesDelegatesRedirectsAndOthersAsTheyAre(t *testing.T) {
	w, r := hostCanary(t, virtualServiceOf("a", `  http:
  - {name: root, match: [{uri: {prefix: /d}}], delegate: {name: other, namespace: ns}}
  - {name: hdr, match: [{headers: {x: {exact: y}}}], route: [{destination: {host: cart-canary}, weight: 100}]}
  - {name: red, redirect: {uri: /x}}
  - {name: primary, `+toBoth+`}`), virtualServiceOf("b", "  http: [{name: primary, "+toBoth+"}]"))
	before := w.virtualService("a")
	ro := withSteps(`{"virtualServices": [{"name": "a", "routes": ["primary"]}, {"name": "b"}, {"name": "missing"}]}`)
	must(t, r.RemoveManagedRoutes(context.Background(), ro))
	wantEqual(t, "a", changes(withoutHTTP(before, 1, 2), w.virtualService("a")), "")
	wantEqual(t, "writes", fmt.Sprint(w.writes), "[VirtualService shop/a]")
}

// argo-rollouts#4716, Gateway API plugin #191: a restart of the pods took the header
// route away for good.
func TestAHeaderRouteComesBackAfterARestartOfThePodsAndOfTheProcess(t *testing.T) {
	ctx := context.Background()
	w, r := hostCanary(t, hostVirtualService)
	ro := withSteps(hostConfig, v1alpha1.CanaryStep{SetWeight: ptr.To[int32](10)}, v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}},
		v1alpha1.CanaryStep{SetHeaderRoute: headerStep("hdr", true)}, v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}},
		v1alpha1.CanaryStep{SetHeaderRoute: headerStep("hdr", false)})
	ro.Status.CurrentStepIndex = ptr.To[int32](2)
	mustSet(t, r, ro, 10)
	must(t, r.SetHeaderRoute(ctx, ro, headerStep("hdr", true)))
	must(t, r.RemoveManagedRoutes(ctx, ro))
	w.wantRoutes(t, "the controller removes it", "primary 90/10")
	ro.Status.CurrentStepIndex = ptr.To[int32](3)
	mustSet(t, r, ro, 10)
	w.wantRoutes(t, "the next call", "hdr 100, primary 90/10")
	if verified, err := r.VerifyWeight(ctx, ro, 10, nil); !verified {
		t.Errorf("not verified: %v", err)
	}
	w.pods("new", 0, 2)
	mustSet(t, r, ro, 10)
	w.wantRoutes(t, "no pods", "primary 100/0")
	w.pods("new", 2, 2)
	r = w.calledRouter()
	w.rollouts["shop/cart"] = ro
	mustSet(t, r, ro, 10)
	w.wantRoutes(t, "pods and a new process", "hdr 100, primary 90/10")
	ro.Status.CurrentStepIndex = ptr.To[int32](4)
	mustSet(t, r, ro, 10)
	w.wantRoutes(t, "a step without a match", "primary 90/10")
}

// argo-rollouts#4486: a header route as the first step was gone when the tester came.
func TestAHeaderRouteAsTheFirstStepComesWithTheFirstPodAndGoesWithTheRevision(t *testing.T) {
	ctx := context.Background()
	for level, config := range map[string]string{"host": hostConfig, "subset": subsetConfig} {
		t.Run(level, func(t *testing.T) {
			w, r := hostCanary(t, map[string]string{"host": hostVirtualService, "subset": subsetVirtualService}[level], subsetDestinationRule)
			ro := withSteps(config, v1alpha1.CanaryStep{SetHeaderRoute: headerStep("hdr", true)},
				v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{Replicas: ptr.To[int32](1)}}, v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}})
			w.pods("new", 0, 0)
			_ = updateHash(r, ro, "new", "old") // at subset level it may wait for settle
			must(t, r.RemoveManagedRoutes(ctx, ro))
			must(t, r.SetHeaderRoute(ctx, ro, headerStep("hdr", true)))
			mustSet(t, r, ro, 0)
			w.wantRoutes(t, "no pod", "primary 100/0")
			ro.Status.CurrentStepIndex = ptr.To[int32](2)
			w.pods("new", 1, 1)
			w.pass(5 * time.Second)
			mustUpdate(t, r, ro, "new", "old")
			w.pass(2 * time.Second)
			mustSet(t, r, ro, 0)
			w.wantRoutes(t, "a pod", "hdr 100, primary 100/0")
			ro.Status.CurrentPodHash, ro.Status.CurrentStepIndex = "v3", ptr.To[int32](0)
			w.services["shop/cart-canary"] = "v3"
			w.pods("v3", 0, 0)
			mustSet(t, r, ro, 0)
			w.wantRoutes(t, "another revision without a pod", "primary 100/0")
		})
	}
}

// argo-rollouts#3879, Gateway API plugin #207: the header route caught every path of
// the host, and covered the first rule only.
func TestAHeaderRouteStandsBeforeEachRouteAndCatchesNothingElse(t *testing.T) {
	ctx := context.Background()
	w, r := hostCanary(t, virtualServiceOf("cart", `  http:
  - {name: v1, match: [{uri: {prefix: /v1}, method: {exact: GET}, gateways: [g], port: 80}], `+toBoth+`}
  - {name: v2, match: [{uri: {prefix: /v2}}], `+toBoth+`}
  - {name: other, match: [{uri: {prefix: /x}}], route: [{destination: {host: other}}]}`))
	ro := stepped(`{"virtualService": {"name": "cart", "routes": ["v1", "v2"]}}`, 1)
	must(t, r.SetHeaderRoute(ctx, ro, headerStep("hdr", true)))
	mustSet(t, r, ro, 10)
	w.wantRoutes(t, "one header", "hdr 100, v1 90/10, hdr 100, v2 90/10, other 0")
	wantEqual(t, "before v1", fmt.Sprint(w.httpRoute(0)["match"]), "[map[gateways:[g] headers:map[x:map[exact:y]] method:map[exact:GET] port:80 uri:map[prefix:/v1]]]")
	two := headerStep("hdr", true)
	two.Match = append(two.Match, v1alpha1.HeaderRoutingMatch{HeaderName: "z", HeaderValue: &v1alpha1.StringMatch{Prefix: "q"}})
	ro.Spec.Strategy.Canary.Steps[1].SetHeaderRoute = two
	must(t, r.SetHeaderRoute(ctx, ro, two))
	wantEqual(t, "either of two headers", fmt.Sprint(w.httpRoute(2)["match"]),
		"[map[headers:map[x:map[exact:y]] uri:map[prefix:/v2]] map[headers:map[z:map[prefix:q]] uri:map[prefix:/v2]]]")
}

// argo-rollouts#3879: requests that ask for another value of the same header.
func TestAHeaderRouteLeavesOutMatchesThatContradictIt(t *testing.T) {
	w, r := hostCanary(t, virtualServiceOf("cart", `  http:
  - {name: p, match: [{uri: {prefix: /v1}}, {uri: {prefix: /v2}, headers: {x: {exact: z}}}], `+toBoth+`}
  - {name: q, match: [{headers: {x: {exact: z}}}], `+toBoth+`}`))
	ro := stepped(`{"virtualService": {"name": "cart", "routes": ["p", "q"]}}`, 1)
	must(t, r.SetHeaderRoute(context.Background(), ro, headerStep("hdr", true)))
	w.wantRoutes(t, "only p can be meant", "hdr 100, p 100/0, q 100/0")
	wantEqual(t, "hdr", fmt.Sprint(w.httpRoute(0)["match"]), "[map[headers:map[x:map[exact:y]] uri:map[prefix:/v1]]]")
}

// argo-rollouts#4481: a mirror had the first destination's port, and a route without
// destinations was a panic.
func TestAMirrorGoesToTheCanarysOwnPortAndToAsManyRequestsAsAsked(t *testing.T) {
	ctx := context.Background()
	for sentence, tc := range map[string]struct {
		percentage *int32
		want       string
	}{"none given": {nil, "map[value:100]"}, "0": {ptr.To[int32](0), "map[value:0]"}, "35": {ptr.To[int32](35), "map[value:35]"}} {
		t.Run(sentence, func(t *testing.T) {
			w, r := hostCanary(t, virtualServiceOf("cart", `  http: [{name: primary, route: [{destination: {host: cart-stable, port: {number: 8080}}, weight: 100}, {destination: {host: cart-canary, port: {number: 9090}}, weight: 0}]}]`))
			ro, step := stepped(hostConfig, 3), mirrorStep("mir", true)
			step.Percentage = tc.percentage
			ro.Spec.Strategy.Canary.Steps[3].SetMirrorRoute = step
			must(t, r.SetMirrorRoute(ctx, ro, step))
			w.wantRoutes(t, "on", "hdr 100, mir 100/0 mirrored, primary 100/0")
			mirror := w.httpRoute(1)
			wantEqual(t, "mirror", fmt.Sprint(mirror["mirror"], mirror["mirrorPercentage"]), "map[host:cart-canary port:map[number:9090]] "+tc.want)
			off := mirrorStep("mir", false)
			ro.Spec.Strategy.Canary.Steps[3].SetMirrorRoute = off
			must(t, r.SetMirrorRoute(ctx, ro, off))
			w.wantRoutes(t, "off", "hdr 100, primary 100/0")
		})
	}
	for route, parts := range map[string][]string{"delegate: {name: d}": {"delegate", "shop/d"}, "timeout: 5s": {"primary"}} {
		w, r := hostCanary(t, virtualServiceOf("cart", "  http: [{name: primary, "+route+"}]"))
		wantError(t, r.SetMirrorRoute(ctx, stepped(hostConfig, 3), mirrorStep("mir", true)), parts...)
		if len(w.writes) != 0 {
			t.Errorf("%s: writes %v", route, w.writes)
		}
	}
}

// argo-rollouts#849: weights and labels changed from outside stayed; argo-cd#9678: a
// sync writes the whole list of routes.
func TestAfterASyncFromGitOursIsPutBackAndWhatIsNewStays(t *testing.T) {
	const newRoute = "  http:\n  - {name: /new, match: [{uri: {prefix: /new}}], route: [{destination: {host: new}}]}\n"
	w, r, ro := subsetCanary(t, subsetDestinationRule)
	config := strings.Replace(subsetConfig, `{"name": "cart"}`, `{"name": "cart", "routes": ["primary"]}`, 1)
	ro.Spec.Strategy.Canary.TrafficRouting.Plugins["argoproj-labs/istio"] = []byte(config)
	ro.Spec.Strategy.Canary.Steps = []v1alpha1.CanaryStep{{SetWeight: ptr.To[int32](20)}, {Pause: &v1alpha1.RolloutPause{}}}
	mustUpdate(t, r, ro, "c2", "s1")
	mustSet(t, r, ro, 20)
	w.rollouts["shop/cart"] = ro
	w.apply(strings.Replace(subsetVirtualService, "  http:\n", newRoute, 1))
	w.apply(subsetDestinationRule)
	for range 20 {
		watched(t, r)
		w.pass(100 * time.Millisecond)
	}
	w.wantLabels(t, "by the watch", "stable=s1 canary=c2")
	w.wantRoutes(t, "by the watch", "/new 0, primary 80/20")
	w.apply(strings.Replace(subsetVirtualService, "  http:\n", newRoute, 1))
	mustSet(t, r, ro, 20)
	w.wantRoutes(t, "by the next call", "/new 0, primary 80/20")
}

// argo-rollouts#849: a sync that brings older labels instead of none must not cost the
// canary what it had.
func TestLabelsOfAnEarlierRevisionAreReplacedAndTheWeightComesBackWithThem(t *testing.T) {
	label := func(subset, hash string) (string, string) {
		plain := "{name: " + subset + ", labels: {app: cart}}"
		return plain, strings.Replace(plain, "app: cart", "app: cart, rollouts-pod-template-hash: "+hash, 1)
	}
	for sentence, hashes := range map[string][2]string{ // of stable and canary
		"the canary's is of pods that are gone": {"", "gone"}, "both are": {"gone", "gone"},
		"both are the stable's": {"s1", "s1"}, "there is none": {"", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			rule := subsetDestinationRule
			for i, subset := range []string{"stable", "canary"} {
				if plain, labelled := label(subset, hashes[i]); hashes[i] != "" {
					rule = strings.Replace(rule, plain, labelled, 1)
				}
			}
			w, r, _ := subsetCanary(t, subsetDestinationRule)
			ro := stepped(subsetConfig, 1)
			ro.Status.StableRS, ro.Status.CurrentPodHash = "s1", "c2"
			mustUpdate(t, r, ro, "c2", "s1")
			mustSet(t, r, ro, 20)
			w.wantRoutes(t, "before", "hdr 100, primary 80/20")
			w.rollouts["shop/cart"] = ro
			w.pass(time.Minute)
			w.apply(rule)
			for range 40 {
				_, _ = r.watchLook(context.Background(), "uid-1") // says that it waits, until it need not
				w.pass(50 * time.Millisecond)
			}
			w.wantLabels(t, "after 2 s", "stable=s1 canary=c2")
			w.wantRoutes(t, "after 2 s", "hdr 100, primary 80/20")
		})
	}
}

// argo-cd#9678: the same while there are managed routes, and with the route gone.
func TestASyncThatTakesManagedRoutesAwayHasThemPutBackBesideItsOwnChanges(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	ro := stepped(primaryConfig, 3)
	mustUpdate(t, r, ro, "new", "old")
	mustSet(t, r, ro, 10)
	w.wantRoutes(t, "before", "hdr 100, mir 90/10 mirrored, primary 90/10")
	w.rollouts["shop/cart"] = ro
	const newRoute = "{name: new, match: [{uri: {prefix: /n}}], route: [{destination: {host: n}}]}"
	w.apply(virtualServiceOf("cart", "  http: ["+newRoute+", {name: primary, timeout: 5s, "+toBoth+"}]"))
	for range 5 {
		watched(t, r)
	}
	w.wantRoutes(t, "put back", "new 0, hdr 100, mir 90/10 mirrored, primary 90/10")
	wantEqual(t, "git's own change", fmt.Sprint(w.httpRoute(3)["timeout"]), "5s")
	w.apply(virtualServiceOf("cart", "  http: ["+newRoute+"]"))
	wantError(t, setWeight(t, r, ro, 10), `no http route "primary"`)
}

// argo-rollouts#3080: a write that failed had changed the cached object.
func TestAWriteThatFailsLeavesWhatWasReadAsItWas(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	w.refuse["VirtualService shop/cart"] = errors.New("conflict for ever")
	before := w.virtualService("cart").DeepCopy()
	wantError(t, r.SetHeaderRoute(context.Background(), stepped(hostConfig, 1), headerStep("hdr", true)), "conflict for ever")
	wantEqual(t, "changed", changes(before, w.virtualService("cart")), "")
}
