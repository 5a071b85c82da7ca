package mesh

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// Moment is something that happened beside the objects that package timeline
// knows of.
type Moment struct {
	At   time.Time
	What string
}

// endpoints follows the EndpointSlices of a namespace.
type endpoints struct {
	cancel   context.CancelFunc
	watching informers.SharedInformerFactory

	mu      sync.Mutex
	moments []Moment
}

func followEndpoints(client kubernetes.Interface, namespace string) (*endpoints, error) {
	ctx, cancel := context.WithCancel(context.Background())
	e := &endpoints{cancel: cancel, watching: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))}
	_, err := e.watching.Discovery().V1().EndpointSlices().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { e.see(object.(*discoveryv1.EndpointSlice)) },
		UpdateFunc: func(_, object any) { e.see(object.(*discoveryv1.EndpointSlice)) },
	})
	if err != nil {
		cancel()
		return nil, err
	}
	e.watching.Start(ctx.Done())
	return e, nil
}

func (e *endpoints) see(slice *discoveryv1.EndpointSlice) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.moments = append(e.moments, Moment{time.Now(), "endpoints of " + slice.Labels[discoveryv1.LabelServiceName] + ": " + count(slice)})
}

// count tells the ready endpoints of each revision.
func count(slice *discoveryv1.EndpointSlice) string {
	ready := map[string]int{}
	for _, endpoint := range slice.Endpoints {
		if endpoint.TargetRef == nil {
			continue
		}
		hash := revision(endpoint.TargetRef.Name)
		ready[hash] += 0
		if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
			ready[hash]++
		}
	}
	var words []string
	for _, hash := range slices.Sorted(maps.Keys(ready)) {
		words = append(words, fmt.Sprintf("%s %d ready", hash, ready[hash]))
	}
	return strings.Join(words, ", ")
}

// revision is the hash in a pod's name, which ends with it and a random part.
func revision(pod string) string {
	parts := strings.Split(pod, "-")
	if len(parts) < 2 {
		return pod
	}
	return parts[len(parts)-2]
}

func (e *endpoints) stop() []Moment {
	e.cancel()
	e.watching.Shutdown()
	return e.moments
}

// pushes are what istiod says in its log of what it sent in a time.
func pushes(log string, from, to time.Time) ([]Moment, error) {
	content, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	var moments []Moment
	scanner := bufio.NewScanner(bytes.NewReader(content))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		stamp, rest, _ := strings.Cut(scanner.Text(), "\t")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		_, what, ads := strings.Cut(rest, "\tads\t")
		if err == nil && ads && !at.Before(from) && at.Before(to) && strings.Contains(what, "Push") {
			moments = append(moments, Moment{at, "istiod: " + what})
		}
	}
	return moments, scanner.Err()
}

const (
	// around is how much before and after a lost request is of interest.
	around = 700 * time.Millisecond
	// toldLost is how many lost requests are told one by one.
	toldLost = 20
)

// WriteLost tells, to the millisecond, what happened around the lost requests: the
// writes, the endpoints, istiod's pushes and the requests themselves.
func (r Result) WriteLost(w io.Writer) error {
	lost := r.Record.Lost()
	if len(lost) == 0 {
		return nil
	}
	moments := slices.Concat(r.Moments, written(r.Timeline), failures(lost))
	slices.SortStableFunc(moments, func(a, b Moment) int { return a.At.Compare(b.At) })
	last := time.Time{}
	for _, m := range moments {
		if !near(m.At, lost) {
			continue
		}
		if m.At.Sub(last) > around && !last.IsZero() {
			fmt.Fprintln(w, "…")
		}
		last = m.At
		if _, err := fmt.Fprintf(w, "%9.3fs  %s\n", m.At.Sub(r.Timeline.Start).Seconds(), m.What); err != nil {
			return err
		}
	}
	return nil
}

func near(at time.Time, lost []fleet.Request) bool {
	return slices.ContainsFunc(lost, func(l fleet.Request) bool { return at.Sub(l.At).Abs() <= around })
}

func failures(lost []fleet.Request) []Moment {
	var moments []Moment
	for i, l := range lost {
		switch {
		case i == toldLost && len(lost) > toldLost+1:
			moments = append(moments, Moment{l.At, fmt.Sprintf("LOST, and so are %d more from here on", len(lost)-i)})
		case i < toldLost || i == len(lost)-1:
			moments = append(moments, Moment{l.At, fmt.Sprintf("LOST by client %d after %d ms: %s", l.Client, l.Took.Milliseconds(), l.Failure)})
		}
	}
	return moments
}

// written are the changes of weights, hashes and pods in the timeline.
func written(t timeline.Timeline) []Moment {
	var moments []Moment
	for _, s := range t.States() {
		if s.Entry.Fact == nil {
			continue
		}
		switch kind := s.Entry.Fact.Kind(); kind {
		case timeline.KindEvent, timeline.KindRollout:
		default:
			moments = append(moments, Moment{t.Start.Add(s.At), fmt.Sprintf("%s %s by %q: canary %d %s (%d available), stable %d %s (%d available)",
				kind, s.Entry.Name, s.Entry.Manager, s.CanaryWeight, s.CanaryHash, s.Pods[s.CanaryHash].Available,
				s.StableWeight, s.StableHash, s.Pods[s.StableHash].Available)})
		}
	}
	return moments
}
