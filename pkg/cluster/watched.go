package cluster

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// failed is nil, or is told why a list or a watch failed.
	failed  func(error)
	lastErr atomic.Pointer[error]
	// advice is what to do about a right that is missing, besides granting it; or "".
	advice string
}

// adviceOn is the advice for what is watched in one namespace, or in all if it is "":
// a controller with a Role in place of the ClusterRole has too little for that, and
// the operator may not want to grant more.
func adviceOn(namespace string) string {
	if namespace != "" {
		return ""
	}
	return "grant the right, or start the plugin with --namespace=NAMESPACE if the controller serves only one"
}

// run starts the watch until ctx ends. For all but those of a mesh that was replaced
// that is the life of the process: the controller ends it by ending the process.
func (w *watched) run(ctx context.Context, log hclog.Logger) {
	log = log.With("resource", w.name)
	// Set before the start, so it cannot fail.
	_ = w.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() != nil {
			return
		}
		w.lastErr.Store(&err)
		if w.failed != nil {
			w.failed(err)
		}
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
		if w.advice != "" && apierrors.IsForbidden(*err) {
			return fmt.Errorf("cannot watch %s: %w: %s", w.name, *err, w.advice)
		}
		return fmt.Errorf("cannot watch %s: %w", w.name, *err)
	}
	return fmt.Errorf("cannot watch %s: the API server has not answered the first list yet; it is waited for at the next call", w.name)
}
