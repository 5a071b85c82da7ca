package router

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheWatchOfARefusedRolloutLeavesTheRouteAlone(t *testing.T) {
	w := newWorld(t, sharedVirtualService)
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	r := w.router()
	r.Called()
	older, younger := rival(w, "a", "one", time.Hour), rival(w, "b", "one", time.Minute)
	if err := setWeight(t, r, younger, 60); err != nil { // as after a restart: the younger happens to come first
		t.Fatal(err)
	}
	if err := setWeight(t, r, older, 30); err != nil {
		t.Fatal(err)
	}
	if err := setWeight(t, r, younger, 60); err == nil {
		t.Fatal("not refused")
	}
	w.wantRoutes(t, "the older's", "one 70/30, two 100/0")
	writes := len(w.writes)
	for i := 0; i < 5; i++ {
		if _, err := r.watchLook(context.Background(), younger.UID); err != nil {
			t.Fatal(err)
		}
		w.wantRoutes(t, fmt.Sprintf("round %d, the refused one's watch looks", i), "one 70/30, two 100/0")
		if _, err := r.watchLook(context.Background(), older.UID); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.writes) != writes {
		t.Errorf("%d writes of two watches that fight; events %v", len(w.writes)-writes, w.eventsSince())
	}
}

func TestARefusedRolloutDoesNotRemoveTheOthersManagedRoute(t *testing.T) {
	w := newWorld(t, sharedVirtualService)
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	r := w.router()
	a, b := withHdr(w)
	if err := setWeight(t, r, a, 10); err != nil {
		t.Fatal(err)
	}
	w.wantRoutes(t, "a in mid-canary", "hdr 100, one 90/10, two 100/0")
	b.Status.StableRS = "new" // fully promoted: the controller calls this on every reconcile
	if err := setWeight(t, r, b, 0); err == nil {
		t.Fatal("b is not refused")
	}
	err := r.RemoveManagedRoutes(context.Background(), b)
	t.Logf("RemoveManagedRoutes of b: %v", err)
	w.wantRoutes(t, "b is refused and must not touch a's route", "hdr 100, one 90/10, two 100/0")
}

func TestAClaimThatItsRolloutHasGivenUpRefusesNobody(t *testing.T) {
	w := newWorld(t, sharedVirtualService)
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	r := w.router()
	a, b := rival(w, "a", "one", time.Hour), rival(w, "b", "one", time.Minute)
	if err := setWeight(t, r, a, 30); err != nil {
		t.Fatal(err)
	}
	moved := a.DeepCopy()
	moved.Spec.Strategy.Canary.TrafficRouting.Plugins["argoproj-labs/istio"] = []byte(`{"virtualService": {"name": "not-there-yet"}}`)
	w.rollouts["shop/a"] = moved
	if err := setWeight(t, r, moved, 30); err == nil {
		t.Fatal("no error")
	}
	if err := setWeight(t, r, b, 60); err != nil {
		t.Errorf("a names another VirtualService, and b is refused: %v", err)
	}
}

func TestARouteUnderRoutesAndManagedRoutesIsNotRemoved(t *testing.T) {
	w := newWorld(t, sharedVirtualService)
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	r := w.router()
	ro := rollout(`{"virtualService": {"name": "cart", "routes": ["one"]}}`)
	ro.Spec.Strategy.Canary.TrafficRouting.ManagedRoutes = []v1alpha1.MangedRoutes{{Name: "one"}}
	ro.Status.StableRS = "new"
	err := r.RemoveManagedRoutes(context.Background(), ro)
	w.wantRoutes(t, fmt.Sprintf("error %v", err), "one 100/0, two 100/0")
}

