package verification_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/verification"
)

// text is one of Istio's string matches.
func genText(t *rapid.T) map[string]any {
	return map[string]any{
		rapid.SampledFrom([]string{"exact", "prefix", "regex"}).Draw(t, "kind"): rapid.SampledFrom([]string{"/", ".*", "/a", "x"}).Draw(t, "text"),
	}
}

// genMatch is a match block with some of its fields.
func genMatch(t *rapid.T) map[string]any {
	block := map[string]any{}
	for field, value := range map[string]func() any{
		"name":           func() any { return rapid.SampledFrom([]string{"m", "n"}).Draw(t, "match") },
		"uri":            func() any { return genText(t) },
		"method":         func() any { return genText(t) },
		"scheme":         func() any { return genText(t) },
		"authority":      func() any { return genText(t) },
		"headers":        func() any { return map[string]any{"h": genText(t)} },
		"withoutHeaders": func() any { return map[string]any{"h": map[string]any{}} },
		"queryParams":    func() any { return map[string]any{"q": genText(t)} },
		"port":           func() any { return rapid.SampledFrom([]int64{80, 81, 8080}).Draw(t, "port") },
		"gateways": func() any {
			return rapid.SampledFrom([][]any{{"mesh"}, {"edge"}, {"edge", "mesh"}}).Draw(t, "gateways")
		},
		"sourceLabels":    func() any { return map[string]any{"a": "b"} },
		"sourceNamespace": func() any { return rapid.SampledFrom([]string{"shop", "other"}).Draw(t, "namespace") },
		"ignoreUriCase":   func() any { return true },
	} {
		if rapid.IntRange(0, 5).Draw(t, field) == 0 {
			block[field] = value()
		}
	}
	return block
}

// genRoute is an http route. Of several destinations one has weight, as Istio demands.
func genRoute(t *rapid.T) map[string]any {
	route := map[string]any{}
	if name := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name"); name != "" {
		route["name"] = name
	}
	if blocks := rapid.SliceOfN(rapid.Custom(genMatch), 0, 3).Draw(t, "match"); len(blocks) > 0 {
		route["match"] = anyOf(blocks)
	}
	switch rapid.IntRange(0, 9).Draw(t, "action") {
	case 0:
		route["redirect"] = map[string]any{"uri": "/"}
		return route
	case 1:
		route["directResponse"] = map[string]any{"status": int64(503)}
		return route
	}
	var destinations []map[string]any
	for _, subset := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"stable", "canary", "", "other"}), 1, 4, rapid.ID).Draw(t, "subsets") {
		destination := map[string]any{"host": rapid.SampledFrom([]string{"web", web}).Draw(t, "host")}
		if subset != "" {
			destination["subset"] = subset
		}
		if rapid.Bool().Draw(t, "with a port") {
			destination["port"] = map[string]any{"number": int64(80)}
		}
		destinations = append(destinations, map[string]any{"destination": destination, "weight": rapid.Int64Range(0, 3).Draw(t, "weight")})
	}
	destinations[0]["weight"] = rapid.Int64Range(1, 3).Draw(t, "first weight")
	route["route"] = anyOf(destinations)
	return route
}

// anyOf is a list as JSON has it.
func anyOf[T any](list []T) []any {
	out := make([]any, len(list))
	for i, entry := range list {
		out[i] = entry
	}
	return out
}

func genSpec(t *rapid.T) map[string]any {
	return map[string]any{"hosts": []any{"web"}, "http": anyOf(rapid.SliceOfN(rapid.Custom(genRoute), 1, 4).Draw(t, "http"))}
}

