package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const blockPath = `spec.strategy.canary.trafficRouting.plugins["argoproj-labs/istio"]`

// shorten makes the expected texts of the tables readable; TestErrorNamesTheRolloutAndTheFullPath holds the whole.
func shorten(problem string) string { return strings.ReplaceAll(problem, blockPath, "…") }

// hostLevel is the smallest valid configuration's result, changed as a case needs.
func hostLevel(changes ...func(*Config)) Config {
	cfg := Config{
		PluginName:      DefaultPluginName,
		VirtualServices: []VirtualService{{Namespace: "shop", Name: "web"}},
		CanaryService:   "web-canary",
		StableService:   "web-stable",
		Guard:           Guard{Mode: Enforce, MinRaise: 5, Settle: time.Second, MaxHold: 600 * time.Second},
		Verify:          Verify{Level: Object, OnUnavailable: Proceed},
	}
	for _, change := range changes {
		change(&cfg)
	}
	return cfg
}

func virtualService(vs ...VirtualService) func(*Config) {
	return func(c *Config) { c.VirtualServices = vs }
}

func guardWith(change func(*Guard)) func(*Config) { return func(c *Config) { change(&c.Guard) } }

func crossNamespace(t testing.TB, flag string) CrossNamespace {
	t.Helper()
	x, err := ParseCrossNamespace(flag)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestValidConfigurations(t *testing.T) {
	subsets := []DestinationRule{{Namespace: "shop", Name: "web", CanarySubsetName: "canary", StableSubsetName: "stable"}}
	tests := map[string]struct {
		block   string
		rollout func(*v1alpha1.Rollout)
		cross   string
		want    Config
	}{
		"one VirtualService and two Services are host-level routing with all defaults": {
			block: `virtualService: {name: web}`,
			want:  hostLevel(),
		},
		"a destinationRule makes it subset-level, and Services are then not needed": {
			block: `
virtualService: {name: web, routes: [primary]}
destinationRule: {name: web, canarySubsetName: canary, stableSubsetName: stable}`,
			rollout: services("", ""),
			want: hostLevel(virtualService(VirtualService{Namespace: "shop", Name: "web", Routes: []string{"primary"}}),
				func(c *Config) { c.DestinationRules, c.CanaryService, c.StableService = subsets, "", "" }),
		},
		"subset-level routing keeps the Services where native does": {
			block: `
virtualService: {name: web}
destinationRule: {name: web, canarySubsetName: canary, stableSubsetName: stable}`,
			want: hostLevel(func(c *Config) { c.DestinationRules = subsets }),
		},
		"subset-level routing on one Service for both sides is no fault": {
			block: `
virtualService: {name: web}
destinationRule: {name: web, canarySubsetName: canary, stableSubsetName: stable}`,
			rollout: services("web", "web"),
			want: hostLevel(func(c *Config) {
				c.DestinationRules, c.CanaryService, c.StableService = subsets, "web", "web"
			}),
		},
		"subset names may have capital letters, as Istio lets them": {
			block: `
virtualService: {name: web}
destinationRule: {name: web.v1, canarySubsetName: Canary-1, stableSubsetName: Stable-1, additionalSubsetNames: [legacy]}`,
			want: hostLevel(func(c *Config) {
				c.DestinationRules = []DestinationRule{{Namespace: "shop", Name: "web.v1", CanarySubsetName: "Canary-1",
					StableSubsetName: "Stable-1", AdditionalSubsetNames: []string{"legacy"}}}
			}),
		},
		"several DestinationRules, for routes of several hosts, keep their order": {
			block: `
virtualServices: [{name: web-mesh}, {name: web-gateway}]
destinationRules:
- {name: web, canarySubsetName: canary, stableSubsetName: stable}
- {name: web, namespace: edge, canarySubsetName: next, stableSubsetName: live, additionalSubsetNames: [legacy]}`,
			cross:   "edge",
			rollout: services("", ""),
			want: hostLevel(virtualService(
				VirtualService{Namespace: "shop", Name: "web-mesh"},
				VirtualService{Namespace: "shop", Name: "web-gateway"}),
				func(c *Config) {
					c.DestinationRules = append(slices.Clone(subsets), DestinationRule{Namespace: "edge", Name: "web",
						CanarySubsetName: "next", StableSubsetName: "live", AdditionalSubsetNames: []string{"legacy"}})
					c.CanaryService, c.StableService = "", ""
				}),
		},
		"several VirtualServices keep their order": {
			block: `virtualServices: [{name: web-mesh, routes: [b, a]}, {name: web-gateway}]`,
			want: hostLevel(virtualService(
				VirtualService{Namespace: "shop", Name: "web-mesh", Routes: []string{"b", "a"}},
				VirtualService{Namespace: "shop", Name: "web-gateway"})),
		},
		"tls routes are told by port, by SNI hosts or by both, tcp routes by port": {
			block: `
virtualService:
  name: web
  tlsRoutes: [{port: 443}, {sniHosts: [a.example, b.example]}, {port: 8443, sniHosts: [c.example]}]
  tcpRoutes: [{port: 1}, {port: 65535}]`,
			want: hostLevel(virtualService(VirtualService{Namespace: "shop", Name: "web",
				TLSRoutes: []TLSRoute{{Port: 443}, {SNIHosts: []string{"a.example", "b.example"}}, {Port: 8443, SNIHosts: []string{"c.example"}}},
				TCPRoutes: []TCPRoute{{Port: 1}, {Port: 65535}}})),
		},
		"allMatchingRoutes goes with an empty list of routes": {
			block: `virtualService: {name: web, routes: [], allMatchingRoutes: true}`,
			want:  hostLevel(virtualService(VirtualService{Namespace: "shop", Name: "web", AllMatchingRoutes: true})),
		},
		"allMatchingRoutes false is the same as none": {
			block: `virtualService: {name: web, routes: [primary], allMatchingRoutes: false}`,
			want:  hostLevel(virtualService(VirtualService{Namespace: "shop", Name: "web", Routes: []string{"primary"}})),
		},
		"name.namespace means the other namespace where the operator allows it": {
			block: `virtualService: {name: web.edge}`,
			cross: "edge",
			want:  hostLevel(virtualService(VirtualService{Namespace: "edge", Name: "web"})),
		},
		"name.namespace with the Rollout's own namespace needs no permission": {
			block: `virtualService: {name: web.shop}`,
			want:  hostLevel(),
		},
		"of several dots the last part is the namespace": {
			block: `virtualService: {name: web.with.dots.edge}`,
			cross: "*",
			want:  hostLevel(virtualService(VirtualService{Namespace: "edge", Name: "web.with.dots"})),
		},
		"a name with the cluster's domain is name.namespace": {
			block: `virtualServices: [{name: web.edge.svc.cluster.local}, {name: web.shop.cluster.local}]`,
			cross: "edge",
			want: hostLevel(virtualService(VirtualService{Namespace: "edge", Name: "web"},
				VirtualService{Namespace: "shop", Name: "web"})),
		},
		"an explicit namespace wins, and the dots are the name's": {
			block: `virtualService: {name: web.edge, namespace: shop}`,
			want:  hostLevel(virtualService(VirtualService{Namespace: "shop", Name: "web.edge"})),
		},
		"an explicit other namespace works where the operator allows it": {
			block: `
virtualService: {name: web, namespace: edge}
destinationRule: {name: web, namespace: edge, canarySubsetName: canary, stableSubsetName: stable}`,
			cross: "mesh, edge",
			want: hostLevel(virtualService(VirtualService{Namespace: "edge", Name: "web"}), func(c *Config) {
				c.DestinationRules = []DestinationRule{{Namespace: "edge", Name: "web", CanarySubsetName: "canary", StableSubsetName: "stable"}}
			}),
		},
		"the same name in two namespaces is two objects": {
			block: `virtualServices: [{name: web}, {name: web, namespace: edge}]`,
			cross: "edge",
			want: hostLevel(virtualService(VirtualService{Namespace: "shop", Name: "web"},
				VirtualService{Namespace: "edge", Name: "web"})),
		},
		"every field of the guard can be set": {
			block: `
virtualService: {name: web}
guard: {mode: Observe, minRaise: 7, settle: 1m, maxHold: 24h}`,
			want: hostLevel(guardWith(func(g *Guard) {
				*g = Guard{Mode: Observe, MinRaise: 7, Settle: time.Minute, MaxHold: 24 * time.Hour}
			})),
		},
		"the guard's lower bounds are part of the range": {
			block: `
virtualService: {name: web}
guard: {mode: "Off", minRaise: 0, settle: 0s, maxHold: 1s}`,
			want: hostLevel(guardWith(func(g *Guard) { *g = Guard{Mode: Off, MaxHold: time.Second} })),
		},
		"an empty guard is all defaults": {
			block: `{virtualService: {name: web}, guard: {}}`,
			want:  hostLevel(),
		},
		"minRaise as a percentage counts parts of maxTrafficWeight": {
			block:   `{virtualService: {name: web}, guard: {minRaise: 10%}}`,
			rollout: maxTrafficWeight(1000),
			want:    hostLevel(guardWith(func(g *Guard) { g.MinRaise = 100 })),
		},
		"minRaise by default is 5 % of maxTrafficWeight, rounded up": {
			block:   `virtualService: {name: web}`,
			rollout: maxTrafficWeight(30),
			want:    hostLevel(guardWith(func(g *Guard) { g.MinRaise = 2 })),
		},
		"minRaise can be all of it": {
			block: `{virtualService: {name: web}, guard: {minRaise: 100%}}`,
			want:  hostLevel(guardWith(func(g *Guard) { g.MinRaise = 100 })),
		},
		"maxHold by default is the Rollout's progress deadline, be it longer than a day": {
			block:   `virtualService: {name: web}`,
			rollout: progressDeadlineSeconds(2_000_000_000),
			want:    hostLevel(guardWith(func(g *Guard) { g.MaxHold = 2_000_000_000 * time.Second })),
		},
		"a progress deadline that the controller refuses anyway does not end each hold at once": {
			block:   `virtualService: {name: web}`,
			rollout: progressDeadlineSeconds(0),
			want:    hostLevel(),
		},
		"ping-pong before the first promotion: pong is stable": {
			block:   `virtualService: {name: web}`,
			rollout: func(ro *v1alpha1.Rollout) { services("", "")(ro); pingPong("ping", "pong", "")(ro) },
			want:    hostLevel(func(c *Config) { c.CanaryService, c.StableService = "ping", "pong" }),
		},
		"ping-pong with ping stable": {
			block:   `virtualService: {name: web}`,
			rollout: func(ro *v1alpha1.Rollout) { services("", "")(ro); pingPong("ping", "pong", v1alpha1.PPPing)(ro) },
			want:    hostLevel(func(c *Config) { c.CanaryService, c.StableService = "pong", "ping" }),
		},
		"Services named beside ping-pong win, as in the native router": {
			block:   `virtualService: {name: web}`,
			rollout: pingPong("ping", "pong", v1alpha1.PPPing),
			want:    hostLevel(),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ro := aRollout(t, tc.block)
			if tc.rollout != nil {
				tc.rollout(ro)
			}
			got, err := FromRollout(ro, Options{CrossNamespace: crossNamespace(t, tc.cross)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorNamesTheRolloutAndTheFullPath(t *testing.T) {
	_, err := FromRollout(aRollout(t, `virtualService: {routes: [primary]}`), Options{})
	want := `Rollout shop/web: spec.strategy.canary.trafficRouting.plugins["argoproj-labs/istio"].virtualService.name: ` +
		`Required value: name the VirtualService`
	if err == nil || err.Error() != want {
		t.Errorf("error:\n got %v\nwant %s", err, want)
	}
	var single *field.Error
	if !errors.As(err, &single) || single.Type != field.ErrorTypeRequired {
		t.Errorf("the single problem is not to be had from the error: %#v", single)
	}
}

func TestErrorJoinsItsProblems(t *testing.T) {
	_, err := FromRollout(aRollout(t, `{virtualService: {}, guard: {mode: "on"}}`), Options{})
	if err == nil {
		t.Fatal("no error")
	}
	want := `Rollout shop/web: ….virtualService.name: Required value: name the VirtualService; ` +
		`….guard.mode: Invalid value: "on": unknown mode. There are Enforce, Observe, Off`
	if got := shorten(err.Error()); got != want {
		t.Errorf("error:\n got %s\nwant %s", got, want)
	}
}

func TestNoRolloutIsAnError(t *testing.T) {
	_, err := FromRollout(nil, Options{})
	want := []string{"spec: Required value: the call carries no Rollout"}
	if diff := cmp.Diff(want, problems(t, err)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestNothingIsReturnedBesideAnError(t *testing.T) {
	got, err := FromRollout(aRollout(t, `{virtualService: {name: web}, guard: {mode: on}}`), Options{})
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(Config{}, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}
