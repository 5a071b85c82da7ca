package router

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Of two processes with views of the pods that differ by a moment, the one that is
// behind once gave back what the other had just taken.
func TestWhoTakesWeightAwayGivesNoneToARouteThatHasLess(t *testing.T) {
	w, r, ro := twoServicesAt20(t)
	mustSet(t, r, ro, 60)
	w.setWeights("90/10") // another writer; the second still has 60
	w.pods("new", 6, 20)
	if _, err := r.watchLook(context.Background(), ro.UID); err != nil {
		t.Fatal(err)
	}
	w.wantWeights(t, "6 of 20 pods can take 30", "90/10")
	if last := w.writes[len(w.writes)-1]; !strings.Contains(last, "shop/second") {
		t.Errorf("the last write was %q", last)
	}
}

func TestALabelThatWaitsForALowerWeightGivesNoneToARouteThatHasLess(t *testing.T) {
	w := newWorld(t, subsetVirtualService, strings.Replace(subsetVirtualService, "{name: cart}", "{name: second}", 1), subsetDestinationRule)
	w.pods("v1", 20, 20)
	w.pods("v2", 20, 20)
	w.pods("v3", 5, 20)
	r, ro := w.router(), rollout(strings.Replace(subsetConfig, `"virtualService": {"name": "cart"}`, `"virtualServices": [{"name": "cart"}, {"name": "second"}]`, 1))
	ro.Status.StableRS, ro.Status.CurrentPodHash = "v1", "v2"
	mustUpdate(t, r, ro, "v2", "v1")
	mustSet(t, r, ro, 60)
	w.pass(time.Minute)
	w.setWeights("90/10")
	ro.Status.CurrentPodHash = "v3"
	wantError(t, updateHash(r, ro, "v3", "v1"), "has to go down to 25 first")
	w.wantWeights(t, "another writer's 10", "90/10")
	w.rollouts["shop/cart"] = ro
	r.Called()
	settled(t, w, r)
	w.wantWeights(t, "what the call brought about is kept up all the same", "75/25")
	if events := strings.Join(w.eventsSince(), "\n"); !strings.Contains(events, EventDriftCorrected) {
		t.Errorf("and not as drift, which has a pace: %s", events)
	}
}
