package config

import (
	"strings"
	"testing"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/google/go-cmp/cmp"
)

// faultyCase is a Rollout that must be refused, and everything that must be said about it.
type faultyCase struct {
	block   string
	rollout func(*v1alpha1.Rollout)
	cross   string
	want    []string
}

func checkFaulty(t *testing.T, tests map[string]faultyCase) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ro := aRollout(t, tc.block)
			if tc.rollout != nil {
				tc.rollout(ro)
			}
			_, err := FromRollout(ro, Options{CrossNamespace: crossNamespace(t, tc.cross)})
			if diff := cmp.Diff(tc.want, problems(t, err)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultyVirtualServices(t *testing.T) {
	checkFaulty(t, map[string]faultyCase{
		"neither form is there": {
			block: `guard: {}`,
			want: []string{
				"….virtualService: Required value: name the VirtualService that splits the traffic, or several in virtualServices"},
		},
		"both forms are there": {
			block: `{virtualService: {name: web}, virtualServices: [{name: web}]}`,
			want: []string{
				"….virtualServices: Forbidden: virtualService is there too: keep one of them, all VirtualServices in virtualServices"},
		},
		"the list is empty": {
			block: `virtualServices: []`,
			want:  []string{"….virtualServices: Required value: the list is empty: name at least one VirtualService"},
		},
		"the list is an object": {
			block: `virtualServices: {name: web}`,
			want:  []string{`….virtualServices: Invalid value: must be a list, not an object`},
		},
		"the object is a list": {
			block: `virtualService: [{name: web}]`,
			want:  []string{`….virtualService: Invalid value: must be an object, not a list`},
		},
		"a VirtualService is only a name": {
			block: `virtualServices: [web, {name: other}]`,
			want:  []string{`….virtualServices[0]: Invalid value: "web": must be an object, not a string`},
		},
		"a name is missing in each of two entries": {
			block: `virtualServices: [{}, {routes: [a]}]`,
			want: []string{
				"….virtualServices[0].name: Required value: name the VirtualService",
				"….virtualServices[1].name: Required value: name the VirtualService"},
		},
		"a name is empty": {
			block: `virtualService: {name: ""}`,
			want:  []string{`….virtualService.name: Invalid value: "": is empty: give a value or remove the field`},
		},
		"a name is null, as from a template without its value": {
			block: `virtualService: {name: null}`,
			want:  []string{`….virtualService.name: Invalid value: null: give a string or remove the field`},
		},
		"a name is no DNS name": {
			block: `virtualService: {name: Web_1}`,
			want: []string{`….virtualService.name: Invalid value: "Web_1": cannot be the name of a VirtualService: use at most ` +
				`253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends`},
		},
		"a dotted name is no name.namespace": {
			block: `virtualService: {name: web..shop}`,
			want: []string{`….virtualService.name: Invalid value: "web..shop": is neither a name nor name.namespace: ` +
				`if the dots belong to the name, give the namespace in the field namespace`},
		},
		"a name ends in a dot": {
			block: `virtualService: {name: web.}`,
			want: []string{`….virtualService.name: Invalid value: "web.": is neither a name nor name.namespace: ` +
				`if the dots belong to the name, give the namespace in the field namespace`},
		},
		"a name is too long": {
			block: `virtualService: {name: ` + strings.Repeat("a", 254) + `}`,
			want: []string{`….virtualService.name: Invalid value: "` + strings.Repeat("a", 80) + `… (254 bytes)": cannot be the name of ` +
				`a VirtualService: use at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends`},
		},
		"an explicit namespace is no DNS label": {
			block: `virtualService: {name: web, namespace: a.b}`,
			want: []string{`….virtualService.namespace: Invalid value: "a.b": cannot be the name of a namespace: use at most 63 ` +
				`lower-case letters, digits and '-', with a letter or digit at both ends`},
		},
		"an explicit namespace is empty, and the name is not taken apart for one": {
			block: `virtualService: {name: web.edge, namespace: ""}`,
			want:  []string{`….virtualService.namespace: Invalid value: "": is empty: give a value or remove the field`},
		},
		"the same object is listed twice, once with its namespace in the name": {
			block: `virtualServices: [{name: web, routes: [a]}, {name: other}, {name: web.shop, routes: [b]}]`,
			want: []string{`….virtualServices[2].name: Duplicate value: "shop/web": is the same object as ` +
				`….virtualServices[0]: put all its routes there`},
		},
		"a route is listed twice and another is empty": {
			block: `virtualService: {name: web, routes: [a, b, a, ""]}`,
			want: []string{
				`….virtualService.routes[2]: Duplicate value: "a": is listed already: remove one`,
				`….virtualService.routes[3]: Invalid value: "": is empty: give a value or remove the field`},
		},
		"routes is a string": {
			block: `virtualService: {name: web, routes: primary}`,
			want:  []string{`….virtualService.routes: Invalid value: "primary": must be a list, not a string`},
		},
		"allMatchingRoutes beside a list": {
			block: `virtualService: {name: web, tcpRoutes: [{port: 80}], allMatchingRoutes: true}`,
			want: []string{`….virtualService.allMatchingRoutes: Forbidden: takes every route with both destinations, and routes ` +
				`are listed too: keep one of them`},
		},
		"allMatchingRoutes is a string": {
			block: `virtualService: {name: web, allMatchingRoutes: "true"}`,
			want:  []string{`….virtualService.allMatchingRoutes: Invalid value: "true": must be a boolean, not a string`},
		},
		"tls routes that tell nothing, have a bad port or a bad list": {
			block: `virtualService: {name: web, tlsRoutes: [{}, {sniHosts: []}, {port: 0}, {port: 65536}, {port: 1.5}, {port: "443"}, {sniHosts: a}]}`,
			want: []string{
				`….virtualService.tlsRoutes[0]: Required value: tell the route by port, sniHosts or both`,
				`….virtualService.tlsRoutes[1]: Required value: tell the route by port, sniHosts or both`,
				`….virtualService.tlsRoutes[2].port: Invalid value: 0: must be a whole number from 1 to 65535, the port in the route's match`,
				`….virtualService.tlsRoutes[3].port: Invalid value: 65536: must be a whole number from 1 to 65535, the port in the route's match`,
				`….virtualService.tlsRoutes[4].port: Invalid value: 1.5: must be a whole number from 1 to 65535, the port in the route's match`,
				`….virtualService.tlsRoutes[5].port: Invalid value: "443": must be a number, not a string`,
				`….virtualService.tlsRoutes[6].sniHosts: Invalid value: "a": must be a list, not a string`},
		},
		"tcp routes without, with a bad and with a repeated port": {
			block: `virtualService: {name: web, tcpRoutes: [{}, {port: -1}, {port: 80}, {port: 80}, 80]}`,
			want: []string{
				`….virtualService.tcpRoutes[0].port: Required value: tell the route by the port in its match`,
				`….virtualService.tcpRoutes[1].port: Invalid value: -1: must be a whole number from 1 to 65535, the port in the route's match`,
				`….virtualService.tcpRoutes[3].port: Duplicate value: "80": is listed already: remove one`,
				`….virtualService.tcpRoutes[4]: Invalid value: 80: must be an object, not a number`},
		},
	})
}

func TestRefusedNamespaces(t *testing.T) {
	const remedy = `use one in "shop", or have the operator start the plugin with --allow-cross-namespace=edge`
	checkFaulty(t, map[string]faultyCase{
		"name.namespace in another namespace": {
			block: `virtualService: {name: web.edge}`,
			want:  []string{`….virtualService.name: Forbidden: the Rollout may not change objects in namespace "edge": ` + remedy},
		},
		"an explicit other namespace, where a third one is allowed": {
			block: `virtualService: {name: web, namespace: edge}`,
			cross: "mesh",
			want:  []string{`….virtualService.namespace: Forbidden: the Rollout may not change objects in namespace "edge": ` + remedy},
		},
		"a DestinationRule in another namespace": {
			block: `
virtualService: {name: web}
destinationRule: {name: web, namespace: edge, canarySubsetName: canary, stableSubsetName: stable}`,
			want: []string{`….destinationRule.namespace: Forbidden: the Rollout may not change objects in namespace "edge": ` + remedy},
		},
	})
}

func TestFaultyDestinationRules(t *testing.T) {
	const block = `
virtualService: {name: web}
destinationRule: `
	checkFaulty(t, map[string]faultyCase{
		"it is empty": {
			block: block + `{}`,
			want: []string{
				`….destinationRule.name: Required value: name the DestinationRule that holds the two subsets`,
				`….destinationRule.canarySubsetName: Required value: name the subset that follows the canary pods`,
				`….destinationRule.stableSubsetName: Required value: name the subset that follows the stable pods`},
		},
		"it is null: that does not silently mean host-level, and the Services are not asked for": {
			block:   block + `null`,
			rollout: services("", ""),
			want:    []string{`….destinationRule: Invalid value: null: give an object or remove the field`},
		},
		"one subset has both roles": {
			block: block + `{name: web, canarySubsetName: a, stableSubsetName: a}`,
			want: []string{`….destinationRule.stableSubsetName: Duplicate value: "a": is the canary subset too: ` +
				`give canary and stable a subset each`},
		},
		"both forms are there": {
			block: block + `{name: web, canarySubsetName: c, stableSubsetName: s}
destinationRules: [{name: web, canarySubsetName: c, stableSubsetName: s}]`,
			want: []string{`….destinationRules: Forbidden: destinationRule is there too: keep one of them, all DestinationRules in destinationRules`},
		},
		"the list is empty: that does not silently mean host-level": {
			block:   "virtualService: {name: web}\ndestinationRules: []",
			rollout: services("", ""),
			want:    []string{`….destinationRules: Required value: the list is empty: name at least one DestinationRule, or remove the field for a split by Services`},
		},
		"the list names one object twice, and a faulty one": {
			block: `
virtualService: {name: web}
destinationRules:
- {name: web, canarySubsetName: c, stableSubsetName: s}
- {name: web, namespace: shop, canarySubsetName: c2, stableSubsetName: s2}
- {name: api, canarySubsetName: c}`,
			want: []string{
				`….destinationRules[1].name: Duplicate value: "shop/web": is the same object as ….destinationRules[0]: remove one of them`,
				`….destinationRules[2].stableSubsetName: Required value: name the subset that follows the stable pods`},
		},
		"names have wrong forms": {
			block: block + `{name: WEB, canarySubsetName: -a, stableSubsetName: a.b}`,
			want: []string{
				`….destinationRule.name: Invalid value: "WEB": cannot be the name of a DestinationRule: use at most 253 lower-case letters, ` +
					`digits, '-' and '.', with a letter or digit at both ends`,
				`….destinationRule.canarySubsetName: Invalid value: "-a": cannot be the name of a subset: Istio takes at most 63 ` +
					`letters, digits and '-', with a letter or digit at both ends`,
				`….destinationRule.stableSubsetName: Invalid value: "a.b": cannot be the name of a subset: Istio takes at most 63 ` +
					`letters, digits and '-', with a letter or digit at both ends`},
		},
		"a name ends in a dash": {
			block: block + `{name: web, canarySubsetName: c, stableSubsetName: s-}`,
			want: []string{`….destinationRule.stableSubsetName: Invalid value: "s-": cannot be the name of a subset: Istio takes at most 63 ` +
				`letters, digits and '-', with a letter or digit at both ends`},
		},
		"names are of 64 letters, one too many": {
			block: block + `{name: web, canarySubsetName: ` + strings.Repeat("c", 64) + `, stableSubsetName: ` + strings.Repeat("s", 63) + `}`,
			want: []string{`….destinationRule.canarySubsetName: Invalid value: "` + strings.Repeat("c", 64) + `": cannot be the name of ` +
				`a subset: Istio takes at most 63 letters, digits and '-', with a letter or digit at both ends`},
		},
		"an additional subset without a name is not the missing canary": {
			block: block + `{name: web, stableSubsetName: s, additionalSubsetNames: [""]}`,
			want: []string{
				`….destinationRule.canarySubsetName: Required value: name the subset that follows the canary pods`,
				`….destinationRule.additionalSubsetNames[0]: Invalid value: "": is empty: give a value or remove the field`},
		},
		"an additional subset true is not the subset of that name": {
			block: block + `{name: web, canarySubsetName: "true", stableSubsetName: s, additionalSubsetNames: [true]}`,
			want:  []string{`….destinationRule.additionalSubsetNames[0]: Invalid value: true: must be a string, not a boolean`},
		},
		"the additional subsets are no list": {
			block: block + `{name: web, canarySubsetName: c, stableSubsetName: s, additionalSubsetNames: c}`,
			want:  []string{`….destinationRule.additionalSubsetNames: Invalid value: "c": must be a list, not a string`},
		},
		"the additional subsets repeat ours and themselves": {
			block: block + `{name: web, canarySubsetName: c, stableSubsetName: s, additionalSubsetNames: [x, c, x, s]}`,
			want: []string{
				`….destinationRule.additionalSubsetNames[2]: Duplicate value: "x": is listed already: remove one`,
				`….destinationRule.additionalSubsetNames[1]: Invalid value: "c": is the canary or stable subset, which the Rollout controls: remove it here`,
				`….destinationRule.additionalSubsetNames[3]: Invalid value: "s": is the canary or stable subset, which the Rollout controls: remove it here`},
		},
	})
}

func TestFaultyServices(t *testing.T) {
	const block = `virtualService: {name: web}`
	const rest = ` pods, as the routing is host-level; for subset-level routing add destinationRule`
	checkFaulty(t, map[string]faultyCase{
		"host-level without Services, which the controller does not check for plugins": {
			block:   block,
			rollout: services("", ""),
			want: []string{
				`spec.strategy.canary.canaryService: Required value: name the Service of the canary` + rest,
				`spec.strategy.canary.stableService: Required value: name the Service of the stable` + rest},
		},
		"host-level with one Service only": {
			block:   block,
			rollout: services("web-canary", ""),
			want:    []string{`spec.strategy.canary.stableService: Required value: name the Service of the stable` + rest},
		},
		"host-level with one Service for both sides": {
			block:   block,
			rollout: services("web", "web"),
			want: []string{`spec.strategy.canary.stableService: Duplicate value: "web": is canaryService too: host-level routing ` +
				`needs a Service each; for one host with two subsets add destinationRule`},
		},
		"a Service is given as a host": {
			block:   block,
			rollout: services("web-canary.shop", "web-stable"),
			want: []string{`spec.strategy.canary.canaryService: Invalid value: "web-canary.shop": cannot be the name of a Service: ` +
				`use at most 63 lower-case letters, digits and '-', with a letter or digit at both ends`},
		},
		"ping-pong lacks pong": {
			block:   block,
			rollout: func(ro *v1alpha1.Rollout) { services("", "")(ro); pingPong("ping", "", "")(ro) },
			want:    []string{`spec.strategy.canary.pingPong.pongService: Required value: name the Service of the pong` + rest},
		},
		"ping is pong": {
			block:   block,
			rollout: func(ro *v1alpha1.Rollout) { services("", "")(ro); pingPong("ping", "ping", "")(ro) },
			want:    []string{`spec.strategy.canary.pingPong.pongService: Duplicate value: "ping": is pingService too: give each a Service`},
		},
	})
}

func TestUnknownFields(t *testing.T) {
	const block = "Known here: virtualService, virtualServices, destinationRule, destinationRules, guard, verify, healthGate"
	const vs = "Known here: name, namespace, routes, tlsRoutes, tcpRoutes, allMatchingRoutes"
	checkFaulty(t, map[string]faultyCase{
		"a slip of the keyboard": {
			block: `virtualService: {name: web, rotues: [a]}`,
			want:  []string{`….virtualService.rotues: Forbidden: unknown field: did you mean routes? ` + vs},
		},
		"another case": {
			block: `virtualService: {Name: web}`,
			want: []string{
				`….virtualService.Name: Forbidden: unknown field: did you mean name? ` + vs,
				`….virtualService.name: Required value: name the VirtualService`},
		},
		"a field that is nothing like ours": {
			block: `{virtualService: {name: web}, weightUpdateDelaySeconds: 5}`,
			want:  []string{`….weightUpdateDelaySeconds: Forbidden: unknown field: remove it. ` + block},
		},
		"fields under a forgotten indentation": {
			block: `{virtualService: {name: web}, destinationRule: null, canarySubsetName: c}`,
			want: []string{
				`….canarySubsetName: Forbidden: unknown field: remove it. ` + block,
				`….destinationRule: Invalid value: null: give an object or remove the field`},
		},
		"the native block moved with its name": {
			block: `istio: {virtualService: {name: web}}`,
			want: []string{
				`….istio: Forbidden: unknown field: move what is inside it one level up. ` + block,
				`….virtualService: Required value: name the VirtualService that splits the traffic, or several in virtualServices`},
		},
		"a name that would break the path": {
			block: `virtualService: {name: web, "a.b[0]\n": 1}`,
			want:  []string{`….virtualService."a.b[0]\n": Forbidden: unknown field: remove it. ` + vs},
		},
		"unknown fields at every level, all reported": {
			block: `
virtualService: {name: web, x: 1, tlsRoutes: [{port: 1, hosts: []}], tcpRoutes: [{port: 1, name: a}]}
destinationRule: {name: web, canarySubset: c, stableSubsetName: s}
guard: {minraise: 5}`,
			want: []string{
				`….virtualService.x: Forbidden: unknown field: remove it. ` + vs,
				`….virtualService.tlsRoutes[0].hosts: Forbidden: unknown field: remove it. Known here: port, sniHosts`,
				`….virtualService.tcpRoutes[0].name: Forbidden: unknown field: remove it. Known here: port`,
				`….destinationRule.canarySubset: Forbidden: unknown field: did you mean canarySubsetName? Known here: name, namespace, ` +
					`canarySubsetName, stableSubsetName, additionalSubsetNames`,
				`….destinationRule.canarySubsetName: Required value: name the subset that follows the canary pods`,
				`….guard.minraise: Forbidden: unknown field: did you mean minRaise? Known here: mode, minRaise, settle, maxHold`},
		},
	})
}

func TestWhatLiesAroundTheBlock(t *testing.T) {
	const block = `virtualService: {name: web}`
	routing := func(change func(*v1alpha1.RolloutTrafficRouting)) func(*v1alpha1.Rollout) {
		return func(ro *v1alpha1.Rollout) { change(ro.Spec.Strategy.Canary.TrafficRouting) }
	}
	const missing = `spec.strategy.canary.trafficRouting.plugins["argoproj-labs/istio"]`
	checkFaulty(t, map[string]faultyCase{
		"another strategy": {
			block:   block,
			rollout: func(ro *v1alpha1.Rollout) { ro.Spec.Strategy.Canary = nil },
			want:    []string{`spec.strategy.canary: Required value: only a canary strategy has traffic routing`},
		},
		"no traffic routing": {
			block:   block,
			rollout: func(ro *v1alpha1.Rollout) { ro.Spec.Strategy.Canary.TrafficRouting = nil },
			want:    []string{`spec.strategy.canary.trafficRouting: Required value: add plugins with this plugin's configuration`},
		},
		"no namespace": {
			block:   block,
			rollout: func(ro *v1alpha1.Rollout) { ro.Namespace = "" },
			want:    []string{`metadata.namespace: Required value: a Rollout without a namespace cannot be handled`},
		},
		"the native block is still there": {
			block:   block,
			rollout: routing(func(r *v1alpha1.RolloutTrafficRouting) { r.Istio = &v1alpha1.IstioTrafficRouting{} }),
			want: []string{`spec.strategy.canary.trafficRouting.istio: Forbidden: the native router and this plugin would both ` +
				`write the same objects: move the block under plugins and remove it here`},
		},
		"maxTrafficWeight is no weight": {
			block:   block,
			rollout: maxTrafficWeight(0),
			want: []string{`spec.strategy.canary.trafficRouting.maxTrafficWeight: Invalid value: 0: must be at least 1: ` +
				`remove the field for 100, or write 1000 for tenths of a percent`},
		},
		"no plugin entry at all, and the native block still there": {
			block: block,
			rollout: routing(func(r *v1alpha1.RolloutTrafficRouting) {
				r.Plugins, r.Istio = nil, &v1alpha1.IstioTrafficRouting{}
			}),
			want: []string{
				`spec.strategy.canary.trafficRouting.istio: Forbidden: the native router and this plugin would both ` +
					`write the same objects: move the block under plugins and remove it here`,
				shorten(missing) + `: Required value: put the plugin's configuration under this key, or name the right one with ` +
					`the plugin's flag --plugin-name; there is no entry at all`},
		},
	})
}
