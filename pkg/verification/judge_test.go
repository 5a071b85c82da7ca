package verification_test

import (
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/verification"
)

func TestWhatIsNotThereYetIsSaid(t *testing.T) {
	const onHost = "host " + web + " port 80"
	for sentence, tc := range map[string]struct {
		change func(*mesh.Served, verification.Endpoints)
		counts verification.Counts
		want   string // "" is ok
	}{
		"everything has arrived":                    {counts: counted},
		"fewer pods were counted on than there are": {counts: verification.Counts{Canary: 0, Stable: -2}},
		"the weight before": {
			change: func(s *mesh.Served, _ verification.Endpoints) {
				s.Routes[webHost] = []mesh.Route{route("primary", weights(90, 10)...)}
			},
			want: "istiod still serves canary 10 where 25 is written (route primary of VirtualService shop/web, " + onHost + ")",
		},
		"no canary yet": {
			change: func(s *mesh.Served, _ verification.Endpoints) {
				s.Routes[webHost] = []mesh.Route{route("primary", mesh.Weighted{Cluster: stableName, Weight: 100})}
			},
			want: "istiod still serves canary 0 where 25 is written",
		},
		"another destination beside, so that the share is the same": {
			change: func(s *mesh.Served, _ verification.Endpoints) {
				s.Routes[webHost] = []mesh.Route{route("primary", mesh.Weighted{Cluster: "outbound|80|old|" + web, Weight: 75}, mesh.Weighted{Cluster: canaryName, Weight: 25})}
			},
			want: "istiod still serves other destinations than are written (route primary",
		},
		"a route that is not written any more": {
			change: func(s *mesh.Served, _ verification.Endpoints) {
				s.Routes[webHost] = append([]mesh.Route{route("header", mesh.Weighted{Cluster: canaryName, Weight: 1})}, s.Routes[webHost]...)
			},
			want: "istiod still serves other routes than are written (2 of VirtualService shop/web, " + onHost + ")",
		},
		"another name": {
			change: func(s *mesh.Served, _ verification.Endpoints) { s.Routes[webHost][0].Name = "secondary" },
			want:   "istiod still serves other routes than are written (1 of",
		},
		"no answer about the routes": {
			change: func(s *mesh.Served, _ verification.Endpoints) { delete(s.Routes, webHost) },
			want:   "istiod has not answered yet which routes " + onHost + " has",
		},
		"the VirtualService is not seen by clients of the namespace": {
			change: func(s *mesh.Served, _ verification.Endpoints) {
				s.Routes[webHost] = []mesh.Route{{Name: "default", Clusters: []mesh.Weighted{{Cluster: "outbound|80||" + web, Weight: 1}}}}
			},
			want: "istiod serves " + onHost + " without any VirtualService, not by VirtualService shop/web as seen from namespace shop",
		},
		"another VirtualService has the host": {
			change: func(s *mesh.Served, _ verification.Endpoints) { s.Routes[webHost][0].VirtualService.Name = "other" },
			want:   "istiod serves " + onHost + " by VirtualService shop/other, not by VirtualService shop/web",
		},
		"the host is not known": {
			change: func(s *mesh.Served, _ verification.Endpoints) { s.Routes[webHost] = nil },
			want:   "istiod serves " + onHost + " not at all",
		},
		"no answer about a cluster": {
			change: func(s *mesh.Served, _ verification.Endpoints) { delete(s.Clusters, canaryName) },
			want:   "istiod has not answered yet for cluster " + canaryName,
		},
		"a cluster without the list of its endpoints": {
			change: func(s *mesh.Served, _ verification.Endpoints) {
				s.Clusters[canaryName] = mesh.Cluster{Asked: true, Exists: true}
			},
			want: "istiod has not answered yet for cluster " + canaryName,
		},
		"the subset is missing, and its endpoints are those of the whole Service": {
			change: func(s *mesh.Served, _ verification.Endpoints) {
				c := listed("10.0.1.1")
				c.Exists = false
				s.Clusters[canaryName] = c
			},
			want: "cluster " + canaryName + " is not there",
		},
		"too few endpoints": {
			counts: verification.Counts{Canary: 5, Stable: 3},
			want:   "1 of 5 endpoints of the canary (cluster " + canaryName + ")",
		},
		"an endpoint that is not healthy does not count": {
			change: func(s *mesh.Served, _ verification.Endpoints) { s.Clusters[stableName].Endpoints[1].Healthy = false },
			counts: counted,
			want:   "2 of 3 endpoints of the stable (cluster " + stableName + ")",
		},
		"the label has moved and the endpoints of the revision before are still there": {
			change: func(s *mesh.Served, e verification.Endpoints) {
				s.Clusters[canaryName] = listed("10.0.1.1", "10.0.2.1")
				e[webService] = append(e[webService], pods("aaaa", "10.0.2.1")...)
			},
			counts: counted,
			want:   "pod web-aaaa-10.0.2.1 of aaaa is still an endpoint of the canary, which is 7c9b (cluster " + canaryName + ")",
		},
		"a pod is being deleted, and nobody knows any more whose it was": {
			change: func(s *mesh.Served, e verification.Endpoints) {
				s.Clusters[canaryName] = listed("10.0.1.1", "10.0.2.1")
				e[webService] = append(e[webService], cluster.Endpoint{Address: "10.0.2.1", Serving: true, Terminating: true, Pod: "gone"})
			},
			want: "pod gone, which is being deleted, is still an endpoint of the canary",
		},
		"a pod has failed its readiness probe since": {
			change: func(_ *mesh.Served, e verification.Endpoints) { e[webService][3].Ready = false },
			want:   "pod web-7c9b-10.0.1.1 of 7c9b is still an endpoint of the canary",
		},
		"a pod has lost another label that the side asks for": {
			change: func(_ *mesh.Served, e verification.Endpoints) {
				e[webService][3].Labels = map[string]string{hashLabel: newRevision}
			},
			want: "pod web-7c9b-10.0.1.1 of 7c9b is still an endpoint of the canary",
		},
		"an address of another cluster of the mesh is nobody's here": {
			change: func(s *mesh.Served, _ verification.Endpoints) {
				s.Clusters[canaryName] = listed("10.0.1.1", "192.0.2.1")
			},
			counts: counted,
		},
		"a pod with two addresses counts once": {
			change: func(s *mesh.Served, e verification.Endpoints) {
				second := e[webService][3]
				second.Address = "fd00::1"
				e[webService] = append(e[webService], second)
				s.Clusters[canaryName] = listed("10.0.1.1", "fd00::1")
			},
			counts: verification.Counts{Canary: 2},
			want:   "1 of 2 endpoints of the canary",
		},
		"without EndpointSlices only the number is known": {
			change: func(s *mesh.Served, e verification.Endpoints) {
				delete(e, webService)
				s.Clusters[canaryName] = listed("192.0.2.1")
			},
			counts: verification.Counts{Canary: 2},
			want:   "1 of 2 endpoints of the canary",
		},
		"nothing has been answered": {
			change: func(s *mesh.Served, _ verification.Endpoints) { *s = mesh.Served{} },
			want:   "cluster " + stableName,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			served, endpoints := whole()
			if tc.change != nil {
				tc.change(&served, endpoints)
			}
			plan := verification.NewPlan(facts(http(), fromYAML(t, split)))
			ok, waiting := plan.Judge(served, endpoints, tc.counts)
			if ok != (tc.want == "") || !strings.Contains(waiting, tc.want) || ok && waiting != "" {
				t.Errorf("Judge says %t, %q, want %q", ok, waiting, tc.want)
			}
		})
	}
}