// serve is what istiod makes of a VirtualService for port 80 and a client of namespace shop, from Istio's own types.
func serve(t *rapid.T, spec map[string]any) []mesh.Route {
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var vs networking.VirtualService
	if err := vs.UnmarshalJSON(raw); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	var out []mesh.Route
	for _, http := range vs.Http {
		blocks := http.Match
		if len(blocks) == 0 {
			blocks = []*networking.HTTPMatchRequest{nil}
		}
		for _, block := range blocks {
			if !clientHas(block) {
				continue
			}
			name := http.Name
			if block.GetName() != "" {
				name += "." + block.GetName()
			}
			out = append(out, route(name, clusters(http)...))
			if everyRequest(block) {
				return out
			}
		}
	}
	return out
}

func clientHas(m *networking.HTTPMatchRequest) bool {
	switch {
	case m == nil:
		return true
	case m.Port != 0 && m.Port != 80:
		return false
	case len(m.Gateways) > 0:
		return slices.Contains(m.Gateways, "mesh")
	}
	return len(m.SourceLabels) == 0 && (m.SourceNamespace == "" || m.SourceNamespace == "shop")
}

func everyRequest(m *networking.HTTPMatchRequest) bool {
	if m == nil {
		return true
	}
	path := m.GetUri() == nil || m.GetUri().MatchType == nil
	switch match := m.GetUri().GetMatchType().(type) {
	case *networking.StringMatch_Prefix:
		path = match.Prefix == "/"
	case *networking.StringMatch_Regex:
		path = match.Regex == ".*"
	}
	return path && m.Method == nil && m.Scheme == nil && m.Authority == nil && len(m.Headers)+len(m.WithoutHeaders)+len(m.QueryParams) == 0
}

func clusters(http *networking.HTTPRoute) []mesh.Weighted {
	var out []mesh.Weighted
	for _, d := range http.Route {
		name := fmt.Sprintf("outbound|80|%s|%s", d.Destination.Subset, web)
		switch {
		case len(http.Route) == 1:
			out = append(out, mesh.Weighted{Cluster: name, Weight: 1})
		case d.Weight > 0:
			out = append(out, mesh.Weighted{Cluster: name, Weight: uint32(d.Weight)})
		}
	}
	return out
}

// scene is a VirtualService and a mesh in which it has arrived.
type scene struct {
	plan      *verification.Plan
	served    mesh.Served
	endpoints verification.Endpoints
	counts    verification.Counts
}

func (s scene) judge() (bool, string) { return s.plan.Judge(s.served, s.endpoints, s.counts) }

func genScene(t *rapid.T) scene {
	spec := genSpec(t)
	s := scene{
		plan:   verification.NewPlan(facts(http(), parse(spec))),
		counts: verification.Counts{Canary: rapid.Int32Range(0, 3).Draw(t, "canary"), Stable: rapid.Int32Range(0, 3).Draw(t, "stable")},
		served: mesh.Served{Routes: map[mesh.Host][]mesh.Route{}, Clusters: map[string]mesh.Cluster{}},
	}
	for _, host := range s.plan.Want().Routes {
		s.served.Routes[host] = serve(t, spec)
	}
	canary, stable := addresses("10.0.1.", s.counts.Canary), addresses("10.0.0.", s.counts.Stable)
	s.endpoints = verification.Endpoints{webService: append(pods(newRevision, canary...), pods(oldRevision, stable...)...)}
	for _, name := range s.plan.Want().Clusters {
		s.served.Clusters[name] = listed(map[string][]string{canaryName: canary, stableName: stable}[name]...)
	}
	return s
}

func addresses(prefix string, count int32) (all []string) {
	for i := range count {
		all = append(all, fmt.Sprint(prefix, i+1))
	}
	return all
}

func TestWhatIstiodServesForTheObjectsIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genScene(t)
		if ok, waiting := s.judge(); !ok {
			t.Fatalf("%s\nserved %+v", waiting, s.served)
		}
	})
}

