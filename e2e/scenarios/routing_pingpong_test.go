package scenarios

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// pingPong is a canary whose two Services change roles with each rollout.
func pingPong() routed {
	ping, pong := name+"-ping", name+"-pong"
	w := canary(Host, SetWeight(20), stop(), SetWeight(60), Pause(1))
	w.Edit = func(ro *v1alpha1.Rollout) {
		c := ro.Spec.Strategy.Canary
		c.CanaryService, c.StableService = "", ""
		c.PingPong = &v1alpha1.PingPongSpec{PingService: ping, PongService: pong}
	}
	web := virtualServiceOf(name, block{"hosts": []any{name}, "http": []any{block{
		"name": "primary", "timeout": "5s",
		"route": []any{
			block{"destination": block{"host": ping}, "weight": 100},
			block{"destination": block{"host": pong}, "weight": 0},
		},
	}}})
	return routed{
		Workload: w, objects: []any{service(ping), service(pong), web},
		// The two roles change, so what is recorded is ping and pong.
		subject: func(s *timeline.Subject) { s.StableService, s.CanaryService = ping, pong },
	}
}

func TestPingPongKeepsTheOrderAndTheWeightsRightInBothRoles(t *testing.T) {
	t.Parallel()
	recorded := playRouted(t, controller(t, lab.DefaultVersion), pingPong(),
		deployed, becomes(virtualServices, name, weighs("primary", 100, 0)),
		// pong is the canary
		deploy("first", 2), pausedAt(1), becomes(virtualServices, name, weighs("primary", 80, 20)),
		goOn, healthyAfter("first"), becomes(virtualServices, name, weighs("primary", 0, 100)), stableServiceNames("pong"),
		// ping is the canary
		deploy("second", 3), pausedAt(1), becomes(virtualServices, name, weighs("primary", 20, 80)),
		goOn, healthyAfter("second"), becomes(virtualServices, name, weighs("primary", 100, 0)), stableServiceNames("ping"))
	for _, e := range versions(recorded, timeline.KindVirtualService, name) {
		if diff := cmp.Diff([]string{name + "-ping", name + "-pong"}, destinationsOf(e.Object)); diff != "" {
			t.Errorf("at %s the destinations are in another order:\n%s", e.At, diff)
		}
		if weights := weightsOf(routeOf(e.Object, "primary")); weights[0]+weights[1] != 100 {
			t.Errorf("at %s the weights are %v", e.At, weights)
		}
	}
	// The controller leaves the stable Service of the very first canary as it was
	// made, without a hash (argo-rollouts#5006).
	unpinned := slices.ContainsFunc(between(t, recorded, "first", "second"), func(s timeline.State) bool {
		return s.CanaryWeight == 20 && s.StableHash == ""
	})
	if said := says(recorded, "StableServiceNotPinned", name+"-ping"); said != unpinned {
		t.Errorf("Service %s-ping was without a hash: %t, an Event said so: %t", name, unpinned, said)
	}
}

// stableServiceNames waits until the status calls that one stable.
func stableServiceNames(role v1alpha1.PingPongType) act {
	return func(ctx context.Context, s *Scene) error {
		return becomes(rolloutsResource, name, func(ro *unstructured.Unstructured) string {
			got, _, _ := unstructured.NestedString(ro.Object, "status", "canary", "stablePingPong")
			return cmp.Diff(string(role), got)
		})(ctx, s)
	}
}