func TestASideWithoutAHashIsJudgedByNumber(t *testing.T) {
	f := facts(http(), fromYAML(t, split))
	f.Pairs[0].Stable.Labels = map[string]string{"app": "web"}
	served, endpoints := whole()
	// The pods of a Deployment that is being taken over are none of a Rollout.
	for i := range 3 {
		endpoints[webService][i].Labels = nil
	}
	plan := verification.NewPlan(f)
	if ok, waiting := plan.Judge(served, endpoints, counted); !ok {
		t.Error(waiting)
	}
	if ok, waiting := plan.JudgeEndpoints(endpoints, verification.Counts{Canary: 1, Stable: 4}); !ok {
		t.Error(waiting)
	}
	if ok, waiting := plan.Judge(served, endpoints, verification.Counts{Stable: 4}); ok || !strings.Contains(waiting, "3 of 4 endpoints of the stable") {
		t.Errorf("%t, %q", ok, waiting)
	}
}

func TestASideWithoutWeightIsNotJudged(t *testing.T) {
	full := strings.NewReplacer("75", "100", "25", "0").Replace(split)
	plan := verification.NewPlan(facts(http(), fromYAML(t, full)))
	served, endpoints := whole()
	served.Routes[webHost] = []mesh.Route{route("primary", mesh.Weighted{Cluster: stableName, Weight: 100})}
	served.Clusters[canaryName] = mesh.Cluster{Asked: true, Listed: true}
	if ok, waiting := plan.Judge(served, endpoints, verification.Counts{Canary: 9, Stable: 3}); !ok {
		t.Error(waiting)
	}
	if ok, waiting := plan.JudgeEndpoints(endpoints, verification.Counts{Canary: 9, Stable: 3}); !ok {
		t.Error(waiting)
	}
	if ok, waiting := plan.JudgeCanary(&served, endpoints, counted); ok || waiting != "cluster "+canaryName+" is not there" {
		t.Errorf("JudgeCanary says %t, %q", ok, waiting)
	}
	served.Clusters[canaryName] = listed("10.0.1.1")
	if ok, waiting := plan.JudgeCanary(&served, endpoints, counted); !ok {
		t.Error(waiting)
	}
}

