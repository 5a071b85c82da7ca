package router

import (
	"context"
	"strings"
	"testing"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

func managedRoutes(name string) []v1alpha1.MangedRoutes {
	return []v1alpha1.MangedRoutes{{Name: name}}
}

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

// withRoute is the host-level VirtualService with one more route in front.
func withRoute(name string) string {
	return strings.Replace(hostVirtualService, "  http:\n", "  http:\n  - name: "+name+"\n    route:\n    - {destination: {host: cart-canary}}\n", 1)
}

func TestStepsThatAreNotSupportedSayWhatToRemove(t *testing.T) {
	w := hostWorld(t)
	r, ro := w.router(), rollout(hostConfig)
	ro.Spec.Strategy.Canary.TrafficRouting.ManagedRoutes = managedRoutes("hdr")
	ctx := context.Background()
	if err := r.SetHeaderRoute(ctx, ro, headerStep("hdr", true)); err == nil {
		t.Error("a header route was accepted and not made")
	}
	if err := r.SetHeaderRoute(ctx, ro, headerStep("hdr", false)); err != nil {
		t.Errorf("removing what is not there: %v", err)
	}
	if err := r.SetMirrorRoute(ctx, ro, mirrorStep("hdr", true)); err == nil {
		t.Error("a mirror route was accepted and not made")
	}
	if err := r.SetMirrorRoute(ctx, ro, mirrorStep("hdr", false)); err != nil {
		t.Errorf("removing what is not there: %v", err)
	}
	if err := r.RemoveManagedRoutes(ctx, ro); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
	w.apply(withRoute("hdr"))
	if err := r.RemoveManagedRoutes(ctx, ro); err == nil {
		t.Error("a managed route is there and was not removed, without an error")
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
