package timeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// catchUpTime bounds how long Stop waits for the watches to deliver what is
// already written. They need milliseconds; the bound is for a server that
// answers a LIST and delivers nothing, and for machines under heavy load.
const catchUpTime = 10 * time.Second

// Recorder records one canary. Its methods may be called from any goroutine.
// It reads with one LIST and one watch for each kind and polls nothing, so a
// recording costs the API server next to nothing and does not disturb what it
// measures.
type Recorder struct {
	client  dynamic.Interface
	subject Subject
	sources []source

	watchers sync.WaitGroup

	mu    sync.Mutex
	begin time.Time
	// running ends with the recording; nil before Start has succeeded.
	running context.Context
	cancel  context.CancelFunc
	// length of the recording, once it is stopped.
	length  time.Duration
	entries []Entry
	gaps    []string
	// newest version of each existing object, to tell writers apart and to notice what
	// vanished while a watch was away.
	newest map[objectKey]Entry
	// changed is closed and replaced whenever something is recorded.
	changed chan struct{}
}

type objectKey struct {
	kind Kind
	name string
}

// NewRecorder makes a recorder; nothing is read before Start.
func NewRecorder(client dynamic.Interface, subject Subject) *Recorder {
	return &Recorder{
		client: client, subject: subject, sources: sources(subject),
		newest: map[objectKey]Entry{}, changed: make(chan struct{}),
	}
}

// Start lists every kind once and then follows one watch for each, until Stop
// or the end of ctx. When it returns without error everything that was there is
// recorded. An error means that nothing is being recorded: the subject is
// incomplete, a kind cannot be listed, or Start was called before.
func (r *Recorder) Start(ctx context.Context) error {
	if err := r.subject.Validate(); err != nil {
		return err
	}
	if err := r.claim(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	versions := make([]string, len(r.sources))
	for i, src := range r.sources {
		list, err := r.list(ctx, src)
		if err != nil {
			cancel()
			return err
		}
		r.recordAll(src, list.Items, true)
		versions[i] = list.GetResourceVersion()
	}
	for i, src := range r.sources {
		r.watchers.Go(func() { r.follow(ctx, src, versions[i]) })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running, r.cancel = ctx, cancel
	return nil
}

// claim begins the clock. A second recording in one recorder would mix two
// clocks and two beginnings.
func (r *Recorder) claim() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begin.IsZero() {
		return errors.New("timeline recorder was started before: make a new one for each recording")
	}
	r.begin = time.Now()
	return nil
}

// Mark names this moment, for measures that begin at it. Set it before the
// change whose effect is to be measured. After Stop it does nothing.
func (r *Recorder) Mark(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.length > 0 {
		return
	}
	r.append(Entry{At: r.elapsed(), Name: name, Fact: Mark{}})
}

// Timeline is what has been recorded so far.
func (r *Recorder) Timeline() Timeline {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.timeline()
}

// timeline, elapsed, append and gap are called with the lock held.
func (r *Recorder) timeline() Timeline {
	t := New(r.subject, r.begin, orDefault(r.length, r.elapsed()), r.entries)
	t.Gaps = slices.Clone(r.gaps)
	return t
}

// Wait returns the first state, from the present one on, for which done is
// true. States that lasted only a moment are seen too. The present state may be
// older than a change that the caller has just made; to wait for a phase after
// a change, use WaitPhase. The error at the end of ctx says how the Rollout
// stood then.
func (r *Recorder) Wait(ctx context.Context, done func(State) bool) (State, error) {
	from := len(r.Timeline().States()) - 1
	var reached State
	err := r.await(ctx, func(t Timeline) bool {
		states := t.States()
		for _, s := range states[min(from, len(states)-1):] {
			if done(s) {
				reached = s
				return true
			}
		}
		return false
	})
	return reached, err
}

// WaitPhase waits until the Rollout is in a phase, in the sense of
// [Timeline.UntilPhase], and returns how long that took from the mark.
func (r *Recorder) WaitPhase(ctx context.Context, mark, phase string) (took time.Duration, err error) {
	err = r.await(ctx, func(t Timeline) (ok bool) {
		took, ok = t.UntilPhase(mark, phase)
		return ok
	})
	if err != nil {
		err = fmt.Errorf("phase %s after mark %q: %w", phase, mark, err)
	}
	return took, err
}

// await asks again after each change.
func (r *Recorder) await(ctx context.Context, done func(Timeline) bool) error {
	for {
		t, changed := r.present()
		if done(t) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			states := t.States()
			return stillWaiting(ctx, r.subject, states[len(states)-1])
		}
	}
}

// present takes both under one lock: what is recorded after the timeline was
// made closes the channel that comes with it, and no change is slept through.
func (r *Recorder) present() (Timeline, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.timeline(), r.changed
}

