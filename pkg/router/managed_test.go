package router

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// headerStep is a step that makes a route, or without a match removes it.
func headerStep(name string, match bool) *v1alpha1.SetHeaderRoute {
	step := &v1alpha1.SetHeaderRoute{Name: name}
	if match {
		step.Match = []v1alpha1.HeaderRoutingMatch{{HeaderName: "x", HeaderValue: &v1alpha1.StringMatch{Exact: "y"}}}
	}
	return step
}

// mirrorStep is to mirror routes what headerStep is to header routes.
func mirrorStep(name string, match bool) *v1alpha1.SetMirrorRoute {
	step := &v1alpha1.SetMirrorRoute{Name: name}
	if match {
		step.Match = []v1alpha1.RouteMatch{{Method: &v1alpha1.StringMatch{Exact: "GET"}}}
	}
	return step
}

// stepped is a Rollout in mid-canary: weight 10, a header route, a mirror route,
// and it stands at that step.
func stepped(config string, index int32) *v1alpha1.Rollout {
	ro, ten := rollout(config), int32(10)
	canary := ro.Spec.Strategy.Canary
	canary.Steps = []v1alpha1.CanaryStep{
		{SetWeight: &ten}, {SetHeaderRoute: headerStep("hdr", true)}, {Pause: &v1alpha1.RolloutPause{}},
		{SetMirrorRoute: mirrorStep("mir", true)}, {SetHeaderRoute: headerStep("hdr", false)},
	}
	canary.TrafficRouting.ManagedRoutes = []v1alpha1.MangedRoutes{{Name: "hdr"}, {Name: "mir"}}
	ro.Status.CurrentStepIndex = &index
	return ro
}

