package router

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

const sharedVirtualService = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec:
  hosts: [cart]
  http:
  - name: one
    route:
    - {destination: {host: cart-stable}, weight: 100}
    - {destination: {host: cart-canary}, weight: 0}
  - name: two
    route:
    - {destination: {host: cart-stable}, weight: 100}
    - {destination: {host: cart-canary}, weight: 0}
`

// rival is a Rollout that handles one route of the shared VirtualService.
func rival(w *world, name, route string, age time.Duration) *v1alpha1.Rollout {
	ro := rollout(fmt.Sprintf(`{"virtualService": {"name": "cart", "routes": [%q]}}`, route))
	ro.Name, ro.UID = name, types.UID("uid-"+name)
	ro.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(-age))
	w.rollouts["shop/"+name] = ro
	return ro
}

func TestTwoRolloutsOnOneVirtualServiceKeepToTheirRoutes(t *testing.T) {
	w := newWorld(t, sharedVirtualService)
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	r := w.router()
	if err := setWeight(t, r, rival(w, "a", "one", time.Hour), 30); err != nil {
		t.Fatal(err)
	}
	if err := setWeight(t, r, rival(w, "b", "two", time.Minute), 60); err != nil {
		t.Fatal(err)
	}
	w.wantRoutes(t, "each its own", "one 70/30, two 40/60")
}

func TestTwoRolloutsOnOneRouteTheOlderKeepsIt(t *testing.T) {
	for sentence, first := range map[string]string{"the older is called first": "a", "the younger is called first": "b"} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, sharedVirtualService)
			w.pods("old", 20, 20)
			w.pods("new", 20, 20)
			r := w.router()
			older, younger := rival(w, "a", "one", time.Hour), rival(w, "b", "one", time.Minute)
			if first == "b" {
				if err := setWeight(t, r, younger, 60); err != nil {
					t.Fatalf("nobody else has called: %v", err)
				}
			}
			if err := setWeight(t, r, older, 30); err != nil {
				t.Fatal(err)
			}
			w.eventsSince()
			for range 3 {
				_, verify := r.VerifyWeight(context.Background(), younger, 60, nil)
				for call, err := range map[string]error{"SetWeight": setWeight(t, r, younger, 60), "UpdateHash": updateHash(r, younger, "new", "old"), "VerifyWeight": verify} {
					if err == nil || !strings.Contains(err.Error(), "Rollout shop/a") || !strings.Contains(err.Error(), `route http "one"`) {
						t.Errorf("%s of the younger: %v", call, err)
					}
				}
			}
			if err := setWeight(t, r, older, 40); err != nil {
				t.Errorf("the older: %v", err)
			}
			w.wantRoutes(t, "the older's weight", "one 60/40, two 100/0")
			var told int
			for _, event := range w.eventsSince() {
				if strings.Contains(event, EventConfigurationInvalid) {
					told++
				}
			}
			if told != 1 {
				t.Errorf("told %d times", told)
			}
			delete(w.rollouts, "shop/a")
			if err := setWeight(t, r, younger, 60); err != nil {
				t.Errorf("the older is deleted: %v", err)
			}
		})
	}
}

func TestTwoRolloutsOnOneManagedRouteOrSubset(t *testing.T) {
	w := newWorld(t, sharedVirtualService)
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	r := w.router()
	a, b := rival(w, "a", "one", time.Hour), rival(w, "b", "two", time.Minute)
	for _, ro := range []*v1alpha1.Rollout{a, b} {
		ro.Spec.Strategy.Canary.TrafficRouting.ManagedRoutes = []v1alpha1.MangedRoutes{{Name: "hdr"}}
	}
	if err := setWeight(t, r, a, 30); err != nil {
		t.Fatal(err)
	}
	if err := setWeight(t, r, b, 30); err == nil || !strings.Contains(err.Error(), `managed route "hdr"`) {
		t.Errorf("the same managed route: %v", err)
	}
	sub := newWorld(t, subsetVirtualService, subsetDestinationRule, strings.Replace(subsetVirtualService, "{name: cart}", "{name: second}", 1))
	sub.pods("old", 20, 20)
	r = sub.router()
	one, two := rollout(subsetConfig), rollout(strings.Replace(subsetConfig, `"virtualService": {"name": "cart"}`, `"virtualService": {"name": "second"}`, 1))
	two.Name, two.UID = "other", "uid-2"
	sub.rollouts["shop/cart"], sub.rollouts["shop/other"] = one, two
	if err := setWeight(t, r, one, 0); err != nil {
		t.Fatal(err)
	}
	if err := setWeight(t, r, two, 0); err == nil || !strings.Contains(err.Error(), `subset "canary"`) || !strings.Contains(err.Error(), "Rollout shop/cart") {
		t.Errorf("the same subset: %v", err)
	}
}
