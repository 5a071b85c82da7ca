package router

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
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
	// follows are the objects that the Rollout's routing is made of, namespace is
	// the Rollout's; both guarded as called is.
	follows   []string
	namespace string

	// subject is the Rollout as the controller last sent it.
	subject subject

	// announced are the hashes that UpdateHash was last given.
	announced hashes

	// labelled are the hashes that were in place when UpdateHash last succeeded,
	// empty while one is under way.
	labelled hashes

	// applied is what the routes were last brought to, nil before that.
	applied *virtualservice.Target

	// templates are those of the experiment in the last call, unnamed how many of
	// them cannot be routed.
	templates []template
	unnamed   int

	// drift keeps the pace of what the watch puts back.
	drift drift

	// desired is the last weight asked for, as it came, in parts of
	// maxTrafficWeight; it is only meaningful when asked is true.
	desired int32
	asked   bool

	// heldSince is when the present hold began, zero when nothing is held. A
	// hold begins anew when more pods are available than ever in it, as the
	// controller's progress deadline does; pods that come and go do not extend it.
	heldSince     time.Time
	heldAvailable int32

	// lastCall is when the controller last asked, like called, but for the turn's
	// holder.
	lastCall time.Time

	// seen is true once the weights have been looked at: seenCanary and seenStable
	// are the sides' weights then, seenVersions the VirtualServices'. loweredAt and raisedAt are when the canary's
	// weight was last seen, or written, to be lower and higher; zero if never.
	seen                   bool
	seenCanary, seenStable int32
	seenVersions           []string
	loweredAt, raisedAt    time.Time
	// changedAt is when it last wrote a VirtualService at all.
	changedAt time.Time

	// ready is since when revisions have had pods, by hash, and templates, by their key.
	ready map[string]readiness
	// missing is the hash of the last Event about pods that nothing can see, "" when
	// there are none.
	missing string
	// selected is what the two Services select.
	selected selected
	// heard is how many pods this process has known of.
	heard heard

	// reported is the reason of the last Event about a cap, "" when none is on.
	reported guard.Reason
	// pinned is the pin of the last Event about one, nil when none is on.
	pinned *int32
	// mismatch is the text of the last Event about labels that match no pods, ""
	// when all match.
	mismatch string
	// refused is the text of the last Event about a configuration that cannot be
	// used, "" when it can.
	refused string
	// unseenSince is since when the mesh has not been known to have what is written,
	// zero when it has. unseen is what the log last said is missing, unseenTold that an
	// Event has.
	unseenSince time.Time
	unseen      string
	unseenTold  bool
	// shareWaits is what an Event last said of an experiment's share, "" when all is there.
	shareWaits string
	// unavailable is how an Event has told that the mesh cannot be asked, invisible what
	// the last Event said that it cannot show.
	unavailable unavailable
	invisible   string
	// gate is what the health gate remembers, gated what it last said. effective is the
	// stretch that VerifyWeight has found in effect, zero for none. gateTold and
	// rolledBack are what Events have told.
	gate       gate.State
	gated      gate.Decision
	effective  gate.Stretch
	gateTold   gate.Reason
	rolledBack string
	// abortedSince is since when an aborted Rollout has kept a weight, abortedTold
	// that an Event has said so.
	abortedSince time.Time
	abortedTold  bool
	// unpinnedStable is the text of the last Event about a stable Service that
	// selects the canary's pods, "" when none does.
	unpinnedStable string
	// settled says that reported is known: a new process does not know what its
	// predecessor reported until it has looked once.
	settled bool
}

// memories are the memories of all Rollouts. They are ready once forgotten is set.
type memories struct {
	mu    sync.Mutex
	of    map[types.UID]*memory
	swept time.Time
	// followers are the Rollouts that an object belongs to, by objectKey.
	followers map[string]map[types.UID]bool
	// forgotten is told of each Rollout that is forgotten.
	forgotten func(types.UID, subject)
}

