package router

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// answered makes a call whose answer passes once do is under way, and tells whether it
// came after that.
func answered(t *testing.T, r *Router, call func() error, do func()) (after bool, err error) {
	t.Helper()
	r.staying = 30 * time.Second
	begun, done := make(chan struct{}), make(chan struct{})
	time.AfterFunc(50*time.Millisecond, func() { close(begun); do(); close(done) })
	err = call()
	select {
	case <-begun:
		after = true
	default:
	}
	<-done
	return after, err
}

// firstPod is a canary whose first pod has just become available.
func firstPod(t *testing.T) (*world, *Router, *v1alpha1.Rollout) {
	t.Helper()
	w, r, i, ro := verified(t, `{"level": "Object"}`)
	w.pods("canary1", 0, 20)
	i.serves(0, endpoints("old", 20), nil)
	mustSet(t, r, ro, 100)
	w.pods("canary1", 1, 20)
	return w, r, ro
}

func TestAFirstRequestThatMayBeginSoonEndsTheCallWhenItMay(t *testing.T) {
	w, r, ro := firstPod(t)
	writes := len(w.writes)
	after, err := answered(t, r, func() error { return setWeight(t, r, ro, 100) }, func() { w.pass(2 * time.Second) })
	wantError(t, err, "no first request yet: canary canary1: ")
	if !after {
		t.Error("the call ended at once, and the controller's back-off begins")
	}
	if len(w.writes) != writes {
		t.Errorf("written for a Rollout that may have been aborted meanwhile: %q", w.writes[writes:])
	}
	mustSet(t, r, ro, 100)
	w.wantWeights(t, "the next call", "95/5")
}

func TestTheWatchCanLowerWhileACallStays(t *testing.T) {
	w, r, ro := firstPod(t)
	after, err := answered(t, r, func() error { return setWeight(t, r, ro, 100) }, func() {
		w.pods("canary1", 0, 20)
		again, err := r.watchLook(context.Background(), "uid-1")
		for err == nil && again == watchBusy { // the call is looking
			again, err = r.watchLook(context.Background(), "uid-1")
		}
		if err != nil || again != 0 {
			t.Errorf("the watch: again %s, error %v", again, err)
		}
	})
	// Without a pod there is no first request to wait for.
	if !after || err == nil {
		t.Errorf("answered %v, after the pod was lost: %t", err, after)
	}
}

func TestALabelThatWaitsForSettleEndsTheCallWhenItIsOver(t *testing.T) {
	w, r, ro := supersededAtZero(t)
	after, err := answered(t, r, func() error { return updateHash(r, ro, "v3", "v1") }, func() { w.pass(time.Second) })
	wantError(t, err, "canary subset still names v2, not v3")
	if !after {
		t.Error("the call ended at once, and the controller's back-off begins")
	}
	w.wantLabels(t, "for a Rollout of before", "stable=v1 canary=v2")
	mustUpdate(t, r, ro, "v3", "v1")
	w.wantLabels(t, "the next call", "stable=v1 canary=v3")
}

func TestOnlyWhatPassesByItselfIsWaitedFor(t *testing.T) {
	r := newWorld(t).router()
	r.staying = 30 * time.Second
	looked := func(context.Context) bool { t.Error("it looked again"); return true }
	if err := r.outlast(context.Background(), nil, looked); err != nil {
		t.Error(err)
	}
	refused := errors.New("refused")
	if err := r.outlast(context.Background(), refused, looked); !errors.Is(err, refused) {
		t.Error(err)
	}
	for range seats {
		r.waiting <- struct{}{}
	}
	if err := r.outlast(context.Background(), passing("soon"), looked); err == nil || err.Error() != "soon" {
		t.Errorf("all seats are taken: %v", err)
	}
	<-r.waiting
	again := 0
	if err := r.outlast(context.Background(), passing("soon"), func(context.Context) bool { again++; return again == 2 }); err == nil || again != 2 {
		t.Errorf("a seat is free: %v, looked %d times", err, again)
	}
	if len(r.waiting) != seats-1 {
		t.Errorf("%d seats are taken after the call", len(r.waiting))
	}
}

func TestACallWhoseTimeIsOverDoesNotStay(t *testing.T) {
	w, r, ro := firstPod(t)
	r.staying = time.Hour
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	wantError(t, r.SetWeight(ctx, ro, 100, nil), "no first request yet")
	w.wantWeights(t, "not yet", "100/0")
}

func TestALabelThatWaitsForPodsIsNothingToStayFor(t *testing.T) {
	w := newWorld(t, subsetVirtualService, subsetDestinationRule)
	w.pods("v1", 0, 20)
	err := w.router().updateHash(context.Background(), rollout(subsetConfig), hashes{canary: "v1", stable: "v1"}, nil)
	wantError(t, err, "waiting for replicas of v1")
	if p := passing(""); errors.As(err, &p) {
		t.Error("pods may never come, and a worker of the controller would wait for them")
	}
}
