package virtualservice_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// header is a header route for requests with x-canary: yes.
func header(name string) virtualservice.ManagedRoute {
	return virtualservice.ManagedRoute{Name: name, Header: []virtualservice.HeaderMatch{
		{Name: "x-canary", Value: virtualservice.StringMatch{Exact: "yes"}}}}
}

// mirror is a mirror route for all GET requests.
func mirror(name string, percentage int32) virtualservice.ManagedRoute {
	return virtualservice.ManagedRoute{Name: name, Mirror: &virtualservice.Mirror{
		Percentage: percentage, Match: []virtualservice.MirrorMatch{{Method: &virtualservice.StringMatch{Exact: "GET"}}}}}
}

// managedNames are the names of managedRoutes in the tests.
var managedNames = []string{"hdr", "mir", "other-hdr"}

func wants(canary int32, managed ...virtualservice.ManagedRoute) virtualservice.Target {
	return virtualservice.Target{Owner: owner, Canary: canary, Managed: managed, ManagedNames: managedNames}
}

func httpOf(u *unstructured.Unstructured) []any {
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "http")
	return list
}

func TestManagedRoutes(t *testing.T) {
	for sentence, tc := range map[string]struct {
		split  virtualservice.Split
		target virtualservice.Target
		before string
		want   string
	}{
		"a header route stands before its source and has all of its fields": { // argo-rollouts#2266
			split: byHosts(), target: wants(10, header("hdr")),
			before: `
- name: primary
  match: [{uri: {prefix: /api}, withoutHeaders: {x-internal: {}}, sourceLabels: {app: front}, gateways: [mesh], name: m}]
  retries: {attempts: 3}
  timeout: 10s
  corsPolicy: {maxAge: 24h0m0s}
  headers: {request: {set: {a: b}}}
  fault: {abort: {percentage: {value: 0.1}}}
  rewrite: {uri: /}
  mirrors: [{destination: {host: shadow}}]
  futureField: {a: 1, b: [null, 1.5]}
  route:
  - {destination: {host: stable, port: {number: 8080}}, weight: 100}
  - {destination: {host: canary.shop, port: {number: 8080}, futureField: 1}, weight: 0, headers: {response: {add: {x: y}}}}
`, want: `
- name: hdr
  match: [{uri: {prefix: /api}, withoutHeaders: {x-internal: {}}, sourceLabels: {app: front}, gateways: [mesh], name: m, headers: {x-canary: {exact: "yes"}}}]
  retries: {attempts: 3}
  timeout: 10s
  corsPolicy: {maxAge: 24h0m0s}
  headers: {request: {set: {a: b}}}
  fault: {abort: {percentage: {value: 0.1}}}
  rewrite: {uri: /}
  mirrors: [{destination: {host: shadow}}]
  futureField: {a: 1, b: [null, 1.5]}
  route:
  - {destination: {host: canary.shop, port: {number: 8080}, futureField: 1}, weight: 100, headers: {response: {add: {x: y}}}}
- name: primary
  match: [{uri: {prefix: /api}, withoutHeaders: {x-internal: {}}, sourceLabels: {app: front}, gateways: [mesh], name: m}]
  retries: {attempts: 3}
  timeout: 10s
  corsPolicy: {maxAge: 24h0m0s}
  headers: {request: {set: {a: b}}}
  fault: {abort: {percentage: {value: 0.1}}}
  rewrite: {uri: /}
  mirrors: [{destination: {host: shadow}}]
  futureField: {a: 1, b: [null, 1.5]}
  route:
  - {destination: {host: stable, port: {number: 8080}}, weight: 90}
  - {destination: {host: canary.shop, port: {number: 8080}, futureField: 1}, weight: 10, headers: {response: {add: {x: y}}}}
`},
		"one before each source, and none before a foreign route": { // argo-rollouts#3879
			split: byHosts(), target: wants(0, header("hdr")),
			before: `
- {match: [{uri: {prefix: /x}}], route: [{destination: {host: other}}]}
- {name: v1, match: [{uri: {prefix: /v1}}], route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
- {name: v2, match: [{uri: {prefix: /v2}, method: {exact: GET}}], route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`, want: `
- {match: [{uri: {prefix: /x}}], route: [{destination: {host: other}}]}
- {name: hdr, match: [{uri: {prefix: /v1}, headers: {x-canary: {exact: "yes"}}}], route: [{destination: {host: canary}, weight: 100}]}
- {name: v1, match: [{uri: {prefix: /v1}}], route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
- {name: hdr, match: [{uri: {prefix: /v2}, method: {exact: GET}, headers: {x-canary: {exact: "yes"}}}], route: [{destination: {host: canary}, weight: 100}]}
- {name: v2, match: [{uri: {prefix: /v2}, method: {exact: GET}}], route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`},
		"a mirror route has the weights that its source will have": { // Gateway API plugin #158
			split: bySubsets(), target: wants(30, mirror("mir", 50)),
			before: `
- name: primary
  route:
  - {destination: {host: web, subset: stable, port: {number: 8080}}, weight: 80}
  - {destination: {host: web, subset: canary, port: {number: 9090}}, weight: 0}
  - {destination: {host: legacy}, weight: 20}
`, want: `
- name: mir
  match: [{method: {exact: GET}}]
  mirror: {host: web, subset: canary, port: {number: 9090}}
  mirrorPercentage: {value: 50}
  route:
  - {destination: {host: web, subset: stable, port: {number: 8080}}, weight: 56}
  - {destination: {host: web, subset: canary, port: {number: 9090}}, weight: 24}
  - {destination: {host: legacy}, weight: 20}
- name: primary
  route:
  - {destination: {host: web, subset: stable, port: {number: 8080}}, weight: 56}
  - {destination: {host: web, subset: canary, port: {number: 9090}}, weight: 24}
  - {destination: {host: legacy}, weight: 20}
`},
		"a mirror route of a source with one mirror has both, a percentage of 0 is written": {
			split: byHosts(), target: wants(0, mirror("mir", 0)),
			before: `
- {mirror: {host: shadow}, mirrorPercentage: {value: 12.5}, route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`, want: `
- name: mir
  match: [{method: {exact: GET}}]
  mirrors: [{destination: {host: shadow}, percentage: {value: 12.5}}, {destination: {host: canary}, percentage: {value: 0}}]
  route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]
- {mirror: {host: shadow}, mirrorPercentage: {value: 12.5}, route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`},
		"a deprecated percentage becomes one in the list": {
			split: byHosts(), target: wants(0, mirror("mir", 100)),
			before: `
- {mirror: {host: shadow}, mirror_percent: 7, route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`, want: `
- name: mir
  match: [{method: {exact: GET}}]
  mirrors: [{destination: {host: shadow}, percentage: {value: 7}}, {destination: {host: canary}, percentage: {value: 100}}]
  route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]
- {mirror: {host: shadow}, mirror_percent: 7, route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`},
		"a mirror without a percentage copies everything, as before": {
			split: byHosts(), target: wants(0, mirror("mir", 1)),
			before: `
- {mirror: {host: shadow}, mirrors: [], mirrorPercent: null, route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`, want: `
- name: mir
  match: [{method: {exact: GET}}]
  mirrors: [{destination: {host: shadow}}, {destination: {host: canary}, percentage: {value: 1}}]
  route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]
- {mirror: {host: shadow}, mirrors: [], mirrorPercent: null, route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`},
		"a list of mirrors gets one more": {
			split: byHosts(), target: wants(0, mirror("mir", 100)),
			before: `
- {mirrors: [{destination: {host: a}, percentage: {value: 1}, futureField: 1}, {destination: {host: b}}], route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`, want: `
- name: mir
  match: [{method: {exact: GET}}]
  mirrors: [{destination: {host: a}, percentage: {value: 1}, futureField: 1}, {destination: {host: b}}, {destination: {host: canary}, percentage: {value: 100}}]
  route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]
- {mirrors: [{destination: {host: a}, percentage: {value: 1}, futureField: 1}, {destination: {host: b}}], route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`},
		"an empty list of mirrors is none": {
			split: byHosts(), target: wants(0, mirror("mir", 100)),
			before: `
- {mirrors: [], mirrorPercentage: {value: 3}, route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`, want: `
- name: mir
  match: [{method: {exact: GET}}]
  mirror: {host: canary}
  mirrorPercentage: {value: 100}
  route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]
- {mirrors: [], mirrorPercentage: {value: 3}, route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`},
		"several in their order": {
			split: byHosts(), target: wants(0, mirror("mir", 100), header("hdr")),
			before: `
- {route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`, want: `
- {name: mir, match: [{method: {exact: GET}}], mirror: {host: canary}, mirrorPercentage: {value: 100}, route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
- {name: hdr, match: [{headers: {x-canary: {exact: "yes"}}}], route: [{destination: {host: canary}, weight: 100}]}
- {route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`},
		"what has another order, is doubled, edited, not wanted or elsewhere is put right": { // argo-rollouts#2526
			split: byHosts(), target: wants(100, header("hdr"), mirror("mir", 100)),
			before: `
- {name: hdr, match: [{headers: {x-canary: {exact: "yes"}}}], route: [{destination: {host: canary}, weight: 100}]}
- {name: far, delegate: {name: del}}
- {name: mir, route: [{destination: {host: canary}}]}
- {name: hdr, match: [{headers: {x-canary: {exact: edited}}}], route: [{destination: {host: canary}, weight: 7}]}
- {name: hdr, match: [{headers: {x-canary: {exact: "yes"}}}], route: [{destination: {host: canary}, weight: 100}]}
- {name: other-hdr, redirect: {uri: /}}
- {route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
- {redirect: {uri: /new}}
- {name: mir, delegate: {name: x}}
`, want: `
- {name: far, delegate: {name: del}}
- {name: hdr, match: [{headers: {x-canary: {exact: "yes"}}}], route: [{destination: {host: canary}, weight: 100}]}
- {name: mir, match: [{method: {exact: GET}}], mirror: {host: canary}, mirrorPercentage: {value: 100}, route: [{destination: {host: stable}, weight: 0}, {destination: {host: canary}, weight: 100}]}
- {route: [{destination: {host: stable}, weight: 0}, {destination: {host: canary}, weight: 100}]}
- {redirect: {uri: /new}}
`},
		"all go when none is wanted, and nothing else does": { // argo-rollouts#2526
			split: byHosts(), target: wants(0),
			before: `
- {name: far, delegate: {name: del}}
- {name: hdr, route: [{destination: {host: canary}, weight: 100}]}
- {match: [{uri: {exact: /old}}], redirect: {uri: /new}}
- {name: mir, mirror: {host: canary}, route: [{destination: {host: stable}, weight: 70}, {destination: {host: canary}, weight: 30}]}
- {name: primary, match: [{withoutHeaders: {x: {}}}], route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}, weight: 0}]}
- {name: hdr}
`, want: `
- {name: far, delegate: {name: del}}
- {match: [{uri: {exact: /old}}], redirect: {uri: /new}}
- {name: primary, match: [{withoutHeaders: {x: {}}}], route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}, weight: 0}]}
`},
		"an experiment is in the mirror route as in its source": {
			split: with(byHosts(), service("exp-a"), service("exp-b")),
			target: virtualservice.Target{Owner: owner, Canary: 10, Managed: []virtualservice.ManagedRoute{mirror("mir", 100)}, ManagedNames: managedNames,
				Experiments: []virtualservice.Experiment{experiment("exp-a", 5)}},
			before: `
- route: [{destination: {host: stable, port: {number: 80}}, weight: 95}, {destination: {host: exp-b}, weight: 5}, {destination: {host: canary}}]
`, want: `
- name: mir
  match: [{method: {exact: GET}}]
  mirror: {host: canary}
  mirrorPercentage: {value: 100}
  route:
  - {destination: {host: stable, port: {number: 80}}, weight: 85}
  - {destination: {host: canary}, weight: 10}
  - {destination: {host: exp-a.shop.svc.cluster.local, port: {number: 80}}, weight: 5}
- route:
  - {destination: {host: stable, port: {number: 80}}, weight: 85}
  - {destination: {host: canary}, weight: 10}
  - {destination: {host: exp-a.shop.svc.cluster.local, port: {number: 80}}, weight: 5}
`},
		"a route that the step cannot concern has none": {
			split: byHosts(), target: wants(0, virtualservice.ManagedRoute{Name: "mir", Mirror: &virtualservice.Mirror{
				Match: []virtualservice.MirrorMatch{{Path: &virtualservice.StringMatch{Prefix: "/v1/cart"}}}, Percentage: 100}}),
			before: `
- {match: [{uri: {prefix: /v1}}, {uri: {exact: /v2}}], route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
- {match: [{uri: {prefix: /v2}}], route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`, want: `
- {name: mir, match: [{uri: {prefix: /v1/cart}}], mirror: {host: canary}, mirrorPercentage: {value: 100}, route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
- {match: [{uri: {prefix: /v1}}, {uri: {exact: /v2}}], route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
- {match: [{uri: {prefix: /v2}}], route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}
`},
	} {
		t.Run(sentence, func(t *testing.T) {
			u := virtualService(fields{"http": listed(t, tc.before)})
			after, _ := reach(t, u, tc.split, tc.target)
			if diff := cmp.Diff(listed(t, tc.want), httpOf(after)); diff != "" {
				t.Errorf("http (-want +got):\n%s", diff)
			}
		})
	}
}

