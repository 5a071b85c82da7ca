package scenarios

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// resting is a canary that stands at 20 for as long as it is let.
func resting() Workload { return canary(Subset, SetWeight(20), stop()) }

// somebodysRoute is what another writer adds beside resetting the weights.
const somebodysRoute = "added"

// replacedByHand resets the weights of primary as an apply of the original does, and
// changes what is not the plugin's.
func replacedByHand(spec block) {
	for _, route := range listOf(spec, "http") {
		if route["name"] == "primary" {
			route["timeout"], route["route"] = "9s", sides(Subset, 100)
		}
	}
	added := block{
		"name": somebodysRoute, "match": []any{block{"uri": block{"exact": "/added"}}},
		"route": []any{block{"destination": block{"host": name}}},
	}
	spec["http"] = append([]any{added}, spec["http"].([]any)...)
}

// withoutHashes is a DestinationRule as its manifest has it.
func withoutHashes(spec block) {
	for _, subset := range listOf(spec, "subsets") {
		delete(subset["labels"].(block), v1alpha1.DefaultRolloutUniqueLabelKey)
	}
	spec["subsets"] = append(spec["subsets"].([]any), block{"name": somebodysRoute, "labels": block{"app": name}})
}

func TestWhatSomebodyElseChangesIsPutBackAndTheRestIsKept(t *testing.T) {
	t.Parallel()
	w := resting()
	var rule snapshot
	recorded := playRouted(t, controller(t, lab.DefaultVersion), routed{Workload: w, objects: append(around(Subset), w.virtualService())},
		deployed, deploy("upgrade", 2), pausedAt(1), weighed(20), wait(2*time.Second),

		mark("weights reset"), update(virtualServices, name, replacedByHand),
		becomes(virtualServices, name, weighs("primary", 80, 20)), keeps(t, virtualServices, name, keptByHand),

		rule.take(destinationRules, name),
		mark("labels removed"), update(destinationRules, name, withoutHashes),
		becomes(destinationRules, name, rule.withAdded), becomes(virtualServices, name, weighs("primary", 80, 20)),
		wait(time.Second), goOn, promotedAfter("upgrade"))
	endsPromoted(t, recorded)
	mendedInTime(t, recorded, "weights reset", timeline.KindVirtualService, name)
	mendedInTime(t, recorded, "labels removed", timeline.KindDestinationRule, name)
	for _, kind := range []string{"VirtualService", "DestinationRule"} {
		if !says(recorded, "DriftCorrected", kind) {
			t.Errorf("no Event DriftCorrected about the %s", kind)
		}
	}
}

// keptByHand says what of somebody's change is not there any more.
func keptByHand(vs *unstructured.Unstructured) string {
	if diff := hasRoutes(somebodysRoute, "health", "primary")(vs); diff != "" {
		return diff
	}
	return cmp.Diff("9s", routeOf(vs, "primary")["timeout"])
}

// withAdded says how a DestinationRule differs from the kept one with one subset more.
func (k *snapshot) withAdded(now *unstructured.Unstructured) string {
	want := k.object.DeepCopy()
	spec := want.Object["spec"].(block)
	spec["subsets"] = append(spec["subsets"].([]any), block{"name": somebodysRoute, "labels": block{"app": name}})
	return (&snapshot{want}).same(now)
}

// says tells whether an Event of that reason holds a text.
func says(recorded timeline.Timeline, reason, text string) bool {
	states := recorded.States()
	return slices.ContainsFunc(states[len(states)-1].Events, func(e timeline.Event) bool {
		return e.Reason == reason && strings.Contains(e.Message, text)
	})
}

func TestTwoWritersThatUndoEachOtherAreNoticed(t *testing.T) {
	t.Parallel()
	w := resting()
	recorded := playRouted(t, controller(t, lab.DefaultVersion), routed{Workload: w, objects: append(around(Subset), w.virtualService())},
		deployed, deploy("upgrade", 2), pausedAt(1), weighed(20), wait(2*time.Second),
		mark("quarrel"), quarrel(20*time.Second, 500*time.Millisecond), mark("given up"),
		becomes(virtualServices, name, weighs("primary", 80, 20)))
	cut, err := recorded.Since("quarrel")
	if err != nil {
		t.Fatal(err)
	}
	writes := map[string]int{}
	for _, e := range versions(cut, timeline.KindVirtualService, name) {
		if !e.Found {
			writes[e.Manager]++
		}
	}
	t.Logf("writes of the VirtualService: %v", writes)
	if writes[someone] < 7 {
		t.Errorf("somebody wrote only %d times: that is no quarrel", writes[someone])
	}
	// 6 until it is noticed, then one after 10 s and one after 20 s more.
	if writes[pluginManager] < 6 || writes[pluginManager] > 10 {
		t.Errorf("the plugin wrote %d times, want about 8", writes[pluginManager])
	}
	if n := told(recorded, "DriftContested"); n != 1 {
		t.Errorf("%d Events DriftContested, want 1", n)
	}
}

// quarrel resets the weights again and again.
func quarrel(lasts, every time.Duration) act {
	return func(ctx context.Context, s *Scene) error {
		reset := update(virtualServices, name, func(spec block) {
			for _, route := range listOf(spec, "http") {
				if route["name"] == "primary" {
					route["route"] = sides(Subset, 100)
				}
			}
		})
		for range lasts / every {
			if err := reset(ctx, s); err != nil {
				return err
			}
			if err := sleep(ctx, every); err != nil {
				return err
			}
		}
		return nil
	}
}
