package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/backend"
)

var began = time.Unix(1000, 0)

// at is a request sent so long after the beginning, answered by a pod of the hash.
func at(d time.Duration, hash string) Request {
	return Request{At: began.Add(d), Pod: backend.Pod{Hash: hash}}
}

func lostAt(d time.Duration, failure string) Request {
	return Request{At: began.Add(d), Failure: failure}
}

func record(requests ...Request) Record {
	return newRecord(began, began.Add(10*time.Second), requests, 0)
}

func TestARecordIsInTheOrderOfSendingWhateverTheOrderOfTheAnswers(t *testing.T) {
	r := record(at(3*time.Second, "c"), at(time.Second, "a"), at(2*time.Second, "b"))
	var got string
	for _, request := range r.Requests {
		got += request.Pod.Hash
	}
	if got != "abc" {
		t.Errorf("order %s", got)
	}
}

func TestBetweenTakesWhatWasSentFromAMomentOnAndBeforeAnother(t *testing.T) {
	r := record(at(1*time.Second, "a"), at(2*time.Second, "b"), at(3*time.Second, "b"), at(4*time.Second, "c"))
	cut := r.Between(began.Add(2*time.Second), began.Add(4*time.Second))
	if diff := cmp.Diff(map[string]int{"b": 2}, cut.Answered()); diff != "" {
		t.Error(diff)
	}
	if n := len(r.Between(began.Add(4*time.Second), began.Add(2*time.Second)).Requests); n != 0 {
		t.Errorf("a time that ends before it begins has %d requests", n)
	}
	if diff := cmp.Diff(map[string]int{"b": 1, "c": 1}, r.Since(began.Add(3*time.Second)).Answered()); diff != "" {
		t.Error(diff)
	}
}

func TestLostRequestsAreCountedByReasonWithoutNamesAndNumbers(t *testing.T) {
	r := record(
		lostAt(0, "Unavailable: pod shop/cart-1/h is overloaded"), at(time.Second, "a"),
		lostAt(2*time.Second, "Unavailable: pod shop/cart-2/h is overloaded"), lostAt(3*time.Second, "DeadlineExceeded: context deadline exceeded"),
	)
	want := map[string]int{"Unavailable: pod is overloaded": 2, "DeadlineExceeded: context deadline exceeded": 1}
	if diff := cmp.Diff(want, r.Reasons()); diff != "" {
		t.Error(diff)
	}
	if len(r.Lost()) != 3 {
		t.Errorf("%d lost, want 3", len(r.Lost()))
	}
}

func TestTheWorstSecondIsTheOneInWhichMostWasLost(t *testing.T) {
	r := record(
		lostAt(100*time.Millisecond, "x"),
		at(2100*time.Millisecond, "a"), lostAt(2200*time.Millisecond, "x"), lostAt(2900*time.Millisecond, "x"), at(2950*time.Millisecond, "a"),
		at(3*time.Second, "a"), lostAt(3100*time.Millisecond, "x"), at(3200*time.Millisecond, "a"), at(3300*time.Millisecond, "a"), at(3400*time.Millisecond, "a"),
	)
	worst := r.Worst()
	if worst.Lost != 2 || worst.Sent != 4 || worst.Share() != 0.5 || !worst.At.Equal(began.Add(2*time.Second)) {
		t.Errorf("worst second %+v", worst)
	}
	if worst := record(at(0, "a")).Worst(); worst.Lost != 0 || worst.Share() != 0 {
		t.Errorf("nothing was lost, and the worst second is %+v", worst)
	}
}
