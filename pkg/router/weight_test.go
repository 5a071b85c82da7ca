package router

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// hostWorld is a rollback within rollbackWindow: the controller asks for 100 while
// 2 of 20 canary pods are there.
func hostWorld(t *testing.T) *world {
	w := newWorld(t, hostVirtualService)
	w.services["shop/cart-stable"], w.services["shop/cart-canary"] = "old", "new"
	w.pods("old", 20, 20)
	w.pods("new", 2, 20)
	return w
}

func setWeight(t *testing.T, r *Router, ro *v1alpha1.Rollout, weight int32) error {
	t.Helper()
	return r.SetWeight(context.Background(), ro, weight, nil)
}

func TestARollbackGetsWhatItsPodsCanTake(t *testing.T) {
	w := hostWorld(t)
	r, ro := w.router(), rollout(hostConfig)
	for _, c := range []struct {
		available int32
		want      string
		verified  bool
	}{
		{0, "100/0", false}, {2, "90/10", false}, {4, "80/20", false}, {15, "25/75", false}, {20, "0/100", true}, {7, "65/35", false},
	} {
		w.pods("new", c.available, 20)
		if c.available == 2 {
			mustSetSoon(t, w, r, ro, 100)
		}
		if err := setWeight(t, r, ro, 100); err != nil {
			t.Fatalf("%d pods: %v", c.available, err)
		}
		if got := w.weights(); got != c.want {
			t.Errorf("%d pods: stable/canary are %s, want %s", c.available, got, c.want)
		}
		verified, err := r.VerifyWeight(context.Background(), ro, 100, nil)
		if verified != c.verified || (err == nil) != c.verified {
			t.Errorf("%d pods: verified %v, error %v", c.available, verified, err)
		}
	}
}

func TestWritesAndEventsComeOncePerChange(t *testing.T) {
	w := hostWorld(t)
	r, ro := w.router(), rollout(hostConfig)
	for range 1000 {
		if err := setWeight(t, r, ro, 100); err != nil {
			t.Fatal(err)
		}
		if _, err := r.VerifyWeight(context.Background(), ro, 100, nil); err == nil {
			t.Fatal("a capped weight was verified")
		}
	}
	if len(w.writes) != 1 {
		t.Errorf("%d writes for one change: %v", len(w.writes), w.writes)
	}
	want := []string{
		`Normal VirtualServiceUpdated: VirtualService shop/cart: stable/canary of http[0] "primary" 100/0 -> 90/10`,
		`Warning CanaryWeightCapped: canary held at 10 of 100: 2 of 20 replicas available`,
	}
	if diff := cmp.Diff(want, w.eventsSince()); diff != "" {
		t.Error(diff)
	}
	w.pods("new", 20, 20)
	for range 10 {
		if err := setWeight(t, r, ro, 100); err != nil {
			t.Fatal(err)
		}
	}
	events := w.eventsSince()
	if len(events) != 2 || !strings.HasPrefix(events[1], "Normal CanaryWeightReleased: canary released: ") {
		t.Errorf("at the end of the cap: %v", events)
	}
}

func TestANewProcessDoesNotReportACapThatItFinds(t *testing.T) {
	w := hostWorld(t)
	ro := rollout(hostConfig)
	if err := setWeight(t, w.router(), ro, 100); err != nil {
		t.Fatal(err)
	}
	w.eventsSince()
	after := w.router()
	if err := setWeight(t, after, ro, 100); err != nil {
		t.Fatal(err)
	}
	if events := w.eventsSince(); len(events) != 0 {
		t.Errorf("reported again: %v", events)
	}
	w.pods("new", 20, 20)
	if err := setWeight(t, after, ro, 100); err != nil {
		t.Fatal(err)
	}
	if events := w.eventsSince(); len(events) != 2 {
		t.Errorf("the release of a cap found is reported too: %v", events)
	}
}

func TestSmallRisesWaitAndFallsDoNot(t *testing.T) {
	w := hostWorld(t)
	r := w.router()
	ro := rollout(`{"virtualService": {"name": "cart"}, "guard": {"minRaise": 20}}`)
	for _, c := range []struct {
		available int32
		want      string
	}{{2, "100/0"}, {4, "80/20"}, {6, "80/20"}, {3, "85/15"}, {6, "85/15"}, {8, "60/40"}, {20, "0/100"}} {
		w.pods("new", c.available, 20)
		if err := setWeight(t, r, ro, 100); err != nil {
			t.Fatal(err)
		}
		if got := w.weights(); got != c.want {
			t.Errorf("%d pods: %s, want %s", c.available, got, c.want)
		}
	}
}

