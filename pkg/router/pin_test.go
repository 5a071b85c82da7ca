package router

import (
	"context"
	"strings"
	"testing"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// pinTo returns a Rollout with the brake on.
func pinTo(text string) *v1alpha1.Rollout {
	ro := rollout(hostConfig)
	ro.Annotations = map[string]string{PinAnnotation: text}
	return ro
}

func TestAPinHoldsTheWeightDownAndEveryStepUp(t *testing.T) {
	for name, c := range map[string]struct {
		pin       string
		desired   int32
		available int32
		size      int32
		weights   string
		verified  bool
		withError bool
	}{
		"in mid-canary it says why":                             {"20", 50, 20, 20, "80/20", false, true},
		"at the end it ends the reconcile, so nothing promotes": {"20", 100, 20, 20, "80/20", false, false},
		"at the end, with pods to scale, scaling goes on":       {"20", 100, 2, 2, "90/10", false, true},
		"the guard may go lower":                                {"20", 100, 2, 20, "90/10", false, true},
		"a pin of 0 takes all traffic away":                     {"0", 50, 20, 20, "100/0", false, true},
		"it never raises":                                       {"20", 10, 20, 20, "90/10", true, false},
		"an abort passes":                                       {"20", 0, 20, 20, "100/0", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := hostWorld(t)
			w.pods("new", c.available, c.size)
			r, ro := w.router(), pinTo(c.pin)
			if err := setWeight(t, r, ro, c.desired); err != nil {
				t.Fatal(err)
			}
			if got := w.weights(); got != c.weights {
				t.Errorf("weights %s, want %s", got, c.weights)
			}
			verified, err := r.VerifyWeight(context.Background(), ro, c.desired, nil)
			if verified != c.verified || (err != nil) != c.withError {
				t.Errorf("verified %v, error %v", verified, err)
			}
		})
	}
}

func TestAPinIsReportedAtItsBeginAndItsEnd(t *testing.T) {
	w := hostWorld(t)
	w.pods("new", 20, 20)
	r := w.router()
	for range 3 {
		if err := setWeight(t, r, pinTo("20"), 50); err != nil {
			t.Fatal(err)
		}
	}
	if events := w.eventsSince(); len(events) != 2 || !strings.HasPrefix(events[1], "Warning CanaryWeightPinned: canary pinned at 20 of 50") {
		t.Errorf("at the begin: %q", events)
	}
	for range 3 {
		if err := setWeight(t, r, rollout(hostConfig), 50); err != nil {
			t.Fatal(err)
		}
	}
	if events := w.eventsSince(); len(events) != 2 || !strings.HasPrefix(events[1], "Normal CanaryWeightUnpinned: canary no longer pinned at 20") {
		t.Errorf("at the end: %q", events)
	}
	if got := w.weights(); got != "50/50" {
		t.Errorf("after the pin: %s", got)
	}
}

func TestAPinThatCannotBeReadStopsRisesAndLetsFallsThrough(t *testing.T) {
	for _, text := range []string{"", "ten", "-1", "101", "20 %", "1e1", "99999999999999"} {
		w := hostWorld(t)
		w.pods("new", 20, 20)
		r := w.router()
		if err := setWeight(t, r, rollout(hostConfig), 30); err != nil {
			t.Fatal(err)
		}
		err := setWeight(t, r, pinTo(text), 50)
		if err == nil || !strings.Contains(err.Error(), "write a whole number from 0 to 100") || w.weights() != "70/30" {
			t.Errorf("pin %q, a rise: error %v, weights %s", text, err, w.weights())
		}
		if err := r.UpdateHash(context.Background(), pinTo(text), "new", "old", nil); err != nil {
			t.Errorf("pin %q: UpdateHash: %v", text, err)
		}
		if err := setWeight(t, r, pinTo(text), 0); err != nil || w.weights() != "100/0" {
			t.Errorf("pin %q, an abort: error %v, weights %s", text, err, w.weights())
		}
		if verified, err := r.VerifyWeight(context.Background(), pinTo(text), 0, nil); verified || err == nil {
			t.Errorf("pin %q: verified %v, error %v", text, verified, err)
		}
	}
}

func TestAPinUnderDynamicStableScaleSparesTheStable(t *testing.T) {
	w := hostWorld(t)
	w.pods("new", 10, 10)
	w.pods("old", 10, 10)
	ro := pinTo("0")
	ro.Spec.Strategy.Canary.DynamicStableScale = true
	err := setWeight(t, w.router(), ro, 50)
	if err == nil || !strings.Contains(err.Error(), "the stable ReplicaSet keeps its size") {
		t.Errorf("error %v; want the reconcile held", err)
	}
	if got := w.weights(); got != "50/50" {
		t.Errorf("weights %s: the stable has 10 of 20 pods", got)
	}
	ro.Status.Abort = true
	if err := setWeight(t, w.router(), ro, 20); err != nil {
		t.Errorf("on the way back: %v", err)
	}
}
