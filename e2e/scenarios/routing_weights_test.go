package scenarios

import (
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func TestTenthsOfAPercentOnARouteThatWasWrittenByHand(t *testing.T) {
	t.Parallel()
	w := canary(Host, SetWeight(5), Pause(1), SetWeight(10), Pause(1), SetWeight(15), Pause(1))
	route := block{"name": "primary", "timeout": "5s", "route": sides(Host, 900)}
	route["route"].([]any)[1].(block)["weight"] = 100
	web := virtualServiceOf(name, block{"hosts": []any{name}, "http": []any{route}})
	recorded := playRouted(t, controller(t, lab.DefaultVersion),
		routed{Workload: w, max: 1000, objects: append(around(Host), web)},
		deployed, becomes(virtualServices, name, weighs("primary", 1000, 0)),
		deploy("upgrade", 2), promotedAfter("upgrade"))
	endsPromoted(t, recorded)
	// Before that the route is as it was written by hand.
	upgrade, err := recorded.Since("upgrade")
	if err != nil {
		t.Fatal(err)
	}
	hold(t, upgrade, limits("", "Healthy", time.Minute))
	if got, want := weightsSeen(upgrade), []int32{5, 10, 15, 1000, 0}; !timeline.FollowSteps(got, want) {
		t.Errorf("canary weights were %v, want %v", got, want)
	}
	for i, e := range versions(recorded, timeline.KindVirtualService, name) {
		if weights := weightsOf(routeOf(e.Object, "primary")); i > 0 && weights[0]+weights[1] != 1000 {
			t.Errorf("at %s the weights are %v", e.At, weights)
		}
	}
}
