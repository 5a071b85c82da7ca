package verification_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/verification"
)

// two are both sides' destinations, the canary's with this weight.
const two = `[{destination: {host: web, subset: stable}, weight: 75}, {destination: {host: web, subset: canary}, weight: 25}]`

func hosts(names ...string) (all []mesh.Host) {
	for _, name := range names {
		all = append(all, mesh.Host{Name: name, Port: 80})
	}
	return all
}

func TestWhatIsFollowedAndWhatIsHidden(t *testing.T) {
	both := []string{canaryName, stableName}
	for sentence, tc := range map[string]struct {
		spec   string
		ports  map[string][]cluster.ServicePort
		want   mesh.Want
		hidden []string // parts of each
	}{
		"the host on the port of its Service": {
			spec: split, want: mesh.Want{Routes: hosts(web), Clusters: both},
		},
		"every port that carries HTTP, by name or by appProtocol, and none else": {
			spec: split,
			ports: map[string][]cluster.ServicePort{"shop/web": {
				{Port: 81, Name: "grpc-web-x"}, {Port: 82, Name: "tcp-x"}, {Port: 83, Name: "anything"}, {Port: 84, Name: "http", AppProtocol: "mongo"},
				{Port: 85, Name: "tcp", AppProtocol: "kubernetes.io/h2c"}, {Port: 86, Name: "http", UDP: true}, {Port: 3306, Name: "data"}, {Port: 25, Name: "http-mail"},
			}},
			want: mesh.Want{
				Routes: []mesh.Host{{Name: web, Port: 25}, {Name: web, Port: 81}, {Name: web, Port: 83}, {Name: web, Port: 85}},
				Clusters: []string{
					"outbound|25|canary|" + web, "outbound|25|stable|" + web, "outbound|81|canary|" + web, "outbound|81|stable|" + web,
					"outbound|83|canary|" + web, "outbound|83|stable|" + web, "outbound|85|canary|" + web, "outbound|85|stable|" + web,
				},
			},
		},
		"the port of a destination wins": {
			spec:  strings.ReplaceAll(split, "subset: canary", "subset: canary, port: {number: 9090}"),
			ports: http(),
			want:  mesh.Want{Routes: hosts(web), Clusters: []string{stableName, "outbound|9090|canary|" + web}},
		},
		"a host that is nobody's is asked for on port 80": {
			spec: strings.Replace(split, "[web]", "[web, shop.example.com]", 1),
			want: mesh.Want{Routes: hosts("shop.example.com", web), Clusters: both},
		},
		"a wildcard stands for the hosts of the sides": {
			spec: strings.Replace(split, "[web]", `["*.shop.svc.cluster.local"]`, 1),
			want: mesh.Want{Routes: hosts(web), Clusters: both},
		},
		"a wildcard for others": {
			spec: strings.Replace(split, "[web]", `["*.example.com"]`, 1),
			want: mesh.Want{Clusters: both}, hidden: []string{"host *.example.com is none that can be asked for"},
		},
		"for gateways and the mesh": {
			spec: "gateways: [edge, mesh]" + split, want: mesh.Want{Routes: hosts(web), Clusters: both},
		},
		"for gateways only": {
			spec: "gateways: [edge]" + split, want: mesh.Want{Clusters: both}, hidden: []string{"for gateways only"},
		},
		"one that others delegate to": {
			spec: strings.Replace(split, "hosts: [web]", "", 1), want: mesh.Want{Clusters: both}, hidden: []string{"another VirtualService delegates to it"},
		},
		"one that delegates": {
			spec: split + "- {name: rest, delegate: {name: other}}\n", want: mesh.Want{Routes: hosts(web), Clusters: both}, hidden: []string{`http[1] "rest" is left to another VirtualService`},
		},
		"a Service that does not exist": {
			spec: strings.Replace(split, "[web]", "[cart]", 1), want: mesh.Want{Clusters: both}, hidden: []string{"host cart.shop.svc.cluster.local has no port for HTTP, or no Service"},
		},
		"routes of TLS and TCP": {
			spec: "hosts: [web]\ntls: [{match: [{port: 443, sniHosts: [a]}], route: " + two + "}]\ntcp: [{match: [{port: 80}], route: " + strings.ReplaceAll(two, "}, w", ", port: {number: 81}}, w") + "}]",
			want: mesh.Want{Clusters: []string{canaryName, stableName, "outbound|81|canary|" + web, "outbound|81|stable|" + web}},
			hidden: []string{
				"route tcp[0] (port 80): a client without a proxy has no routes for connections",
				"route tls[0] (port 443, sniHosts a): a client without a proxy has no routes for connections",
			},
		},
		"a match for certain clients": {
			spec:   strings.Replace(split, "  route:", "  match: [{gateways: [edge]}, {port: 80}]\n  route:", 1),
			want:   mesh.Want{Routes: hosts(web), Clusters: both},
			hidden: []string{`route http[0] "primary": some of its matches are for certain clients only`},
		},
		"routes with nothing of ours": {
			spec: "hosts: [web]\nhttp: [{route: [{destination: {host: other}}]}, {redirect: {uri: /}}]\ntcp: [{route: [{destination: {host: db}}]}]",
			want: mesh.Want{Routes: hosts(web)},
		},
		"a host that only the plugin completes is not there for Istio": {
			spec: strings.ReplaceAll(split, "{host: web,", "{host: web.shop,"),
			want: mesh.Want{Routes: hosts(web), Clusters: []string{"outbound|80|canary|web.shop", "outbound|80|stable|web.shop"}},
		},
		"an object that holds nothing": {spec: "{}"},
		"an object that is malformed":  {spec: "{hosts: [web], http: 1}"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if tc.ports == nil {
				tc.ports = http()
			}
			plan := verification.NewPlan(facts(tc.ports, fromYAML(t, tc.spec)))
			if diff := cmp.Diff(tc.want, plan.Want()); diff != "" {
				t.Errorf("Want (-want +got):\n%s", diff)
			}
			hidden := plan.Hidden()
			if len(hidden) != len(tc.hidden) {
				t.Fatalf("hidden is %q, want %q", hidden, tc.hidden)
			}
			for i, part := range tc.hidden {
				if !strings.HasPrefix(hidden[i], "VirtualService shop/web: ") || !strings.Contains(hidden[i], part) {
					t.Errorf("hidden is %q, want %q", hidden[i], part)
				}
			}
			_, known := plan.CanaryWeight(everywhere(plan, nil))
			if seen := len(tc.hidden) == 0 && len(tc.want.Routes) > 0; known != seen {
				t.Errorf("the canary's weight is known: %t, want %t", known, seen)
			}
		})
	}
}

