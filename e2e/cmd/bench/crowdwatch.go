package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// versions counts the new versions of objects by resource.
type versions map[string]int

// all is the sum.
func (v versions) all() int {
	sum := 0
	for _, n := range v {
		sum += n
	}
	return sum
}

// crowdWatch follows the Rollouts of a namespace and the objects of their routing,
// and counts each version. It is safe for concurrent use.
type crowdWatch struct {
	cancel  context.CancelFunc
	streams sync.WaitGroup

	mu      sync.Mutex
	members map[string]*progress
	counts  versions
	broken  error // a watch that ended by itself
}

// progress is how far one Rollout is.
type progress struct {
	begun   bool
	beganAt time.Time
	hash    string // of the revision that was there when it began
	// took is from there until Healthy with another revision, 0 before that.
	took time.Duration
	now  moment
}

// moment is what is known of one Rollout.
type moment struct {
	healthy        bool
	current        string // hash of the present revision
	stable         string
	canary, subset string // hashes of the canary's and the stable subset
	weight         int64  // the canary's
}

// watchCrowd begins with what is there.
func watchCrowd(ctx context.Context, client dynamic.Interface, namespace string) (*crowdWatch, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &crowdWatch{cancel: cancel, members: map[string]*progress{}, counts: versions{}}
	for _, resource := range []schema.GroupVersionResource{rolloutResource, virtualServiceResource, destinationRuleResource} {
		if err := w.follow(ctx, client.Resource(resource).Namespace(namespace), resource.Resource); err != nil {
			w.stop()
			return nil, err
		}
	}
	return w, nil
}

func (w *crowdWatch) follow(ctx context.Context, client dynamic.ResourceInterface, resource string) error {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		w.take(resource, &list.Items[i])
	}
	// A busy API server ends a watch that cannot keep up; it is then taken up again where
	// it was.
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return client.Watch(ctx, o) },
	})
	if err != nil {
		return err
	}
	w.streams.Go(func() { w.read(ctx, stream, resource) })
	return nil
}

func (w *crowdWatch) read(ctx context.Context, stream watch.Interface, resource string) {
	defer stream.Stop()
	for event := range stream.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			break
		}
		switch event.Type {
		case watch.Modified:
			w.count(resource)
			w.take(resource, object)
		case watch.Added:
			w.take(resource, object)
		}
	}
	if ctx.Err() == nil {
		w.mu.Lock()
		w.broken = fmt.Errorf("the watch of %s has ended: versions would be missing", resource)
		w.mu.Unlock()
	}
}

func (w *crowdWatch) stop() {
	w.cancel()
	w.streams.Wait()
}

func (w *crowdWatch) count(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[resource]++
}

// take brings what is known up to a version.
func (w *crowdWatch) take(resource string, object *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.member(object.GetName())
	switch resource {
	case rolloutResource.Resource:
		p.now.healthy = isHealthy(object)
		p.now.current, _, _ = unstructured.NestedString(object.Object, "status", "currentPodHash")
		p.now.stable, _, _ = unstructured.NestedString(object.Object, "status", "stableRS")
	case virtualServiceResource.Resource:
		p.now.weight = canaryWeight(object)
	case destinationRuleResource.Resource:
		p.now.subset, p.now.canary = subsetHash(object, "stable"), subsetHash(object, "canary")
	}
	if p.begun && p.took == 0 && p.now.promoted() && p.now.current != p.hash {
		p.took = time.Since(p.beganAt)
	}
}

func (w *crowdWatch) member(name string) *progress {
	if w.members[name] == nil {
		w.members[name] = &progress{}
	}
	return w.members[name]
}

// promoted tells that the present revision is the stable one.
func (m moment) promoted() bool { return m.healthy && m.current != "" && m.current == m.stable }

// atRest tells that nothing is left to be written of the routing.
func (m moment) atRest() bool {
	return m.promoted() && m.weight == 0 && m.subset == m.stable && m.canary == m.stable
}

// begins notes that a Rollout is given another revision now.
func (w *crowdWatch) begins(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.member(name)
	p.begun, p.beganAt, p.hash = true, time.Now(), p.now.current
}

// atRest is how many Rollouts are.
func (w *crowdWatch) atRest() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, p := range w.members {
		if p.now.atRest() {
			n++
		}
	}
	return n
}

// took is how long each of those that have been promoted needed, ascending.
func (w *crowdWatch) took() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []time.Duration
	for _, p := range w.members {
		if p.took > 0 {
			all = append(all, p.took)
		}
	}
	slices.Sort(all)
	return all
}

// versions are those that came since the beginning.
func (w *crowdWatch) versions() versions {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := versions{}
	for resource, n := range w.counts {
		out[resource] = n
	}
	return out
}

// await waits until something holds, or a watch has ended.
func (w *crowdWatch) await(ctx context.Context, what string, holds func() bool) error {
	return lab.Until(ctx, what, func(context.Context) (bool, error) {
		w.mu.Lock()
		broken := w.broken
		w.mu.Unlock()
		return holds(), broken
	})
}

// canaryWeight is that of the route "primary", -1 where it cannot be read.
func canaryWeight(vs *unstructured.Unstructured) int64 {
	routes, _, _ := unstructured.NestedSlice(vs.Object, "spec", "http")
	for _, route := range routes {
		fields, _ := route.(map[string]any)
		if fields["name"] != "primary" {
			continue
		}
		destinations, _, _ := unstructured.NestedSlice(fields, "route")
		for _, destination := range destinations {
			side, _ := destination.(map[string]any)
			if subset, _, _ := unstructured.NestedString(side, "destination", "subset"); subset == "canary" {
				weight, _, _ := unstructured.NestedInt64(side, "weight")
				return weight
			}
		}
	}
	return -1
}

// subsetHash is the pod-template hash in a subset's labels, "" without one.
func subsetHash(rule *unstructured.Unstructured, name string) string {
	subsets, _, _ := unstructured.NestedSlice(rule.Object, "spec", "subsets")
	for _, subset := range subsets {
		if fields, _ := subset.(map[string]any); fields["name"] == name {
			hash, _, _ := unstructured.NestedString(fields, "labels", v1alpha1.DefaultRolloutUniqueLabelKey)
			return hash
		}
	}
	return ""
}
