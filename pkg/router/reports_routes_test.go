package router

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/utils/ptr"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
)

const (
	tlsToBoth = "  tls: [{match: [{port: 443, sniHosts: [a.b]}], " + toBoth + "}]"
	tcpToBoth = "  tcp: [{match: [{port: 5432}], " + toBoth + "}]"
)

// argo-rollouts#3884: the only route had a name, and was not found.
func TestTheOnlyRouteOfAProtocolIsTakenWhetherItHasANameOrNot(t *testing.T) {
	for sentence, tc := range map[string]struct{ spec, http, tls, tcp string }{
		"http with a name":    {spec: "  http: [{name: x, " + toBoth + "}]", http: "x=70/30"},
		"http without a name": {spec: "  http: [{" + toBoth + "}]", http: "=70/30"},
		"http without weights": {
			spec: "  http: [{name: x, route: [{destination: {host: cart-stable}}, {destination: {host: cart-canary}}]}]",
			http: "x=70/30",
		},
		"tls": {spec: tlsToBoth, tls: "=70/30"},
		"tcp": {spec: tcpToBoth, tcp: "=70/30"},
		"one of each": {
			spec: "  http: [{name: x, " + toBoth + "}]\n" + tlsToBoth + "\n" + tcpToBoth,
			http: "x=70/30", tls: "=70/30", tcp: "=70/30",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r := hostCanary(t, virtualServiceOf("cart", tc.spec))
			mustSet(t, r, rollout(hostConfig), 30)
			for protocol, want := range map[string]string{"http": tc.http, "tls": tc.tls, "tcp": tc.tcp} {
				wantEqual(t, protocol, w.lists("cart", protocol), want)
			}
			if len(w.writes) != 1 {
				t.Errorf("writes: %v", w.writes)
			}
		})
	}
}

// argo-rollouts#4741: several routes and none listed was a success that wrote nothing.
func TestSeveralRoutesAndNoneListedIsAnErrorAndNotASilentSuccess(t *testing.T) {
	for sentence, tc := range map[string]struct {
		spec  string
		names []string
	}{
		"two named http routes": {"  http: [{name: a, " + toBoth + "}, {name: b, " + toBoth + "}]", []string{`"a"`, `"b"`}},
		"two tls routes":        {"  tls: [{match: [{port: 443, sniHosts: [a.b]}], " + toBoth + "}, {match: [{port: 443, sniHosts: [b.b]}], " + toBoth + "}]", []string{"a.b", "b.b"}},
		"two tcp routes":        {"  tcp: [{match: [{port: 1}], " + toBoth + "}, {match: [{port: 2}], " + toBoth + "}]", []string{"port 1", "port 2"}},
		"two http routes without a name": {
			"  http: [{match: [{uri: {prefix: /a}}], " + toBoth + "}, {" + toBoth + "}]", []string{"http[0]", "http[1]"},
		},
		"a foreign one without a name and a named one": {
			"  http: [{route: [{destination: {host: other}}]}, {name: a, " + toBoth + "}]", []string{"http[0]", `"a"`},
		},
		"one http route, two tcp routes": {
			"  http: [{name: a, " + toBoth + "}]\n  tcp: [{match: [{port: 1}], " + toBoth + "}, {match: [{port: 2}], " + toBoth + "}]", []string{"port 1", "port 2"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r := hostCanary(t, virtualServiceOf("cart", tc.spec))
			ro := rollout(hostConfig)
			wantError(t, setWeight(t, r, ro, 25), append(tc.names, "VirtualService shop/cart", "allMatchingRoutes")...)
			if len(w.writes) != 0 {
				t.Errorf("writes: %v", w.writes)
			}
			if verified, _ := r.VerifyWeight(context.Background(), ro, 25, nil); verified {
				t.Error("verified what was never written")
			}
		})
	}
}

// argo-rollouts#2501: a VirtualService without http routes never came back to its
// stable, and kept the next one's header route.
func TestAVirtualServiceWithoutHTTPRoutesGoesAllTheWayAndBack(t *testing.T) {
	for sentence, managed := range map[string][]v1alpha1.MangedRoutes{"no managed routes": nil, "a managed route that has no place": {{Name: "hdr"}}} {
		t.Run(sentence, func(t *testing.T) {
			w, r := hostCanary(t, virtualServiceOf("cart", tlsToBoth))
			ro := rollout(hostConfig)
			ro.Spec.Strategy.Canary.TrafficRouting.ManagedRoutes = managed
			mustSet(t, r, ro, 20)
			wantEqual(t, "20", w.lists("cart", "tls"), "=80/20")
			mustSet(t, r, ro, 100)
			wantEqual(t, "100", w.lists("cart", "tls"), "=0/100")
			writes := len(w.writes)
			must(t, r.RemoveManagedRoutes(context.Background(), ro))
			if len(w.writes) != writes {
				t.Errorf("removing nothing wrote %v", w.writes[writes:])
			}
			ro.Status.StableRS = "new"
			w.services["shop/cart-stable"] = "new"
			mustUpdate(t, r, ro, "new", "new")
			mustSet(t, r, ro, 0)
			w.pass(5 * time.Second) // the endpoints of the stable Service come
			watched(t, r)
			wantEqual(t, "promoted", w.lists("cart", "tls"), "=100/0")
		})
	}
}

