package router

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// atHundred is a world in which the controller has asked for 100 and all 20
// canary pods were there.
func atHundred(t *testing.T) (*world, *Router) {
	w := hostWorld(t)
	w.pods("new", 20, 20)
	r := w.router()
	r.Called()
	if err := setWeight(t, r, rollout(hostConfig), 100); err != nil {
		t.Fatal(err)
	}
	if got := w.weights(); got != "0/100" {
		t.Fatalf("begins with %s", got)
	}
	w.writes, w.events = nil, nil
	return w, r
}

func TestTheWatchLowersAndNeverRaises(t *testing.T) {
	w, r := atHundred(t)
	for _, c := range []struct {
		available int32
		want      string
	}{{10, "50/50"}, {20, "50/50"}, {2, "90/10"}, {0, "100/0"}, {20, "100/0"}} {
		w.pods("new", c.available, 20)
		if again, err := r.watchLook(context.Background(), "uid-1"); again != 0 || err != nil {
			t.Errorf("%d pods: again %v, error %v", c.available, again, err)
		}
		if got := w.weights(); got != c.want {
			t.Errorf("%d pods: %s, want %s", c.available, got, c.want)
		}
	}
}

func TestTheWatchRaisesOnlyWhereTheStableHasNoPodLeft(t *testing.T) {
	w, r := atHundred(t)
	w.pods("new", 5, 20)
	for _, c := range []struct {
		canary, stable int32
		want           string
	}{{5, 20, "75/25"}, {10, 20, "75/25"}, {10, 1, "75/25"}, {10, 0, "0/100"}, {0, 0, "0/100"}, {0, 1, "100/0"}, {1, 0, "0/100"}} {
		w.pods("new", c.canary, 20)
		w.pods("old", c.stable, 20)
		watched(t, r)
		if got := w.weights(); got != c.want {
			t.Errorf("%d canary and %d stable pods: %s, want %s", c.canary, c.stable, got, c.want)
		}
	}
}

func TestTheWatchWritesNothingForRolloutsNobodyAskedAbout(t *testing.T) {
	w, _ := atHundred(t)
	w.pods("new", 2, 20)
	fresh := w.router()
	fresh.Called()
	if again, err := fresh.watchLook(context.Background(), "uid-1"); again != 0 || err != nil {
		t.Errorf("again %v, error %v", again, err)
	}
	// Asked about its hashes only, as before an early return of the controller.
	if err := fresh.UpdateHash(context.Background(), rollout(hostConfig), "new", "old", nil); err != nil {
		t.Fatal(err)
	}
	if again, err := fresh.watchLook(context.Background(), "uid-1"); again != 0 || err != nil {
		t.Errorf("again %v, error %v", again, err)
	}
	if len(w.writes) != 0 {
		t.Errorf("written: %v", w.writes)
	}
}

func TestAProcessThatIsNoLongerCalledStopsWriting(t *testing.T) {
	w, r := atHundred(t)
	w.pods("new", 2, 20)
	w.pass(lease + time.Second)
	if again, err := r.watchLook(context.Background(), "uid-1"); again != notNow || err != nil {
		t.Errorf("again %v, error %v; want to be asked again", again, err)
	}
	if len(w.writes) != 0 {
		t.Fatalf("written after the lease: %v", w.writes)
	}
	r.Called()
	if again, err := r.watchLook(context.Background(), "uid-1"); again != notNow || err != nil {
		t.Errorf("called, but not for this Rollout: again %v, error %v", again, err)
	}
	if _, err := r.VerifyWeight(context.Background(), rollout(hostConfig), 100, nil); err == nil {
		t.Error("100 is verified with 2 pods")
	}
	settled(t, w, r)
	if got := w.weights(); got != "90/10" {
		t.Errorf("once called again: %s", got)
	}
}

func TestTheWatchObservesWithoutActing(t *testing.T) {
	w := hostWorld(t)
	w.pods("new", 20, 20)
	r := w.router()
	r.Called()
	if err := setWeight(t, r, rollout(`{"virtualService": {"name": "cart"}, "guard": {"mode": "Observe"}}`), 100); err != nil {
		t.Fatal(err)
	}
	w.pods("new", 2, 20)
	if _, err := r.watchLook(context.Background(), "uid-1"); err != nil {
		t.Fatal(err)
	}
	if got := w.weights(); got != "0/100" {
		t.Errorf("observing: %s", got)
	}
}

func TestAChangeOfPodsReachesTheObjectsAndIsReportedOnce(t *testing.T) {
	w, _ := atHundred(t)
	// The queue needs a clock that runs.
	r := New(w, Options{}, w.router().log)
	r.Called()
	if err := setWeight(t, r, rollout(hostConfig), 100); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { r.Watch(ctx); close(ended) }()
	w.pods("new", 5, 20)
	for range 100 {
		r.PodsChanged(types.UID("uid-1"))
	}
	for deadline := time.Now().Add(10 * time.Second); w.weights() != "75/25"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("stable/canary are %s", w.weights())
		}
	}
	cancel()
	<-ended
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.writes) != 1 {
		t.Errorf("writes: %v", w.writes)
	}
}