func TestAManagedRouteWhoseNameWasTakenOutOfManagedRoutesIsRemoved(t *testing.T) {
	for _, config := range []string{hostConfig, `{"virtualService": {"name": "cart", "routes": ["primary"]}}`} {
		t.Run(config, func(t *testing.T) {
			w, r := midCanary(t)
			ro := stepped(config, 1)
			ro.ResourceVersion = "1"
			if err := r.SetWeight(context.Background(), ro, 10, nil); err != nil {
				t.Fatal(err)
			}
			ro = stepped(config, 0) // the author takes the header step out, and its name
			ro.ResourceVersion = "2"
			ro.Spec.Strategy.Canary.Steps = ro.Spec.Strategy.Canary.Steps[:1]
			ro.Spec.Strategy.Canary.TrafficRouting.ManagedRoutes = nil
			ro.Status.StableRS = "new" // and it finishes
			_ = r.RemoveManagedRoutes(context.Background(), ro)
			if err := r.SetWeight(context.Background(), ro, 0, nil); err != nil {
				t.Error(err)
			}
			w.wantRoutes(t, "finished", "primary 100/0")
		})
	}
}

func TestAMirrorThatHasAPlaceInOneOfTwoVirtualServicesIsThere(t *testing.T) {
	at := func(name, path string) string {
		return strings.Replace(strings.Replace(hostVirtualService, "{name: cart}", "{name: "+name+"}", 1), "    route:", "    match: [{uri: {prefix: "+path+"}}]\n    route:", 1)
	}
	w := newWorld(t, at("cart", "/api"), at("second", "/shop"))
	w.services["shop/cart-canary"], w.services["shop/cart-stable"] = "new", "old"
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	r := w.router()
	ro := stepped(`{"virtualServices": [{"name": "cart"}, {"name": "second"}]}`, 3)
	c := ro.Spec.Strategy.Canary
	c.Steps[3].SetMirrorRoute.Match = []v1alpha1.RouteMatch{{Path: &v1alpha1.StringMatch{Prefix: "/api/v2"}}}
	if err := r.SetMirrorRoute(context.Background(), ro, c.Steps[3].SetMirrorRoute); err != nil {
		t.Errorf("SetMirrorRoute: %v", err)
	}
	if err := r.SetWeight(context.Background(), ro, 10, nil); err != nil {
		t.Errorf("SetWeight: %v", err)
	}
}

func TestAllCallsAndLooksAtOnce(t *testing.T) {
	w := newWorld(t, sharedVirtualService)
	a, b := withHdr(w)
	c := rival(w, "c", "one", time.Second)
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	r := w.router()
	r.Called()
	var wg sync.WaitGroup
	run := func(f func(i int)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 150 {
				f(i)
			}
		}()
	}
	for _, ro := range []*v1alpha1.Rollout{a, b, c} {
		run(func(i int) { _ = r.SetWeight(context.Background(), ro, int32(i%100), nil) })
		run(func(i int) { _ = r.UpdateHash(context.Background(), ro, "new", "old", nil) })
		run(func(i int) { _, _ = r.VerifyWeight(context.Background(), ro, int32(i%100), nil) })
		run(func(i int) { _ = r.RemoveManagedRoutes(context.Background(), ro) })
		run(func(i int) { _, _ = r.watchLook(context.Background(), types.UID(ro.UID)) })
		run(func(i int) {
			r.PodsChanged(ro.UID)
			r.RoutingChanged("VirtualService", "shop", "cart")
			r.ExperimentPodsChanged("shop", "x")
			r.Called()
		})
	}
	run(func(i int) { w.pods("new", int32(i%21), 20) })
	wg.Wait()
}

func withHdr(w *world) (a, b *v1alpha1.Rollout) {
	w.services["shop/cart-canary"], w.services["shop/cart-stable"] = "new", "old"
	a, b = rival(w, "a", "one", time.Hour), rival(w, "b", "two", time.Minute)
	ten, idx := int32(10), int32(1)
	for _, ro := range []*v1alpha1.Rollout{a, b} {
		ro.Spec.Strategy.Canary.Steps = []v1alpha1.CanaryStep{{SetWeight: &ten}, {SetHeaderRoute: headerStep("hdr", true)}, {Pause: &v1alpha1.RolloutPause{}}}
		ro.Spec.Strategy.Canary.TrafficRouting.ManagedRoutes = []v1alpha1.MangedRoutes{{Name: "hdr"}}
		ro.Status.CurrentStepIndex = &idx
	}
	return a, b
}
