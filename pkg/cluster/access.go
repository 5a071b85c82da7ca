package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// retryEvery is how often credentials that do not work are tried again while those
// before them do, and how often it is asked without a call what is served.
const retryEvery = 5 * time.Second

// access is the way to the mesh. It keeps to credentials that have worked until
// others do, and to versions of Istio's API until they turn out not to be served any
// more. It is safe for concurrent use.
type access struct {
	credentials credentials
	connect     func(found) (*mesh, error)
	patience    time.Duration
	log         hclog.Logger

	// current is nil until credentials have worked once.
	current atomic.Pointer[mesh]

	mu   sync.Mutex
	next *attempt
	said string // the last complaint
}

// attempt are credentials that have not worked yet, or have not since their versions
// are not served any more.
type attempt struct {
	*mesh
	// replace runs the attempt in the background, once.
	replace sync.Once
	// tried is closed when the outcome of the first trial is known.
	tried chan struct{}
}

// ready returns nil when there is a mesh to use: that of the credentials as they
// are now, or, where those do not work, the one before. Credentials that are gone
// are an error all the same: whoever takes them away takes the access away. A mesh
// that is unserved is none to use: a call waits for the one that takes over.
func (a *access) ready(ctx context.Context) error {
	next, err := a.look()
	current := a.current.Load()
	none := current == nil || current.unserved() != nil
	switch {
	case err != nil && (none || errors.As(err, new(absentError))):
		return err
	case err != nil:
		a.complain(err)
		return nil
	case next == nil:
		return nil
	case none:
		if err := next.ready(ctx); err != nil {
			return err
		}
		a.use(next.mesh)
		return nil
	}
	next.replace.Do(func() { go a.replaceBy(next) })
	await(ctx, next.tried, a.patience)
	return nil
}

// look reads the credentials and returns the trial of them, nil if they are in use.
// A trial of others is over. It is done by one call after the other, lest a slow one
// brings back what it has read before a change.
func (a *access) look() (*attempt, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, err := a.credentials.read()
	if err != nil {
		return nil, err
	}
	same := a.latest(now.content)
	works := same != nil && same.unserved() == nil
	if works && a.next != nil && a.next.mesh == same {
		return a.next, nil
	}
	if a.next != nil {
		a.next.end()
		a.next = nil
	}
	if works {
		a.said = ""
		return nil, nil
	}
	m, err := a.connect(now)
	if err != nil {
		return nil, err
	}
	if same != nil {
		m.after(same)
	}
	a.next = &attempt{mesh: m, tried: make(chan struct{})}
	return a.next, nil
}

// latest is the last mesh that was made of these credentials, if it is not over.
func (a *access) latest(content string) *mesh {
	if a.next != nil && a.next.content == content {
		return a.next.mesh
	}
	if current := a.current.Load(); current != nil && current.content == content {
		return current
	}
	return nil
}

// await waits for done, but neither beyond the context nor longer than d.
func await(ctx context.Context, done <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// replaceBy tries credentials until they work or are replaced themselves.
func (a *access) replaceBy(next *attempt) {
	tried := sync.OnceFunc(func() { close(next.tried) })
	defer tried()
	for next.life.Err() == nil {
		err := a.trial(next)
		if err == nil {
			a.use(next.mesh)
			return
		}
		a.complain(err)
		tried()
		await(next.life, nil, retryEvery)
	}
}

func (a *access) trial(next *attempt) error {
	ctx, cancel := context.WithTimeout(next.life, discoveryTimeout+a.patience)
	defer cancel()
	return next.ready(ctx)
}

// use makes a mesh that is ready the current one, and tells of all its objects:
// they may differ from what was known.
func (a *access) use(m *mesh) {
	a.mu.Lock()
	if a.next == nil || a.next.mesh != m {
		a.mu.Unlock() // somebody else has done it, or newer credentials have come
		return
	}
	old := a.current.Load()
	sameCluster := old != nil && old.content == m.content
	if sameCluster {
		old.bequeath(m)
	}
	a.current.Store(m)
	a.next, a.said = nil, ""
	a.mu.Unlock()
	m.used.Store(true)
	context.AfterFunc(m.known, func() { a.renew(m) })
	if old != nil {
		old.used.Store(false)
		old.end()
	}
	if old != nil && !sameCluster {
		a.log.Info("the mesh's new credentials are in use", "cluster", m.host)
	}
	m.virtualServices.tellAll()
	m.destinationRules.tellAll()
}

// renew sees to it that another mesh takes over from one that is unserved, also without
// a call: the plugin writes when pods are lost, too, and the controller may be quiet
// then. It leaves the calls a little time to do it themselves.
func (a *access) renew(old *mesh) {
	a.log.Warn("Istio's resources are not served as they were", "error", old.unserved(), "cluster", old.host)
	for pause := startPause; ; pause = retryEvery {
		await(old.life, nil, pause)
		if old.life.Err() != nil {
			return // another one has taken over
		}
		ctx, cancel := context.WithTimeout(old.life, discoveryTimeout+a.patience)
		_ = a.ready(ctx) // who calls next is told the error
		cancel()
	}
}

// complain logs what keeps new credentials from being used, once.
func (a *access) complain(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err.Error() == a.said {
		return
	}
	a.said = err.Error()
	a.log.Warn("the mesh's new credentials cannot be used, those before stay in use", "error", err)
}
