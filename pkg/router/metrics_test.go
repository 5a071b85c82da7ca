package router

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
)

// recorded keeps what a Recorder is told, in words.
type recorded struct{ lines []string }

func (r *recorded) Weights(namespace, rollout string, desired, applied int32, reason string) {
	r.lines = append(r.lines, fmt.Sprintf("%s/%s %d of %d %s", namespace, rollout, applied, desired, reason))
}
func (r *recorded) Forget(namespace, rollout string) {
	r.lines = append(r.lines, "forget "+namespace+"/"+rollout)
}
func (r *recorded) DriftCorrected(kind string) { r.lines = append(r.lines, "drift of "+kind) }
func (r *recorded) Reaction(time.Duration)     { r.lines = append(r.lines, "reaction") }

func TestTheRecorderIsToldOfWeightsReactionsAndDrift(t *testing.T) {
	w := hostWorld(t)
	told := &recorded{}
	r := newRouter(w, Options{Recorder: told}, hclog.NewNullLogger(), w.clock)
	ro := rollout(hostConfig)
	w.rollouts["shop/cart"] = ro
	r.Called()
	expect := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, told.lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		told.lines = nil
	}
	if err := setWeight(t, r, ro, 100); err != nil {
		t.Fatal(err)
	}
	expect("2 of 20 pods", "shop/cart 10 of 100 Proportional")
	w.pods("new", 20, 20)
	if err := setWeight(t, r, ro, 100); err != nil {
		t.Fatal(err)
	}
	expect("all pods", "shop/cart 100 of 100 ")
	w.pods("new", 10, 20)
	w.pass(time.Second)
	r.PodsChanged("uid-1")
	watched(t, r)
	expect("pods were lost", "shop/cart 50 of 100 Proportional", "reaction")
	w.setWeights("100/0")
	watched(t, r)
	expect("somebody else wrote", "drift of VirtualService", "shop/cart 50 of 100 Proportional")
	ro.Annotations = map[string]string{PinAnnotation: "5"}
	if err := setWeight(t, r, ro, 100); err != nil {
		t.Fatal(err)
	}
	expect("pinned", "shop/cart 5 of 100 Pinned")
	w.pass(2 * forgetAfter)
	other := rollout(hostConfig)
	other.UID, other.Name = "uid-2", "other"
	_ = setWeight(t, r, other, 0)
	if len(told.lines) == 0 || told.lines[0] != "forget shop/cart" {
		t.Errorf("nobody asked for hours: %v", told.lines)
	}
}

func TestAReactionIsMeasuredFromItsOwnNews(t *testing.T) {
	w := hostWorld(t)
	w.pods("new", 20, 20)
	rec := &reactions{}
	r := newRouter(w, Options{Recorder: rec}, hclog.NewNullLogger(), w.clock)
	r.Called()
	ro := rollout(hostConfig)
	w.rollouts["shop/cart"] = ro
	if err := r.RemoveManagedRoutes(context.Background(), ro); err != nil { // all there is in an early return
		t.Fatal(err)
	}
	r.PodsChanged(ro.UID)
	_, _ = r.watchLook(context.Background(), ro.UID) // not asked yet
	w.pass(10 * time.Minute)
	r.Called()
	if err := setWeight(t, r, ro, 20); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	w.pods("new", 1, 20)
	r.PodsChanged(ro.UID)
	_, _ = r.watchLook(context.Background(), ro.UID)
	t.Log(w.weights())
	if len(rec.of) != 1 || rec.of[0] > time.Second {
		t.Errorf("reactions %v", rec.of)
	}
}

func TestNewsOfAForgottenRolloutIsForgotten(t *testing.T) {
	w := hostWorld(t)
	r := w.router()
	ro := rollout(hostConfig)
	if err := r.RemoveManagedRoutes(context.Background(), ro); err != nil {
		t.Fatal(err)
	}
	r.PodsChanged(ro.UID)
	_, _ = r.watchLook(context.Background(), ro.UID)
	w.pass(3 * time.Hour)
	other := rollout(hostConfig)
	other.Name, other.UID = "x", "x"
	_ = r.RemoveManagedRoutes(context.Background(), other)
	if r.memories.known(ro.UID) != nil {
		t.Fatal("not forgotten")
	}
	if len(r.watch.news) != 0 {
		t.Errorf("news of a forgotten Rollout: %v", r.watch.news)
	}
}

type reactions struct {
	nobody
	of []time.Duration
}

func (r *reactions) Reaction(d time.Duration) { r.of = append(r.of, d) }