// everywhere serves the same routes on all hosts that a plan asks for.
func everywhere(plan *verification.Plan, routes []mesh.Route) mesh.Served {
	served := mesh.Served{Routes: map[mesh.Host][]mesh.Route{}, Clusters: map[string]mesh.Cluster{}}
	for _, host := range plan.Want().Routes {
		served.Routes[host] = routes
	}
	return served
}

// TestIstiodsRoutes: which routes istiod makes of a VirtualService on port 80, for a client of namespace shop.
func TestIstiodsRoutes(t *testing.T) {
	const match = "hosts: [web]\nhttp:\n- name: a\n  match: "
	const then = "\n  route: " + two + "\n- {name: rest, route: [{destination: {host: web, subset: stable}}]}"
	rest := route("rest", mesh.Weighted{Cluster: stableName, Weight: 1})
	a := func(name string) mesh.Route { return route(name, weights(75, 25)...) }
	for sentence, tc := range map[string]struct {
		spec string
		want []mesh.Route
	}{
		"one for each match block, named with it": {match + "[{uri: {prefix: /a}, name: b}, {headers: {h: {exact: v}}}]" + then, []mesh.Route{a("a.b"), a("a"), rest}},
		"those of another port are left out":      {match + "[{port: 8080}, {port: 80, uri: {exact: /}}]" + then, []mesh.Route{a("a"), rest}},
		"none for a gateway, one for the mesh":    {match + "[{gateways: [edge]}, {gateways: [edge, mesh], method: {exact: GET}}]" + then, []mesh.Route{a("a"), rest}},
		"none for labels, one for the namespace":  {match + "[{sourceLabels: {a: b}}, {sourceNamespace: other}, {sourceNamespace: shop, authority: {exact: x}}]" + then, []mesh.Route{a("a"), rest}},
		"none after one that takes everything":    {match + "[{uri: {prefix: /}, name: all}, {uri: {exact: /b}}]" + then, []mesh.Route{a("a.all")}},
		"a regular expression for everything":     {match + `[{uri: {regex: ".*"}}]` + then, []mesh.Route{a("a")}},
		"an empty block takes everything":         {match + "[{}]" + then, []mesh.Route{a("a")}},
		"one without a block takes everything":    {match + "[]" + then, []mesh.Route{a("a")}},
		"a query makes it narrower":               {match + "[{queryParams: {q: {exact: v}}}]" + then, []mesh.Route{a("a"), rest}},
		"so does a header that must not be there": {match + "[{withoutHeaders: {h: {}}}]" + then, []mesh.Route{a("a"), rest}},
		"so does the scheme":                      {match + "[{scheme: {exact: https}}]" + then, []mesh.Route{a("a"), rest}},
		"case does not":                           {match + "[{ignoreUriCase: true, uri: {prefix: /}}]" + then, []mesh.Route{a("a")}},
		"a redirect and an answer have no cluster": {
			"hosts: [web]\nhttp: [{match: [{uri: {exact: /r}}], redirect: {uri: /}}, {match: [{uri: {exact: /d}}], directResponse: {status: 503}}, {route: " + two + "}]",
			[]mesh.Route{route(""), route(""), a("")},
		},
		"a destination alone takes all, whatever its weight; weight 0 beside others is left out": {
			"hosts: [web]\nhttp: [{match: [{uri: {exact: /r}}], route: [{destination: {host: web, subset: canary}, weight: 0}]}, {route: [{destination: {host: web, subset: stable}, weight: 100}, {destination: {host: web, subset: canary}}]}]",
			[]mesh.Route{route("", mesh.Weighted{Cluster: canaryName, Weight: 1}), route("", mesh.Weighted{Cluster: stableName, Weight: 100})},
		},
		"other hosts are completed as Istio does": {
			"hosts: [web]\nhttp: [{route: [{destination: {host: other, port: {number: 1}}, weight: 1}, {destination: {host: web.other}, weight: 1}, {destination: {host: 10.0.0.1}, weight: 1}]}]",
			[]mesh.Route{route("", mesh.Weighted{Cluster: "outbound|1||other.shop.svc.cluster.local", Weight: 1}, mesh.Weighted{Cluster: "outbound|80||web.other", Weight: 1}, mesh.Weighted{Cluster: "outbound|80||10.0.0.1", Weight: 1})},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			plan := verification.NewPlan(facts(http(), fromYAML(t, tc.spec)))
			served := everywhere(plan, tc.want)
			for _, name := range plan.Want().Clusters {
				served.Clusters[name] = listed()
			}
			if ok, waiting := plan.Judge(served, nil, verification.Counts{}); !ok {
				t.Errorf("these routes are refused: %s", waiting)
			}
			for i := range tc.want {
				without := everywhere(plan, slices.Delete(slices.Clone(tc.want), i, i+1))
				without.Clusters = served.Clusters
				if ok, _ := plan.Judge(without, nil, verification.Counts{}); ok {
					t.Errorf("nobody misses route %d", i)
				}
			}
		})
	}
}

