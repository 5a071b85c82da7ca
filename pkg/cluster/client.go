package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// The kinds of Kubernetes that are read and written here, and no others: client-go's
// clientset has all of them, and with net/rpc in the process the linker keeps each
// of their methods, as it might be called by its name. That was 21 MB of the binary,
// and 13 MiB of memory while nothing happened.
var (
	kinds      = newScheme()
	codecs     = serializer.NewCodecFactory(kinds)
	parameters = runtime.NewParameterCodec(kinds)
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(corev1.SchemeGroupVersion,
		&corev1.Service{}, &corev1.ServiceList{}, &corev1.Secret{}, &corev1.SecretList{}, &corev1.Event{}, &corev1.EventList{})
	s.AddKnownTypes(appsv1.SchemeGroupVersion, &appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{})
	s.AddKnownTypes(discoveryv1.SchemeGroupVersion, &discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{})
	for _, version := range []schema.GroupVersion{corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion} {
		metav1.AddToGroupVersion(s, version)
	}
	return s
}

// clients are those for the API groups of these kinds. They share connections and
// the limit of requests, as client-go's own do.
type clients struct{ core, apps, discovery rest.Interface }

func newClients(config *rest.Config) (clients, error) {
	limited := rest.CopyConfig(config)
	if limited.RateLimiter == nil && limited.QPS > 0 {
		limited.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(limited.QPS, limited.Burst)
	}
	connections, err := rest.HTTPClientFor(limited)
	if err != nil {
		return clients{}, err
	}
	var c clients
	for _, want := range []struct {
		into    *rest.Interface
		version schema.GroupVersion
	}{{&c.core, corev1.SchemeGroupVersion}, {&c.apps, appsv1.SchemeGroupVersion}, {&c.discovery, discoveryv1.SchemeGroupVersion}} {
		if *want.into, err = newClient(limited, connections, want.version); err != nil {
			return clients{}, fmt.Errorf("%s: %w", want.version, err)
		}
	}
	return c, nil
}

func newClient(config *rest.Config, connections *http.Client, version schema.GroupVersion) (rest.Interface, error) {
	of := rest.CopyConfig(config)
	of.GroupVersion, of.APIPath = &version, "/apis"
	if version.Group == "" {
		of.APIPath = "/api"
	}
	of.NegotiatedSerializer = codecs.WithoutConversion()
	return rest.RESTClientForConfigAndClient(of, connections)
}

// newAsking makes the client for what the API server says of itself. Each of its
// requests ends after discoveryTimeout.
func newAsking(config *rest.Config) (rest.Interface, error) {
	of := rest.CopyConfig(config)
	of.Timeout = discoveryTimeout
	of.GroupVersion, of.NegotiatedSerializer = &schema.GroupVersion{}, codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(of)
}

// typed is one of the resources, as an informer needs it.
type typed[L runtime.Object] struct {
	client              rest.Interface
	namespace, resource string // all namespaces if it is ""
	empty               func() L
}

// List implements resource.
func (t typed[L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	list := t.empty()
	err := t.get(o).Do(ctx).Into(list)
	return list, err
}

// Watch implements resource.
func (t typed[L]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return t.get(o).Watch(ctx)
}

func (t typed[L]) get(o metav1.ListOptions) *rest.Request {
	var timeout time.Duration // none
	if o.TimeoutSeconds != nil {
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	return t.client.Get().NamespaceIfScoped(t.namespace, t.namespace != "").Resource(t.resource).
		VersionedParams(&o, parameters).Timeout(timeout)
}