// TestAnyOneChangeOfWhatIsServedIsNoticed changes one thing in a mesh in which everything has arrived.
func TestAnyOneChangeOfWhatIsServedIsNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genScene(t)
		routes := s.served.Routes[webHost]
		changed := changeRoutes
		if weighted := weightedClusters(routes); len(routes) == 0 || len(weighted) > 0 && rapid.Bool().Draw(t, "behind the routes") {
			if len(weighted) == 0 {
				return // nothing is served that could change
			}
			changed = changeCluster
		}
		what := changed(t, &s)
		if ok, _ := s.judge(); ok {
			t.Fatalf("nobody notices: %s\nserved %+v", what, s.served)
		}
	})
}

// weightedClusters are the sides' own that some route sends to, sorted.
func weightedClusters(routes []mesh.Route) []string {
	found := map[string]bool{}
	for _, route := range routes {
		for _, c := range route.Clusters {
			if c.Cluster == canaryName || c.Cluster == stableName {
				found[c.Cluster] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func changeRoutes(t *rapid.T, s *scene) string {
	routes := slices.Clone(s.served.Routes[webHost])
	i := rapid.IntRange(0, len(routes)-1).Draw(t, "which route")
	routes[i].Clusters = slices.Clone(routes[i].Clusters)
	what := rapid.SampledFrom([]string{"a weight", "a cluster", "a name", "one more", "one less", "an unanswered host", "another VirtualService"}).Draw(t, "what")
	switch clusters := routes[i].Clusters; {
	case what == "a weight" && len(clusters) > 0:
		clusters[rapid.IntRange(0, len(clusters)-1).Draw(t, "which weight")].Weight += rapid.Uint32Range(1, 9).Draw(t, "more")
	case what == "a cluster" && len(clusters) > 0:
		clusters[rapid.IntRange(0, len(clusters)-1).Draw(t, "which cluster")].Cluster += "x"
	case what == "one more":
		routes = append(routes, routes[i])
	case what == "one less":
		routes = slices.Delete(routes, i, i+1)
	case what == "an unanswered host":
		delete(s.served.Routes, webHost)
		return what
	case what == "another VirtualService":
		routes[i].VirtualService.Name = "other"
	default:
		what = "a name"
		routes[i].Name += "x"
	}
	s.served.Routes[webHost] = routes
	return what
}

func changeCluster(t *rapid.T, s *scene) string {
	name := rapid.SampledFrom(weightedClusters(s.served.Routes[webHost])).Draw(t, "which cluster")
	c := s.served.Clusters[name]
	what := rapid.SampledFrom([]string{"not there", "not asked", "not listed", "an endpoint of another revision", "an endpoint less", "an unhealthy endpoint"}).Draw(t, "what")
	switch {
	case what == "not there":
		c.Exists = false
	case what == "not asked":
		c.Asked = false
	case what == "not listed":
		c.Listed = false
	case what == "an endpoint less" && len(c.Endpoints) > 0:
		c.Endpoints = c.Endpoints[1:]
	case what == "an unhealthy endpoint" && len(c.Endpoints) > 0:
		c.Endpoints[0].Healthy = false
	default:
		what = "an endpoint of another revision"
		s.endpoints[webService] = append(s.endpoints[webService], pods("aaaa", "10.0.2.1")...)
		c.Endpoints = append(c.Endpoints, mesh.Endpoint{Address: "10.0.2.1", Healthy: true})
	}
	s.served.Clusters[name] = c
	return what
}

// TestMoreOfWhatIsRightNeverSpoilsAnything: a right endpoint more, or a pod less that was counted on, keeps what was
// accepted, and a pod more that was counted on never makes something accepted.
func TestMoreOfWhatIsRightNeverSpoilsAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genScene(t)
		s.counts.Canary += rapid.Int32Range(0, 2).Draw(t, "more counted")
		before, _ := s.judge()
		more := s
		more.counts.Canary++
		if after, _ := more.judge(); after && !before {
			t.Fatal("to count on more makes it right")
		}
		s.endpoints = verification.Endpoints{webService: append(pods(newRevision, "10.0.3.1"), s.endpoints[webService]...)}
		for _, name := range []string{canaryName} {
			if c, followed := s.served.Clusters[name]; followed {
				c.Endpoints = append(slices.Clone(c.Endpoints), mesh.Endpoint{Address: "10.0.3.1", Healthy: true})
				s.served.Clusters[name] = c
			}
		}
		if after, waiting := s.judge(); before && !after {
			t.Fatalf("one more endpoint spoils it: %s", waiting)
		}
	})
}

// TestTheCanarysWeightIsNeverLessThanAnyRouteGivesIt holds it against the shares themselves.
func TestTheCanarysWeightIsNeverLessThanAnyRouteGivesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genScene(t)
		weight, known := s.plan.CanaryWeight(s.served)
		if !known {
			return
		}
		for _, route := range s.served.Routes[webHost] {
			var ours, sum float64
			for _, c := range route.Clusters {
				sum += float64(c.Weight)
				if c.Cluster == canaryName {
					ours += float64(c.Weight)
				}
			}
			if sum > 0 && float64(weight) < 100*ours/sum {
				t.Fatalf("weight %d, but route %+v", weight, route)
			}
		}
	})
}

