package virtualservice_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// foreign is a route list in which nothing is ours.
func foreign() []any { return []any{to("db", weighs(100))} }

func selected(routes []virtualservice.Route) string {
	var names []string
	for _, route := range routes {
		names = append(names, route.String())
	}
	return strings.Join(names, ", ")
}

func TestSelect(t *testing.T) {
	type selection = virtualservice.Selection
	for sentence, tc := range map[string]struct {
		spec      fields
		selection selection
		want      string
	}{
		// argo-rollouts#3884: with no list only a route without a name was searched for.
		"the only http route has a name and none is listed": {
			spec: fields{"http": []any{http("x", ours(100, 0)...)}},
			want: `http[0] "x"`},
		"the only http route has no name": {
			spec: fields{"http": []any{http("", ours(100, 0)...)}},
			want: `http[0] without a name`},
		"the only tls route and none is listed": {
			spec: fields{"tls": []any{tls([]string{"443 a.example"}, ours(100, 0)...)}},
			want: `tls[0] (port 443, sniHosts a.example)`},
		"the only tcp route and none is listed": {
			spec: fields{"tcp": []any{tcp([]int64{3306}, ours(100, 0)...)}},
			want: `tcp[0] (port 3306)`},
		"the only route of each protocol": {
			spec: fields{
				"http": []any{http("x", ours(100, 0)...)},
				"tls":  []any{tls([]string{"443 a.example"}, ours(100, 0)...)},
				"tcp":  []any{tcp([]int64{1}, ours(100, 0)...)},
			},
			want: `http[0] "x", tls[0] (port 443, sniHosts a.example), tcp[0] (port 1)`},
		"managed routes are not counted": {
			spec: fields{"http": []any{
				http("header", to("canary", weighs(100))), http("mirror", ours(100, 0)...), http("x", ours(100, 0)...)}},
			selection: selection{Managed: []string{"header", "mirror"}},
			want:      `http[2] "x"`},
		"an empty name among the managed ones hides no route": {
			spec:      fields{"http": []any{http("", ours(100, 0)...)}},
			selection: selection{Managed: []string{""}},
			want:      `http[0] without a name`},
		"of several http routes the only one without a name": {
			spec: fields{"http": []any{http("a", foreign()...), http("", ours(100, 0)...), http("b", foreign()...)}},
			want: `http[1] without a name`},
		"a foreign tcp route beside our http route is nobody's business": {
			spec: fields{"http": []any{http("x", ours(100, 0)...)}, "tcp": []any{tcp([]int64{1}, foreign()...)}},
			want: `http[0] "x"`},
		"a foreign http route beside our tcp route is nobody's business": {
			spec: fields{"http": []any{http("x", foreign()...)}, "tcp": []any{tcp([]int64{1}, ours(100, 0)...)}},
			want: `tcp[0] (port 1)`},
		"several foreign tls routes beside our http route are nobody's business": {
			spec: fields{
				"http": []any{http("x", ours(100, 0)...)},
				"tls":  []any{tls([]string{"1 a"}, foreign()...), tls([]string{"2 b"}, foreign()...)},
			},
			want: `http[0] "x"`},
		"a tcp route that only goes to stable beside our http route is left to stable": {
			spec: fields{"http": []any{http("x", ours(100, 0)...)}, "tcp": []any{tcp([]int64{1}, to("stable", weighs(100)))}},
			want: `http[0] "x"`},
		"a route that only goes to the canary beside our tcp route is left to the canary": {
			spec: fields{"http": []any{http("x", to("canary", weighs(100)))}, "tcp": []any{tcp([]int64{1}, ours(100, 0)...)}},
			want: `tcp[0] (port 1)`},
		"a root that delegates beside our tcp route is nobody's business": {
			spec: fields{"http": []any{fields{"delegate": fields{"name": "del"}}}, "tcp": []any{tcp([]int64{1}, ours(100, 0)...)}},
			want: `tcp[0] (port 1)`},

		"one of several by name": {
			spec:      fields{"http": []any{http("a", ours(100, 0)...), http("b", ours(100, 0)...)}},
			selection: selection{HTTP: []string{"b"}},
			want:      `http[1] "b"`},
		"several by name, in the order of the object": {
			spec:      fields{"http": []any{http("a", ours(100, 0)...), http("b", ours(100, 0)...), http("c", ours(100, 0)...)}},
			selection: selection{HTTP: []string{"c", "a"}},
			want:      `http[0] "a", http[2] "c"`},
		"a name listed twice is one route": {
			spec:      fields{"http": []any{http("a", ours(100, 0)...)}},
			selection: selection{HTTP: []string{"a", "a"}},
			want:      `http[0] "a"`},
		"two routes of one name are both meant": {
			spec:      fields{"http": []any{http("a", ours(100, 0)...), http("b", foreign()...), http("a", ours(100, 0)...)}},
			selection: selection{HTTP: []string{"a"}},
			want:      `http[0] "a", http[2] "a"`},
		"a listed http route leaves the only tls route alone": {
			spec: fields{"http": []any{http("a", ours(100, 0)...)}, "tls": []any{tls([]string{"443 a"}, ours(100, 0)...)}},
			// The native router would take the tls route along.
			selection: selection{HTTP: []string{"a"}},
			want:      `http[0] "a"`},
		"a listed tcp route leaves the only http route alone": {
			spec:      fields{"http": []any{http("a", ours(100, 0)...)}, "tcp": []any{tcp([]int64{1}, ours(100, 0)...)}},
			selection: selection{TCP: []virtualservice.TCPRoute{{Port: 1}}},
			want:      `tcp[0] (port 1)`},
		// contour plugin #15 and #62: a foreign route stopped everything.
		"a foreign route before the listed one is not judged": {
			spec:      fields{"http": []any{http("", to("web-svc")), http("primary", ours(100, 0)...)}},
			selection: selection{HTTP: []string{"primary"}},
			want:      `http[1] "primary"`},
		"routes that are not listed may hold any garbage": {
			spec: fields{
				"http": []any{nil, "x", http("primary", ours(100, 0)...), fields{"name": int64(1), "route": "x"}, fields{"delegate": "x"}},
				"tls":  []any{int64(7), fields{"match": "x"}},
			},
			selection: selection{HTTP: []string{"primary"}},
			want:      `http[2] "primary"`},
		"garbage beside the only route without a name does not count": {
			spec: fields{
				"http": []any{http("a", "x"), http("", ours(100, 0)...)},
				"tcp":  []any{"x", fields{"route": "x"}},
			},
			want: `http[1] without a name`},

		"a tls route by port and SNI hosts in any order": {
			spec:      fields{"tls": []any{tls([]string{"443 a"}, ours(100, 0)...), tls([]string{"443 a b"}, ours(100, 0)...)}},
			selection: selection{TLS: []virtualservice.TLSRoute{{Port: 443, SNIHosts: []string{"b", "a"}}}},
			want:      `tls[1] (port 443, sniHosts a b)`},
		"SNI hosts are taken from all match blocks together": {
			spec:      fields{"tls": []any{tls([]string{"443 a", "443 b a"}, ours(100, 0)...)}},
			selection: selection{TLS: []virtualservice.TLSRoute{{Port: 443, SNIHosts: []string{"a", "b", "a"}}}},
			want:      `tls[0] (port 443, sniHosts a b)`},
		"every tls route with that port and those hosts": {
			spec:      fields{"tls": []any{tls([]string{"443 a"}, ours(100, 0)...), tls([]string{"443 a"}, ours(100, 0)...)}},
			selection: selection{TLS: []virtualservice.TLSRoute{{Port: 443, SNIHosts: []string{"a"}}}},
			want:      `tls[0] (port 443, sniHosts a), tls[1] (port 443, sniHosts a)`},
		"a port alone means tls routes with any SNI hosts": {
			spec:      fields{"tls": []any{tls([]string{"443 a"}, ours(100, 0)...), tls([]string{"8443 b"}, ours(100, 0)...), tls([]string{"443 b c"}, ours(100, 0)...)}},
			selection: selection{TLS: []virtualservice.TLSRoute{{Port: 443}}},
			want:      `tls[0] (port 443, sniHosts a), tls[2] (port 443, sniHosts b c)`},
		"a tls route without a port is listed without one": {
			spec:      fields{"tls": []any{tls([]string{"443 a"}, ours(100, 0)...), tls([]string{"- a"}, ours(100, 0)...)}},
			selection: selection{TLS: []virtualservice.TLSRoute{{SNIHosts: []string{"a"}}}},
			want:      `tls[1] (any port, sniHosts a)`},
		"a tcp route by port": {
			spec:      fields{"tcp": []any{tcp([]int64{1}, ours(100, 0)...), tcp([]int64{2, 2}, ours(100, 0)...)}},
			selection: selection{TCP: []virtualservice.TCPRoute{{Port: 2}}},
			want:      `tcp[1] (port 2)`},
		"a tcp route without a match is listed without a port": {
			spec:      fields{"tcp": []any{tcp([]int64{1}, ours(100, 0)...), tcp(nil, ours(100, 0)...)}},
			selection: selection{TCP: []virtualservice.TCPRoute{{}}},
			want:      `tcp[1] (any port)`},
		"routes of all protocols are listed, http first": {
			spec: fields{
				"tcp":  []any{tcp([]int64{1}, ours(100, 0)...), tcp([]int64{2}, ours(100, 0)...)},
				"tls":  []any{tls([]string{"443 a"}, ours(100, 0)...)},
				"http": []any{http("x", ours(100, 0)...)},
			},
			selection: selection{
				TCP: []virtualservice.TCPRoute{{Port: 2}}, TLS: []virtualservice.TLSRoute{{Port: 443, SNIHosts: []string{"a"}}}, HTTP: []string{"x"}},
			want: `http[0] "x", tls[0] (port 443, sniHosts a), tcp[1] (port 2)`},

		// argo-rollouts#4097: users want not to repeat every route of a large object.
		"all matching routes are those that hold both": {
			spec:      fields{"http": []any{http("a", ours(100, 0)...), http("b", foreign()...), http("c", ours(100, 0)...)}},
			selection: selection{AllMatching: true},
			want:      `http[0] "a", http[2] "c"`},
		"all matching routes are of all protocols, with a name or without": {
			spec: fields{
				"http": []any{http("", ours(100, 0)...), http("", ours(100, 0)...), http("a", to("stable", weighs(100)))},
				"tls":  []any{tls([]string{"443 a"}, ours(100, 0)...), tls([]string{"444 a"}, foreign()...)},
				"tcp":  []any{tcp([]int64{1, 2}, ours(100, 0)...)},
			},
			selection: selection{AllMatching: true},
			want:      `http[0] without a name, http[1] without a name, tls[0] (port 443, sniHosts a), tcp[0] (port 1 2)`},
		"a route for testers that only goes to the canary is not among all matching": {
			spec:      fields{"http": []any{http("testers", to("canary", weighs(100))), http("a", ours(100, 0)...)}},
			selection: selection{AllMatching: true},
			want:      `http[1] "a"`},
		"managed routes are not among all matching": {
			spec:      fields{"http": []any{http("mirror", ours(100, 0)...), http("a", ours(100, 0)...)}},
			selection: selection{AllMatching: true, Managed: []string{"mirror"}},
			want:      `http[1] "a"`},
		"garbage is not among all matching": {
			spec:      fields{"http": []any{nil, fields{"route": "x"}, http("a", ours(100, 0)...), http("b", "x", nil)}},
			selection: selection{AllMatching: true},
			want:      `http[2] "a"`},
		"listed routes and all matching are each taken once": {
			spec:      fields{"http": []any{http("a", ours(100, 0)...), http("b", ours(100, 0)...)}},
			selection: selection{AllMatching: true, HTTP: []string{"b"}},
			want:      `http[0] "a", http[1] "b"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			routes, err := parse(tc.spec).Select(tc.selection, byHosts())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, selected(routes)); diff != "" {
				t.Errorf("selected (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSelectRefuses(t *testing.T) {
	type selection = virtualservice.Selection
	redirect := fields{"name": "old", "redirect": fields{"uri": "/"}}
	answer := fields{"name": "down", "directResponse": fields{"status": int64(503)}}
	for sentence, tc := range map[string]struct {
		spec      fields
		selection selection
		want      []string
	}{
		// argo-rollouts#4741: success was reported and nothing written.
		"several named http routes and none listed": {
			spec: fields{"http": []any{http("a", ours(100, 0)...), http("b", ours(100, 0)...)}},
			want: []string{"several http routes", `"a"`, `"b"`, "under routes", "allMatchingRoutes: true"}},
		"several http routes of which only a named one is ours, none listed": {
			spec: fields{"http": []any{http("a", ours(100, 0)...), http("", foreign()...)}},
			want: []string{"several http routes", `"a"`, "without a name", "under routes"}},
		"two http routes without a name": {
			spec: fields{"http": []any{http("", ours(100, 0)...), http("", ours(100, 0)...)}},
			want: []string{"several http routes", "http[0]", "http[1]", "allMatchingRoutes: true"}},
		"several tls routes and none listed": {
			spec: fields{"tls": []any{tls([]string{"443 a"}, ours(100, 0)...), tls([]string{"443 b"}, foreign()...)}},
			want: []string{"several tls routes", "sniHosts a", "sniHosts b", "under tlsRoutes"}},
		"several tcp routes and none listed, whatever the http route is": {
			spec: fields{
				"http": []any{http("x", ours(100, 0)...)},
				"tcp":  []any{tcp([]int64{1}, ours(100, 0)...), tcp([]int64{2}, ours(100, 0)...)},
			},
			want: []string{"several tcp routes", "port 1", "port 2", "under tcpRoutes"}},
		"no routes at all": {
			spec: fields{},
			want: []string{"no routes besides managedRoutes", "host stable.shop.svc.cluster.local", "host canary.shop.svc.cluster.local"}},
		"only managed routes": {
			spec:      fields{"http": []any{http("mirror", ours(100, 0)...)}},
			selection: selection{Managed: []string{"mirror"}},
			want:      []string{"no routes besides managedRoutes"}},
		"several routes and none of them ours": {
			spec: fields{"http": []any{http("a", foreign()...)}, "tcp": []any{tcp([]int64{1}, to("stable", weighs(1)))}},
			want: []string{"no routes listed", "no route holds both", "host canary.shop.svc.cluster.local", `http[0] "a"`, "tcp[0] (port 1)"}},
		"all matching, and none matches": {
			spec:      fields{"http": []any{http("a", foreign()...), http("b", to("stable", weighs(100)))}},
			selection: selection{AllMatching: true},
			want:      []string{"allMatchingRoutes", "no route holds both", `"a"`, `"b"`}},
		"all matching, and no route at all": {
			selection: selection{AllMatching: true},
			want:      []string{"allMatchingRoutes", "no routes"}},
		"a name that is not there": {
			spec:      fields{"http": []any{http("primary", ours(100, 0)...), http("", foreign()...)}},
			selection: selection{HTTP: []string{"primary", "primry"}},
			want:      []string{`no http route "primry"`, "under routes", `http[0] "primary"`, "http[1] without a name"}},
		"a name that is not there is missed with all matching too": {
			spec:      fields{"http": []any{http("primary", ours(100, 0)...)}},
			selection: selection{HTTP: []string{"primry"}, AllMatching: true},
			want:      []string{`no http route "primry"`}},
		"a name, and there are only tls routes": {
			spec:      fields{"tls": []any{tls([]string{"443 a"}, ours(100, 0)...)}},
			selection: selection{HTTP: []string{"primary"}},
			want:      []string{`no http route "primary"`, "it has no http routes"}},
		"an empty name does not mean the route without a name": {
			spec:      fields{"http": []any{http("", ours(100, 0)...)}},
			selection: selection{HTTP: []string{""}},
			want:      []string{`no http route ""`}},
		"a managed route cannot be listed": {
			spec:      fields{"http": []any{http("mirror", ours(100, 0)...)}},
			selection: selection{HTTP: []string{"mirror"}, Managed: []string{"mirror"}},
			want:      []string{`route "mirror"`, "managedRoutes", "remove it from one of them"}},
		"a tls route with fewer SNI hosts than listed": {
			spec:      fields{"tls": []any{tls([]string{"443 a"}, ours(100, 0)...)}},
			selection: selection{TLS: []virtualservice.TLSRoute{{Port: 443, SNIHosts: []string{"a", "b"}}}},
			want:      []string{"no tls route with port 443 and sniHosts [a b]", "tlsRoutes", "sniHosts a)"}},
		"a tls route with more SNI hosts than listed": {
			spec:      fields{"tls": []any{tls([]string{"443 a", "443 b"}, ours(100, 0)...)}},
			selection: selection{TLS: []virtualservice.TLSRoute{{Port: 443, SNIHosts: []string{"a"}}}},
			want:      []string{"no tls route with port 443 and sniHosts [a]"}},
		"a tls route on another port": {
			spec:      fields{"tls": []any{tls([]string{"443 a"}, ours(100, 0)...)}},
			selection: selection{TLS: []virtualservice.TLSRoute{{Port: 8443, SNIHosts: []string{"a"}}}},
			want:      []string{"no tls route with port 8443", "port 443"}},
		"a tls route without a port is not the one with port 443": {
			spec:      fields{"tls": []any{tls([]string{"- a"}, ours(100, 0)...)}},
			selection: selection{TLS: []virtualservice.TLSRoute{{Port: 443, SNIHosts: []string{"a"}}}},
			want:      []string{"no tls route", "any port"}},
		"a tls route on two ports is meant by neither": {
			spec:      fields{"tls": []any{tls([]string{"443 a", "8443 a"}, ours(100, 0)...)}},
			selection: selection{TLS: []virtualservice.TLSRoute{{Port: 443, SNIHosts: []string{"a"}}}},
			want:      []string{"no tls route", "port 443 8443"}},
		"a tcp route on another port": {
			spec:      fields{"tcp": []any{tcp([]int64{1}, ours(100, 0)...)}},
			selection: selection{TCP: []virtualservice.TCPRoute{{Port: 2}}},
			want:      []string{"no tcp route with port 2", "tcpRoutes", "tcp[0] (port 1)"}},
		"a tcp route on two ports is meant by neither": {
			spec:      fields{"tcp": []any{tcp([]int64{1, 2}, ours(100, 0)...)}},
			selection: selection{TCP: []virtualservice.TCPRoute{{Port: 1}}},
			want:      []string{"no tcp route with port 1", "port 1 2"}},
		"a tcp route, and there are none": {
			spec:      fields{},
			selection: selection{TCP: []virtualservice.TCPRoute{{Port: 1}}},
			want:      []string{"no tcp route", "it has no tcp routes"}},

		"the only route lacks the canary": {
			spec: fields{"http": []any{http("x", to("stable", weighs(100)), to("db"))}},
			want: []string{`route http[0] "x"`, "no canary destination", "host canary.shop.svc.cluster.local", "add it", "it has host stable, host db"}},
		"the only route lacks the stable": {
			spec: fields{"tcp": []any{tcp([]int64{1}, to("canary", weighs(100)))}},
			want: []string{"route tcp[0] (port 1)", "no stable destination", "host stable.shop.svc.cluster.local", "it has host canary"}},
		"the only route has no destinations": {
			spec: fields{"http": []any{fields{"name": "x"}}},
			want: []string{`route http[0] "x"`, "no stable destination", "it has no destinations"}},
		"a listed route lacks the canary": {
			spec:      fields{"http": []any{http("a", ours(100, 0)...), http("b", to("stable", weighs(100)))}},
			selection: selection{HTTP: []string{"a", "b"}},
			want:      []string{`route http[1] "b"`, "no canary destination"}},
		"a listed route has two canaries": {
			spec:      fields{"http": []any{http("a", append(ours(100, 0), to("canary.shop"))...)}},
			selection: selection{HTTP: []string{"a"}},
			want:      []string{`route http[0] "a"`, "2 canary destinations", "the first at spec.http[0].route[1]", "leave one", "it has host stable, host canary, host canary.shop"}},
		"a matching route has two stables": {
			spec:      fields{"http": []any{http("a", append(ours(100, 0), to("stable.shop.svc"))...)}},
			selection: selection{AllMatching: true},
			want:      []string{"2 stable destinations", "the first at spec.http[0].route[0]"}},
		"the only route delegates to another namespace": {
			spec: fields{"http": []any{fields{"name": "root", "delegate": fields{"name": "del", "namespace": "gateway"}}}},
			want: []string{`route http[0] "root"`, "delegates to VirtualService gateway/del", "name that one as virtualService"}},
		"a listed route delegates within the namespace": {
			spec:      fields{"http": []any{fields{"name": "root", "delegate": fields{"name": "del"}}}},
			selection: selection{HTTP: []string{"root"}},
			want:      []string{"delegates to VirtualService shop/del"}},
		"a listed route redirects": {
			spec:      fields{"http": []any{redirect}},
			selection: selection{HTTP: []string{"old"}},
			want:      []string{`route http[0] "old"`, "redirects", "another route under routes"}},
		"a listed route answers itself": {
			spec:      fields{"http": []any{answer}},
			selection: selection{HTTP: []string{"down"}},
			want:      []string{`route http[0] "down"`, "directResponse", "another route under routes"}},
		"a listed route is malformed": {
			spec:      fields{"http": []any{http("a", to("stable", "100"), to("canary"))}},
			selection: selection{HTTP: []string{"a"}},
			want:      []string{`route http[0] "a"`, "malformed", "spec.http[0].route[0].weight: want an integer, found text"}},
		"a foreign destination has a negative weight": {
			spec: fields{"http": []any{http("a", append(ours(100, 0), to("db", weighs(-5)))...)}},
			want: []string{`route http[0] "a"`, "spec.http[0].route[2].weight is -5", "0 or more"}},
		"a foreign destination has a weight beyond int32": {
			spec: fields{"http": []any{http("a", append(ours(100, 0), to("db", weighs(1<<31)))...)}},
			want: []string{"spec.http[0].route[2].weight is 2147483648"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			routes, err := parse(tc.spec).Select(tc.selection, byHosts())
			mention(t, err, append(tc.want, "VirtualService shop/web: ")...)
			if routes != nil {
				t.Errorf("routes beside the error: %s", selected(routes))
			}
		})
	}
}

func TestAnErrorAboutManyRoutesStaysReadable(t *testing.T) {
	var routes []any
	for range 500 {
		routes = append(routes, http("", ours(100, 0)...))
	}
	_, err := parse(fields{"http": routes}).Select(virtualservice.Selection{}, byHosts())
	mention(t, err, "http[19] without a name and 480 more")
	if len(err.Error()) > 1000 {
		t.Errorf("the error has %d characters", len(err.Error()))
	}
}

func TestWhichDestinationsAreOurs(t *testing.T) {
	const none = "-"
	for sentence, tc := range map[string]struct {
		split        virtualservice.Split
		destinations []any
		// want is the indices of stable and canary, or what an error mentions.
		want string
	}{
		// argo-rollouts#1105: full names were rejected, then only the first label compared.
		"short names":               {byHosts(), []any{to("canary"), to("stable")}, "1 0"},
		"names with the namespace":  {byHosts(), []any{to("stable.shop"), to("canary.shop")}, "0 1"},
		"names with svc":            {byHosts(), []any{to("stable.shop.svc"), to("canary.shop.svc")}, "0 1"},
		"full names":                {byHosts(), []any{to("stable.shop.svc.cluster.local"), to("canary.shop.svc.cluster.local")}, "0 1"},
		"mixed forms and cases":     {byHosts(), []any{to("Stable.Shop.svc.cluster.local."), to("CANARY")}, "0 1"},
		"the same name elsewhere":   {byHosts(), []any{to("stable.other.svc.cluster.local"), to("stable"), to("canary.other"), to("canary")}, "1 3"},
		"only the stable elsewhere": {byHosts(), []any{to("stable.other.svc.cluster.local"), to("canary")}, "no stable destination"},
		"a longer first label":      {byHosts(), []any{to("stable-2"), to("canary-2"), to("stable"), to("canary")}, "2 3"},
		"a host without a name":     {byHosts(), []any{to(""), to("stable"), to("canary")}, "1 2"},

		"subsets of our host":                           {bySubsets(), []any{to("web/canary"), to("web/stable")}, "1 0"},
		"the same subsets on another host":              {bySubsets(), []any{to("db/stable"), to("db/canary"), to("web/stable"), to("web/canary")}, "2 3"},
		"the same subset in another namespace":          {bySubsets(), []any{to("web.other.svc/canary"), to("web/stable"), to("web/canary")}, "1 2"},
		"another subset of our host":                    {bySubsets(), []any{to("web/legacy"), to("web/stable"), to("web/canary")}, "1 2"},
		"our host without a subset":                     {bySubsets(), []any{to("web"), to("web/stable"), to("web/canary")}, "1 2"},
		"a subset is compared in its own case":          {bySubsets(), []any{to("web/Stable"), to("web/canary")}, "no stable destination"},
		"a host without a subset cannot stand for ours": {bySubsets(), []any{to("web/stable"), to("web")}, "no canary destination (host web.shop.svc.cluster.local, subset canary)"},

		"by hosts, another subset of the stable host is foreign": {byHosts(), []any{to("stable/legacy"), to("stable"), to("canary")}, "1 2"},
		"by hosts, a fixed subset may stand for the host":        {byHosts(), []any{to("stable/mtls"), to("canary/mtls")}, "0 1"},
		"by hosts, two fixed subsets of a host are not guessed":  {byHosts(), []any{to("stable/a"), to("stable/b"), to("canary")}, "2 stable destinations"},
	} {
		t.Run(sentence, func(t *testing.T) {
			vs := parse(fields{"http": []any{http("x", tc.destinations...)}})
			routes, err := vs.Select(virtualservice.Selection{HTTP: []string{"x"}}, tc.split)
			if err != nil {
				mention(t, err, tc.want)
				return
			}
			patch, _, err := vs.Set(routes, tc.split, virtualservice.Target{Canary: 40})
			if err != nil {
				t.Fatal(err)
			}
			got := map[any]string{int64(60): none, int64(40): none}
			for _, op := range patch {
				got[op.Value] = strings.TrimSuffix(strings.TrimPrefix(op.Path, "/spec/http/0/route/"), "/weight")
			}
			if places := got[int64(60)] + " " + got[int64(40)]; places != tc.want {
				t.Errorf("stable and canary are at %q, want %q", places, tc.want)
			}
		})
	}
}

func TestHostsBelongToTheVirtualServicesNamespace(t *testing.T) {
	// The VirtualService is in shop, the Rollout and its Services are in team.
	split := virtualservice.Split{
		Stable: virtualservice.Side{Host: "stable.team.svc.cluster.local"},
		Canary: virtualservice.Side{Host: "canary.team.svc.cluster.local"},
		Max:    100,
	}
	for sentence, tc := range map[string]struct {
		stable, canary string
		wantErr        string
	}{
		"names with the namespace of the Rollout": {"stable.team", "canary.team.svc", ""},
		"short names mean another namespace":      {"stable", "canary", "no stable destination"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := parse(fields{"http": []any{http("", to(tc.stable), to(tc.canary))}}).Select(virtualservice.Selection{}, split)
			if tc.wantErr != "" {
				mention(t, err, tc.wantErr)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHostsAreCompletedWithTheClusterDomain(t *testing.T) {
	split := byHosts()
	split.ClusterDomain = "corp.example"
	split.Stable.Host, split.Canary.Host = "stable.shop.svc.corp.example", "canary.shop.svc.corp.example"
	vs := parse(fields{"http": []any{http("", to("stable"), to("canary.shop.svc.corp.example"), to("canary.shop.svc.cluster.local"))}})
	if _, err := vs.Select(virtualservice.Selection{}, split); err != nil {
		t.Error(err)
	}
}

func TestASplitMustTellItsSidesApart(t *testing.T) {
	for sentence, tc := range map[string]struct {
		edit func(split *virtualservice.Split)
		want string
	}{
		"no scale":              {func(s *virtualservice.Split) { s.Max = 0 }, "maxTrafficWeight is 0"},
		"a negative scale":      {func(s *virtualservice.Split) { s.Max = -100 }, "maxTrafficWeight is -100"},
		"no canary host":        {func(s *virtualservice.Split) { s.Canary.Host = "" }, "set canaryService and stableService"},
		"no stable host":        {func(s *virtualservice.Split) { s.Stable.Host = "" }, "set canaryService and stableService"},
		"one host twice":        {func(s *virtualservice.Split) { s.Canary = s.Stable }, "must differ in host or in subset"},
		"one host in two forms": {func(s *virtualservice.Split) { s.Canary.Host = "stable.shop" }, "must differ in host or in subset"},
		"a subset on one side":  {func(s *virtualservice.Split) { s.Canary.Subset = "canary" }, "set both canarySubsetName and stableSubsetName"},
	} {
		t.Run(sentence, func(t *testing.T) {
			vs := parse(fields{"http": []any{http("", ours(100, 0)...)}})
			routes, err := vs.Select(virtualservice.Selection{}, byHosts())
			if err != nil {
				t.Fatal(err)
			}
			split := byHosts()
			tc.edit(&split)
			_, err = vs.Select(virtualservice.Selection{}, split)
			mention(t, err, "VirtualService shop/web: ", tc.want)
			_, _, _, err = vs.CanaryWeight(routes, split)
			mention(t, err, tc.want)
			_, _, err = vs.Set(routes, split, virtualservice.Target{})
			mention(t, err, tc.want)
		})
	}
}
