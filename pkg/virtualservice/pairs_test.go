package virtualservice_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// twoHosts are the subsets of two hosts, the first with the names of the second too.
func twoHosts() virtualservice.Split {
	return virtualservice.Split{
		Stable: subset("stable"), Canary: subset("canary"), Max: 100,
		More: []virtualservice.Pair{{
			Stable: virtualservice.Side{Host: "web.example.com", Subset: "stable"},
			Canary: virtualservice.Side{Host: "web.example.com", Subset: "next"},
		}},
	}
}

const (
	inMesh  = "{destination: {host: web, subset: stable}, weight: 80}, {destination: {host: web, subset: canary}, weight: 20}"
	outside = "{destination: {host: web.example.com, subset: stable}, weight: 80}, {destination: {host: web.example.com, subset: next}, weight: 20}"
)

// asked is a VirtualService with this spec.
func asked(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	return fromYAML(t, "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop, resourceVersion: \"7\"}, spec: {hosts: [web], "+spec+"}}")
}

func TestARouteHoldsTheSidesOfOnePair(t *testing.T) {
	for sentence, tc := range map[string]struct {
		routes string
		want   string // part of the error, or the weights afterwards
		fails  bool
	}{
		"one route for each host": {
			routes: "[{name: a, route: [" + inMesh + "]}, {name: b, route: [" + outside + "]}]",
			want:   "http 70 30 | 70 30",
		},
		"a route of the second host alone": {
			routes: "[{route: [" + outside + "]}]",
			want:   "http 70 30",
		},
		"both pairs in one route": {
			routes: "[{route: [" + inMesh + ", " + outside + "]}]",
			want:   "holds destinations of two DestinationRules (host web.shop.svc.cluster.local, subset canary; host web.example.com, subset next): let each route send to one of the hosts",
			fails:  true,
		},
		"one side of the other host beside a whole pair": {
			routes: "[{route: [" + inMesh + ", {destination: {host: web.example.com, subset: next}, weight: 0}]}]",
			want:   "holds destinations of two DestinationRules",
			fails:  true,
		},
		"the stable of one host and the canary of another": {
			routes: "[{route: [{destination: {host: web, subset: stable}, weight: 100}, {destination: {host: web.example.com, subset: next}}]}]",
			want:   "no route holds both the stable destination (host web.shop.svc.cluster.local, subset stable) and the canary destination (host web.shop.svc.cluster.local, subset canary), or host web.example.com, subset stable and host web.example.com, subset next",
			fails:  true,
		},
		"a subset of the other pair's name is foreign on this host": {
			routes: "[{route: [" + inMesh + ", {destination: {host: web, subset: next}, weight: 0}]}]",
			want:   "http 70 30 0",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			u := asked(t, "http: "+tc.routes)
			patch, _, err := setTarget(u, virtualservice.Selection{AllMatching: true}, twoHosts(), virtualservice.Target{Canary: 30})
			if tc.fails {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("error %v, want one with %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := weights(apply(t, u, patch)); got != tc.want {
				t.Errorf("weights %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPairsThatShareASideAreRefused(t *testing.T) {
	split := twoHosts()
	split.More[0].Canary = split.Canary
	split.More[0].Stable = subset("other")
	u := asked(t, "http: [{route: ["+inMesh+"]}]")
	_, _, err := setTarget(u, virtualservice.Selection{}, split, virtualservice.Target{Canary: 30})
	if err == nil || !strings.Contains(err.Error(), "two DestinationRules have the same subset (host web.shop.svc.cluster.local, subset canary)") {
		t.Errorf("error %v", err)
	}
}

func TestASubsetForAnExperimentIsOnTheHostOfItsRoute(t *testing.T) {
	split := twoHosts()
	split.Experiments = []virtualservice.Side{{Subset: "exp"}, {Subset: "old"}}
	target := virtualservice.Target{
		Owner: owner, Canary: 20,
		Experiments: []virtualservice.Experiment{{Service: "exp", Side: virtualservice.Side{Subset: "exp"}, Weight: 10}},
	}
	u := asked(t, "http: [{name: a, route: ["+inMesh+", {destination: {host: web, subset: old}, weight: 0}]}, "+
		"{name: b, route: ["+outside+", {destination: {host: web, subset: old}, weight: 0}]}]")
	after, _ := reach(t, u, split, target)
	want := "http 70 20 10 | 70 20 0 10" // the old one of another host is none of ours
	if got := weights(after); got != want {
		t.Errorf("weights %s, want %s", got, want)
	}
	vs := virtualservice.Parse(after, "us")
	for host, want := range map[string]bool{"web.shop.svc.cluster.local": true, "web.example.com": true, "web.other.com": false} {
		if got := vs.Names(virtualservice.Side{Host: host, Subset: "exp"}, split); got != want {
			t.Errorf("names exp on %s: %t", host, got)
		}
	}
	if !vs.Names(virtualservice.Side{Subset: "exp"}, split) {
		t.Error("does not name exp on any host")
	}
}
