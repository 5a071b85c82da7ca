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
	// handled is nil, or tells that what was first listed has gone through the
	// handlers, too: for a cache whose answers come from what they counted.
	handled cache.InformerSynced
	lastErr atomic.Pointer[error]
}

// run starts the watch until ctx ends. For all but those of a mesh whose credentials
// were replaced that is the life of the process: the controller ends it by ending
// the process.
func (w *watched) run(ctx context.Context, log hclog.Logger) {
	log = log.With("resource", w.name)
	// Set before the start, so it cannot fail.
	_ = w.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() != nil {
			return
		}
		w.lastErr.Store(&err)
		log.Warn("watch interrupted, it is tried again", "error", err)
	})
	go w.informer.RunWithContext(ctx)
}

// filled tells whether the cache has been filled once.
func (w *watched) filled() bool {
	return w.informer.HasSynced() && (w.handled == nil || w.handled())
}

// wait blocks until the cache has been filled once. Afterwards it is free: a
// cache whose watch broke later stays readable and is as old as the break.
func (w *watched) wait(ctx context.Context) error {
	if w.filled() || cache.WaitForCacheSync(ctx.Done(), w.filled) {
		return nil
	}
	return w.unfilled()
}

// unfilled says why a cache has not been filled yet.
func (w *watched) unfilled() error {
	if err := w.lastErr.Load(); err != nil {
		return fmt.Errorf("cannot watch %s: %w", w.name, *err)
	}
	return fmt.Errorf("cannot watch %s: the API server has not answered the first list yet; it is waited for at the next call", w.name)
}
