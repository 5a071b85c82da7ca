package backend

import (
	"sync"
	"time"
)

const (
	// longestQueue is how long a request may have to wait; beyond that the pod
	// refuses it at once. It is more than what gathers before a pod that is the
	// first that a client has reached, while a busy machine connects it to the rest.
	longestQueue = 2 * time.Second
	// strained is the wait at which a readiness probe begins to fail.
	strained = longestQueue * 8 / 10
	// failAfter and recoverAfter are how long a pod has to be strained, or not
	// strained, until its readiness changes: a few probes of a kubelet.
	failAfter    = time.Second
	recoverAfter = time.Second
)

// queue is what waits before one pod: requests are answered one after the other,
// at the pod's capacity.
type queue struct {
	mu sync.Mutex
	// perSecond is the capacity in requests a second; 0 is no limit.
	perSecond float64
	// free is when the pod will have answered all that it took on.
	free time.Time
	// strain is whether the pod was strained at the last probe, since when.
	strain bool
	since  time.Time
	// unready is what the pod's probes have come to.
	unready bool
}

// admit takes a request on and says after how long it is answered. ok is false
// when the queue is too long.
func (q *queue) admit(now time.Time) (wait time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.perSecond == 0 {
		return 0, true
	}
	wait = q.wait(now)
	if wait > longestQueue {
		return 0, false
	}
	q.free = now.Add(wait + time.Duration(float64(time.Second)/q.perSecond))
	return wait, true
}

// wait is called with the lock held.
func (q *queue) wait(now time.Time) time.Duration { return max(0, q.free.Sub(now)) }

// probe looks at the queue as a kubelet does and says what the readiness is
// and whether it has changed.
func (q *queue) probe(now time.Time) (unready, changed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	strain := q.perSecond > 0 && q.wait(now) >= strained
	if strain != q.strain {
		q.strain, q.since = strain, now
	}
	lasted := now.Sub(q.since)
	switch {
	case q.strain && !q.unready && lasted >= failAfter:
		q.unready, changed = true, true
	case !q.strain && q.unready && lasted >= recoverAfter:
		q.unready, changed = false, true
	}
	return q.unready, changed
}

// undo takes back a change of the readiness that could not be written.
func (q *queue) undo() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unready = !q.unready
}

func (q *queue) limit(perSecond float64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.perSecond = perSecond
}
