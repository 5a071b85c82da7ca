package mesh

import (
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"k8s.io/apimachinery/pkg/types"
)

func TestNamesOfRoutes(t *testing.T) {
	host := Host{Name: "web.shop.svc.cluster.local", Port: 8080}
	if got, ok := hostOf(host.routeName()); !ok || got != host {
		t.Errorf("%v becomes %v, %t", host, got, ok)
	}
	for _, other := range []string{"", "80", "outbound|80||", "inbound|80||web", "outbound|80|canary|web", "outbound|0||web", "outbound|65536||web", "outbound|x||web", "outbound|80||web|more"} {
		if got, ok := hostOf(other); ok {
			t.Errorf("%q is taken for %v", other, got)
		}
	}
}

func TestOfSeveralVirtualHostsTheMostSpecificCounts(t *testing.T) {
	virtual := func(name string, domains ...string) *routev3.VirtualHost {
		return &routev3.VirtualHost{Name: name, Domains: domains, Routes: []*routev3.Route{{Name: name}}}
	}
	for sentence, tc := range map[string]struct {
		virtual []*routev3.VirtualHost
		want    string
	}{
		"its own name before a wildcard":       {[]*routev3.VirtualHost{virtual("wild", "*.cluster.local"), virtual("own", "other", web.Name)}, "own"},
		"its own name with the port":           {[]*routev3.VirtualHost{virtual("wild", "*"), virtual("own", web.Name+":80")}, "own"},
		"not that of another port":             {[]*routev3.VirtualHost{virtual("own", web.Name+":81"), virtual("wild", "*.local")}, "wild"},
		"the longer of two wildcards":          {[]*routev3.VirtualHost{virtual("all", "*"), virtual("near", "*.shop.svc.cluster.local"), virtual("far", "*.local")}, "near"},
		"large letters are small ones":         {[]*routev3.VirtualHost{virtual("own", strings.ToUpper(web.Name))}, "own"},
		"a name that only begins like it":      {[]*routev3.VirtualHost{virtual("short", "web", "web.shop")}, ""},
		"none at all":                          {nil, ""},
		"a virtual host without any domain":    {[]*routev3.VirtualHost{virtual("none")}, ""},
		"of two with its name the first":       {[]*routev3.VirtualHost{virtual("first", web.Name), virtual("second", web.Name)}, "first"},
		"a wildcard that is not at the start":  {[]*routev3.VirtualHost{virtual("odd", "web.*")}, ""},
		"an address in brackets is no problem": {[]*routev3.VirtualHost{virtual("v6", "[::1]:80", "[::1]")}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, routes, err := decodeRoutes(packed(t, &routev3.RouteConfiguration{Name: web.routeName(), VirtualHosts: tc.virtual}))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(routes) > 0 {
				got = routes[0].Name
			}
			if got != tc.want {
				t.Errorf("the routes are those of %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRoutesOfAllKinds(t *testing.T) {
	single := &routev3.Route{Name: "single", Metadata: made("/apis/networking.istio.io/v1/namespaces/edge/virtual-service/a.b"),
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: stable}}}}
	redirect := &routev3.Route{Name: "redirect", Metadata: made(madeOfWeb), Action: &routev3.Route_Redirect{Redirect: &routev3.RedirectAction{}}}
	answer := &routev3.Route{Name: "answer", Metadata: made("/apis/other/v1/namespaces/shop/thing/web"), Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{}}}
	bare := &routev3.Route{Name: "default"}
	_, got, err := decodeRoutes(packed(t, configuration(web, single, weighted("both", map[string]uint32{canary: 0, stable: 7}), redirect, answer, bare)))
	if err != nil {
		t.Fatal(err)
	}
	webService := types.NamespacedName{Namespace: "shop", Name: "web"}
	want := []Route{
		{Name: "single", VirtualService: types.NamespacedName{Namespace: "edge", Name: "a.b"}, Clusters: []Weighted{{Cluster: stable, Weight: 1}}},
		{Name: "both", VirtualService: webService, Clusters: []Weighted{{Cluster: canary, Weight: 0}, {Cluster: stable, Weight: 7}}},
		{Name: "redirect", VirtualService: webService},
		{Name: "answer"},
		{Name: "default"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}

func TestEndpointsThatGetNoRequestsAreNotHealthy(t *testing.T) {
	for status, want := range map[core.HealthStatus]bool{
		core.HealthStatus_UNKNOWN: true, core.HealthStatus_HEALTHY: true, core.HealthStatus_UNHEALTHY: false,
		core.HealthStatus_DRAINING: false, core.HealthStatus_TIMEOUT: false, core.HealthStatus_DEGRADED: false,
	} {
		config := assignment(canary, "10.0.0.1")
		config.Endpoints[0].LbEndpoints[0].HealthStatus = status
		name, endpoints, err := decodeEndpoints(packed(t, config))
		if err != nil || name != canary || len(endpoints) != 1 || endpoints[0] != (Endpoint{Address: "10.0.0.1", Port: 8080, Healthy: want}) {
			t.Errorf("%s: %q %+v, %v", status, name, endpoints, err)
		}
	}
}

func TestWhatIsNotOfItsTypeIsAnError(t *testing.T) {
	for _, typeURL := range resourceTypes {
		for sentence, resource := range map[string]*anypb.Any{
			"bytes that are no message": {TypeUrl: typeURL, Value: []byte{0xff}},
			"another type":              packed(t, &core.Node{}),
			"nothing":                   nil,
		} {
			if _, err := read(&discovery.DiscoveryResponse{TypeUrl: typeURL, Resources: []*anypb.Any{resource}}); err == nil {
				t.Errorf("%s as %s: no error", sentence, typeURL)
			}
		}
	}
	resource := packed(t, &routev3.RouteConfiguration{Name: "80"})
	if _, err := read(&discovery.DiscoveryResponse{TypeUrl: routeType, Resources: []*anypb.Any{resource}}); err == nil {
		t.Error("routes that nobody asked for: no error")
	}
}

func TestAnAnswerAboutClustersIsAboutAllAndOthersMayBePartial(t *testing.T) {
	table, asked := newTable(), []string{canary, stable}
	take := func(typeURL string, messages ...proto.Message) []string {
		t.Helper()
		response := &discovery.DiscoveryResponse{TypeUrl: typeURL}
		for _, message := range messages {
			response.Resources = append(response.Resources, packed(t, message))
		}
		u, err := read(response)
		if err != nil {
			t.Fatal(err)
		}
		return table.take(u, asked)
	}
	for _, step := range []struct {
		sentence string
		typeURL  string
		messages []proto.Message
		changed  []string
		want     map[string]Cluster
	}{
		{"both exist", clusterType, []proto.Message{&clusterv3.Cluster{Name: stable}, &clusterv3.Cluster{Name: canary}, &clusterv3.Cluster{Name: "other"}},
			asked, map[string]Cluster{canary: {Asked: true, Exists: true}, stable: {Asked: true, Exists: true}}},
		{"one is gone", clusterType, []proto.Message{&clusterv3.Cluster{Name: stable}},
			[]string{canary}, map[string]Cluster{canary: {Asked: true}, stable: {Asked: true, Exists: true}}},
		{"the endpoints of one", endpointType, []proto.Message{assignment(stable, "10.0.0.1"), assignment("other", "10.0.0.2")},
			[]string{stable}, map[string]Cluster{canary: {Asked: true}, stable: {Asked: true, Exists: true, Listed: true, Endpoints: []Endpoint{{"10.0.0.1", 8080, true}}}}},
		{"those of the other, none at all", endpointType, []proto.Message{assignment(canary)},
			[]string{canary}, map[string]Cluster{canary: {Asked: true, Listed: true}, stable: {Asked: true, Exists: true, Listed: true, Endpoints: []Endpoint{{"10.0.0.1", 8080, true}}}}},
		{"the same again", endpointType, []proto.Message{assignment(stable, "10.0.0.1"), assignment(canary)},
			nil, map[string]Cluster{canary: {Asked: true, Listed: true}, stable: {Asked: true, Exists: true, Listed: true, Endpoints: []Endpoint{{"10.0.0.1", 8080, true}}}}},
		{"an answer without anything", endpointType, nil,
			nil, map[string]Cluster{canary: {Asked: true, Listed: true}, stable: {Asked: true, Exists: true, Listed: true, Endpoints: []Endpoint{{"10.0.0.1", 8080, true}}}}},
		{"a type that nobody asked for", "other", []proto.Message{&core.Node{}},
			nil, map[string]Cluster{canary: {Asked: true, Listed: true}, stable: {Asked: true, Exists: true, Listed: true, Endpoints: []Endpoint{{"10.0.0.1", 8080, true}}}}},
	} {
		if changed := take(step.typeURL, step.messages...); !slices.Equal(changed, step.changed) {
			t.Errorf("%s: changed %q, want %q", step.sentence, changed, step.changed)
		}
		if diff := cmp.Diff(step.want, table.served(want).Clusters); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.sentence, diff)
		}
	}
	table.prune(namesOf(Want{Clusters: []string{stable}}))
	if got := table.served(want).Clusters; len(got) != 1 || !got[stable].Listed {
		t.Errorf("after pruning: %+v", got)
	}
}