// argo-rollouts#1552: a nil list was written, refused, and its error lost.
func TestAnHTTPOnlyVirtualServiceGetsNoOtherProtocol(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	before := w.virtualService("cart")
	mustSet(t, r, rollout(hostConfig), 50)
	wantEqual(t, "changed", changes(before, w.virtualService("cart")),
		"/spec/http/0/route/0/weight: 100 -> 50; /spec/http/0/route/1/weight: 0 -> 50")
}

// argo-rollouts#1552: the second of two writes hid the error of the first.
func TestARefusedWriteIsAnErrorWhicheverVirtualServiceItWas(t *testing.T) {
	spec := "  http: [{name: x, " + toBoth + "}]"
	for refused, told := range map[string]string{"a": "not tried: VirtualService shop/b", "b": "already written: VirtualService shop/a"} {
		t.Run(refused, func(t *testing.T) {
			w, r := hostCanary(t, virtualServiceOf("a", spec), virtualServiceOf("b", spec))
			w.refuse["VirtualService shop/"+refused] = errors.New("admission webhook says no")
			wantError(t, setWeight(t, r, rollout(twoConfig), 50), "webhook says no", told)
			wantEqual(t, "refused", w.lists(refused, "http"), "x=100/0")
		})
	}
}

// argo-rollouts#2266, argo-rollouts#2767: fields of a route went away when its weight
// was written.
func TestOfARichVirtualServiceOnlyTheWeightsChange(t *testing.T) {
	w, r := hostCanary(t, richVirtualService)
	before := w.virtualService("cart")
	mustSet(t, r, rollout(primaryConfig), 10)
	wantEqual(t, "changed", changes(before, w.virtualService("cart")),
		"/spec/http/0/route/0/weight: 100 -> 90; /spec/http/0/route/1/weight: 0 -> 10")
}

// Contour plugin #108: weights that do not add up to the maximum.
func TestWeightsOnAnotherScaleAreBroughtToMaxTrafficWeight(t *testing.T) {
	for sentence, tc := range map[string]struct {
		before    string
		maximum   *int32
		requested int32
		want      string
	}{
		"a maximum of 1000":    {"900/100", ptr.To[int32](1000), 5, "995/5"},
		"relative to 1000":     {"900/100", nil, 10, "90/10"},
		"half and half, as 1s": {"1/1", nil, 10, "90/10"},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r := hostCanary(t, hostVirtualService)
			w.setWeights(tc.before)
			ro := rollout(hostConfig)
			ro.Spec.Strategy.Canary.TrafficRouting.MaxTrafficWeight = tc.maximum
			mustSet(t, r, ro, tc.requested)
			w.wantWeights(t, sentence, tc.want)
		})
	}
}

// Contour plugin #108: beside a foreign destination another scale would change its share.
func TestAnotherScaleBesideAForeignDestinationIsAnErrorThatNamesTheRemedy(t *testing.T) {
	w, r := hostCanary(t, virtualServiceOf("cart", "  http: [{name: x, "+strings.NewReplacer("weight: 80", "weight: 700", "weight: 0", "weight: 100", "weight: 20", "weight: 200").Replace(toThree)+"}]"))
	wantError(t, setWeight(t, r, rollout(hostConfig), 10), "700/100", "200", "set maxTrafficWeight to 1000")
	w.wantWeights(t, "untouched", "700/100/200")
}

// Gateway API plugin #230: an update was sent though nothing differed.
func TestWeightsStoredAsFloatsAreEqualAndNotWrittenAgain(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	mustSet(t, r, rollout(hostConfig), 30)
	u := w.virtualService("cart").DeepCopy()
	for i, weight := range []float64{70, 30} {
		route := u.Object["spec"].(map[string]any)["http"].([]any)[0].(map[string]any)["route"].([]any)
		route[i].(map[string]any)["weight"] = weight
	}
	w.store(u)
	writes := len(w.writes)
	for range 10 {
		mustSet(t, r, rollout(hostConfig), 30)
	}
	if len(w.writes) != writes {
		t.Errorf("writes: %v", w.writes[writes:])
	}
}