// stillWaiting tells why a wait failed in the terms of the one who waited, so
// that a failed test needs no second look for the usual causes.
func stillWaiting(ctx context.Context, subject Subject, s State) error {
	return fmt.Errorf("waiting on Rollout %s/%s: %w; it is %s (%s), canary weight %d of %d, canary %s with %d of %d pods available",
		subject.Namespace, subject.Rollout, context.Cause(ctx), orDefault(s.Rollout.Phase, "without a phase"), s.Rollout.Message,
		s.CanaryWeight, s.Max, named(s.CanaryHash), s.Pods[s.CanaryHash].Available, s.Rollout.Replicas)
}

// Stop ends the recording and returns it. It first waits, at most ten seconds,
// until the watches have delivered all that a last LIST shows. Calling it again
// returns the same timeline.
func (r *Recorder) Stop() Timeline {
	r.mu.Lock()
	running, cancel := r.running, r.cancel
	r.mu.Unlock()
	if running == nil {
		return r.Timeline()
	}
	ctx, done := context.WithTimeout(running, catchUpTime)
	defer done()
	for _, src := range r.sources {
		r.catchUp(ctx, src)
	}
	cancel()
	r.watchers.Wait()
	return r.end()
}

// end stops the clock. What was written is kept once, however often Stop is
// called; a folder that cannot be written is a gap, so that no one believes the
// check of those objects to be whole.
func (r *Recorder) end() Timeline {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.length == 0 {
		r.length = r.elapsed()
		if err := keepWritten(r.timeline()); err != nil {
			r.gap("what was written could not be kept: %v", err)
		}
	}
	return r.timeline()
}

// catchUp waits until everything of a kind that exists now is recorded. A
// server that is away has nothing more to tell, so errors end the waiting.
func (r *Recorder) catchUp(ctx context.Context, src source) {
	list, err := r.list(ctx, src)
	if err != nil {
		return
	}
	for i := range list.Items {
		obj := &list.Items[i]
		if !src.ours(obj) {
			continue
		}
		version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
		if err != nil {
			continue
		}
		r.awaitVersion(ctx, objectKey{src.kind, obj.GetName()}, version)
	}
}

// awaitVersion waits for the watch to deliver a version or a newer one: an
// object may have been written again since it was listed.
func (r *Recorder) awaitVersion(ctx context.Context, key objectKey, version uint64) {
	for {
		r.mu.Lock()
		seen, changed := r.newest[key].ResourceVersion, r.changed
		r.mu.Unlock()
		if seen >= version {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// recordAll keeps what a LIST shows. Only that of the first LIST is found; what
// a later one shows was written while nobody watched.
func (r *Recorder) recordAll(src source, objects []unstructured.Unstructured, found bool) {
	for i := range objects {
		r.record(src, &objects[i], Entry{Found: found})
	}
}

// record keeps one version of an object, if it belongs to the subject. What
// cannot be read is told as a gap rather than left out silently.
func (r *Recorder) record(src source, obj *unstructured.Unstructured, e Entry) {
	if !src.ours(obj) {
		return
	}
	fact, err := src.read(obj)
	version, bad := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(err, bad); err != nil {
		r.gap("%s %s/%s at resourceVersion %q cannot be read and is missing from the timeline: %v",
			src.kind, obj.GetNamespace(), obj.GetName(), obj.GetResourceVersion(), err)
		return
	}
	e.At, e.ResourceVersion, e.Name, e.Fact, e.Object = r.elapsed(), version, obj.GetName(), fact, obj
	r.keep(objectKey{src.kind, e.Name}, e)
}

// keep adds an entry and makes it the newest of its object. A version that came
// before by another way may stand twice: New leaves one.
func (r *Recorder) keep(key objectKey, e Entry) {
	var before []metav1.ManagedFieldsEntry
	if last, known := r.newest[key]; known {
		before = last.Object.GetManagedFields()
	}
	e.Manager = writer(before, e.Object.GetManagedFields())
	if e.Deleted {
		delete(r.newest, key)
	} else {
		r.newest[key] = e
	}
	r.append(e)
}

// elapsed is the clock of the recording; it stands at 0 before Start.
func (r *Recorder) elapsed() time.Duration {
	if r.begin.IsZero() {
		return 0
	}
	return time.Since(r.begin)
}

// append wakes everybody who waits.
func (r *Recorder) append(e Entry) {
	r.entries = append(r.entries, e)
	close(r.changed)
	r.changed = make(chan struct{})
}

// gap notes what may be missing, once: a watch that fails to read the same
// object again and again says nothing new.
func (r *Recorder) gap(format string, args ...any) {
	if sentence := fmt.Sprintf(format, args...); !slices.Contains(r.gaps, sentence) {
		r.gaps = append(r.gaps, sentence)
	}
}
