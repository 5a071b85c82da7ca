package router

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// watched looks once, as the watch does when an object or a pod has changed.
func watched(t *testing.T, r *Router) time.Duration {
	t.Helper()
	again, err := r.watchLook(context.Background(), "uid-1")
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// drifting is a canary at 20 with all its pods, at subset level.
func drifting(t *testing.T, fields ...string) (*world, *Router) {
	w := newWorld(t, subsetVirtualService, subsetDestinationRule)
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	config := strings.Replace(subsetConfig, `{"name": "cart"}`, `{`+strings.Join(fields, "")+`"name": "cart"}`, 1)
	r, ro := w.router(), rollout(config)
	w.rollouts["shop/cart"] = ro
	r.Called()
	mustUpdate(t, r, ro, "new", "old")
	if err := setWeight(t, r, ro, 20); err != nil {
		t.Fatal(err)
	}
	if got := w.weights() + " " + w.labels(); got != "80/20 stable=old canary=new" {
		t.Fatalf("begins with %s", got)
	}
	w.writes, w.events = nil, nil
	return w, r
}

// settled looks until nothing is left to do.
func settled(t *testing.T, w *world, r *Router) {
	t.Helper()
	for range 10 {
		again := watched(t, r)
		if again <= 0 {
			return
		}
		w.pass(again)
	}
	t.Fatal("the watch does not come to rest")
}

func TestWhatWasBroughtAboutForAnotherRevisionIsNotGivenBackToThisOne(t *testing.T) {
	w, r := drifting(t)
	next := w.rollouts["shop/cart"].DeepCopy()
	next.ResourceVersion, next.Status.CurrentPodHash = "2", "newer"
	w.rollouts["shop/cart"] = next
	w.pods("newer", 20, 20)
	w.setWeights("100/0") // GitOps, at the very moment of the deployment
	mustUpdate(t, r, next, "newer", "old")
	settled(t, w, r)
	if got := w.weights() + " " + w.labels(); got != "100/0 stable=old canary=newer" {
		t.Errorf("before the first weight of the new revision: %s", got)
	}
}

func TestAPodMoreInTheStatusIsNoReasonToLeaveDriftAsItIs(t *testing.T) {
	w, r := drifting(t)
	counted := w.rollouts["shop/cart"].DeepCopy()
	counted.ResourceVersion, counted.Status.AvailableReplicas = "2", 40
	w.rollouts["shop/cart"] = counted
	w.setWeights("100/0")
	settled(t, w, r)
	w.wantWeights(t, "the controller has counted a pod since its last call", "80/20")
}

func TestTheWatchPutsBackWhatIsOursAndKeepsWhatIsNot(t *testing.T) {
	w, r := drifting(t, `"routes": ["primary"], `)
	withTimeout := strings.Replace(subsetVirtualService, "  - name: primary\n", "  - name: added\n    match: [{uri: {prefix: /new}}]\n    route:\n    - {destination: {host: other}}\n  - name: primary\n    timeout: 5s\n", 1)
	w.apply(withTimeout)
	w.apply(strings.Replace(subsetDestinationRule, "host: cart\n", "host: cart\n  trafficPolicy: {loadBalancer: {simple: RANDOM}}\n", 1))
	settled(t, w, r)
	if got := w.routes() + " " + w.labels(); got != "added 0, primary 80/20 stable=old canary=new" {
		t.Errorf("after GitOps: %s", got)
	}
	text := fmt.Sprint(w.objects["VirtualService shop/cart"].Object, w.objects["DestinationRule shop/cart"].Object)
	for _, kept := range []string{"timeout:5s", "loadBalancer"} {
		if !strings.Contains(text, kept) {
			t.Errorf("%s is lost: %s", kept, text)
		}
	}
	var told int
	for _, event := range w.eventsSince() {
		if strings.Contains(event, EventDriftCorrected) {
			told++
		}
	}
	if told != 2 {
		t.Errorf("%d Events, want one for each object", told)
	}
	settled(t, w, r)
	if len(w.writes) != 2 {
		t.Errorf("writes %v", w.writes)
	}
}

func TestARaiseByHandIsTakenBackAndALowerOnePutBackAsFarAsThePodsGo(t *testing.T) {
	w, r := drifting(t)
	for _, c := range []struct{ hand, want string }{{"0/100", "80/20"}, {"100/0", "80/20"}, {"50/50", "80/20"}} {
		w.setWeights(c.hand)
		settled(t, w, r)
		if got := w.weights(); got != c.want {
			t.Errorf("set to %s by hand: %s, want %s", c.hand, got, c.want)
		}
	}
	w.pods("new", 1, 20)
	w.setWeights("100/0")
	settled(t, w, r)
	if got := w.weights(); got != "95/5" {
		t.Errorf("one pod: %s, want what it can take", got)
	}
}

func TestTwoWritersAreNoticedAndCorrectionsSlowDown(t *testing.T) {
	w, r := drifting(t)
	corrections, last := 0, w.clock.Now()
	for range 600 { // ten minutes, a change every second
		w.pass(time.Second)
		r.Called()
		w.setWeights("100/0")
		if watched(t, r); w.weights() == "80/20" {
			corrections++
			last = w.clock.Now()
		}
	}
	if corrections < 7 || corrections > 20 {
		t.Errorf("%d corrections in ten minutes", corrections)
	}
	contested := 0
	for _, event := range w.eventsSince() {
		if strings.Contains(event, EventDriftContested) {
			contested++
		}
	}
	if contested != 1 {
		t.Errorf("told of the quarrel %d times", contested)
	}
	// What is too much for the pods goes even then.
	w.setWeights("0/100")
	w.pods("new", 1, 20)
	if watched(t, r); w.weights() != "95/5" {
		t.Errorf("a weight beyond the pods waits for the quarrel: %s (last correction %s ago)", w.weights(), w.clock.Now().Sub(last))
	}
	// The other has given up: the next correction comes at once again.
	w.pass(7 * time.Minute)
	w.pods("new", 20, 20)
	r.Called()
	w.setWeights("100/0")
	if watched(t, r); w.weights() == "100/0" {
		t.Error("still slow minutes later")
	}
}

func TestAProcessGivesWayToTheOneOfANewLeader(t *testing.T) {
	w, old := drifting(t)
	fresh := w.router()
	fresh.Called()
	ro := rollout(subsetConfig)
	if err := fresh.UpdateHash(context.Background(), ro, "new", "old", nil); err != nil {
		t.Fatal(err)
	}
	if err := setWeight(t, fresh, ro, 50); err != nil {
		t.Fatal(err)
	}
	w.writes = nil
	for range 5 {
		old.Called()
		settled(t, w, old)
		settled(t, w, fresh)
	}
	if got := w.weights(); got != "50/50" || len(w.writes) != 0 {
		t.Errorf("weights %s, writes %v", got, w.writes)
	}
	w.setWeights("100/0")
	settled(t, w, old)
	if got := w.weights(); got != "100/0" {
		t.Errorf("the old process corrects for the new one: %s", got)
	}
	settled(t, w, fresh)
	if got := w.weights(); got != "50/50" {
		t.Errorf("the new one does not: %s", got)
	}
}

func TestACallWithAnOlderRolloutDoesNotUndoWhatAnotherProcessWrote(t *testing.T) {
	w, old := drifting(t)
	fresh := w.router()
	now := rollout(subsetConfig)
	now.ResourceVersion = "7"
	w.rollouts["shop/cart"] = now
	w.pods("newer", 20, 20)
	if err := updateHash(fresh, now, "newer", "old"); err != nil {
		t.Fatal(err)
	}
	if err := setWeight(t, fresh, now, 50); err != nil {
		t.Fatal(err)
	}
	before := rollout(subsetConfig)
	before.ResourceVersion = "6"
	w.writes = nil
	for call, err := range map[string]error{"SetWeight": setWeight(t, old, before, 20), "UpdateHash": updateHash(old, before, "new", "old")} {
		if err == nil || !strings.Contains(err.Error(), "older version of Rollout shop/cart") {
			t.Errorf("%s: %v", call, err)
		}
	}
	if len(w.writes) != 0 {
		t.Errorf("writes %v", w.writes)
	}
	// The old one is the leader again.
	if err := setWeight(t, old, now, 60); err != nil {
		t.Errorf("with the present Rollout: %v", err)
	}
}

func TestNothingIsPutBackForARolloutThatIsGoneOrNotOurs(t *testing.T) {
	for sentence, change := range map[string]func(*world){
		"deleted":            func(w *world) { delete(w.rollouts, "shop/cart") },
		"deleted and remade": func(w *world) { ro := rollout(subsetConfig); ro.UID = "uid-2"; w.rollouts["shop/cart"] = ro },
		"moved to the native router": func(w *world) {
			ro := rollout(subsetConfig)
			ro.Spec.Strategy.Canary.TrafficRouting.Plugins = nil
			w.rollouts["shop/cart"] = ro
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r := drifting(t)
			change(w)
			w.setWeights("60/40")
			w.apply(subsetDestinationRule)
			settled(t, w, r)
			settled(t, w, r)
			if got := w.weights() + " " + w.labels(); got != "60/40 stable= canary=" || len(w.writes) != 0 {
				t.Errorf("put back: %s, writes %v", got, w.writes)
			}
		})
	}
}

