package backend

import (
	"testing"
	"time"
)

// began is when every table begins.
var began = time.Unix(1000, 0)

func TestAPodWithoutALimitNeverWaits(t *testing.T) {
	q := &queue{}
	for range 1000 {
		if wait, ok := q.admit(began); wait != 0 || !ok {
			t.Fatalf("waits for %s, taken on: %t", wait, ok)
		}
	}
	if unready, changed := q.probe(began); unready || changed {
		t.Error("it is unready")
	}
}

func TestARequestWithinTheCapacityDoesNotWait(t *testing.T) {
	q := &queue{perSecond: 10}
	for n := range 50 {
		if wait, ok := q.admit(began.Add(time.Duration(n) * 100 * time.Millisecond)); wait != 0 || !ok {
			t.Fatalf("request %d waits for %s, taken on: %t", n, wait, ok)
		}
	}
}

func TestBeyondItsCapacityAPodIsSlowAndThenRefuses(t *testing.T) {
	q := &queue{perSecond: 10}
	for n := range 21 {
		wait, ok := q.admit(began)
		if want := time.Duration(n) * 100 * time.Millisecond; wait != want || !ok {
			t.Fatalf("request %d at once waits for %s, taken on: %t, want %s", n, wait, ok, want)
		}
	}
	if _, ok := q.admit(began); ok {
		t.Error("a request that had to wait for 2.1 s was taken on")
	}
	if wait, ok := q.admit(began.Add(time.Second)); wait != 1100*time.Millisecond || !ok {
		t.Errorf("a second later it waits for %s, taken on: %t", wait, ok)
	}
}

func TestAStrainedPodFailsItsReadinessAndRecoversWhenTheLoadIsGone(t *testing.T) {
	q := &queue{perSecond: 10}
	// Twice the capacity for 4 s, then nothing.
	changes := map[time.Duration]bool{}
	for at := time.Duration(0); at < 10*time.Second; at += 50 * time.Millisecond {
		if at < 4*time.Second {
			q.admit(began.Add(at))
		}
		if unready, changed := q.probe(began.Add(at)); changed {
			changes[at] = unready
		}
	}
	if len(changes) != 2 {
		t.Fatalf("readiness changed %d times: %v", len(changes), changes)
	}
	for at, unready := range changes {
		switch {
		// Each second brings work for two, so the queue is 1.6 s long after about
		// that time; a second later the probe has failed.
		case unready && (at < 2300*time.Millisecond || at > 2800*time.Millisecond):
			t.Errorf("it became unready after %s", at)
		// The load ends after 4 s, with two seconds of work left, of which 1.6 s are
		// no strain any more.
		case !unready && (at < 5300*time.Millisecond || at > 5700*time.Millisecond):
			t.Errorf("it recovered after %s", at)
		}
	}
}

func TestAShortStrainDoesNotChangeTheReadiness(t *testing.T) {
	q := &queue{perSecond: 10}
	for range 40 {
		q.admit(began) // a burst; what is beyond two seconds is refused
	}
	for at := time.Duration(0); at < 3*time.Second; at += 50 * time.Millisecond {
		if unready, _ := q.probe(began.Add(at)); unready {
			t.Fatalf("unready after %s", at)
		}
	}
}
