package mesh

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// ErrUnavailable is in every error that says that istiod cannot be asked at this
// moment. The text says why. Nothing is known of the mesh then; it is tried again
// without the caller's doing.
var ErrUnavailable = errors.New("istiod cannot be asked")

// Host is one port of one host, as a client in the mesh calls it.
type Host struct {
	// Name is the full name, in lower case.
	Name string
	// Port is 1 to 65535: the port of the Service, not that of its pods.
	Port uint32
}

// Want is what somebody wants to know. Names may be repeated and in any order.
type Want struct {
	Routes []Host
	// Clusters are names such as outbound|80|canary|web.shop.svc.cluster.local.
	Clusters []string
}

// Route is one way of a request, in the order in which they are tried.
type Route struct {
	// Name is the route's name in the VirtualService, and where the match block has a
	// name that one behind a dot. Istio calls a route that it made itself "default".
	Name string
	// VirtualService is the one that the route was made of, empty where none was. Of a
	// VirtualService that delegates it is that one, not the delegate.
	VirtualService types.NamespacedName
	// Clusters share the requests, in order. There are none for a redirect, and for
	// what answers by itself.
	Clusters []Weighted
}

// Weighted is a cluster with its share of a route's requests: Weight parts of the sum.
type Weighted struct {
	Cluster string
	// Weight of the only cluster of a route without weights is 1.
	Weight uint32
}

// Endpoint is one address of a cluster.
type Endpoint struct {
	Address string
	Port    uint32
	// Healthy tells that requests are sent there.
	Healthy bool
}

// Cluster is what is known of a cluster.
type Cluster struct {
	// Asked tells that istiod has answered whether it exists; Exists is the answer.
	Asked, Exists bool
	// Listed tells that istiod has listed its endpoints. For a subset that does not
	// exist it lists all of the host's.
	Listed    bool
	Endpoints []Endpoint
}

// Served is what istiod serves at one moment. Its lists are shared and must not be
// changed.
type Served struct {
	// Routes of each host; a host that is not in it has not been answered yet, and one
	// without routes is not known to istiod.
	Routes map[Host][]Route
	// Clusters by name; those that are not in it have not been answered yet.
	Clusters map[string]Cluster
}

// Answered tells whether istiod has answered all of this.
func (s Served) Answered(want Want) bool {
	for _, host := range want.Routes {
		if _, ok := s.Routes[host]; !ok {
			return false
		}
	}
	return !slices.ContainsFunc(want.Clusters, func(name string) bool {
		return !s.Clusters[name].Asked || !s.Clusters[name].Listed
	})
}