func TestRoutesOfADelegateMayBeAnything(t *testing.T) {
	plan := verification.NewPlan(facts(http(), fromYAML(t, `
hosts: [web]
http:
- {name: first, match: [{uri: {exact: /a}}], route: `+two+`}
- {name: middle, match: [{uri: {prefix: /m}}], delegate: {name: other}}
- {name: last, route: `+two+`}
`)))
	first, last := route("first", weights(75, 25)...), route("last", weights(75, 25)...)
	foreign := route("middle-x", mesh.Weighted{Cluster: "outbound|80||elsewhere", Weight: 1})
	for sentence, tc := range map[string]struct {
		routes []mesh.Route
		ok     bool
	}{
		"none":                     {[]mesh.Route{first, last}, true},
		"several":                  {[]mesh.Route{first, foreign, foreign, last}, true},
		"without the one after":    {[]mesh.Route{first, foreign}, false},
		"without the one before":   {[]mesh.Route{foreign, last}, false},
		"at the end":               {[]mesh.Route{first, last, foreign}, false},
		"one that looks like ours": {[]mesh.Route{first, last, last}, true},
	} {
		served, endpoints := whole()
		served.Routes[webHost] = tc.routes
		if ok, waiting := plan.Judge(served, endpoints, counted); ok != tc.ok {
			t.Errorf("%s: %t, %s", sentence, ok, waiting)
		}
	}
}