func TestModes(t *testing.T) {
	for mode, want := range map[string]struct {
		weights string
		events  int
	}{
		"Enforce": {"90/10", 2},
		"Observe": {"0/100", 2},
		"Off":     {"0/100", 1},
	} {
		t.Run(mode, func(t *testing.T) {
			w := hostWorld(t)
			ro := rollout(`{"virtualService": {"name": "cart"}, "guard": {"mode": "` + mode + `"}}`)
			r := w.router()
			if err := setWeight(t, r, ro, 100); err != nil {
				t.Fatal(err)
			}
			if got := w.weights(); got != want.weights {
				t.Errorf("weights %s, want %s", got, want.weights)
			}
			if events := w.eventsSince(); len(events) != want.events {
				t.Errorf("events: %v", events)
			}
			verified, err := r.VerifyWeight(context.Background(), ro, 100, nil)
			if mode != "Enforce" && (!verified || err != nil) {
				t.Errorf("verified %v, error %v", verified, err)
			}
		})
	}
}

func TestDesiredWeightsOutOfRangeAreClamped(t *testing.T) {
	for desired, want := range map[int32]string{-140: "100/0", 0: "100/0", 200: "0/100"} {
		w := hostWorld(t)
		w.pods("new", 20, 20)
		if err := setWeight(t, w.router(), rollout(hostConfig), desired); err != nil {
			t.Fatal(err)
		}
		if got := w.weights(); got != want {
			t.Errorf("desired %d: %s, want %s", desired, got, want)
		}
	}
}

func TestNothingIsWrittenWhenOneObjectDoesNotFit(t *testing.T) {
	two := `{"virtualServices": [{"name": "cart"}, {"name": "cart-mesh"}]}`
	for name, second := range map[string]string{
		"the second VirtualService does not exist": "",
		"the second VirtualService has no canary": strings.NewReplacer(
			"name: cart}", "name: cart-mesh}", "cart-canary", "elsewhere").Replace(hostVirtualService),
	} {
		t.Run(name, func(t *testing.T) {
			w := hostWorld(t)
			if second != "" {
				w.apply(second)
			}
			err := setWeight(t, w.router(), rollout(two), 100)
			if err == nil || !strings.Contains(err.Error(), "VirtualService shop/cart-mesh") {
				t.Errorf("error: %v", err)
			}
			if len(w.writes) != 0 {
				t.Errorf("written: %v", w.writes)
			}
		})
	}
}

func TestALateFailureSaysWhatWasWrittenAndTheNextCallConverges(t *testing.T) {
	w := hostWorld(t)
	w.apply(strings.Replace(hostVirtualService, "name: cart}", "name: cart-mesh}", 1))
	w.refuse["VirtualService shop/cart-mesh"] = errors.New("webhook says no")
	r, ro := w.router(), rollout(`{"virtualServices": [{"name": "cart"}, {"name": "cart-mesh"}]}`)
	err := setWeight(t, r, ro, 100)
	if err == nil {
		t.Fatal("a half-written change succeeded")
	}
	for _, part := range []string{"webhook says no", "already written: VirtualService shop/cart;"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	if verified, _ := r.VerifyWeight(context.Background(), ro, 100, nil); verified {
		t.Error("half-written and verified")
	}
	delete(w.refuse, "VirtualService shop/cart-mesh")
	if err := setWeight(t, r, ro, 100); err != nil {
		t.Fatal(err)
	}
	if len(w.writes) != 2 || w.writes[1] != "VirtualService shop/cart-mesh" {
		t.Errorf("writes: %v", w.writes)
	}
}

func TestAServiceThatTheControllerMovesInTheSameReconcileCannotHideTheNewPods(t *testing.T) {
	w := hostWorld(t)
	// Our view of the Service is old: it still selects the stable's pods.
	w.services["shop/cart-canary"] = "old"
	r, ro := w.router(), rollout(hostConfig)
	if err := r.UpdateHash(context.Background(), ro, "new", "old", nil); err != nil {
		t.Fatal(err)
	}
	if err := setWeight(t, r, ro, 100); err != nil {
		t.Fatal(err)
	}
	if got := w.weights(); got != "90/10" {
		t.Errorf("stable/canary are %s", got)
	}
}

func TestDynamicStableScaleIsHeldUntilMaxHold(t *testing.T) {
	w := hostWorld(t)
	ro := rollout(`{"virtualService": {"name": "cart"}, "guard": {"maxHold": "60s"}}`)
	ro.Spec.Strategy.Canary.DynamicStableScale = true
	r := w.router()
	for _, step := range []struct {
		name      string
		pass      time.Duration
		available int32
		held      bool
	}{
		{"at once", 0, 2, true},
		{"before maxHold", 59 * time.Second, 2, true},
		{"a pod came: the hold begins anew", 0, 3, true},
		{"a pod went and came: it does not", 30 * time.Second, 2, true},
		{"", 0, 3, true},
		{"after maxHold", 31 * time.Second, 3, false},
	} {
		w.pass(step.pass)
		w.pods("new", step.available, 20)
		err := setWeight(t, r, ro, 100)
		if (err != nil) != step.held {
			t.Errorf("%s: error %v", step.name, err)
		}
		verified, verr := r.VerifyWeight(context.Background(), ro, 100, nil)
		if verified || (verr == nil) != step.held {
			t.Errorf("%s: verified %v, error %v", step.name, verified, verr)
		}
	}
}
