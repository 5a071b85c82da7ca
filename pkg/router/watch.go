package router

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

const (
	// watchWorkers is how many Rollouts are looked at at once. A look costs
	// microseconds, a write some milliseconds of waiting.
	watchWorkers = 4
	// watchTimeout bounds one look with its writes.
	watchTimeout = 10 * time.Second
	// lease is how long after the controller's last call this process may still
	// write by itself. A controller that reconciles at all calls at least once for
	// each change of a ReplicaSet; one that lost its leadership never calls again,
	// and its plugin must not work against the new leader's.
	lease = time.Minute
	// watchRetries bounds how often one change is looked at again, after errors
	// or while the controller is silent. With the queue's back-off that is about
	// ten seconds; the next change of a pod begins anew.
	watchRetries = 11
)

// watch is the plugin's own reaction to pods that come and go.
type watch struct {
	clock    clock.PassiveClock
	queue    workqueue.TypedRateLimitingInterface[types.UID]
	lastCall atomic.Int64 // Unix nanoseconds, 0 before the first call
}

func newWatch(c clock.WithTicker) *watch {
	return &watch{
		clock: c,
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

// Called notes that the controller has called this process, for whichever
// Rollout and reason. It is cheap and safe for concurrent use.
func (r *Router) Called() { r.watch.lastCall.Store(r.clock.Now().UnixNano()) }

// PodsChanged is told when pods of a Rollout became available or ceased to be.
// It returns at once; Watch does the work.
func (r *Router) PodsChanged(rollout types.UID) { r.watch.queue.Add(rollout) }

// Watch lowers weights as soon as pods are lost, without waiting for the
// controller, which may be in its back-off or may return before it calls us. It
// never raises a weight, moves no label, and acts only for Rollouts about which
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
	done, err := r.lower(ctx, rollout)
	if err != nil {
		r.log.Warn("cannot lower the canary weight", "rolloutUID", rollout, "error", err)
	}
	if done || r.watch.queue.NumRequeues(rollout) >= watchRetries {
		r.watch.queue.Forget(rollout)
		return
	}
	r.watch.queue.AddRateLimited(rollout)
}

// survive keeps a panic over one Rollout from ending the plugin of all.
func (r *Router) survive(rollout types.UID) {
	if cause := recover(); cause != nil {
		r.log.Error("recovered from a panic in the watch, please report it", "rolloutUID", rollout, "panic", cause)
		r.watch.queue.Forget(rollout)
	}
}

// lower brings the weight down to what the pods can take. done is false when it
// should be tried again.
func (r *Router) lower(ctx context.Context, rollout types.UID) (done bool, err error) {
	m := r.memories.known(rollout)
	if m == nil {
		return true, nil // the controller has not asked this process about it
	}
	if err := m.turn.Acquire(ctx, 1); err != nil {
		return false, err
	}
	defer m.turn.Release(1)
	if !m.asked {
		return true, nil
	}
	if !r.watch.alive() {
		return false, nil // a controller that saw the same change calls soon
	}
	s, err := r.lookAt(m.subject)
	if err != nil {
		return false, err
	}
	v, err := r.judge(s, m, m.desired)
	if err != nil || !v.lowers(s) {
		return err == nil, err
	}
	if err := r.writeWeight(ctx, s, m, v.decision.Weight); err != nil {
		return false, err
	}
	r.reportCap(s, m, v)
	return true, nil
}

// lowers is true when the objects give the canary more than the guard allows.
// Where neither side has pods there is nothing better than what is there.
func (v verdict) lowers(s *situation) bool {
	return v.enforced && v.decision.Capped() && v.decision.Reason != guard.ReasonNoPods && s.known && v.decision.Weight < s.written
}