func TestEachSideWithWeightNeedsItsPodsBehindItsService(t *testing.T) {
	for sentence, tc := range map[string]struct {
		change func(verification.Endpoints)
		counts verification.Counts
		want   string
	}{
		"as many as were counted on": {counts: counted},
		"too few of the canary":      {counts: verification.Counts{Canary: 2, Stable: 3}, want: "1 of 2 pods of the canary are ready behind Service shop/web"},
		"too few of the stable":      {counts: verification.Counts{Canary: 1, Stable: 4}, want: "3 of 4 pods of the stable are ready behind Service shop/web"},
		"one is not ready":           {change: func(e verification.Endpoints) { e[webService][3].Ready = false }, counts: counted, want: "0 of 1 pods of the canary"},
		"one lacks a label":          {change: func(e verification.Endpoints) { e[webService][0].Labels = nil }, counts: counted, want: "2 of 3 pods of the stable"},
		"the Service has none":       {change: func(e verification.Endpoints) { delete(e, webService) }, counts: counted, want: "0 of 3 pods of the stable"},
		"nothing was counted on":     {change: func(e verification.Endpoints) { clear(e) }},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, endpoints := whole()
			if tc.change != nil {
				tc.change(endpoints)
			}
			ok, waiting := verification.NewPlan(facts(http(), fromYAML(t, split))).JudgeEndpoints(endpoints, tc.counts)
			if ok != (tc.want == "") || !strings.Contains(waiting, tc.want) {
				t.Errorf("JudgeEndpoints says %t, %q, want %q", ok, waiting, tc.want)
			}
		})
	}
}

