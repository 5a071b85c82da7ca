package mesh

import (
	"slices"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// table is what one stream has been told. Its lists are never changed once they are
// in: readers share them.
type table struct {
	routes    map[string][]Route // by the name of the route configuration
	clusters  map[string]bool    // whether it exists
	endpoints map[string][]Endpoint
}

func newTable() table {
	return table{routes: map[string][]Route{}, clusters: map[string]bool{}, endpoints: map[string][]Endpoint{}}
}

// update is an answer of istiod, read but not yet taken over.
type update struct {
	typeURL   string
	routes    map[string][]Route
	clusters  map[string]bool
	endpoints map[string][]Endpoint
}

// read reads an answer. An error says what in it cannot be read; nothing of it counts
// then.
func read(response *discovery.DiscoveryResponse) (update, error) {
	u := update{typeURL: response.GetTypeUrl(), routes: map[string][]Route{}, clusters: map[string]bool{}, endpoints: map[string][]Endpoint{}}
	for _, resource := range response.GetResources() {
		switch u.typeURL {
		case routeType:
			host, routes, err := decodeRoutes(resource)
			if err != nil {
				return update{}, err
			}
			u.routes[host.routeName()] = routes
		case clusterType:
			name, err := decodeCluster(resource)
			if err != nil {
				return update{}, err
			}
			u.clusters[name] = true
		case endpointType:
			name, endpoints, err := decodeEndpoints(resource)
			if err != nil {
				return update{}, err
			}
			u.endpoints[name] = endpoints
		}
	}
	return u, nil
}

// take takes over what was asked for and returns the names of what is different by it.
// An answer about clusters is about all of them; one about routes or endpoints may
// leave out what has not changed.
func (t table) take(u update, asked []string) []string {
	var changed []string
	for _, name := range asked {
		different := false
		switch u.typeURL {
		case clusterType:
			different = put(t.clusters, map[string]bool{name: u.clusters[name]}, name, func(a, b bool) bool { return a == b })
		case endpointType:
			different = put(t.endpoints, u.endpoints, name, slices.Equal[[]Endpoint])
		case routeType:
			different = put(t.routes, u.routes, name, func(a, b []Route) bool { return slices.EqualFunc(a, b, sameRoute) })
		}
		if different {
			changed = append(changed, name)
		}
	}
	return changed
}

// put takes one entry over, if there is one, and tells whether it is different.
func put[V any](into, from map[string]V, name string, same func(a, b V) bool) bool {
	now, answered := from[name]
	before, known := into[name]
	if !answered || known && same(before, now) {
		return false
	}
	into[name] = now
	return true
}

func sameRoute(a, b Route) bool {
	return a.Name == b.Name && a.VirtualService == b.VirtualService && slices.Equal(a.Clusters, b.Clusters)
}

// served is the part of the table that somebody wants.
func (t table) served(want Want) Served {
	s := Served{Routes: map[Host][]Route{}, Clusters: map[string]Cluster{}}
	for _, host := range want.Routes {
		if routes, answered := t.routes[host.routeName()]; answered {
			s.Routes[host] = routes
		}
	}
	for _, name := range want.Clusters {
		exists, asked := t.clusters[name]
		endpoints, listed := t.endpoints[name]
		if asked || listed {
			s.Clusters[name] = Cluster{Asked: asked, Exists: exists, Listed: listed, Endpoints: endpoints}
		}
	}
	return s
}

// prune forgets what nobody wants any more.
func (t table) prune(wanted names) {
	for name := range t.routes {
		if _, still := slices.BinarySearch(wanted.routes, name); !still {
			delete(t.routes, name)
		}
	}
	for name := range t.clusters {
		if _, still := slices.BinarySearch(wanted.clusters, name); !still {
			delete(t.clusters, name)
		}
	}
	for name := range t.endpoints {
		if _, still := slices.BinarySearch(wanted.clusters, name); !still {
			delete(t.endpoints, name)
		}
	}
}
