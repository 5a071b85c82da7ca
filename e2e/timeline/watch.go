package timeline

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// resumeDelay keeps a watch that ends at once from becoming a busy loop. Short,
// because until it is resumed the times of changes are those of the resumption.
const resumeDelay = 100 * time.Millisecond

// source is one kind to record: where it is served, which objects belong to
// the subject, and how to read them.
type source struct {
	kind  Kind
	gvr   schema.GroupVersionResource
	where fields.Selector
	ours  func(*unstructured.Unstructured) bool
	read  func(*unstructured.Unstructured) (Fact, error)
}

// sources lists the kinds that the subject needs; what it does not name it needs
// no permission to watch.
func sources(s Subject) []source {
	istio := schema.GroupVersion{Group: "networking.istio.io", Version: orDefault(s.IstioVersion, "v1")}
	argo := schema.GroupVersion{Group: "argoproj.io", Version: "v1alpha1"}
	core := schema.GroupVersion{Version: "v1"}
	aboutRollout := fields.AndSelectors(
		fields.OneTermEqualSelector("involvedObject.kind", string(KindRollout)),
		fields.OneTermEqualSelector("involvedObject.name", s.Rollout),
	)
	all := []source{
		{KindVirtualService, istio.WithResource("virtualservices"), fields.Everything(), nameIn(s.VirtualServices...), readVirtualService},
		{KindReplicaSet, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, fields.Everything(), s.owns, readReplicaSet},
		{KindRollout, argo.WithResource("rollouts"), fields.OneTermEqualSelector("metadata.name", s.Rollout), nameIn(s.Rollout), readRollout},
		{KindEvent, core.WithResource("events"), aboutRollout, s.isAbout, readEvent},
	}
	if s.CanaryService != "" || s.StableService != "" {
		all = append(all, source{KindService, core.WithResource("services"), fields.Everything(), nameIn(s.CanaryService, s.StableService), readService})
	}
	if s.DestinationRule != "" {
		all = append(all, source{KindDestinationRule, istio.WithResource("destinationrules"), fields.Everything(), nameIn(s.DestinationRule), readDestinationRule})
	}
	return all
}

// nameIn selects by name. Not by a field selector: that takes one name, and a
// subject may have several VirtualServices and still needs one watch.
func nameIn(names ...string) func(*unstructured.Unstructured) bool {
	return func(obj *unstructured.Unstructured) bool {
		for _, n := range names {
			if n == obj.GetName() {
				return true
			}
		}
		return false
	}
}

// owns is whether a ReplicaSet is the Rollout's. Experiments have ReplicaSets
// with the same label, and those of a Deployment have none.
func (s Subject) owns(obj *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(obj)
	return owner != nil && owner.Kind == string(KindRollout) && owner.Name == s.Rollout && obj.GetLabels()[hashLabel] != ""
}

// isAbout is whether an Event speaks of the Rollout. The field selector asks the
// server for the same; this does not rely on it.
func (s Subject) isAbout(obj *unstructured.Unstructured) bool {
	wire, err := decode[wireEvent](obj)
	return err == nil && wire.InvolvedObject.Kind == string(KindRollout) && wire.InvolvedObject.Name == s.Rollout
}

// contains compares times as instants and fields by their bytes.
func contains(list []metav1.ManagedFieldsEntry, e metav1.ManagedFieldsEntry) bool {
	for i := range list {
		if equality.Semantic.DeepEqual(list[i], e) {
			return true
		}
	}
	return false
}

// list reads without a resourceVersion: from etcd and not from a cache that may
// be behind, so that the watch from the list's version leaves no hole.
func (r *Recorder) list(ctx context.Context, src source) (*unstructured.UnstructuredList, error) {
	list, err := r.client.Resource(src.gvr).Namespace(r.subject.Namespace).
		List(ctx, metav1.ListOptions{FieldSelector: src.where.String()})
	if err != nil {
		return nil, fmt.Errorf("list %s in namespace %s: %w", src.gvr.GroupResource(), r.subject.Namespace, err)
	}
	return list, nil
}

// follow keeps one kind's watch open, from a resourceVersion on, until ctx
// ends. A watch that breaks off goes on where it stopped and loses nothing.
func (r *Recorder) follow(ctx context.Context, src source, version string) {
	for ctx.Err() == nil {
		next, err := r.stream(ctx, src, version)
		version = next
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			version = r.relist(ctx, src, version)
		}
		select {
		case <-ctx.Done():
		case <-time.After(resumeDelay):
		}
	}
}

// stream records one watch to its end. It returns where to go on, and the
// error that the server gave as reason, if any.
func (r *Recorder) stream(ctx context.Context, src source, version string) (string, error) {
	w, err := r.client.Resource(src.gvr).Namespace(r.subject.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: src.where.String(), ResourceVersion: version, AllowWatchBookmarks: true,
	})
	if err != nil {
		return version, err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case event, open := <-w.ResultChan():
			if !open {
				return version, nil
			}
			obj, ok := event.Object.(*unstructured.Unstructured)
			if event.Type == watch.Error || !ok {
				return version, apierrors.FromObject(event.Object)
			}
			// A bookmark counts too: it keeps the place of a kind in which nothing
			// is written from falling out of the server's history.
			version = obj.GetResourceVersion()
			if event.Type != watch.Bookmark {
				r.record(src, obj, Entry{Deleted: event.Type == watch.Deleted})
			}
		}
	}
}

// relist starts a kind again after the server has forgotten where the watch
// was. Versions in between are lost, and the timeline says so.
func (r *Recorder) relist(ctx context.Context, src source, version string) string {
	list, err := r.list(ctx, src)
	if err != nil {
		return version
	}
	now := list.GetResourceVersion()
	r.mu.Lock()
	r.gap("%s: the server had dropped the history after resourceVersion %s; changes up to %s may be missing from the timeline",
		src.gvr.GroupResource(), version, now)
	r.mu.Unlock()
	r.recordAll(src, list.Items, false)
	for _, gone := range r.vanished(src, list.Items) {
		gone.SetResourceVersion(now)
		r.record(src, gone, Entry{Deleted: true})
	}
	return now
}

// vanished are the objects that were recorded and are no longer listed. Copies:
// they get another resourceVersion, and the recorded ones stay as they were.
func (r *Recorder) vanished(src source, items []unstructured.Unstructured) []*unstructured.Unstructured {
	present := map[string]bool{}
	for i := range items {
		present[items[i].GetName()] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var gone []*unstructured.Unstructured
	for key, e := range r.newest {
		if key.kind == src.kind && !present[key.name] {
			gone = append(gone, e.Object.DeepCopy())
		}
	}
	return gone
}