// follow says which objects a Rollout's routing is made of.
func (ms *memories) follow(uid types.UID, m *memory, objects []string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if slices.Equal(m.follows, objects) {
		return
	}
	ms.unfollow(uid, m)
	m.follows = objects
	for _, key := range objects {
		if ms.followers == nil {
			ms.followers = map[string]map[types.UID]bool{}
		}
		if ms.followers[key] == nil {
			ms.followers[key] = map[types.UID]bool{}
		}
		ms.followers[key][uid] = true
	}
}

func (ms *memories) unfollow(uid types.UID, m *memory) {
	for _, key := range m.follows {
		delete(ms.followers[key], uid)
		if len(ms.followers[key]) == 0 {
			delete(ms.followers, key)
		}
	}
}

// following are the Rollouts whose routing an object is part of.
func (ms *memories) following(object string) []types.UID {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return slices.Collect(maps.Keys(ms.followers[object]))
}

// inNamespace are the known Rollouts of a namespace.
func (ms *memories) inNamespace(namespace string) []types.UID {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	var found []types.UID
	for uid, m := range ms.of {
		if m.namespace == namespace {
			found = append(found, uid)
		}
	}
	return found
}

// take returns the Rollout's memory and holds it until release is called.
func (ms *memories) take(ctx context.Context, ro *v1alpha1.Rollout, now time.Time) (m *memory, release func(), err error) {
	m = ms.find(ro, now)
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

func (ms *memories) find(ro *v1alpha1.Rollout, now time.Time) *memory {
	uid := ro.UID
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.sweep(now)
	m, ok := ms.of[uid]
	if !ok {
		if ms.of == nil {
			ms.of = map[types.UID]*memory{}
		}
		m = &memory{turn: semaphore.NewWeighted(1), namespace: ro.Namespace}
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
			ms.unfollow(uid, m)
			delete(ms.of, uid)
			ms.forgotten(uid, m.subject)
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
func (m *memory) noteWrite(s *situation, target virtualservice.Target, now time.Time) {
	m.changedAt = now
	canary, stable := s.sideWeights()
	next := target.Canary
	if len(target.Managed) > 0 {
		next = max(next, 1)
	}
	if next < canary {
		m.loweredAt = now
	}
	if s.facts.Max-target.Canary < stable {
		m.raisedAt = now
	}
	m.seen, m.seenCanary, m.seenStable = true, next, s.facts.Max-target.Canary
}

// observe notices weights that others have lowered. What was lowered before this
// process looked for the first time it tells by the second of the VirtualServices'
// last change, whoever made it: so a wait survives a restart without anything
// stored for it. The second is taken to its end, and one in the future, by another
// machine's clock, is now. So it is with what another process of the plugin wrote,
// which may have lowered what this one has never seen. Later changes of anything else
// start no new wait.
func (m *memory) observe(s *situation, now time.Time, byAnother bool) {
	canary, stable := s.sideWeights()
	versions := s.serviceVersions()
	switch {
	case !m.seen, byAnother && !slices.Equal(versions, m.seenVersions):
		at := s.lastChange()
		if at.After(now) {
			at = now
		}
		m.loweredAt, m.raisedAt = latest(m.loweredAt, at), latest(m.raisedAt, at)
	default:
		if canary < m.seenCanary {
			m.loweredAt = now
		}
		if stable < m.seenStable {
			m.raisedAt = now
		}
	}
	m.seen, m.seenCanary, m.seenStable, m.seenVersions = true, canary, stable, versions
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// serviceVersions are the versions of the VirtualServices.
func (s *situation) serviceVersions() []string {
	versions := make([]string, len(s.services))
	for i, vs := range s.services {
		versions[i] = vs.ResourceVersion
	}
	return versions
}

// lastChange is the end of the second in which one of the VirtualServices was last
// changed; zero if that is not known.
func (s *situation) lastChange() time.Time {
	var last time.Time
	for _, vs := range s.services {
		if vs.LastChange.After(last) {
			last = vs.LastChange
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Add(time.Second)
}