func TestTheWatchTakesManagedRoutesAwayWithTheLastPodAndPutsBackRemovedOnes(t *testing.T) {
	w, r := midCanary(t)
	ro := stepped(hostConfig, 2)
	w.rollouts["shop/cart"] = ro
	if err := r.SetWeight(context.Background(), ro, 10, nil); err != nil {
		t.Fatal(err)
	}
	w.wantRoutes(t, "at first", "hdr 100, primary 90/10")
	w.apply(hostVirtualService)
	settled(t, w, r)
	w.wantRoutes(t, "removed by hand", "hdr 100, primary 90/10")
	w.pods("new", 0, 2)
	settled(t, w, r)
	w.wantRoutes(t, "the last pod has gone", "primary 100/0")
	w.pods("new", 2, 2)
	settled(t, w, r)
	w.wantRoutes(t, "pods are back, the controller has not called", "primary 100/0")
}

func TestChangesToAnObjectReachTheRolloutsThatNameIt(t *testing.T) {
	w, r := drifting(t)
	for object, want := range map[[3]string]int{
		{"VirtualService", "shop", "cart"}: 1, {"DestinationRule", "shop", "cart"}: 1,
		{"VirtualService", "shop", "other"}: 0, {"DestinationRule", "other", "cart"}: 0,
	} {
		r.RoutingChanged(object[0], object[1], object[2])
		if got := r.watch.queue.Len(); got != want {
			t.Errorf("%v: %d Rollouts to look at, want %d", object, got, want)
		}
		for r.watch.queue.Len() > 0 {
			uid, _ := r.watch.queue.Get()
			r.watch.queue.Done(uid)
		}
	}
	_ = w
}