// byHosts is a split between two Services; a third one is the host of the requests.
func byHosts(t *testing.T, spec string) verification.Facts {
	f := facts(map[string][]cluster.ServicePort{
		"shop/web": {{Port: 80, Name: "http"}}, "shop/web-canary": {{Port: 80, Name: "http"}}, "shop/web-stable": {{Port: 80, Name: "http"}},
	}, fromYAML(t, spec))
	f.Pairs = []verification.Pair{{
		Canary: side("web-canary.shop.svc.cluster.local", "", newRevision), Stable: side("web-stable.shop.svc.cluster.local", "", oldRevision),
	}}
	return f
}

func TestASplitByServices(t *testing.T) {
	const canary, stable = "outbound|80||web-canary.shop.svc.cluster.local", "outbound|80||web-stable.shop.svc.cluster.local"
	plan := verification.NewPlan(byHosts(t, "hosts: [web]\nhttp: [{route: [{destination: {host: web-stable}, weight: 75}, {destination: {host: web-canary}, weight: 25}]}]"))
	var names []string
	for _, service := range plan.Services() {
		names = append(names, service.String())
	}
	if want := []string{"shop/web-canary", "shop/web-stable"}; !slices.Equal(names, want) {
		t.Errorf("Services %q, want %q", names, want)
	}
	served := everywhere(plan, []mesh.Route{route("", mesh.Weighted{Cluster: stable, Weight: 75}, mesh.Weighted{Cluster: canary, Weight: 25})})
	served.Clusters = map[string]mesh.Cluster{stable: listed("10.0.0.1"), canary: listed("10.0.1.1")}
	endpoints := verification.Endpoints{}
	endpoints[plan.Services()[0]], endpoints[plan.Services()[1]] = pods(newRevision, "10.0.1.1"), pods(oldRevision, "10.0.0.1")
	if ok, waiting := plan.Judge(served, endpoints, verification.Counts{Canary: 1, Stable: 1}); !ok {
		t.Error(waiting)
	}
	if weight, known := plan.CanaryWeight(served); weight != 25 || !known {
		t.Errorf("canary weight %d, %t", weight, known)
	}
	// The Service's selector has moved on, its endpoints in the mesh have not.
	served.Clusters[canary] = listed("10.0.2.1")
	endpoints[plan.Services()[0]] = append(endpoints[plan.Services()[0]], pods("aaaa", "10.0.2.1")...)
	if ok, waiting := plan.Judge(served, endpoints, verification.Counts{Canary: 1, Stable: 1}); ok || !strings.Contains(waiting, "of aaaa is still an endpoint of the canary") {
		t.Errorf("%t, %q", ok, waiting)
	}
}