// argo-rollouts#4097: every route had to be listed.
func TestAllMatchingRoutesAreThoseWithBothDestinations(t *testing.T) {
	w, r := hostCanary(t, virtualServiceOf("cart", "  http: [{name: a, "+toBoth+"}, {name: b, route: [{destination: {host: other}}]}, {name: c, "+toBoth+"}]\n"+
		"  tcp: [{match: [{port: 1}], "+toBoth+"}, {match: [{port: 2}], route: [{destination: {host: cart-stable}}]}]"))
	mustSet(t, r, rollout(`{"virtualService": {"name": "cart", "routes": [], "allMatchingRoutes": true}}`), 40)
	wantEqual(t, "http", w.lists("cart", "http"), "a=60/40 b=0 c=60/40")
	wantEqual(t, "tcp", w.lists("cart", "tcp"), "=60/40 =0")
}

// Contour plugin #15, Contour plugin #62: only the first route was looked at, and a
// route of others made every change fail.
func TestRoutesThatAreNotListedAreNeitherJudgedNorTouched(t *testing.T) {
	for sentence, neighbour := range map[string]string{
		"a weight below 0 and no destination":  "{match: [{uri: {prefix: /a}}], route: [{destination: {host: web-svc}, weight: -3}, {bogus: 1}]}",
		"a number for a name, text for routes": "{name: 7, route: x}",
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r := hostCanary(t, virtualServiceOf("cart", "  http: ["+neighbour+", {name: primary, match: [{uri: {prefix: /api}}], "+toBoth+"}]"))
			before := w.virtualService("cart")
			mustSet(t, r, rollout(primaryConfig), 10)
			wantEqual(t, "changed", changes(before, w.virtualService("cart")),
				"/spec/http/1/route/0/weight: 100 -> 90; /spec/http/1/route/1/weight: 0 -> 10")
		})
	}
}

// Contour plugin #62: what is no list of routes at all is told, not repaired.
func TestAMalformedListOfRoutesIsNamedAndNothingIsWritten(t *testing.T) {
	w, r := hostCanary(t, virtualServiceOf("cart", "  tls: 7\n  http: [foo, {name: primary, "+toBoth+"}]"))
	wantError(t, setWeight(t, r, rollout(primaryConfig), 10), "VirtualService shop/cart", "spec.tls")
	if len(w.writes) != 0 {
		t.Errorf("writes: %v", w.writes)
	}
}

// argo-rollouts#1100, argo-rollouts#1559: several VirtualServices, and both forms of
// naming them at once.
func TestSeveralVirtualServicesFollowTogetherAndAreNamedInOneWay(t *testing.T) {
	spec := "  http: [{name: primary, " + toBoth + "}, {name: other, route: [{destination: {host: other}}]}]"
	w, r := hostCanary(t, virtualServiceOf("a", spec), virtualServiceOf("b", spec))
	mustSet(t, r, rollout(`{"virtualServices": [{"name": "a", "routes": ["primary"]}, {"name": "b", "routes": ["primary"]}]}`), 30)
	wantEqual(t, "both", w.lists("a", "http")+" "+w.lists("b", "http"), "primary=70/30 other=0 primary=70/30 other=0")
	wantError(t, setWeight(t, r, rollout(`{"virtualService": {"name": "a"}, "virtualServices": [{"name": "b"}]}`), 40), "virtualService is there too")
	wantEqual(t, "both forms", w.lists("a", "http"), "primary=70/30 other=0")
}

// argo-rollouts#4709, argo-rollouts#1096: a name with dots was cut in the wrong place.
func TestTheLastPartOfADottedNameIsItsNamespaceUnlessOneIsGiven(t *testing.T) {
	every, err := config.ParseCrossNamespace("*")
	must(t, err)
	for entry, want := range map[string]string{
		`{"name": "v"}`: "shop/v", `{"name": "v.ns"}`: "ns/v", `{"name": "v.with.dot.ns"}`: "ns/v.with.dot",
		`{"name": "v.ns.svc.cluster.local"}`: "ns/v", `{"name": "v.ns.cluster.local"}`: "ns/v",
		`{"name": "virtualservice.example.istio"}`: "istio/virtualservice.example",
		`{"name": "a.b", "namespace": "shop"}`:     "shop/a.b", `{"name": "a.shop"}`: "shop/a",
		`{"name": "v."}`: "", `{"name": ".v"}`: "", `{"name": "v..ns"}`: "",
	} {
		cfg, err := config.FromRollout(rollout(`{"virtualService": `+entry+`}`), config.Options{CrossNamespace: every})
		if want == "" {
			wantError(t, err, "virtualService.name", "field namespace")
			continue
		}
		must(t, err)
		wantEqual(t, entry, cfg.VirtualServices[0].Namespace+"/"+cfg.VirtualServices[0].Name, want)
	}
}

