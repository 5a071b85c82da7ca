package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// The pauses between attempts to reach istiod. The first follows at once: a stream
// ends every half hour by istiod's own doing.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = 15 * time.Second
)

// pauseAfter doubles the pause with each failure, and spreads it, so that not all
// clients of an istiod that comes back call at once.
func pauseAfter(failed int) time.Duration {
	if failed == 0 {
		return 0
	}
	pause := min(firstPause<<min(failed-1, 20), mostPause)
	return pause/2 + rand.N(pause/2)
}

// view is the mesh as one namespace sees it: a stream, and what it has told. Its
// fields belong to the lock of the client.
type view struct {
	client    *Client
	namespace string // "" for that of the token
	names     names
	table     table
	// failure is why istiod cannot be asked; nil while that is not known.
	failure error
	// refused is why the last answer about a type of resource could not be read.
	refused map[string]error
	// since is when the last attempt began, or the last stream was lost.
	since time.Time

	// renamed tells the stream that the names are others.
	renamed chan struct{}
	stop    context.CancelFunc
	done    chan struct{} // nil before the beginning, closed after the end
}

func newView(c *Client, namespace string) *view {
	return &view{
		client: c, namespace: namespace, table: newTable(), refused: map[string]error{}, since: c.clock.Now(),
		renamed: make(chan struct{}, 1), stop: func() {},
	}
}

// begin lets the view connect. It needs the lock.
func (v *view) begin(life context.Context) {
	ctx, stop := context.WithCancel(life)
	v.stop, v.done = stop, make(chan struct{})
	go v.live(ctx)
}

// end needs the lock.
func (v *view) end() {
	v.stop()
}

// over is closed when the view has no goroutine any more.
func (v *view) over() <-chan struct{} {
	v.client.mu.Lock()
	defer v.client.mu.Unlock()
	if v.done != nil {
		return v.done
	}
	none := make(chan struct{})
	close(none)
	return none
}

// want says what is asked for from now on. It needs the lock.
func (v *view) want(wanted names) {
	if v.names.equal(wanted) {
		return
	}
	v.names = wanted
	v.table.prune(wanted)
	select {
	case v.renamed <- struct{}{}:
	default: // told already
	}
}

// live connects again and again until the context ends.
func (v *view) live(ctx context.Context) {
	defer close(v.done)
	for failed := 0; ctx.Err() == nil; {
		began := v.client.clock.Now()
		answered, err := v.stream(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errNothingLeft):
			v.lost(nil)
			continue
		case answered:
			v.lost(nil)
		default:
			v.lost(err)
		}
		if answered && v.client.clock.Since(began) > mostPause {
			failed = 0
		}
		wait(ctx, v.client.pause(failed))
		failed++
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// lost forgets what was told: nobody knows whether it is still so. failure is nil for
// a stream that had answers: that it broke says little, as the next one is made at once.
func (v *view) lost(failure error) {
	c := v.client
	c.mu.Lock()
	defer c.mu.Unlock()
	v.table, v.since = newTable(), c.clock.Now()
	clear(v.refused)
	if failure != nil {
		if v.failure == nil || v.failure.Error() != failure.Error() {
			c.log.Warn("istiod cannot be asked, it is tried again", "address", c.options.Address, "namespace", v.namespace, "error", failure)
		}
		v.failure = failure
	}
}

// stream makes one stream and follows it until it breaks. answered tells whether
// istiod has said anything on it.
func (v *view) stream(ctx context.Context) (answered bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	namespace := v.namespace
	if namespace == "" {
		if namespace, err = v.client.options.tokenNamespace(); err != nil {
			return false, err
		}
	}
	stream, end, err := v.client.options.open(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	s := &talk{view: v, stream: stream, conversation: newConversation(v.client.options.node(namespace, generator))}
	return s.run(ctx)
}

// talk is one stream.
type talk struct {
	*conversation
	view     *view
	stream   adsStream
	answered bool
}

// run sends and takes until the stream breaks.
func (t *talk) run(ctx context.Context) (answered bool, err error) {
	answers, broken := make(chan *discovery.DiscoveryResponse), make(chan error, 1)
	go func() { broken <- t.receive(ctx, answers) }()
	if err := t.ask(); err != nil {
		return t.answered, err
	}
	for {
		select {
		case <-t.view.renamed:
			err = t.ask()
		case response := <-answers:
			err = t.take(response)
		case err = <-broken:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return t.answered, t.reason(err, broken)
		}
	}
}

// receive passes on what comes.
func (t *talk) receive(ctx context.Context, answers chan<- *discovery.DiscoveryResponse) error {
	for {
		response, err := t.stream.Recv()
		if err != nil {
			return err
		}
		select {
		case answers <- response:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reason is why the stream broke: where a request could not be sent, only receiving
// tells.
func (t *talk) reason(err error, broken <-chan error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	select {
	case cause := <-broken:
		return cause
	case <-time.After(time.Second):
		return err
	}
}

// ask sends what is asked for by now.
func (t *talk) ask() error {
	t.view.client.mu.Lock()
	wanted := t.view.names
	t.view.client.mu.Unlock()
	requests, err := t.conversation.ask(wanted)
	if err != nil {
		return err
	}
	for _, request := range requests {
		if err := t.stream.Send(request); err != nil {
			return err
		}
	}
	return nil
}

// take reads an answer, tells whom it concerns, and says to istiod whether it could be
// read.
func (t *talk) take(response *discovery.DiscoveryResponse) error {
	u, problem := read(response)
	if problem == nil {
		t.view.take(u, t.asked(u.typeURL))
		t.answered = true
	} else {
		t.view.refuse(response.GetTypeUrl(), problem)
	}
	if request := t.answer(response, problem); request != nil {
		return t.stream.Send(request)
	}
	return nil
}

// refuse notes an answer that cannot be read: what was told before may be wrong.
func (v *view) refuse(typeURL string, problem error) {
	v.client.mu.Lock()
	defer v.client.mu.Unlock()
	v.client.log.Warn("an answer of istiod cannot be read and is refused", "namespace", v.namespace, "type", typeURL, "error", problem)
	v.refused[typeURL] = fmt.Errorf("its last answer cannot be read: %w", problem)
}

// why is the reason for which nothing is known, nil if there is none. It needs the
// lock.
func (v *view) why() error {
	for _, typeURL := range resourceTypes {
		if v.failure == nil && v.refused[typeURL] != nil {
			return v.refused[typeURL]
		}
	}
	return v.failure
}

// take takes over what an answer says of the names that were asked for.
func (v *view) take(u update, asked []string) {
	c := v.client
	c.mu.Lock()
	if v.failure != nil {
		v.failure = nil
		c.log.Info("istiod answers again", "address", c.options.Address, "namespace", v.namespace)
	}
	delete(v.refused, u.typeURL)
	changed := v.table.take(u, asked)
	v.table.prune(v.names)
	rollouts := c.concerned(v, changed)
	c.mu.Unlock()
	for _, rollout := range rollouts {
		c.options.Changed(rollout)
	}
}
