package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
)

// conflictBackoff paces the reads after a conflict. Two writers that meet need
// one more round; more than that is a loop of somebody else's, which the
// caller's deadline ends.
var conflictBackoff = wait.Backoff{Duration: 5 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 12, Cap: time.Second}

// view is a parsed object as the caches hold it.
type view interface {
	runtime.Object
	metav1.Object
}

// Edit computes the patch that an object needs; an empty one means none.
type Edit[T view] func(T) (jsonpatch.Patch, error)

// kind is one of Istio's kinds: its cache and the way to write it.
type kind[T view] struct {
	watched
	kindName string
	gvr      schema.GroupVersionResource
	client   dynamic.NamespaceableResourceInterface
	parse    func(*unstructured.Unstructured) T
	written  written[T]
	// heir is nil, or what has taken over and is to know of each write, too.
	heir  atomic.Pointer[kind[T]]
	hooks hooks
	// asked says in which cluster what is not found is not.
	asked string
}

// hooks are what a kind tells; none of them is nil.
type hooks struct {
	changed func(kind, namespace, name string)
	// unserved is told, with an error for people, that a version is not served any more.
	unserved                 func(error)
	heard, written, conflict func(what string)
}

func newKind[T view](client dynamic.Interface, gvr schema.GroupVersionResource, kindName, namespace string,
	parse func(*unstructured.Unstructured, string) T, hooks hooks,
) *kind[T] {
	k := &kind[T]{
		watched:  watched{name: gvr.GroupResource().String(), advice: adviceOn(namespace)},
		kindName: kindName,
		gvr:      gvr,
		client:   client.Resource(gvr),
		parse:    func(u *unstructured.Unstructured) T { return parse(u, FieldManager) },
		hooks:    hooks,
	}
	k.informer = newInformer(gvr.String(), k.client.Namespace(namespace), client, selection{}, &unstructured.Unstructured{},
		cache.Indexers{}, func() { hooks.heard(k.name) })
	k.failed = func(err error) {
		if apierrors.IsNotFound(err) { // a list names no object
			hooks.unserved(noLongerServed(gvr))
		}
	}
	// Set before the start, so it cannot fail.
	_ = k.informer.SetTransform(k.strip)
	_, _ = k.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: k.tell,
		UpdateFunc: func(before, after any) {
			old, ok := before.(T)
			if fresh, too := after.(T); !ok || !too || old.GetResourceVersion() != fresh.GetResourceVersion() {
				k.tell(after)
			}
		},
		DeleteFunc: func(object any) { k.tell(last(object)) },
	})
	return k
}

// tell passes on which object has changed.
func (k *kind[T]) tell(object any) {
	if changed, ok := object.(T); ok {
		k.hooks.changed(k.kindName, changed.GetNamespace(), changed.GetName())
	}
}

// tellAll tells of all objects, as if each had just come.
func (k *kind[T]) tellAll() {
	for _, object := range k.informer.GetStore().List() {
		k.tell(object)
	}
}

// strip stores the parsed view in place of the whole object.
func (k *kind[T]) strip(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return k.parse(u), nil
	}
	return object, nil
}

// objectName is how every message names an object.
func (k *kind[T]) objectName(namespace, name string) string {
	return fmt.Sprintf("%s %s/%s", k.kindName, namespace, name)
}

// get returns the newest version that this process knows.
func (k *kind[T]) get(namespace, name string) (T, error) {
	brought, found := k.brought(keyOf(namespace, name))
	if !found {
		return brought, fmt.Errorf("%w in %s", apierrors.NewNotFound(k.gvr.GroupResource(), keyOf(namespace, name)), k.asked)
	}
	return k.written.newest(brought), nil
}

// brought is what the watch has brought of an object, if it has brought any.
func (k *kind[T]) brought(key string) (T, bool) {
	object, _, err := k.informer.GetStore().GetByKey(key)
	if err != nil {
		var none T
		return none, false
	}
	parsed, ok := object.(T)
	return parsed, ok
}

// update is the one way in which this package writes an object.
func (k *kind[T]) update(ctx context.Context, namespace, name string, edit Edit[T]) (T, bool, error) {
	object, err := k.get(namespace, name)
	if err != nil {
		return object, false, err
	}
	backoff := conflictBackoff
	for {
		patch, err := edit(object)
		if err != nil || len(patch) == 0 {
			return object, false, err
		}
		written, patchErr := k.patch(ctx, object, patch)
		if patchErr == nil {
			return written, true, nil
		}
		fresh, err := k.afterFailure(ctx, object, patchErr)
		if err != nil {
			return object, false, err
		}
		object = fresh
		if err := pause(ctx, backoff.Step()); err != nil {
			return object, false, fmt.Errorf("%s: gave up while others kept changing it: %w", k.objectName(namespace, name), patchErr)
		}
	}
}

// patch sends one guarded patch and lets this process see its result at once.
func (k *kind[T]) patch(ctx context.Context, object T, patch jsonpatch.Patch) (T, error) {
	body, err := patch.Guarded(object.GetResourceVersion()).Marshal()
	if err != nil {
		return object, err
	}
	result, err := k.client.Namespace(object.GetNamespace()).
		Patch(ctx, object.GetName(), types.JSONPatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return object, err
	}
	written := k.parse(result)
	k.keep(written)
	k.hooks.written(k.kindName)
	return written, nil
}

// afterFailure tells a lost race from a refusal. The API server answers a failed
// resourceVersion test with 422, as it does for an object that validation
// refuses, so the object itself has to say whether it has moved on.
func (k *kind[T]) afterFailure(ctx context.Context, object T, failure error) (T, error) {
	name := k.objectName(object.GetNamespace(), object.GetName())
	if !apierrors.IsInvalid(failure) && !apierrors.IsConflict(failure) {
		return object, k.failure("writing "+name, failure)
	}
	u, err := k.client.Namespace(object.GetNamespace()).Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil {
		return object, k.failure("reading "+name+" again after a refused write", err)
	}
	if u.GetResourceVersion() == object.GetResourceVersion() {
		return object, fmt.Errorf("writing %s: %w", name, failure)
	}
	fresh := k.parse(u)
	k.keep(fresh)
	k.hooks.conflict(k.kindName)
	return fresh, nil
}

// failure is the error of a request for one object. That its version is not served any
// more must not look like an object that is not there, which is what some callers want.
func (k *kind[T]) failure(what string, err error) error {
	if !unserved(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	gone := noLongerServed(k.gvr)
	k.hooks.unserved(gone)
	return fmt.Errorf("%s: %w (it says: %v)", what, gone, err)
}

// keep remembers what was written, also where it is read from now on.
func (k *kind[T]) keep(object T) {
	k.written.keep(object, k.brought)
	if heir := k.heir.Load(); heir != nil {
		heir.keep(object)
	}
}

// bequeath hands what is known of the objects on to a cache that takes over. Its first
// list may be older than that, as it may come from another API server, and a read must
// not go back to before a write. Writes under way follow when they are answered.
func (k *kind[T]) bequeath(heir *kind[T]) {
	k.heir.Store(heir) // first: what is kept before is found below, what is kept after goes there itself
	for _, object := range k.informer.GetStore().List() {
		if brought, ok := object.(T); ok {
			heir.keep(k.written.newest(brought))
		}
	}
}

// pause waits, or returns the context's error if that ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
