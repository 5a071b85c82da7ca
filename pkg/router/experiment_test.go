package router

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

func share(service, hash string, weight int32) v1alpha1.WeightDestination {
	return v1alpha1.WeightDestination{ServiceName: service, PodTemplateHash: hash, Weight: weight}
}

func TestAnExperimentGetsItsShareOnceItsPodsAreThereAndLeavesNothing(t *testing.T) {
	for level, tc := range map[string]struct{ config, vs, subset string }{
		"host":   {hostConfig, hostVirtualService, ""},
		"subset": {subsetConfig, subsetVirtualService, "stable=old canary=new exp-a=ha exp-b=hb"},
	} {
		t.Run(level, func(t *testing.T) {
			w := newWorld(t, tc.vs, subsetDestinationRule)
			w.pods("old", 20, 20)
			w.pods("new", 20, 20)
			if level == "host" {
				w.services["shop/cart-stable"], w.services["shop/cart-canary"] = "old", "new"
			}
			r, ro, ctx := w.router(), rollout(tc.config), context.Background()
			r.Called()
			mustUpdate(t, r, ro, "new", "old")
			exp := []v1alpha1.WeightDestination{share("exp-a", "ha", 15), share("", "nobody", 7), share("exp-b", "hb", 15)}
			call := func(weight int32, exp []v1alpha1.WeightDestination) bool {
				t.Helper()
				if err := r.UpdateHash(ctx, ro, "new", "old", exp); err != nil {
					t.Fatal(err)
				}
				if err := r.SetWeight(ctx, ro, weight, exp); err != nil {
					wantError(t, err, "no first request yet: template exp-")
					w.pass(2 * time.Second)
					must(t, r.SetWeight(ctx, ro, weight, exp))
				}
				verified, err := r.VerifyWeight(ctx, ro, weight, exp)
				if err != nil {
					t.Errorf("after an error the controller comes back only when something of the Rollout changes: %v", err)
				}
				return verified
			}
			for range 2 {
				if call(20, exp) {
					t.Error("verified without a pod of the experiment")
				}
			}
			if told := strings.Count(strings.Join(w.eventsSince(), "\n"), EventWeightNotInEffect); told != 1 {
				t.Errorf("told %d times that a share waits", told)
			}
			w.wantRoutes(t, "no template has a pod", "primary 80/20")
			w.templates["ha"] = 1
			if call(20, exp) {
				t.Error("verified with half of the experiment")
			}
			w.wantRoutes(t, "one has", "primary 65/20/15")
			w.templates["hb"] = 2
			if !call(20, exp) {
				t.Error("not verified with all of it")
			}
			w.wantRoutes(t, "both have", "primary 50/20/15/15")
			if got := w.labels(); tc.subset != "" && got != tc.subset {
				t.Errorf("subsets %s, want %s", got, tc.subset)
			}
			w.templates["ha"] = 0
			if _, err := r.watchLook(ctx, "uid-1"); err != nil {
				t.Fatal(err)
			}
			w.wantRoutes(t, "the watch takes the share of a template that lost its pods", "primary 65/20/15")
			w.templates["ha"] = 1
			call(0, exp)
			w.wantRoutes(t, "the canary's weight is its own", "primary 70/0/15/15")
			call(20, nil)
			w.wantRoutes(t, "the experiment has ended", "primary 80/20")
			w.pass(3 * time.Second)
			if _, err := r.watchLook(ctx, "uid-1"); err != nil {
				t.Fatal(err)
			}
			if got := w.labels(); tc.subset != "" && got != "stable=old canary=new" {
				t.Errorf("left-over subsets: %s", got)
			}
			for key, u := range w.objects {
				if len(u.GetAnnotations()) != 0 {
					t.Errorf("%s keeps %v", key, u.GetAnnotations())
				}
			}
		})
	}
}

func TestASubsetOutlivesItsLastWeightBySettle(t *testing.T) {
	w := newWorld(t, subsetVirtualService, subsetDestinationRule)
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	w.templates["ha"] = 1
	r, ro, ctx := w.router(), rollout(subsetConfig), context.Background()
	r.Called()
	exp := []v1alpha1.WeightDestination{share("exp-a", "ha", 15)}
	for _, exp := range [][]v1alpha1.WeightDestination{exp, nil, nil} {
		if err := r.UpdateHash(ctx, ro, "new", "old", exp); err != nil {
			t.Fatal(err)
		}
		if got := w.labels(); !strings.Contains(got, "exp-a=ha") {
			t.Errorf("the subset has gone before the proxies know: %s", got)
		}
		if err := r.SetWeight(ctx, ro, 20, exp); err != nil {
			t.Fatal(err)
		}
	}
	w.pass(2 * time.Second)
	if err := r.UpdateHash(ctx, ro, "new", "old", nil); err != nil {
		t.Fatal(err)
	}
	if got := w.labels(); got != "stable=old canary=new" {
		t.Errorf("labels %s", got)
	}
}

func TestASharesBeyondTheMaximumAreScaledAndNeverNegative(t *testing.T) {
	w := hostWorld(t)
	w.pods("new", 20, 20)
	w.templates["ha"], w.templates["hb"] = 1, 1
	r, ro := w.router(), rollout(hostConfig)
	exp := []v1alpha1.WeightDestination{share("exp-a", "ha", 60), share("exp-b", "hb", 60)}
	for weight, want := range map[int32]string{0: "primary 0/0/50/50", 40: "primary 0/40/30/30"} {
		if err := r.SetWeight(context.Background(), ro, weight, exp); err != nil {
			t.Fatal(err)
		}
		w.wantRoutes(t, "60 and 60", want)
	}
}