func TestTheCanarysWeightInTheMesh(t *testing.T) {
	header := route("header", mesh.Weighted{Cluster: canaryName, Weight: 1})
	for sentence, tc := range map[string]struct {
		routes []mesh.Route
		spec   string
		want   int32
		known  bool
	}{
		"as written":                         {routes: []mesh.Route{route("primary", weights(75, 25)...)}, want: 25, known: true},
		"none":                               {routes: []mesh.Route{route("primary", mesh.Weighted{Cluster: stableName, Weight: 100})}, want: 0, known: true},
		"the highest of several":             {routes: []mesh.Route{route("a", weights(90, 10)...), route("b", weights(60, 40)...)}, want: 40, known: true},
		"rounded up":                         {routes: []mesh.Route{route("primary", weights(999, 1)...)}, want: 1, known: true},
		"a header route takes everything":    {routes: []mesh.Route{header, route("primary", weights(100, 0)...)}, want: 100, known: true},
		"on another port":                    {routes: []mesh.Route{route("primary", mesh.Weighted{Cluster: "outbound|8080|canary|" + web, Weight: 1})}, want: 100, known: true},
		"a redirect":                         {routes: []mesh.Route{route("primary")}, want: 0, known: true},
		"routes of somebody else":            {routes: []mesh.Route{{Name: "default", Clusters: weights(1, 1)}}, want: 50, known: true},
		"the host has none":                  {routes: []mesh.Route{}, want: 0, known: true},
		"not answered":                       {known: false},
		"weights that add up to nothing":     {routes: []mesh.Route{route("primary", weights(0, 0)...)}, known: false},
		"weights beyond what a proxy takes":  {routes: []mesh.Route{route("primary", weights(1<<32-1, 1<<32-1)...)}, known: false},
		"gateways are not seen":              {spec: "gateways: [edge]" + split, routes: []mesh.Route{route("primary", weights(75, 25)...)}, known: false},
		"a route for certain clients is not": {spec: strings.Replace(split, "  route:", "  match: [{sourceLabels: {a: b}}, {uri: {prefix: /}}]\n  route:", 1), routes: []mesh.Route{route("primary", weights(75, 25)...)}, known: false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if tc.spec == "" {
				tc.spec = split
			}
			served := mesh.Served{Routes: map[mesh.Host][]mesh.Route{}}
			if tc.routes != nil {
				served.Routes[webHost] = tc.routes
			}
			weight, known := verification.NewPlan(facts(http(), fromYAML(t, tc.spec))).CanaryWeight(served)
			if known != tc.known || known && weight != tc.want {
				t.Errorf("weight %d, known %t, want %d, %t", weight, known, tc.want, tc.known)
			}
		})
	}
}

func TestProxiesThatLagBehind(t *testing.T) {
	late := func(names ...string) (all []mesh.Proxy) {
		for _, name := range names {
			all = append(all, mesh.Proxy{Name: name, Stale: true})
		}
		return all
	}
	good := mesh.Proxy{Name: "good.shop"}
	for sentence, tc := range map[string]struct {
		proxies   []mesh.Proxy
		ok, known bool
		want      string
	}{
		"nobody was named":                    {},
		"only those of other namespaces":      {proxies: append(late("a.other"), mesh.Proxy{Name: "b"})},
		"all have confirmed":                  {proxies: []mesh.Proxy{good, {Name: "c.edge"}}, ok: true, known: true},
		"one of another namespace lags":       {proxies: append(late("a.other"), good), ok: true, known: true},
		"one lags":                            {proxies: append(late("a.shop"), good), known: true, want: "not confirmed what they were sent: a.shop"},
		"many lag, and not all of them named": {proxies: late("d.shop", "b.edge", "a.shop", "c.shop"), known: true, want: "sent: a.shop, b.edge, c.shop, and others"},
	} {
		t.Run(sentence, func(t *testing.T) {
			ok, known, waiting := verification.JudgeProxies(tc.proxies, []string{"edge", "shop"})
			if ok != tc.ok || known != tc.known || !strings.HasSuffix(waiting, tc.want) || tc.want == "" && waiting != "" {
				t.Errorf("%t, %t, %q", ok, known, waiting)
			}
		})
	}
}
