package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// byService is the index of EndpointSlices by namespace and Service.
const byService = "service"

// Endpoint is one address behind a Service.
type Endpoint struct {
	Address string
	// Ready, Serving and Terminating are the conditions of the EndpointSlice. Ready is
	// true where it is unknown, as the API has it.
	Ready, Serving, Terminating bool
	// Pod is the name of the pod behind the address, in the namespace of the Service;
	// "" if it is none.
	Pod string
	// Labels are the pod's by now; nil for one that is no Rollout's, is being deleted,
	// or has not been seen yet. Shared with the cache: not to be changed.
	Labels map[string]string
}

// endpointSlices watches what the others of this package do not need: it is begun by
// the first question, so that nobody else has to grant it.
type endpointSlices struct {
	watched
	log    hclog.Logger
	began  sync.Once
	labels func(types.NamespacedName) map[string]string
}

func newEndpointSlices(client rest.Interface, namespace string, labels func(types.NamespacedName) map[string]string,
	changed func(namespace, service string), heard func(), log hclog.Logger,
) *endpointSlices {
	e := &endpointSlices{watched: watched{name: "endpointslices.discovery.k8s.io"}, log: log, labels: labels}
	from := typed[*discoveryv1.EndpointSliceList]{client, namespace, "endpointslices", func() *discoveryv1.EndpointSliceList { return &discoveryv1.EndpointSliceList{} }}
	e.informer = newInformer(e.name, from, client, selection{labels: discoveryv1.LabelServiceName},
		&discoveryv1.EndpointSlice{}, cache.Indexers{byService: serviceOf}, heard)
	tell := func(object any) {
		if slice, ok := last(object).(*discoveryv1.EndpointSlice); ok {
			changed(slice.Namespace, slice.Labels[discoveryv1.LabelServiceName])
		}
	}
	// Both are set before the start, so they cannot fail.
	_ = e.informer.SetTransform(stripEndpointSlice)
	_, _ = e.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, object any) { tell(object) }, DeleteFunc: tell,
	})
	return e
}

// begin starts the watch, once.
func (e *endpointSlices) begin() {
	e.began.Do(func() { e.run(context.Background(), e.log) })
}

// remedy adds to an error what only an operator can do.
func (e *endpointSlices) remedy(err error) error {
	if err == nil || !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w; verify.level Endpoints and Mesh need the rights to list and watch endpointslices.discovery.k8s.io: grant them, or set it to Object", err)
}

// serviceOf indexes a slice by its Service.
func serviceOf(object any) ([]string, error) {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, nil
	}
	return []string{keyOf(slice.Namespace, slice.Labels[discoveryv1.LabelServiceName])}, nil
}

// stripEndpointSlice keeps the Service, and of each endpoint the addresses, the
// conditions and the pod.
func stripEndpointSlice(object any) (any, error) {
	full, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return object, nil
	}
	stripped := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Name: full.Name, Namespace: full.Namespace, UID: full.UID, ResourceVersion: full.ResourceVersion,
		Labels: map[string]string{discoveryv1.LabelServiceName: full.Labels[discoveryv1.LabelServiceName]},
	}}
	stripped.Endpoints = make([]discoveryv1.Endpoint, len(full.Endpoints))
	for i, endpoint := range full.Endpoints {
		stripped.Endpoints[i] = discoveryv1.Endpoint{Addresses: endpoint.Addresses, Conditions: endpoint.Conditions}
		if pod := podOf(endpoint, full.Namespace); pod != "" {
			stripped.Endpoints[i].TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: pod}
		}
	}
	return stripped, nil
}

// podOf is the name of the pod behind an endpoint, "" if it is none.
func podOf(endpoint discoveryv1.Endpoint, namespace string) string {
	ref := endpoint.TargetRef
	if ref == nil || ref.Kind != "Pod" || ref.Namespace != "" && ref.Namespace != namespace {
		return ""
	}
	return ref.Name
}

// of are the endpoints of a Service, by pod and address, none twice.
func (e *endpointSlices) of(namespace, service string) []Endpoint {
	objects, _ := e.informer.GetIndexer().ByIndex(byService, keyOf(namespace, service)) // fails without the index only
	var all []Endpoint
	for _, object := range objects {
		slice, ok := object.(*discoveryv1.EndpointSlice)
		if !ok {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			all = append(all, e.endpoints(slice.Namespace, endpoint)...)
		}
	}
	slices.SortFunc(all, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Address, b.Address), compareReady(a, b))
	})
	// An endpoint may be in two slices for a moment, while it moves from one to the other.
	return slices.CompactFunc(all, func(a, b Endpoint) bool { return a.Pod == b.Pod && a.Address == b.Address })
}

// compareReady puts the ready one of two first.
func compareReady(a, b Endpoint) int {
	switch {
	case a.Ready == b.Ready:
		return 0
	case a.Ready:
		return -1
	default:
		return 1
	}
}

// endpoints are one for each address of a slice's entry.
func (e *endpointSlices) endpoints(namespace string, from discoveryv1.Endpoint) []Endpoint {
	one := Endpoint{Ready: yes(from.Conditions.Ready, true), Terminating: yes(from.Conditions.Terminating, false)}
	one.Serving = yes(from.Conditions.Serving, one.Ready)
	if from.TargetRef != nil {
		one.Pod = from.TargetRef.Name
		one.Labels = e.labels(types.NamespacedName{Namespace: namespace, Name: one.Pod})
	}
	out := make([]Endpoint, len(from.Addresses))
	for i, address := range from.Addresses {
		out[i], out[i].Address = one, address
	}
	return out
}

func yes(condition *bool, otherwise bool) bool {
	if condition == nil {
		return otherwise
	}
	return *condition
}

// Endpoints returns what is behind a Service by its EndpointSlices, and nothing for a
// Service that has none. It does not wait and sends no request.
//
// The first call begins the watch, for which the stock ClusterRole of Argo Rollouts
// has no rights. An error says that the slices have not been read yet, and why:
// nothing is known then. It goes away by itself, also when a right is granted later.
func (c *Cluster) Endpoints(namespace, service string) ([]Endpoint, error) {
	c.endpointSlices.begin()
	if !c.endpointSlices.filled() {
		return nil, c.endpointSlices.remedy(c.endpointSlices.unfilled())
	}
	return c.endpointSlices.of(namespace, service), nil
}

// AwaitEndpoints begins the watch, too, and waits until Endpoints has no error, but
// neither beyond the context nor beyond Options.SyncWait. It returns that error.
func (c *Cluster) AwaitEndpoints(ctx context.Context) error {
	c.endpointSlices.begin()
	ctx, cancel := context.WithTimeout(ctx, c.options.SyncWait)
	defer cancel()
	return c.endpointSlices.remedy(c.endpointSlices.wait(ctx))
}

// OnEndpointsChanged names the function that is told of every change behind a Service.
// It is called from the watch, once there is one, and must return at once.
func (c *Cluster) OnEndpointsChanged(f func(namespace, service string)) {
	c.endpointsChanged.Store(&f)
}

func (c *Cluster) tellEndpointsChanged(namespace, service string) {
	if f := c.endpointsChanged.Load(); f != nil {
		(*f)(namespace, service)
	}
}