func TestAPinnedSubsetStandsForTheSideButIsNotCounted(t *testing.T) {
	const pinned = "outbound|80|v1|web-stable.shop.svc.cluster.local"
	plan := verification.NewPlan(byHosts(t, "hosts: [web]\nhttp: [{route: [{destination: {host: web-stable, subset: v1}, weight: 100}, {destination: {host: web-canary}, weight: 0}]}]"))
	served := everywhere(plan, []mesh.Route{route("", mesh.Weighted{Cluster: pinned, Weight: 100})})
	served.Clusters = map[string]mesh.Cluster{pinned: listed("10.0.0.1")}
	if ok, waiting := plan.Judge(served, nil, verification.Counts{Stable: 5}); !ok {
		t.Error(waiting)
	}
	served.Clusters[pinned] = mesh.Cluster{Asked: true, Listed: true}
	if ok, _ := plan.Judge(served, nil, verification.Counts{}); ok {
		t.Error("nobody misses the subset")
	}
}

func TestSeveralPairsHaveTheSamePods(t *testing.T) {
	const api = "api.shop.svc.cluster.local"
	f := facts(map[string][]cluster.ServicePort{"shop/web": {{Port: 80}}, "shop/api": {{Port: 80}}}, fromYAML(t, split),
		fromYAML(t, strings.NewReplacer("web", "api").Replace(split)))
	f.Pairs = append(f.Pairs, verification.Pair{Canary: side(api, "canary", newRevision), Stable: side(api, "stable", oldRevision)})
	plan := verification.NewPlan(f)
	if got := len(plan.Want().Clusters); got != 4 {
		t.Errorf("%d clusters are followed: %q", got, plan.Want().Clusters)
	}
	endpoints := verification.Endpoints{webService: append(pods(oldRevision, "10.0.0.1"), pods(newRevision, "10.0.1.1")...)}
	ok, waiting := plan.JudgeEndpoints(endpoints, verification.Counts{Canary: 1, Stable: 1})
	if ok || !strings.Contains(waiting, "0 of 1 pods of the canary are ready behind Service shop/api") {
		t.Errorf("%t, %q", ok, waiting)
	}
}

func TestAHostOutsideOfTheCluster(t *testing.T) {
	const external = "api.example.com"
	f := facts(http(), fromYAML(t, strings.ReplaceAll(split, "web", external)))
	f.Pairs[0] = verification.Pair{Canary: side(external, "canary", newRevision), Stable: side(external, "stable", oldRevision)}
	plan := verification.NewPlan(f)
	if services := plan.Services(); len(services) > 0 {
		t.Errorf("it has the Services %v", services)
	}
	if ok, waiting := plan.JudgeEndpoints(nil, verification.Counts{Canary: 1}); !ok {
		t.Error(waiting)
	}
	served := everywhere(plan, nil)
	served.Clusters = map[string]mesh.Cluster{"outbound|80|canary|" + external: listed("192.0.2.1"), "outbound|80|stable|" + external: listed("192.0.2.2")}
	if ok, waiting := plan.Judge(served, nil, verification.Counts{Canary: 1, Stable: 1}); !ok {
		t.Errorf("a host that nobody registered need not be served: %s", waiting)
	}
	served = everywhere(plan, []mesh.Route{route("primary", mesh.Weighted{Cluster: "outbound|80|stable|" + external, Weight: 1})})
	if ok, _ := plan.Judge(served, nil, verification.Counts{}); ok {
		t.Error("but what is served has to be right")
	}
}

func TestNamespacesAreThoseOfTheRolloutAndItsServices(t *testing.T) {
	f := facts(http(), fromYAML(t, split))
	f.Namespace = "argo"
	if got, want := verification.NewPlan(f).Namespaces(), []string{"argo", "shop"}; !slices.Equal(got, want) {
		t.Errorf("namespaces %q, want %q", got, want)
	}
}