// A header route keeps its canary whatever the weight: beside it everything went
// to a destination of weight 0 (Gateway API plugin #158, argo-rollouts#3141).
func TestAHeaderRouteKeepsItsWeight(t *testing.T) {
	u := virtualService(one(ours(100, 0)...))
	for _, canary := range []int32{0, 10, 100, 0} {
		u, _ = reach(t, u, byHosts(), wants(canary, header("hdr")))
		want := listed(t, `- {name: hdr, match: [{headers: {x-canary: {exact: "yes"}}}], route: [{destination: {host: canary}, weight: 100}]}`)
		if diff := cmp.Diff(want, httpOf(u)[:1]); diff != "" {
			t.Errorf("at %d (-want +got):\n%s", canary, diff)
		}
	}
}

func TestManagedRoutesAndTLS(t *testing.T) {
	tlsRoute := tls([]string{"443 a"}, ours(100, 0)...)
	t.Run("a tls route alone has no place for one", func(t *testing.T) {
		_, _, err := setTarget(virtualService(fields{"tls": []any{tlsRoute}}), virtualservice.Selection{}, byHosts(), wants(0, header("hdr")))
		mention(t, err, "VirtualService shop/web: ", `managed route "hdr": it has no place here: no http route was selected that it could stand before`, "list one under routes, or remove the step")
	})
	t.Run("one that was left behind goes, whatever else is handled", func(t *testing.T) { // argo-rollouts#2501
		after, _ := reach(t, virtualService(fields{"tls": []any{tlsRoute}, "http": []any{http("hdr", to("canary")), http("x", foreign()...)}}), byHosts(), wants(10))
		if diff := cmp.Diff("http 100; tls 90 10", weights(after)); diff != "" {
			t.Errorf("weights (-want +got):\n%s", diff)
		}
	})
	t.Run("http has it and tls moves along", func(t *testing.T) {
		after, _ := reach(t, virtualService(fields{"tls": []any{tlsRoute}, "http": []any{http("x", ours(100, 0)...)}}), byHosts(), wants(10, header("hdr")))
		if diff := cmp.Diff("http 100 | 90 10; tls 90 10", weights(after)); diff != "" {
			t.Errorf("weights (-want +got):\n%s", diff)
		}
	})
}

