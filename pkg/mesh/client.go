package mesh

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Client asks istiod. It is safe for concurrent use, and no method but Run and
// Proxies waits for anything.
type Client struct {
	options Options
	log     hclog.Logger
	clock   clock.PassiveClock
	// pause is how long to wait before the nth attempt in a row, n from 0.
	pause func(failed int) time.Duration

	mu        sync.Mutex
	life      context.Context // of Run; nil before
	followers map[types.UID]*follower
	views     map[string]*view
}

// follower is one Rollout.
type follower struct {
	namespace string
	view      *view // nil if it wants nothing
	want      Want
	names     names
	// since is when it began to want this.
	since time.Time
}

// New makes a client that is not connected.
func New(options Options, log hclog.Logger) *Client {
	return newClient(options, log, clock.RealClock{})
}

func newClient(options Options, log hclog.Logger, clock clock.PassiveClock) *Client {
	return &Client{
		options: options.withDefaults(), log: log, clock: clock, pause: pauseAfter,
		followers: map[types.UID]*follower{}, views: map[string]*view{},
	}
}

// Run lets streams be made, and ends them all with the context, for which it waits.
// Until it is called nothing is asked.
func (c *Client) Run(ctx context.Context) {
	c.mu.Lock()
	c.life = ctx
	for _, v := range c.views {
		v.begin(ctx)
	}
	c.mu.Unlock()
	<-ctx.Done()
	for _, v := range c.allViews() {
		<-v.over()
	}
}

func (c *Client) allViews() []*view {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*view
	for _, v := range c.views {
		all = append(all, v)
	}
	return all
}

// Namespace is the namespace whose view of the mesh a Rollout of this namespace gets:
// its own, or with a token that of the token. It is the Rollout's, too, while the
// token cannot be read.
func (c *Client) Namespace(rollout string) string {
	if c.options.Plaintext {
		return rollout
	}
	if namespace, err := c.options.tokenNamespace(); err == nil {
		return namespace
	}
	return rollout
}

// Follow says what a Rollout of this namespace wants to know from now on, in place of
// what it wanted before. To say the same again costs nothing.
func (c *Client) Follow(rollout types.UID, namespace string, want Want) {
	if !c.options.Plaintext {
		namespace = "" // all share the view of the token's
	}
	wanted := namesOf(want)
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.followers[rollout]
	if before != nil && before.namespace == namespace && before.names.equal(wanted) {
		return
	}
	now := &follower{namespace: namespace, want: want, names: wanted, since: c.clock.Now()}
	c.followers[rollout] = now
	if !wanted.empty() {
		now.view = c.viewOf(namespace)
		now.view.want(c.wantsOf(now.view))
	}
	// Only now, so that a stream that goes on being needed is not ended.
	if before != nil && before.view != now.view {
		c.leave(before.view)
	}
}

// Forget ends what Follow began. A stream that nobody needs any more ends, too.
func (c *Client) Forget(rollout types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.followers[rollout]; f != nil {
		delete(c.followers, rollout)
		c.leave(f.view)
	}
}

// leave asks a view for less, after a follower has left it, and ends it after the
// last. It needs the lock.
func (c *Client) leave(v *view) {
	if v == nil {
		return
	}
	if left := c.wantsOf(v); !left.empty() {
		v.want(left)
		return
	}
	v.end()
	delete(c.views, v.namespace)
}

// viewOf finds the stream of a namespace, or makes one. It needs the lock.
func (c *Client) viewOf(namespace string) *view {
	if v := c.views[namespace]; v != nil {
		return v
	}
	v := newView(c, namespace)
	c.views[namespace] = v
	if c.life != nil {
		v.begin(c.life)
	}
	return v
}

// wantsOf needs the lock.
func (c *Client) wantsOf(v *view) names {
	var wants []Want
	for _, f := range c.followers {
		if f.view == v {
			wants = append(wants, f.want)
		}
	}
	return namesOf(wants...)
}

// Served is what istiod serves of what the Rollout follows, by what it has told so
// far. ErrUnavailable says that nothing is known: there is no connection, or no answer
// for longer than Options.Patience. While a connection is being made there is no error
// and no answer yet.
func (c *Client) Served(rollout types.UID) (Served, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.followers[rollout]
	if f == nil {
		return Served{}, fmt.Errorf("%w: nobody follows it for this Rollout", ErrUnavailable)
	}
	v := f.view
	if v == nil {
		return newTable().served(f.want), nil
	}
	if why := v.why(); why != nil {
		return Served{}, fmt.Errorf("%w at %s: %w", ErrUnavailable, c.options.Address, why)
	}
	served := v.table.served(f.want)
	waited := c.clock.Now().Sub(latest(v.since, f.since))
	if waited > c.options.Patience && !served.Answered(f.want) {
		return Served{}, fmt.Errorf("%w at %s: no answer for %s", ErrUnavailable, c.options.Address, waited.Round(time.Second))
	}
	return served, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// concerned are the followers of a view that want one of these names. It needs the
// lock.
func (c *Client) concerned(v *view, changed []string) []types.UID {
	var rollouts []types.UID
	for uid, f := range c.followers {
		if f.view == v && f.names.hasAny(changed) {
			rollouts = append(rollouts, uid)
		}
	}
	return rollouts
}
