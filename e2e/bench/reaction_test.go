package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/rollout/trafficrouting/plugin/rpc"
)

const (
	// watchedRollouts is how many Rollouts the plugin has been called for.
	watchedRollouts = 1000
	// pause lies between two changes. The plugin may send 50 requests a second,
	// and a reaction is a patch and an Event: this measures how fast it reacts,
	// not how long a queue can get.
	pause = 50 * time.Millisecond
	// reactionPatience bounds one reaction.
	reactionPatience = 30 * time.Second
	// callEvery keeps the plugin's lease alive, as a controller does that
	// reconciles anything at all.
	callEvery = 10 * time.Second
)

// BenchmarkReaction takes away one pod of a random Rollout at a time and waits
// until a watch shows the lowered weight. The time begins before the request
// that changes the ReplicaSet, so it is an upper bound; status-p50-ms says how
// much of it that request alone takes. The aims are 50 ms for the median and
// 250 ms for 99 of 100.
func BenchmarkReaction(b *testing.B) {
	s := apiServer(b)
	run, rollouts := runs.Add(1), make([]*v1alpha1.Rollout, watchedRollouts)
	for i := range rollouts {
		rollouts[i] = rollout(fmt.Sprintf("shop-%d-%d", run, i))
	}
	canaries, err := s.create(b.Context(), rollouts...)
	if err != nil {
		b.Fatal(err)
	}
	p := plugin(b, s)
	settle(b, p, rollouts[0], startWeight)
	for _, ro := range rollouts {
		if err := reconcile(p, ro, startWeight); err != nil {
			b.Fatalf("%s: %v", ro.Name, err)
		}
	}
	go keepCalling(b.Context(), p)
	r := newReactions(b, s, canaries)
	b.Run(fmt.Sprintf("rollouts=%d", watchedRollouts), r.measure)
}

// keepCalling calls now and then until ctx ends.
func keepCalling(ctx context.Context, p rpc.TrafficRouterPlugin) {
	ticker := time.NewTicker(callEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.Type()
		}
	}
}

// reactions takes pods away and watches what becomes of the weights.
type reactions struct {
	server   *server
	canaries []*appsv1.ReplicaSet // those with pods left
	weights  map[string]int64     // by VirtualService
	watched  watch.Interface
}

func newReactions(b *testing.B, s *server, canaries []*appsv1.ReplicaSet) *reactions {
	b.Helper()
	r := &reactions{server: s, canaries: canaries, weights: map[string]int64{}}
	for _, rs := range canaries {
		r.weights[rs.Labels["app"]] = startWeight
	}
	services := s.dynamic.Resource(virtualServices).Namespace(namespace)
	list, err := services.List(b.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		b.Fatal(err)
	}
	r.watched, err = services.Watch(b.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.watched.Stop)
	return r
}

// measure is one reaction per operation.
func (r *reactions) measure(b *testing.B) {
	var took, status []time.Duration
	for b.Loop() {
		b.StopTimer()
		time.Sleep(pause)
		b.StartTimer()
		began := time.Now()
		name := r.takePod(b)
		status = append(status, time.Since(began))
		r.awaitLower(b, name)
		took = append(took, time.Since(began))
	}
	milliseconds := func(q float64, of []time.Duration) float64 { return float64(quantile(of, q).Microseconds()) / 1000 }
	b.ReportMetric(milliseconds(.5, took), "p50-ms")
	b.ReportMetric(milliseconds(.99, took), "p99-ms")
	b.ReportMetric(milliseconds(.5, status), "status-p50-ms")
}

// takePod makes one pod of a random canary unavailable and returns the name of
// its VirtualService.
func (r *reactions) takePod(b *testing.B) (name string) {
	b.Helper()
	if len(r.canaries) == 0 {
		b.Fatal("no pod is left: give a smaller -benchtime")
	}
	at := rand.IntN(len(r.canaries))
	rs, err := r.server.setAvailable(b.Context(), r.canaries[at], r.canaries[at].Status.AvailableReplicas-1)
	if err != nil {
		b.Fatal(err)
	}
	r.canaries[at] = rs
	if rs.Status.AvailableReplicas == 0 {
		r.canaries = slices.Delete(r.canaries, at, at+1)
	}
	return rs.Labels["app"]
}

// awaitLower waits until the watch shows that the canary has lost weight.
func (r *reactions) awaitLower(b *testing.B, name string) {
	b.Helper()
	timeout := time.After(reactionPatience)
	for {
		select {
		case event, open := <-r.watched.ResultChan():
			if !open {
				b.Fatal("the watch has ended")
			}
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok || u.GetName() != name || canaryWeight(u) >= r.weights[name] {
				continue
			}
			r.weights[name] = canaryWeight(u)
			return
		case <-timeout:
			b.Fatalf("%s: no patch within %s", name, reactionPatience)
		}
	}
}

// canaryWeight is that of the only route.
func canaryWeight(u *unstructured.Unstructured) int64 {
	routes, _, _ := unstructured.NestedSlice(u.Object, "spec", "http")
	destinations := routes[0].(map[string]any)["route"].([]any)
	weight, _, _ := unstructured.NestedInt64(destinations[1].(map[string]any), "weight")
	return weight
}
