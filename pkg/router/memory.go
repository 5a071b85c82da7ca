package router

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// forgetAfter is when a Rollout that nobody asks about any more is forgotten.
// The controller comes back to each Rollout every 15 minutes at the latest, so
// only one that was deleted stays away for longer.
const forgetAfter = time.Hour

// memory is what is remembered of one Rollout between calls.
type memory struct {
	// turn is held during a call. It is a semaphore and not a mutex so that a
	// call that waits for its turn still ends at its deadline.
	turn *semaphore.Weighted

	// called is when the controller last asked, used to forget. It belongs to
	// memories and is guarded by its mutex, all else by turn.
	called time.Time

	// subject is the Rollout as the controller last sent it.
	subject subject

	// announced are the hashes that UpdateHash was last given.
	announced hashes

	// desired is the last weight asked for, as it came, in parts of
	// maxTrafficWeight; it is only meaningful when asked is true.
	desired int32
	asked   bool

	// heldSince is when the present hold began, zero when nothing is held. A
	// hold begins anew when more pods are available than ever in it, as the
	// controller's progress deadline does; pods that come and go do not extend it.
	heldSince     time.Time
	heldAvailable int32

	// loweredAt and raisedAt are when this process last wrote a lower and a higher
	// weight for the canary; zero if it has not.
	loweredAt, raisedAt time.Time

	// reported is the reason of the last Event about a cap, "" when none is on.
	reported guard.Reason
	// pinned is the pin of the last Event about one, nil when none is on.
	pinned *int32
	// mismatch is the text of the last Event about labels that match no pods, ""
	// when all match.
	mismatch string
	// settled says that reported is known: a new process does not know what its
	// predecessor reported until it has looked once.
	settled bool
}

// memories are the memories of all Rollouts. The zero value is ready.
type memories struct {
	mu    sync.Mutex
	of    map[types.UID]*memory
	swept time.Time
}

// take returns the Rollout's memory and holds it until release is called.
func (ms *memories) take(ctx context.Context, ro *v1alpha1.Rollout, now time.Time) (m *memory, release func(), err error) {
	m = ms.find(ro.UID, now)
	if err := m.turn.Acquire(ctx, 1); err != nil {
		return nil, nil, fmt.Errorf("waiting for an earlier call for Rollout %s/%s: %w", ro.Namespace, ro.Name, err)
	}
	return m, func() { m.turn.Release(1) }, nil
}

// known returns the memory of a Rollout that the controller has asked about, nil
// of one that it has not.
func (ms *memories) known(uid types.UID) *memory {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.of[uid]
}

func (ms *memories) find(uid types.UID, now time.Time) *memory {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.sweep(now)
	m, ok := ms.of[uid]
	if !ok {
		if ms.of == nil {
			ms.of = map[types.UID]*memory{}
		}
		m = &memory{turn: semaphore.NewWeighted(1)}
		ms.of[uid] = m
	}
	m.called = now
	return m
}

// sweep forgets, at most once per forgetAfter, so that its cost does not grow
// with the number of calls. A memory in use is kept: its turn cannot be had.
func (ms *memories) sweep(now time.Time) {
	if now.Sub(ms.swept) < forgetAfter {
		return
	}
	ms.swept = now
	for uid, m := range ms.of {
		if !m.turn.TryAcquire(1) {
			continue
		}
		if now.Sub(m.called) > forgetAfter {
			delete(ms.of, uid)
		}
		m.turn.Release(1)
	}
}

// hold keeps the clock of a hold and returns how long it has lasted.
func (m *memory) hold(d guard.Decision, now time.Time) time.Duration {
	switch {
	case !d.Capped():
		m.heldSince = time.Time{}
		return 0
	case m.heldSince.IsZero() || d.Canary.Available > m.heldAvailable:
		m.heldSince, m.heldAvailable = now, d.Canary.Available
	}
	return now.Sub(m.heldSince)
}

// noteWrite keeps when a side's weight last went down. Routes that did not agree
// before count for both.
func (m *memory) noteWrite(s *situation, weight int32, now time.Time) {
	canary, stable := s.sideWeights()
	if weight < canary {
		m.loweredAt = now
	}
	if s.facts.Max-weight < stable {
		m.raisedAt = now
	}
}