// FuzzJudge: whatever stands in an object and whatever is served, there is an answer, with a reason if it is no.
func FuzzJudge(f *testing.F) {
	f.Add([]byte(`{"hosts":["web"],"http":[{"route":[{"destination":{"host":"web","subset":"canary"}}]}]}`), "", canaryName, uint32(1), "10.0.0.1", true)
	f.Add([]byte(`{"hosts":["*"],"http":[{"match":[{"port":-1}],"route":[{"weight":-5}]},{"delegate":{}}],"tls":[{}],"tcp":[{"route":[{}]}]}`), "a", "outbound|||", uint32(1<<32-1), "", false)
	f.Add([]byte(`{"hosts":["web","*.shop"],"gateways":["mesh"],"http":[{"match":[{"headers":null,"uri":{}}]}]}`), "\x00", "||||", uint32(0), "::", true)
	f.Fuzz(func(t *testing.T, spec []byte, name, clusterName string, weight uint32, address string, yes bool) {
		var content map[string]any
		if json.Unmarshal(spec, &content) != nil {
			return
		}
		plan := verification.NewPlan(facts(map[string][]cluster.ServicePort{"shop/web": {{Port: 80, Name: name}, {Port: -1, AppProtocol: name}}}, parse(content)))
		served := mesh.Served{Routes: map[mesh.Host][]mesh.Route{}, Clusters: map[string]mesh.Cluster{}}
		want := plan.Want()
		for i, host := range want.Routes {
			served.Routes[host] = slices.Repeat([]mesh.Route{route(name, mesh.Weighted{Cluster: clusterName, Weight: weight}, mesh.Weighted{Cluster: canaryName, Weight: weight})}, i)
		}
		for _, name := range append(want.Clusters, clusterName) {
			served.Clusters[name] = mesh.Cluster{Asked: yes, Exists: yes, Listed: true, Endpoints: []mesh.Endpoint{{Address: address, Healthy: yes}}}
		}
		endpoints := verification.Endpoints{webService: {{Address: address, Ready: yes, Pod: name}}}
		for _, judge := range []func() (bool, string){
			func() (bool, string) {
				return plan.Judge(served, endpoints, verification.Counts{Canary: int32(weight)})
			},
			func() (bool, string) { return plan.JudgeCanary(&served, endpoints, counted) },
			func() (bool, string) { return plan.JudgeEndpoints(endpoints, counted) },
		} {
			if ok, waiting := judge(); ok != (waiting == "") {
				t.Fatalf("%t, %q", ok, waiting)
			}
		}
		if weight, known := plan.CanaryWeight(served); known && (weight < 0 || weight > 100) {
			t.Fatalf("weight %d of 100", weight)
		}
		if hidden := plan.Hidden(); slices.Contains(hidden, "") || strings.Contains(strings.Join(hidden, ""), "%!") {
			t.Fatalf("hidden %q", hidden)
		}
	})
}
