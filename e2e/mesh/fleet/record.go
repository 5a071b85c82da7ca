package fleet

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/backend"
)

// Request is one request and what became of it.
type Request struct {
	// At is when it was sent, Took how long the answer or the failure took.
	At   time.Time
	Took time.Duration
	// Client is the number of the client that sent it.
	Client int
	// Pod is who answered.
	Pod backend.Pod
	// Failure says why there was no answer; empty when there was one.
	Failure string
	// Raced is set when the client's own race refused it once; see raced.
	Raced bool
}

// Lost is whether nobody answered, or somebody who should not have.
func (r Request) Lost() bool { return r.Failure != "" }

// Record is what a fleet did, in the order of sending. It is not to be changed.
type Record struct {
	Began, Ended time.Time
	Requests     []Request
	// Skipped is how many requests were not sent because too many were under way.
	Skipped int
}

func newRecord(began, ended time.Time, requests []Request, skipped int) Record {
	sorted := slices.Clone(requests)
	slices.SortStableFunc(sorted, func(a, b Request) int { return a.At.Compare(b.At) })
	return Record{Began: began, Ended: ended, Requests: sorted, Skipped: skipped}
}

// Between is the part of a record that was sent from a moment on and before
// another.
func (r Record) Between(from, to time.Time) Record {
	before := func(request Request, t time.Time) int { return request.At.Compare(t) }
	first, _ := slices.BinarySearchFunc(r.Requests, from, before)
	last, _ := slices.BinarySearchFunc(r.Requests, to, before)
	r.Requests = r.Requests[first:max(first, last)]
	r.Began, r.Ended = from, to
	return r
}

// Since is the part of a record from a moment on.
func (r Record) Since(from time.Time) Record { return r.Between(from, r.Ended) }

// Lost are the requests that nobody answered.
func (r Record) Lost() []Request {
	var lost []Request
	for _, request := range r.Requests {
		if request.Lost() {
			lost = append(lost, request)
		}
	}
	return lost
}

// Raced is how many requests were sent again after a race of the client's own.
func (r Record) Raced() int {
	n := 0
	for _, request := range r.Requests {
		if request.Raced {
			n++
		}
	}
	return n
}

// Reasons counts the lost requests by reason, pods' names and addresses left out.
func (r Record) Reasons() map[string]int {
	reasons := map[string]int{}
	for _, request := range r.Lost() {
		reasons[request.reason()]++
	}
	return reasons
}

// reason leaves out what differs from pod to pod.
func (r Request) reason() string {
	words := strings.Fields(r.Failure)
	kept := words[:0]
	for _, word := range words {
		if !strings.ContainsAny(word, "0123456789/") {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}

// Second is what became of the requests of one second.
type Second struct {
	At         time.Time
	Sent, Lost int
}

// Share is the part that was lost, 0 to 1.
func (s Second) Share() float64 { return float64(s.Lost) / float64(max(s.Sent, 1)) }

// Worst is the second in which most was lost, counted from the first request. Its
// Lost is 0 when nothing ever was.
func (r Record) Worst() Second {
	var worst Second
	for _, s := range r.Seconds() {
		if s.Lost > worst.Lost {
			worst = s
		}
	}
	return worst
}

// Seconds are all seconds in which something was sent.
func (r Record) Seconds() []Second {
	seconds := map[int64]*Second{}
	for _, request := range r.Requests {
		n := int64(request.At.Sub(r.Began) / time.Second)
		if seconds[n] == nil {
			seconds[n] = &Second{At: r.Began.Add(time.Duration(n) * time.Second)}
		}
		seconds[n].Sent++
		if request.Lost() {
			seconds[n].Lost++
		}
	}
	var all []Second
	for _, n := range slices.Sorted(maps.Keys(seconds)) {
		all = append(all, *seconds[n])
	}
	return all
}

// Answered counts the answers by the hash of the pod.
func (r Record) Answered() map[string]int {
	answered := map[string]int{}
	for _, request := range r.Requests {
		if !request.Lost() {
			answered[request.Pod.Hash]++
		}
	}
	return answered
}
