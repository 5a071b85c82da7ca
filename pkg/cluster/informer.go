package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// resource is the part of any client that an informer needs.
type resource[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// selection is what a watch is limited to, in the API server's own notation.
type selection struct {
	labels, fields string
}

func (s selection) apply(o *metav1.ListOptions) {
	o.LabelSelector, o.FieldSelector = s.labels, s.fields
}

// newInformer makes a cache of one resource, under the name that client-go's own
// messages have for it. client is what the resource was made from; heard is called for each list that was answered and for everything that
// a watch brings, its bookmarks too: they are what shows, about once a minute,
// that a watch of a quiet resource is alive. client-go's own constructors leave
// no place to listen at.
func newInformer[L runtime.Object](name string, from resource[L], client any, only selection, example runtime.Object,
	indexers cache.Indexers, heard func(),
) cache.SharedIndexInformer {
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		only.apply(&o)
		objects, err := from.List(ctx, o)
		if err != nil {
			return nil, err
		}
		heard()
		return objects, nil
	}
	watching := func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		only.apply(&o)
		w, err := from.Watch(ctx, o)
		if err != nil {
			return nil, err
		}
		return listen(w, heard), nil
	}
	return cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: watching}, client),
		example, cache.SharedIndexInformerOptions{Indexers: indexers, ObjectDescription: name})
}

// listen passes on the events of a watch and tells that there are some. Whichever
// end stops, the other does; watch.Filter waits for ever with an event that nobody
// takes any more.
func listen(w watch.Interface, heard func()) watch.Interface {
	events := make(chan watch.Event)
	out := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer w.Stop()
		for {
			select {
			case <-out.StopChan():
				return
			case event, open := <-w.ResultChan():
				if !open {
					return
				}
				if event.Type != watch.Error {
					heard()
				}
				select {
				case events <- event:
				case <-out.StopChan():
					return
				}
			}
		}
	}()
	return out
}

// last is the object of a deletion, which a cache that was disconnected knows only
// as it was when it last saw it.
func last(object any) any {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return object
}
