package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// endpoint is an entry of a slice as the API server sends it; kind "" is nobody's.
func endpoint(kind, name string, conditions discoveryv1.EndpointConditions, addresses ...string) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: addresses, Conditions: conditions, NodeName: new("node-1"), Zone: new("zone-1")}
	if kind != "" {
		e.TargetRef = &corev1.ObjectReference{Kind: kind, Namespace: "shop", Name: name, UID: "uid"}
	}
	return e
}

func slice(name, service string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop", ResourceVersion: "7",
			Labels:        map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "controller"},
			Annotations:   map[string]string{"note": "long"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager"}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   endpoints,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}},
	}
}

// newTestSlices is a cache that holds these slices, as the watch would strip them.
func newTestSlices(t *testing.T, pods map[string]map[string]string, all ...*discoveryv1.EndpointSlice) *endpointSlices {
	t.Helper()
	labels := func(pod types.NamespacedName) map[string]string { return pods[pod.String()] }
	e := newEndpointSlices(nil, "", labels, func(string, string) {}, nothing, hclog.NewNullLogger())
	for _, full := range all {
		stripped, err := stripEndpointSlice(full)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.informer.GetIndexer().Add(stripped); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func TestOfASliceOnlyWhatIsAskedForIsKept(t *testing.T) {
	ready := discoveryv1.EndpointConditions{Ready: new(true)}
	full := slice("web-1", "web", endpoint("Pod", "a", ready, "10.0.0.1"), endpoint("Node", "b", ready, "10.0.0.2"), endpoint("", "", ready, "10.0.0.3"))
	got, err := stripEndpointSlice(full)
	if err != nil {
		t.Fatal(err)
	}
	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop", ResourceVersion: "7", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.1"}, Conditions: ready, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "a"}},
			{Addresses: []string{"10.0.0.2"}, Conditions: ready},
			{Addresses: []string{"10.0.0.3"}, Conditions: ready},
		},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("slice (-want +got):\n%s", diff)
	}
	if other, err := stripEndpointSlice("other"); other != "other" || err != nil {
		t.Errorf("what is no slice becomes %v, %v", other, err)
	}
}

func TestTheEndpointsOfAServiceAreThoseOfAllItsSlices(t *testing.T) {
	labels := map[string]string{hashLabel: "7c9b"}
	pods := map[string]map[string]string{"shop/a": labels, "other/b": {hashLabel: "another namespace's"}}
	elsewhere := endpoint("Pod", "a", discoveryv1.EndpointConditions{}, "10.0.0.9")
	elsewhere.TargetRef.Namespace = "other"
	e := newTestSlices(t, pods,
		slice("web-1", "web",
			endpoint("Pod", "b", discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}, "10.0.0.2"),
			endpoint("Pod", "a", discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)}, "10.0.0.1"),
			endpoint("Pod", "moved", discoveryv1.EndpointConditions{Ready: new(false)}, "10.0.0.3")),
		slice("web-2", "web",
			endpoint("Pod", "a", discoveryv1.EndpointConditions{Ready: new(true)}, "fd00::1"),
			endpoint("Pod", "moved", discoveryv1.EndpointConditions{Ready: new(true)}, "10.0.0.3"),
			endpoint("", "", discoveryv1.EndpointConditions{}, "10.0.0.8"),
			elsewhere),
		slice("cart-1", "cart", endpoint("Pod", "a", discoveryv1.EndpointConditions{}, "10.0.0.7")),
	)
	want := []Endpoint{
		{Address: "10.0.0.8", Ready: true, Serving: true},
		{Address: "10.0.0.9", Ready: true, Serving: true},
		{Address: "10.0.0.1", Ready: true, Serving: true, Pod: "a", Labels: labels},
		{Address: "fd00::1", Ready: true, Serving: true, Pod: "a", Labels: labels},
		{Address: "10.0.0.2", Serving: true, Terminating: true, Pod: "b"},
		{Address: "10.0.0.3", Ready: true, Serving: true, Pod: "moved"},
	}
	if diff := gocmp.Diff(want, e.of("shop", "web")); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	for _, other := range [][2]string{{"shop", "we"}, {"other", "web"}, {"", ""}} {
		if got := e.of(other[0], other[1]); len(got) != 0 {
			t.Errorf("Service %q has %v", other, got)
		}
	}
}

func TestARefusedWatchSaysWhichRightIsNeededForWhat(t *testing.T) {
	e := newTestSlices(t, nil)
	for sentence, tc := range map[string]struct {
		err  error
		want []string
	}{
		"nothing has been answered":   {nil, []string{"has not answered"}},
		"the API server refuses":      {apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", errors.New("cannot list")), []string{"cannot watch endpointslices.discovery.k8s.io", "cannot list", "grant them, or set it to Object"}},
		"the API server is not there": {errors.New("connection refused"), []string{"cannot watch endpointslices.discovery.k8s.io: connection refused"}},
	} {
		if tc.err != nil {
			e.lastErr.Store(&tc.err)
		}
		text := e.remedy(e.unfilled()).Error()
		for _, part := range tc.want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q lacks %q", sentence, text, part)
			}
		}
		if grants := strings.Contains(text, "grant"); grants != apierrors.IsForbidden(tc.err) {
			t.Errorf("%s: %q speaks of a grant: %t", sentence, text, grants)
		}
		e.lastErr.Store(nil)
	}
}

func TestAPodThatCountsHasItsLabels(t *testing.T) {
	c := counting{}
	labels := map[string]string{hashLabel: "7c9b"}
	at := types.NamespacedName{Namespace: "shop", Name: "a"}
	if got := c.tally.labels(at); got != nil {
		t.Errorf("a pod that nobody has seen has %v", got)
	}
	c.event("a", pod("a", "rs", labels))
	if diff := gocmp.Diff(labels, c.tally.labels(at)); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	c.event("a", deleting(pod("a", "rs", labels)))
	if got := c.tally.labels(at); got != nil {
		t.Errorf("a pod that is being deleted has %v", got)
	}
}

func TestTheServicesCacheKeepsSelectorAndPorts(t *testing.T) {
	s := newServices(nil, "", nothing)
	c := &Cluster{services: s}
	full := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", ResourceVersion: "7", Annotations: map[string]string{"note": "long"}},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.1", Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP},
				{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, AppProtocol: new("kubernetes.io/h2c")},
			},
		},
	}
	stripped, err := stripService(full)
	if err != nil {
		t.Fatal(err)
	}
	if kept := stripped.(*service); kept.Annotations != nil || kept.ResourceVersion != "7" {
		t.Errorf("too much or too little is kept: %+v", kept)
	}
	if err := s.informer.GetStore().Add(stripped); err != nil {
		t.Fatal(err)
	}
	want := []ServicePort{{Port: 80, Name: "http"}, {Port: 53, Name: "dns", AppProtocol: "kubernetes.io/h2c", UDP: true}}
	if got := c.ServicePorts("shop", "web"); !slices.Equal(want, got) {
		t.Errorf("ports %v, want %v", got, want)
	}
	if got := c.ServiceSelector("shop", "web"); got["app"] != "web" {
		t.Errorf("selector %v", got)
	}
	if got := c.ServicePorts("shop", "cart"); got != nil {
		t.Errorf("a Service that does not exist has %v", got)
	}
}