// argo-rollouts#1105: a host in full was not found.
func TestAServiceIsFoundUnderEachFormOfItsHost(t *testing.T) {
	for _, form := range []string{"", ".shop", ".shop.svc", ".shop.svc.cluster.local", ".shop.svc.cluster.local."} {
		hosts := strings.NewReplacer("host: cart-stable", "host: cart-stable"+form, "host: cart-canary", "host: cart-canary"+form)
		w, r := hostCanary(t, hosts.Replace(hostVirtualService))
		mustSet(t, r, rollout(hostConfig), 10)
		w.wantWeights(t, form, "90/10")
	}
}

// argo-rollouts#1105: a Service of the same name in another namespace got our weight.
func TestAServiceOfAnotherNamespaceIsForeign(t *testing.T) {
	hosts := strings.NewReplacer("cart-stable", "cart-stable.shop.svc.cluster.local", "cart-canary", "cart-canary.shop.svc.cluster.local", "legacy", "cart-stable.other.svc.cluster.local")
	w, r := hostCanary(t, virtualServiceOf("cart", "  http: [{name: x, "+hosts.Replace(toThree)+"}]"))
	mustSet(t, r, rollout(hostConfig), 10)
	w.wantWeights(t, "the other namespace keeps its fifth", "72/8/20")
}

// argo-rollouts#1105, Contour plugin #17: in another namespace a short host is
// another Service, and the operator has to allow that namespace.
func TestAVirtualServiceOfAnotherNamespaceHasToBeAllowedAndToNameFullHosts(t *testing.T) {
	edge, err := config.ParseCrossNamespace("edge")
	must(t, err)
	w, _ := hostCanary(t, strings.Replace(hostVirtualService, "{name: cart}", "{name: cart, namespace: edge}", 1))
	allowed := newRouter(w, Options{Config: config.Options{CrossNamespace: edge}}, hclog.NewNullLogger(), w.clock)
	ro := rollout(`{"virtualService": {"name": "cart.edge"}}`)
	wantError(t, setWeight(t, allowed, ro, 10), "VirtualService edge/cart", "host cart-stable.shop.svc.cluster.local")
	wantError(t, setWeight(t, w.router(), ro, 10), "--allow-cross-namespace=edge")
	if len(w.writes) != 0 {
		t.Errorf("writes: %v", w.writes)
	}
}

// Gateway API plugin #67: the API was asked for objects of no namespace.
func TestARolloutWithoutANamespaceIsAnError(t *testing.T) {
	_, r := hostCanary(t, hostVirtualService)
	ro := rollout(hostConfig)
	ro.Namespace = ""
	wantError(t, setWeight(t, r, ro, 10), "namespace")
}

// argo-rollouts#3125, Gateway API plugin #203: destinations that the router did not
// know were removed.
func TestAForeignDestinationKeepsItsShareFromBeginToEnd(t *testing.T) {
	ctx := context.Background()
	w, r := hostCanary(t, virtualServiceOf("cart", "  http: [{name: x, "+toThree+"}]"))
	ro := rollout(hostConfig)
	mustSet(t, r, ro, 10)
	w.wantWeights(t, "10", "72/8/20")
	w.templates["h"] = 1
	must(t, r.SetWeight(ctx, ro, 10, []v1alpha1.WeightDestination{share("exp", "h", 10)}))
	w.wantWeights(t, "an experiment comes", "64/8/20/8")
	mustSet(t, r, ro, 10)
	w.wantWeights(t, "and goes", "72/8/20")
	mustSet(t, r, ro, 100)
	w.wantWeights(t, "100", "0/80/20")
	if verified, err := r.VerifyWeight(ctx, ro, 100, nil); !verified {
		t.Errorf("all that is ours is on the canary and not verified: %v", err)
	}
	ro.Status.StableRS, w.services["shop/cart-stable"] = "new", "new"
	mustSet(t, r, ro, 0)
	w.pass(5 * time.Second) // the endpoints of the stable Service come
	watched(t, r)
	w.wantWeights(t, "promoted", "80/0/20")
}
