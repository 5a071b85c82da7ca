package router

import (
	"fmt"
	"strings"
	"testing"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
)

// sidesText is what matters here of sides: "role: hash should wanted, ReplicaSet available/size
// of intended, endpoints".
func sidesText(e Explanation) string {
	var lines []string
	for _, side := range e.Sides {
		role, hash, pods, intended, ready := "stable", side.Hash, fmt.Sprintf("%s %d/%d", side.ReplicaSet, side.Available, side.Size), "?", fmt.Sprint(side.Ready)
		if side.Canary {
			role = "canary"
		}
		if side.HashErr != nil {
			hash = "?"
		}
		if side.PodsErr != nil {
			pods = "?"
		}
		if side.Intended != nil {
			intended = fmt.Sprint(*side.Intended)
		}
		if side.EndpointsErr != nil {
			ready = "?"
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s should %s, %s of %s, %s", role, side.Subset, hash, side.Wanted, pods, intended, ready))
	}
	return strings.Join(lines, "; ")
}

// routesText is "VirtualService route role weight …" of each.
func routesText(e Explanation) string {
	var lines []string
	for _, vs := range e.Services {
		for _, route := range vs.Routes {
			line := vs.Name + " " + route.Route
			for _, d := range route.Destinations {
				line += fmt.Sprintf(" %s %d", d.Role, d.Weight)
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

func TestWhatCannotBeHandledIsExplainedInPart(t *testing.T) {
	const routes, sides = `cart http[0] "primary" stable 80 canary 20`, "canary canary: new should new, cart-new 3/4 of 4, 3; stable stable: old should old, cart-old 20/20 of 20, 20"
	for sentence, tc := range map[string]struct {
		not           byte
		config        string
		routes, sides string
	}{
		"without VirtualServices the sides are there":           {noServices, subsetConfig, "", sides},
		"without DestinationRules the routes and pods are":      {noRules, subsetConfig, routes, "canary canary: ? should new, cart-new 3/4 of 4, ?; stable stable: ? should old, cart-old 20/20 of 20, ?"},
		"without ReplicaSets the routes and hashes are":         {noSets, subsetConfig, routes, "canary canary: new should new, ? of 4, 3; stable stable: old should old, ? of 20, 20"},
		"with none of them the names are":                       {noServices | noRules | noSets, subsetConfig, "", "canary canary: ? should new, ? of 4, ?; stable stable: ? should old, ? of 20, ?"},
		"a route that does not exist leaves all others":         {0, strings.Replace(subsetConfig, `{"name": "cart"}`, `{"name": "cart", "routes": ["checkout"]}`, 1), routes, sides},
		"a configuration that cannot be read leaves no objects": {0, `{"virtualServices": 7}`, "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, subsetVirtualService)
			mustUpdateLabels(w, "new", "old")
			w.setWeights("80/20")
			w.pods("new", 3, 4)
			w.pods("old", 20, 20)
			w.services["shop/cart"] = ""
			w.slices = map[string][]cluster.Endpoint{"shop/cart": append(endpoints("old", 20), endpoints("new", 3)...)}
			e, err := explain(t.Context(), blinkered{w, tc.not}, Options{}, at(tc.config, 0, weight(20), pause()), w.clock)
			if err == nil || routesText(e) != tc.routes || sidesText(e) != tc.sides {
				t.Errorf("%v\n%s\n%s\nwant\n%s\n%s", err, routesText(e), sidesText(e), tc.routes, tc.sides)
			}
		})
	}
}

func TestTwoServicesAreExplainedInPart(t *testing.T) {
	w := newWorld(t, strings.Replace(hostVirtualService, "weight: 0}", "weight: 20}\n    - {destination: {host: legacy}, weight: 5}", 1))
	w.pods("new", 3, 4)
	w.services["shop/cart-canary"], w.services["shop/cart-stable"] = "new", "old"
	e, err := explain(t.Context(), blinkered{w, noSets}, Options{}, at(hostConfig, 0, weight(20), pause()), w.clock)
	const routes, sides = `cart http[0] "primary" stable 100 canary 20 foreign 5`, "canary : new should new, ? of 4, 0; stable : old should old, ? of 20, 0"
	if err == nil || routesText(e) != routes || sidesText(e) != sides {
		t.Errorf("%v\n%s\n%s", err, routesText(e), sidesText(e))
	}
}

// TestTheSizeThatTheControllerAimsFor has the counts that CalculateReplicaCountsForTrafficRoutedCanary
// of argo-rollouts v1.10 gives.
func TestTheSizeThatTheControllerAimsFor(t *testing.T) {
	recorded := func(canary, stable int32) func(*v1alpha1.Rollout) {
		return func(ro *v1alpha1.Rollout) {
			ro.Spec.Strategy.Canary.DynamicStableScale = true
			ro.Status.Canary.Weights = &v1alpha1.TrafficWeights{Canary: v1alpha1.WeightDestination{Weight: canary}, Stable: v1alpha1.WeightDestination{Weight: stable}}
		}
	}
	both := func(edits ...func(*v1alpha1.Rollout)) func(*v1alpha1.Rollout) {
		return func(ro *v1alpha1.Rollout) {
			for _, edit := range edits {
				edit(ro)
			}
		}
	}
	aborted := func(ro *v1alpha1.Rollout) { ro.Status.Abort = true }
	two := int32(2)
	for sentence, tc := range map[string]struct {
		step   int32
		steps  []v1alpha1.CanaryStep
		edit   func(*v1alpha1.Rollout)
		labels [2]string // of the canary and the stable subset
		want   string
	}{
		"the step's weight in pods, and a whole stable": {0, []v1alpha1.CanaryStep{weight(30), pause()}, nil, [2]string{"new", "old"}, "6 20"},
		"a fixed scale":                                            {1, []v1alpha1.CanaryStep{scaled(3), weight(50)}, nil, [2]string{"new", "old"}, "3 20"},
		"all, behind the last step":                                {2, []v1alpha1.CanaryStep{weight(30), pause()}, nil, [2]string{"new", "old"}, "20 20"},
		"none of a canary that is aborted":                         {0, []v1alpha1.CanaryStep{weight(30), pause()}, aborted, [2]string{"new", "old"}, "0 20"},
		"nothing is known of a revision in between":                {0, []v1alpha1.CanaryStep{weight(30), pause()}, nil, [2]string{"older", "old"}, "? 20"},
		"nothing is known of a side that names none":               {0, []v1alpha1.CanaryStep{weight(30), pause()}, nil, [2]string{`""`, "old"}, "? 20"},
		"all for both, where one revision is on both sides":        {0, []v1alpha1.CanaryStep{weight(30)}, func(ro *v1alpha1.Rollout) { ro.Status.CurrentPodHash = "old" }, [2]string{"old", "old"}, "20 20"},
		"dynamic: the stable keeps what its traffic needs":         {0, []v1alpha1.CanaryStep{weight(30), pause()}, recorded(10, 90), [2]string{"new", "old"}, "6 18"},
		"dynamic: the stable shrinks with its traffic":             {1, []v1alpha1.CanaryStep{weight(30), pause()}, recorded(30, 70), [2]string{"new", "old"}, "6 14"},
		"dynamic: the stable goes with its last request":           {2, []v1alpha1.CanaryStep{weight(30), pause()}, recorded(100, 0), [2]string{"new", "old"}, "20 0"},
		"dynamic: the stable never has less than minPods":          {2, []v1alpha1.CanaryStep{weight(30), pause()}, both(recorded(99, 1), func(ro *v1alpha1.Rollout) { ro.Spec.Strategy.Canary.MinPodsPerReplicaSet = &two }), [2]string{"new", "old"}, "20 2"},
		"dynamic and promoted in full: only traffic keeps it":      {0, []v1alpha1.CanaryStep{weight(30), pause()}, both(recorded(40, 60), func(ro *v1alpha1.Rollout) { ro.Status.PromoteFull = true }), [2]string{"new", "old"}, "20 12"},
		"dynamic and aborted: the stable grows for what comes":     {2, []v1alpha1.CanaryStep{weight(30), weight(80)}, both(recorded(80, 20), aborted), [2]string{"new", "old"}, "16 14"},
		"dynamic beside setCanaryScale is not told for the stable": {1, []v1alpha1.CanaryStep{scaled(3), weight(50)}, recorded(10, 90), [2]string{"new", "old"}, "3 ?"},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, subsetVirtualService)
			mustUpdateLabels(w, tc.labels[0], tc.labels[1])
			w.pods("new", 16, 16)
			w.pods("old", 4, 8)
			w.pods("older", 2, 2)
			ro := at(subsetConfig, tc.step, tc.steps...)
			if tc.edit != nil {
				tc.edit(ro)
			}
			var sizes []string
			for _, side := range w.explained(t, Options{}, ro).Sides {
				if side.Intended == nil {
					sizes = append(sizes, "?")
				} else {
					sizes = append(sizes, fmt.Sprint(*side.Intended))
				}
			}
			if got := strings.Join(sizes, " "); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
