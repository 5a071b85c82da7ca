package router

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

const (
	// watchWorkers is how many Rollouts are looked at at once. A look costs
	// microseconds, a write some milliseconds of waiting.
	watchWorkers = 4
	// watchTimeout bounds one look with its writes.
	watchTimeout = 10 * time.Second
	// watchBusy is when to come back to a Rollout for which a call is under way.
	watchBusy = 20 * time.Millisecond
	// lease is how long after the controller's last call this process may still
	// write by itself. The controller comes back to every Rollout every 15 minutes
	// even if nothing happens; a process that hears nothing for longer has lost its
	// controller, or its controller the leadership. Until then it recognises the
	// new leader's process by its writes, and gives way.
	lease = 20 * time.Minute
	// watchRetries bounds how often one change is looked at again, after errors
	// or while the controller is silent. With the queue's back-off that is about
	// ten seconds; the next change of a pod begins anew.
	watchRetries = 11
)

// watch is the plugin's own reaction to what happens between the controller's
// calls.
type watch struct {
	clock    clock.PassiveClock
	queue    workqueue.TypedRateLimitingInterface[types.UID]
	lastCall atomic.Int64 // Unix nanoseconds, 0 before the first call
	// news is when the oldest change of pods that has not been looked at came in.
	mu   sync.Mutex
	news map[types.UID]time.Time
}

func newWatch(c clock.WithTicker) *watch {
	return &watch{
		clock: c,
		news:  map[types.UID]time.Time{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](5*time.Millisecond, 5*time.Second),
			workqueue.TypedRateLimitingQueueConfig[types.UID]{Clock: c}),
	}
}

// alive tells whether the controller has called within the lease.
func (w *watch) alive() bool {
	last := w.lastCall.Load()
	return last != 0 && w.clock.Now().Sub(time.Unix(0, last)) <= lease
}

// heard keeps the time of the first news of a Rollout's pods.
func (w *watch) heard(rollout types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.news[rollout]; !there {
		w.news[rollout] = w.clock.Now()
	}
}

// takeNews returns that time and forgets it.
func (w *watch) takeNews(rollout types.UID) (at time.Time, there bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, there = w.news[rollout]
	delete(w.news, rollout)
	return at, there
}

// Called notes that the controller has called this process, for whichever
// Rollout and reason. It is cheap and safe for concurrent use.
func (r *Router) Called() { r.watch.lastCall.Store(r.clock.Now().UnixNano()) }

// PodsChanged is told when pods of a Rollout became available, ceased to be, or
// changed their labels. Like the two below it returns at once; Watch does the work.
func (r *Router) PodsChanged(rollout types.UID) {
	if r.memories.known(rollout) == nil {
		return
	}
	r.watch.heard(rollout)
	r.watch.queue.Add(rollout)
}

// ExperimentPodsChanged is told when pods of an experiment's template did.
func (r *Router) ExperimentPodsChanged(namespace, _ string) {
	for _, rollout := range r.memories.inNamespace(namespace) {
		r.watch.queue.Add(rollout)
	}
}

// RoutingChanged is told of every new version of a VirtualService or
// DestinationRule, own writes included.
func (r *Router) RoutingChanged(kind, namespace, name string) {
	for _, rollout := range r.memories.following(objectKey(kind, namespace, name)) {
		r.watch.queue.Add(rollout)
	}
}

// lookAfterSettle comes back for the subsets that an ended experiment has left.
func (r *Router) lookAfterSettle(s *situation) {
	if len(s.accounted()) > len(s.templates) {
		r.watch.queue.AddAfter(s.ref.UID, s.config.Guard.Settle+time.Second)
	}
}

// Watch lowers weights as soon as pods are lost and puts back what others changed,
// without waiting for the controller, which may be in its back-off, may return
// before it calls us, and is not told of changes to the objects. It never goes
// beyond what the controller last asked for, acts only for Rollouts about which
// the controller has asked this process, and only while the controller calls. It
// returns when ctx ends.
func (r *Router) Watch(ctx context.Context) {
	for range watchWorkers {
		go r.watchWorker(ctx)
	}
	<-ctx.Done()
	r.watch.queue.ShutDown()
}

func (r *Router) watchWorker(ctx context.Context) {
	for {
		rollout, shutdown := r.watch.queue.Get()
		if shutdown {
			return
		}
		r.watchOne(ctx, rollout)
		r.watch.queue.Done(rollout)
	}
}

// watchOne looks at one Rollout and asks to look again when that was not enough.
func (r *Router) watchOne(ctx context.Context, rollout types.UID) {
	defer r.survive(rollout)
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	again, err := r.watchLook(ctx, rollout)
	if err != nil {
		r.log.Warn("the watch could not do its work", "rolloutUID", rollout, "error", err)
	}
	switch {
	case err == nil && again > 0:
		r.watch.queue.AddAfter(rollout, again)
	case err == nil && again == 0, r.watch.queue.NumRequeues(rollout) >= watchRetries:
		r.watch.queue.Forget(rollout)
	default:
		r.watch.queue.AddRateLimited(rollout)
	}
}

// survive keeps a panic over one Rollout from ending the plugin of all.
func (r *Router) survive(rollout types.UID) {
	if cause := recover(); cause != nil {
		r.log.Error("recovered from a panic in the watch, please report it", "rolloutUID", rollout, "panic", cause)
		r.watch.queue.Forget(rollout)
	}
}

// notNow asks to look again with back-off, in place of a duration.
const notNow = -1

// watchLook takes the Rollout's turn and heals it. again is when to look anew:
// 0 not before something changes, notNow with the queue's back-off.
func (r *Router) watchLook(ctx context.Context, rollout types.UID) (again time.Duration, err error) {
	m := r.memories.known(rollout)
	if m == nil {
		return 0, nil // the controller has not asked this process about it
	}
	if !m.turn.TryAcquire(1) {
		return watchBusy, nil // a call is under way; a worker must not wait for it
	}
	defer m.turn.Release(1)
	news, isNews := r.watch.takeNews(rollout)
	if !m.asked || !r.claims.hold(rollout) {
		return 0, nil
	}
	if now := r.clock.Now(); !r.watch.alive() || now.Sub(m.lastCall) > lease {
		return notNow, nil // a controller that saw the same change calls soon
	}
	s, err := r.lookAt(m.subject, m.templates)
	if apierrors.IsNotFound(err) {
		return 0, nil // the controller's next call says so
	}
	if err != nil {
		return 0, err
	}
	s.watching = true
	m.observe(s, r.clock.Now(), r.writtenByAnother(s))
	m.heard.note(s.available(), r.clock.Now())
	r.observeFresh(s, m)
	changed := m.changedAt
	again, err = r.heal(ctx, s, m)
	waits, sick := r.watchHealth(ctx, s, m)
	again, err = earlier(again, waits), errors.Join(err, sick)
	if isNews && m.changedAt != changed {
		r.options.Recorder.Reaction(r.clock.Now().Sub(news))
	}
	return again, err
}

// forgotten is told of a Rollout that nobody asks about any more.
func (r *Router) forgotten(rollout types.UID, s subject) {
	r.claims.release(rollout)
	r.own.forget(s.objects())
	r.watch.takeNews(rollout)
	if r.options.Mesh != nil {
		r.options.Mesh.Forget(rollout)
	}
	if r.options.Health != nil {
		r.options.Health.Forget(rollout)
	}
	r.options.Recorder.Forget(s.ref.Namespace, s.ref.Name)
}