// routes are the http routes of VirtualService shop/cart: name and stable/canary,
// or the host or subset of an only destination.
func (w *world) routes() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	http, _, _ := unstructured.NestedSlice(w.objects["VirtualService shop/cart"].Object, "spec", "http")
	var out []string
	for _, route := range http {
		r := route.(map[string]any)
		var to []string
		for _, d := range r["route"].([]any) {
			weight := d.(map[string]any)["weight"]
			if weight == nil {
				weight = 0
			}
			to = append(to, fmt.Sprint(weight))
		}
		text := fmt.Sprintf("%v %s", r["name"], strings.Join(to, "/"))
		if r["mirror"] != nil {
			text += " mirrored"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func (w *world) wantRoutes(t *testing.T, when, want string) {
	t.Helper()
	if got := w.routes(); got != want {
		t.Errorf("%s: routes are %s, want %s", when, got, want)
	}
}

// midCanary is a canary with all of the pods that its weight of 10 needs.
func midCanary(t *testing.T) (*world, *Router) {
	w := hostWorld(t)
	r := w.router()
	r.Called()
	return w, r
}

func TestManagedRoutesFollowFromTheStepsAndHealAtTheNextCall(t *testing.T) {
	w, r := midCanary(t)
	ctx := context.Background()
	set := func(index, weight int32) {
		t.Helper()
		if err := r.SetWeight(ctx, stepped(hostConfig, index), weight, nil); err != nil {
			t.Fatal(err)
		}
	}
	set(0, 10)
	w.wantRoutes(t, "before the step", "primary 90/10")
	if err := r.SetHeaderRoute(ctx, stepped(hostConfig, 1), headerStep("hdr", true)); err != nil {
		t.Fatal(err)
	}
	w.wantRoutes(t, "the step's call makes it", "hdr 100, primary 90/10")
	set(1, 0)
	w.wantRoutes(t, "the weight does not touch it", "hdr 100, primary 100/0")
	set(2, 10)
	if err := r.RemoveManagedRoutes(ctx, stepped(hostConfig, 2)); err != nil {
		t.Fatal(err)
	}
	w.wantRoutes(t, "the controller removes it, as after a restart of the pods", "primary 90/10")
	set(2, 10)
	w.wantRoutes(t, "and never asks for it again", "hdr 100, primary 90/10")
	w.apply(hostVirtualService)
	set(2, 10)
	w.wantRoutes(t, "a hand has taken it away", "hdr 100, primary 90/10")
	set(3, 10)
	w.wantRoutes(t, "a mirror beside it", "hdr 100, mir 90/10 mirrored, primary 90/10")
	set(3, 5)
	w.wantRoutes(t, "which follows the weight", "hdr 100, mir 95/5 mirrored, primary 95/5")
	set(4, 10)
	w.wantRoutes(t, "a step without a match removes", "mir 90/10 mirrored, primary 90/10")
	done := stepped(hostConfig, 5)
	done.Status.StableRS = "new"
	if err := r.SetWeight(ctx, done, 0, nil); err != nil {
		t.Fatal(err)
	}
	w.wantRoutes(t, "a finished rollout leaves nothing", "primary 100/0")
	writes := len(w.writes)
	for range 3 {
		if err := r.RemoveManagedRoutes(ctx, done); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.writes) != writes {
		t.Errorf("removing nothing wrote %v", w.writes[writes:])
	}
}

func TestManagedRoutesWaitForACanaryThatCanServeThem(t *testing.T) {
	w, r := midCanary(t)
	ctx := context.Background()
	ro := stepped(hostConfig, 1)
	w.pods("new", 0, 2)
	if err := r.SetHeaderRoute(ctx, ro, headerStep("hdr", true)); err != nil {
		t.Fatal(err)
	}
	if err := r.SetWeight(ctx, ro, 0, nil); err != nil {
		t.Fatal(err)
	}
	w.wantRoutes(t, "no pod", "primary 100/0")
	if verified, err := r.VerifyWeight(ctx, ro, 0, nil); err != nil || !verified {
		t.Errorf("what is there is what can be: verified %v, %v", verified, err)
	}
	w.pods("new", 1, 2)
	must(t, r.SetHeaderRoute(ctx, ro, headerStep("hdr", true)))
	w.wantRoutes(t, "a pod that the proxies do not know", "primary 100/0")
	mustSetSoon(t, w, r, ro, 0)
	w.wantRoutes(t, "a pod", "hdr 100, primary 100/0")
	pinned := stepped(hostConfig, 1)
	pinned.Annotations = map[string]string{PinAnnotation: "0"}
	if err := r.SetWeight(ctx, pinned, 10, nil); err != nil {
		t.Fatal(err)
	}
	w.wantRoutes(t, "pinned at 0", "primary 100/0")
}

func TestARollbackThatSkippedItsStepsHasNoneOfTheirRoutes(t *testing.T) {
	for sentence, tc := range map[string]struct {
		window int32
		older  bool
		want   string
	}{
		"a rollback within the window":    {3, true, "primary 100/0"},
		"a rollback without a window":     {0, true, "mir 100/0 mirrored, primary 100/0"},
		"a rollback beyond the window":    {1, true, "mir 100/0 mirrored, primary 100/0"},
		"a new revision at its last step": {3, false, "mir 100/0 mirrored, primary 100/0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r := midCanary(t)
			ro := stepped(hostConfig, 5)
			if tc.window > 0 {
				ro.Spec.RollbackWindow = &v1alpha1.RollbackWindowSpec{Revisions: tc.window}
			}
			now := w.clock.Now()
			ages := map[string]time.Duration{"new": 3 * time.Hour, "between": 2 * time.Hour, "old": time.Hour}
			if !tc.older {
				ages["new"] = time.Minute
			}
			w.pods("between", 0, 0)
			for hash, age := range ages {
				set := w.sets[hash]
				set.Created = now.Add(-age)
				w.sets[hash] = set
			}
			if err := r.SetWeight(context.Background(), ro, 0, nil); err != nil {
				t.Fatal(err)
			}
			w.wantRoutes(t, sentence, tc.want)
		})
	}
}

func TestASupersededCanaryLosesItsHeaderRouteBeforeItsLabel(t *testing.T) {
	for sentence, removes := range map[string]bool{"the controller removes it": true, "the controller has not seen yet that the pods are gone": false} {
		t.Run(sentence, func(t *testing.T) { superseded(t, removes) })
	}
}

func superseded(t *testing.T, removes bool) {
	w, r, _ := subsetWorld(t)
	ctx := context.Background()
	ro := stepped(subsetConfig, 1)
	ro.Status.StableRS, ro.Status.CurrentPodHash = "v1", "v2"
	w.pods("v1", 20, 20)
	w.pods("v2", 2, 2)
	mustUpdate(t, r, ro, "v2", "v1")
	if err := r.SetWeight(ctx, ro, 0, nil); err != nil {
		t.Fatal(err)
	}
	w.wantRoutes(t, "weight 0, header route", "hdr 100, primary 100/0")
	w.pass(time.Hour)
	ro.Status.CurrentPodHash = "v3"
	w.pods("v3", 0, 2)
	if removes {
		if err := r.RemoveManagedRoutes(ctx, ro); err != nil {
			t.Fatal(err)
		}
	}
	if err := updateHash(r, ro, "v3", "v1"); err == nil {
		t.Error("the label moved while proxies may still send header requests to it")
	}
	w.wantRoutes(t, "superseded", "primary 100/0")
	if got := w.labels(); !strings.Contains(got, "canary=v2") {
		t.Errorf("labels %s", got)
	}
	w.pass(2 * time.Second)
	mustUpdate(t, r, ro, "v3", "v1")
}

func TestAWeightThatHasToGoDownDoesNotWaitForAManagedRouteThatCannotBeMade(t *testing.T) {
	w, r := midCanary(t)
	ro := stepped(hostConfig, 2)
	w.rollouts["shop/cart"] = ro
	if err := r.SetWeight(context.Background(), ro, 10, nil); err != nil {
		t.Fatal(err)
	}
	// Somebody asks for the same header, by a regular expression: nothing can be both.
	w.apply(strings.Replace(hostVirtualService, "    route:", "    match: [{headers: {x: {regex: 'a.*'}}}]\n    route:", 1))
	w.setWeights("90/10")
	if err := r.SetWeight(context.Background(), ro, 10, nil); err == nil {
		t.Fatal("the route was made of what cannot be combined")
	}
	w.pods("new", 1, 2)
	watched(t, r)
	if w.weights() != "95/5" {
		t.Errorf("the watch leaves %s, want 95/5", w.weights())
	}
	w.setWeights("90/10")
	err := r.SetWeight(context.Background(), ro, 10, nil)
	if err == nil || w.weights() != "95/5" {
		t.Errorf("weights %s, error %v; want 95/5 and the error", w.weights(), err)
	}
}

func TestAHeaderRouteNeedsAnHTTPRouteAndItsNameInManagedRoutes(t *testing.T) {
	w := newWorld(t, `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec:
  hosts: [cart]
  tcp:
  - route:
    - {destination: {host: cart-stable}, weight: 100}
    - {destination: {host: cart-canary}, weight: 0}
`)
	w.pods("old", 20, 20)
	w.pods("new", 2, 20)
	r := w.router()
	ro := stepped(hostConfig, 1)
	err := r.SetHeaderRoute(context.Background(), ro, headerStep("hdr", true))
	if err == nil || !strings.Contains(err.Error(), "hdr") || !strings.Contains(err.Error(), "http route") {
		t.Errorf("tcp only: %v", err)
	}
	err = r.SetHeaderRoute(context.Background(), ro, headerStep("other", true))
	if err == nil || !strings.Contains(err.Error(), "managedRoutes: add it there") {
		t.Errorf("not managed: %v", err)
	}
	if err := r.RemoveManagedRoutes(context.Background(), ro); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
	delete(w.objects, "VirtualService shop/cart")
	if err := r.RemoveManagedRoutes(context.Background(), ro); err != nil {
		t.Errorf("no VirtualService: %v", err)
	}
	if len(w.writes) != 0 {
		t.Errorf("writes: %v", w.writes)
	}
}

func TestARolloutWithoutRoutingIsAnErrorInEveryCall(t *testing.T) {
	r := hostWorld(t).router()
	ctx := context.Background()
	for name, ro := range map[string]*v1alpha1.Rollout{"no canary": rollout(hostConfig), "no traffic routing": rollout(hostConfig)} {
		if name == "no canary" {
			ro.Spec.Strategy.Canary = nil
		} else {
			ro.Spec.Strategy.Canary.TrafficRouting = nil
		}
		_, verify := r.VerifyWeight(ctx, ro, 10, nil)
		for call, err := range map[string]error{
			"UpdateHash": r.UpdateHash(ctx, ro, "new", "old", nil), "SetWeight": r.SetWeight(ctx, ro, 10, nil),
			"VerifyWeight": verify, "RemoveManagedRoutes": r.RemoveManagedRoutes(ctx, ro),
		} {
			if err == nil || !strings.Contains(err.Error(), "spec.strategy.canary") {
				t.Errorf("%s, %s: %v", name, call, err)
			}
		}
	}
}
