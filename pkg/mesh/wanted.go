package mesh

import (
	"maps"
	"slices"
)

// names are what one stream asks for: the sum of what its followers want. The lists
// are sorted, without repetitions.
type names struct{ routes, clusters []string }

func namesOf(wants ...Want) names {
	routes, clusters := map[string]struct{}{}, map[string]struct{}{}
	for _, want := range wants {
		for _, host := range want.Routes {
			routes[host.routeName()] = struct{}{}
		}
		for _, name := range want.Clusters {
			clusters[name] = struct{}{}
		}
	}
	return names{routes: slices.Sorted(maps.Keys(routes)), clusters: slices.Sorted(maps.Keys(clusters))}
}

// of are the names for a type of resource. A cluster's endpoints have its name.
func (n names) of(typeURL string) []string {
	if typeURL == routeType {
		return n.routes
	}
	return n.clusters
}

func (n names) equal(other names) bool {
	return slices.Equal(n.routes, other.routes) && slices.Equal(n.clusters, other.clusters)
}

func (n names) empty() bool { return len(n.routes)+len(n.clusters) == 0 }

// hasAny tells whether one of these is among the names.
func (n names) hasAny(some []string) bool {
	return slices.ContainsFunc(some, func(name string) bool {
		_, route := slices.BinarySearch(n.routes, name)
		_, cluster := slices.BinarySearch(n.clusters, name)
		return route || cluster
	})
}