func TestChangesOfManagedRoutesAreTold(t *testing.T) {
	u := virtualService(fields{"http": listed(t, `
- {name: mir}
- {name: primary, route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}, weight: 0}]}
- {name: b, route: [{destination: {host: stable}, weight: 90}, {destination: {host: canary}, weight: 10}]}
- {name: hdr}
`)})
	_, changes := reach(t, u, byHosts(), wants(10, header("hdr"), mirror("mir", 100)))
	want := []string{
		`http[1] "primary" 100/0 -> 90/10`,
		`managed route "hdr" added before http[1] "primary"`,
		`managed route "mir" changed before http[1] "primary"`,
		`managed route "hdr" added before http[2] "b"`,
		`managed route "mir" added before http[2] "b"`,
		`managed route "hdr" removed from http[3]`,
	}
	if diff := cmp.Diff(want, texts(changes)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// Every index in a patch has to be right at its turn: what keeps its place comes
// first, then removals from the end, then insertions from the front.
func TestTheOrderOfAPatch(t *testing.T) {
	u := virtualService(fields{"http": listed(t, `
- {name: hdr}
- {name: a, route: [{destination: {host: db}}]}
- {name: mir}
- {name: hdr}
- {name: b, route: [{destination: {host: exp-b}}, {destination: {host: stable}, weight: 100}, {destination: {host: exp-b}}, {destination: {host: canary}, weight: 0}]}
- {name: c, route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}, weight: 0}]}
`)})
	target := wants(10, header("hdr"), mirror("mir", 100))
	target.Experiments = []virtualservice.Experiment{experiment("exp-a", 0)}
	split := with(byHosts(), service("exp-a"), service("exp-b"))
	patch, _, err := setTarget(u, virtualservice.Selection{AllMatching: true, Managed: managedNames}, split, target)
	if err != nil {
		t.Fatal(err)
	}
	reach(t, u, split, target)
	var got []string
	for _, op := range patch {
		got = append(got, op.Op+" "+op.Path)
	}
	want := []string{
		"add /spec/http/4/route/1/weight", "add /spec/http/4/route/3/weight",
		"add /spec/http/5/route/0/weight", "add /spec/http/5/route/1/weight",
		"remove /spec/http/4/route/2", "remove /spec/http/4/route/0",
		"add /spec/http/4/route/-", "add /spec/http/5/route/-",
		"replace /spec/http/3",
		"remove /spec/http/2", "remove /spec/http/0",
		"add /spec/http/2", "add /spec/http/4", "add /spec/http/5",
		"add /metadata/annotations",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

func TestManagedRoutesThatAreRefused(t *testing.T) {
	both := header("hdr")
	both.Mirror = mirror("x", 1).Mirror
	twoForms := virtualservice.StringMatch{Exact: "a", Prefix: "b"}
	for sentence, tc := range map[string]struct {
		managed []virtualservice.ManagedRoute
		want    []string
	}{
		"no name":                  {[]virtualservice.ManagedRoute{header("")}, []string{"no name"}},
		"a name that is not ours":  {[]virtualservice.ManagedRoute{header("x")}, []string{`managed route "x"`, "not in managedRoutes: add it there"}},
		"twice":                    {[]virtualservice.ManagedRoute{header("hdr"), mirror("hdr", 1)}, []string{`managed route "hdr" is wanted twice`}},
		"neither kind":             {[]virtualservice.ManagedRoute{{Name: "hdr"}}, []string{"either a header route or a mirror route"}},
		"both kinds":               {[]virtualservice.ManagedRoute{both}, []string{"either a header route or a mirror route"}},
		"a mirror without a match": {[]virtualservice.ManagedRoute{{Name: "mir", Mirror: &virtualservice.Mirror{}}}, []string{`"mir"`, "no match: add one"}},
		"more than everything":     {[]virtualservice.ManagedRoute{mirror("mir", 101)}, []string{"percentage 101 is outside 0..100"}},
		"less than nothing":        {[]virtualservice.ManagedRoute{mirror("mir", -1)}, []string{"percentage -1 is outside 0..100"}},
		"a header in two forms": {[]virtualservice.ManagedRoute{{Name: "hdr", Header: []virtualservice.HeaderMatch{{Name: "x", Value: twoForms}}}},
			[]string{`managed route "hdr"`, `header "x"`, `exact "a" and prefix "b": keep one`}},
		"a path in two forms": {[]virtualservice.ManagedRoute{{Name: "mir", Mirror: &virtualservice.Mirror{Match: []virtualservice.MirrorMatch{{Path: &twoForms}}}}},
			[]string{`managed route "mir"`, "uri", "keep one"}},
		"a header without a name": {[]virtualservice.ManagedRoute{{Name: "hdr", Header: []virtualservice.HeaderMatch{{}}}}, []string{`header ""`, "no name"}},
		"a mirrored header without a name": {[]virtualservice.ManagedRoute{{Name: "mir", Mirror: &virtualservice.Mirror{
			Match: []virtualservice.MirrorMatch{{Headers: map[string]virtualservice.StringMatch{"": {}}}}}}}, []string{`header ""`, "no name"}},
		"a mirrored header in two forms": {[]virtualservice.ManagedRoute{{Name: "mir", Mirror: &virtualservice.Mirror{
			Match: []virtualservice.MirrorMatch{{Headers: map[string]virtualservice.StringMatch{"x": twoForms}}}}}}, []string{`header "x"`, "keep one"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			patch, changes, err := setTarget(virtualService(one(ours(100, 0)...)), virtualservice.Selection{}, byHosts(), wants(0, tc.managed...))
			mention(t, err, append(tc.want, "VirtualService shop/web: ")...)
			if patch != nil || changes != nil {
				t.Errorf("patch %v and changes %v beside the error", patch, changes)
			}
		})
	}
}

func TestAManagedRouteIsNoSource(t *testing.T) {
	vs := parse(fields{"http": []any{http("hdr", ours(100, 0)...)}})
	patch, _, err := vs.Set(vs.HTTP, byHosts(), wants(10))
	mention(t, err, `route http[0] "hdr" is to be handled and is listed under managedRoutes`, "remove it from one of them")
	if patch != nil {
		t.Errorf("patch %v beside the error", patch)
	}
}

func TestSourcesThatCannotBeRead(t *testing.T) {
	for sentence, tc := range map[string]struct {
		route string
		want  string
	}{
		"a match that is text":   {`match: x`, "match: "},
		"a block that is text":   {`match: [x]`, "match: "},
		"headers that are text":  {`match: [{headers: x}]`, "match[0].headers: "},
		"a header that is text":  {`match: [{headers: {x-canary: x}}]`, `match[0].headers["x-canary"]: `},
		"a header in two forms":  {`match: [{headers: {x-canary: {exact: a, prefix: b}}}]`, "more than one of exact, prefix and regex"},
		"a header of a new form": {`match: [{headers: {x-canary: {suffix: a}}}]`, `the field "suffix" is not known`},
		"a rewrite that is text": {`rewrite: x`, "rewrite: "},
		"a rewrite to a number":  {`rewrite: {uri: 1}`, "uri: "},
		"mirrors that are text":  {`mirrors: x`, "mirrors: "},
	} {
		t.Run(sentence, func(t *testing.T) {
			list := listed(t, "- {name: primary, "+tc.route+", route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}}]}")
			for _, managed := range []virtualservice.ManagedRoute{header("hdr"), mirror("mir", 1)} {
				if managed.Mirror == nil {
					managed.Header[0].Value = virtualservice.StringMatch{Exact: "a"}
				} else {
					managed.Mirror.Match[0].Headers = map[string]virtualservice.StringMatch{"X-Canary": {Exact: "a"}}
				}
				patch, _, err := setTarget(virtualService(fields{"http": list}), virtualservice.Selection{}, byHosts(), wants(0, managed))
				if tc.want == "mirrors: " && managed.Mirror == nil {
					continue // a header route takes them along as they are
				}
				mention(t, err, `managed route "`+managed.Name+`" before http[0] "primary": `, tc.want)
				if patch != nil {
					t.Errorf("patch %v beside the error", patch)
				}
			}
		})
	}
}

func TestRemoveManaged(t *testing.T) {
	u := virtualService(fields{"http": listed(t, `
- {name: hdr, route: [{destination: {host: canary}}]}
- {name: far, delegate: {name: del}}
- {name: ""}
- {name: mir}
- {name: hdr}
`), "tls": []any{tls([]string{"443 a"}, ours(100, 0)...)}})
	patch, changes, err := virtualservice.Parse(u, manager).RemoveManaged([]string{"hdr", "mir", ""})
	if err != nil {
		t.Fatal(err)
	}
	after := apply(t, u, patch)
	want := u.DeepCopy()
	want.Object["spec"].(fields)["http"] = listed(t, "- {name: far, delegate: {name: del}}\n- {name: ''}")
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`managed route "hdr" removed from http[0]`, `managed route "mir" removed from http[3]`, `managed route "hdr" removed from http[4]`}, texts(changes)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if patch, changes, err := virtualservice.Parse(after, manager).RemoveManaged([]string{"hdr", "mir"}); err != nil || len(patch) != 0 || len(changes) != 0 {
		t.Errorf("the second time: patch %v, changes %v, error %v", patch, changes, err)
	}
	_, _, err = parse("x").RemoveManaged([]string{"hdr"})
	mention(t, err, "VirtualService shop/web: ", "malformed")
}

// Routes of another object are an error in the program, but no reason to panic.
func TestRoutesWithTheRawOfOthers(t *testing.T) {
	for want, raw := range map[string]string{
		"the route cannot be read":                `x`,
		"route: 0 entries where 2 have been read": `{}`,
	} {
		vs := parse(one(ours(100, 0)...))
		vs.HTTP[0].Raw = []byte(raw)
		_, _, err := vs.Set(vs.HTTP, byHosts(), wants(10, header("hdr")))
		mention(t, err, `managed route "hdr" before http[0] "primary": `, want)
	}
}
