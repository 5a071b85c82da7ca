package router

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// subsetWorld is a canary v2 at 30 of 100, all pods there, labels in place.
func subsetWorld(t *testing.T) (*world, *Router, *v1alpha1.Rollout) {
	w := newWorld(t, subsetVirtualService, subsetDestinationRule)
	w.pods("v1", 20, 20)
	w.pods("v2", 20, 20)
	r, ro := w.router(), rollout(subsetConfig)
	ro.Status.StableRS, ro.Status.CurrentPodHash = "v1", "v2"
	mustUpdate(t, r, ro, "v2", "v1")
	if err := setWeight(t, r, ro, 30); err != nil {
		t.Fatal(err)
	}
	if w.labels() != "stable=v1 canary=v2" || w.weights() != "70/30" {
		t.Fatalf("begins with %s, %s", w.labels(), w.weights())
	}
	w.pass(time.Hour)
	w.writes, w.events = nil, nil
	return w, r, ro
}

func updateHash(r *Router, ro *v1alpha1.Rollout, canary, stable string) error {
	return r.UpdateHash(context.Background(), ro, canary, stable, nil)
}

func mustUpdate(t *testing.T, r *Router, ro *v1alpha1.Rollout, canary, stable string) {
	t.Helper()
	if err := updateHash(r, ro, canary, stable); err != nil {
		t.Fatal(err)
	}
}

func TestASupersededCanaryLosesItsWeightBeforeItsLabel(t *testing.T) {
	for name, restart := range map[string]bool{"in one process": false, "with a restart in between": true} {
		t.Run(name, func(t *testing.T) {
			w, r, ro := subsetWorld(t)
			w.pods("v3", 0, 2)
			ro.Status.CurrentPodHash = "v3"
			if err := updateHash(r, ro, "v3", "v1"); err == nil || w.labels() != "stable=v1 canary=v2" || w.weights() != "100/0" {
				t.Fatalf("error %v, %s, %s; want the weight gone and the label still there", err, w.labels(), w.weights())
			}
			if restart {
				r = w.router()
			}
			w.pass(900 * time.Millisecond)
			if err := updateHash(r, ro, "v3", "v1"); err == nil || w.labels() != "stable=v1 canary=v2" {
				t.Fatalf("before settle: error %v, %s", err, w.labels())
			}
			// A restart knows the write by the second only, so it may wait for one more.
			w.pass(1200 * time.Millisecond)
			mustUpdate(t, r, ro, "v3", "v1")
			if w.labels() != "stable=v1 canary=v3" {
				t.Errorf("after settle: %s", w.labels())
			}
		})
	}
}

func TestAHashThatIsSafeMovesAtOnceInOneWrite(t *testing.T) {
	for name, c := range map[string]struct {
		canary, stable string
		prepare        func(*world)
		want           string
	}{
		"another canary with all its pods":        {"v3", "v1", func(w *world) { w.pods("v3", 20, 20) }, "stable=v1 canary=v3"},
		"promotion, both labels":                  {"v2", "v2", func(*world) {}, "stable=v2 canary=v2"},
		"a sick stable does not block the canary": {"v3", "v1", func(w *world) { w.pods("v3", 20, 20); w.pods("v1", 3, 20) }, "stable=v1 canary=v3"},
		"nothing to move":                         {"v2", "v1", func(*world) {}, "stable=v1 canary=v2"},
		"no hash given leaves the label as it is": {"", "v1", func(*world) {}, "stable=v1 canary=v2"},
		"neither the old nor the new has a pod":   {"v3", "v1", func(w *world) { w.pods("v2", 0, 20); w.pods("v1", 0, 20) }, "stable=v1 canary=v3"},
	} {
		t.Run(name, func(t *testing.T) {
			w, r, ro := subsetWorld(t)
			c.prepare(w)
			mustUpdate(t, r, ro, c.canary, c.stable)
			if w.labels() != c.want {
				t.Errorf("%s, want %s", w.labels(), c.want)
			}
			if writes := len(w.writes); writes > 1 || (writes == 1) == (c.want == "stable=v1 canary=v2") {
				t.Errorf("writes: %v", w.writes)
			}
			for range 10 {
				mustUpdate(t, r, ro, c.canary, c.stable)
			}
			if len(w.writes) > 1 || len(w.eventsSince()) != len(w.writes) {
				t.Errorf("writes after ten more calls: %v", w.writes)
			}
		})
	}
}

