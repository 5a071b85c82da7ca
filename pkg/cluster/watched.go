package cluster

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"k8s.io/client-go/tools/cache"
)

// watched is one shared cache: the informer that fills it and the last reason
// why it could not.
type watched struct {
	name     string // the resource as a Role spells it, with its group
	informer cache.SharedIndexInformer
	lastErr  atomic.Pointer[error]
}

// run starts the watch for the life of the process. The plugin has no moment at
// which it would stop one: the controller ends it by ending the process.
func (w *watched) run(log hclog.Logger) {
	log = log.With("resource", w.name)
	// Set before the start, so it cannot fail.
	_ = w.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.lastErr.Store(&err)
		log.Warn("watch interrupted, it is tried again", "error", err)
	})
	go w.informer.RunWithContext(context.Background())
}

// wait blocks until the cache has been filled once. Afterwards it is free: a
// cache whose watch broke later stays readable and is as old as the break.
func (w *watched) wait(ctx context.Context) error {
	if w.informer.HasSynced() || cache.WaitForCacheSync(ctx.Done(), w.informer.HasSynced) {
		return nil
	}
	if err := w.lastErr.Load(); err != nil {
		return fmt.Errorf("cannot watch %s: %w", w.name, *err)
	}
	return fmt.Errorf("cannot watch %s: the API server has not answered the first list yet; it is waited for at the next call", w.name)
}