// FuzzRead: whatever istiod sends, it is read or refused as a whole.
func FuzzRead(f *testing.F) {
	for _, message := range []proto.Message{
		configuration(web, weighted("primary", map[string]uint32{canary: 10, stable: 90})), &clusterv3.Cluster{Name: canary}, assignment(canary, "10.0.0.1"),
	} {
		raw, err := proto.Marshal(message)
		if err != nil {
			f.Fatal(err)
		}
		for i := range resourceTypes {
			f.Add(uint8(i), raw)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, raw []byte) {
		typeURL := resourceTypes[int(kind)%len(resourceTypes)]
		u, err := read(&discovery.DiscoveryResponse{TypeUrl: typeURL, Resources: []*anypb.Any{{TypeUrl: typeURL, Value: raw}}})
		if err != nil {
			if len(u.routes)+len(u.clusters)+len(u.endpoints) > 0 {
				t.Fatalf("an error, and %+v", u)
			}
			return
		}
		table := newTable()
		asked := namesOf(want)
		first, again := table.take(u, asked.of(typeURL)), table.take(u, asked.of(typeURL))
		if len(again) > 0 {
			t.Fatalf("the same answer changes %q after %q", again, first)
		}
		for host := range table.served(want).Routes {
			if host != web {
				t.Fatalf("routes of %v were never asked for", host)
			}
		}
	})
}