func TestTheStablesLabelWaitsForPodsThatCarryItsTraffic(t *testing.T) {
	w, r, ro := subsetWorld(t)
	w.pods("v9", 0, 20)
	if err := updateHash(r, ro, "v2", "v9"); err == nil || !strings.Contains(err.Error(), "0 of 20 available") {
		t.Errorf("error %v", err)
	}
	if w.labels() != "stable=v1 canary=v2" {
		t.Errorf("%s", w.labels())
	}
}

func TestAPromotionMovesTheStablesLabelBeforeTrafficReturns(t *testing.T) {
	// The controller of v1.10 sets the weight before it announces the hashes when
	// a new revision without pods comes right after a promotion.
	prepare := func(t *testing.T) (*world, *Router, *v1alpha1.Rollout) {
		w, r, ro := subsetWorld(t)
		if err := setWeight(t, r, ro, 100); err != nil {
			t.Fatal(err)
		}
		w.pods("v1", 0, 0)
		w.pods("v3", 0, 2)
		ro.Status.StableRS, ro.Status.CurrentPodHash = "v2", "v3"
		w.writes = nil
		return w, r, ro
	}
	t.Run("the label first", func(t *testing.T) {
		w, r, ro := prepare(t)
		if err := setWeight(t, r, ro, 0); err != nil {
			t.Fatal(err)
		}
		if w.labels() != "stable=v2 canary=v2" || w.weights() != "100/0" {
			t.Errorf("%s, %s", w.labels(), w.weights())
		}
		if len(w.writes) != 2 || !strings.HasPrefix(w.writes[0], "DestinationRule") {
			t.Errorf("writes: %v", w.writes)
		}
	})
	t.Run("a label that cannot be written keeps the weight", func(t *testing.T) {
		w, r, ro := prepare(t)
		w.refuse["DestinationRule shop/cart"] = errors.New("conflict after conflict")
		if err := setWeight(t, r, ro, 0); err == nil {
			t.Error("succeeded")
		}
		if w.weights() != "0/100" {
			t.Errorf("stable/canary are %s", w.weights())
		}
	})
}

func TestWithoutTheGuardLabelsMoveAtOnce(t *testing.T) {
	w, r, ro := subsetWorld(t)
	w.pods("v3", 0, 2)
	off := rollout(strings.Replace(subsetConfig, `}}`, `}, "guard": {"mode": "Off"}}`, 1))
	off.Status = ro.Status
	mustUpdate(t, r, off, "v3", "v1")
	if w.labels() != "stable=v1 canary=v3" || w.weights() != "70/30" {
		t.Errorf("%s, %s", w.labels(), w.weights())
	}
}

func TestVerifyWeightLooksAtTheLabelsToo(t *testing.T) {
	w, r, ro := subsetWorld(t)
	if verified, err := r.VerifyWeight(context.Background(), ro, 30, nil); !verified || err != nil {
		t.Fatalf("verified %v, error %v", verified, err)
	}
	w.apply(strings.Replace(subsetDestinationRule, "{name: canary, labels: {app: cart}}", "{name: canary, labels: {app: cart, rollouts-pod-template-hash: v1}}", 1))
	if verified, err := r.VerifyWeight(context.Background(), ro, 30, nil); verified || err != nil {
		t.Errorf("with a foreign label: verified %v, error %v", verified, err)
	}
}

func TestTheNativeAnnotationIsRemovedAndTold(t *testing.T) {
	w, r, ro := subsetWorld(t)
	w.apply(strings.Replace(subsetDestinationRule, "{name: cart}", `{name: cart, annotations: {argo-rollouts.argoproj.io/managed-by-rollouts: cart, other: kept}}`, 1))
	mustUpdate(t, r, ro, "v2", "v1")
	if annotations := w.objects["DestinationRule shop/cart"].GetAnnotations(); len(annotations) != 1 || annotations["other"] != "kept" {
		t.Errorf("annotations %v", annotations)
	}
}
