package verification

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// Plan is what has to be served for the objects of one moment. It does not change.
type Plan struct {
	facts  Facts
	routes []routeCheck
	// clusters are those of the sides, by name; those without weight are followed, but
	// not judged.
	clusters map[string]clusterCheck
	hidden   map[string]bool
	// unseen tells that the canary may get requests by routes that cannot be seen.
	unseen bool
}

// routeCheck is what one host and port have to be served.
type routeCheck struct {
	host     mesh.Host
	service  types.NamespacedName // the VirtualService
	expected []expected
	// optional is set for a host of which nothing is known but that a VirtualService
	// names it: it may not be served at all.
	optional bool
}

// clusterCheck is one cluster of a side.
type clusterCheck struct {
	pair     int
	role     role
	weighted bool
	// counted tells that the cluster is the side's own: one of a fixed subset, which
	// the user pinned, may have fewer pods.
	counted bool
}

// NewPlan makes the plan. It never fails: what cannot be read of an object is not
// judged, and is named in Hidden.
func NewPlan(f Facts) *Plan {
	p := &Plan{facts: f, clusters: map[string]clusterCheck{}, hidden: map[string]bool{}}
	for _, vs := range f.VirtualServices {
		hosts := p.hostsOf(vs)
		for _, host := range hosts {
			p.addRoutes(vs, host)
		}
		for _, route := range vs.HTTP {
			p.addRoute(vs, route, hosts)
		}
		for _, route := range slices.Concat(vs.TLS, vs.TCP) {
			p.addUnseen(vs, route, "a client without a proxy has no routes for connections")
		}
	}
	return p
}

// seenHost is a host and port whose routes can be asked for.
type seenHost struct {
	mesh.Host
	optional bool
}

// hostsOf are those of a VirtualService; none if its routes cannot be seen.
func (p *Plan) hostsOf(vs *virtualservice.VirtualService) []seenHost {
	switch {
	case vs.Malformed != nil || len(vs.HTTP) == 0:
		return nil
	case len(vs.Hosts) == 0:
		p.hide(vs, "it has no hosts, so another VirtualService delegates to it")
		return nil
	case len(vs.Gateways) > 0 && !slices.Contains(vs.Gateways, meshGateway):
		p.hide(vs, "it is for gateways only")
		return nil
	}
	var all []seenHost
	for _, name := range vs.Hosts {
		all = append(all, p.portsOf(vs, p.facts.resolve(name, vs.Namespace))...)
	}
	slices.SortFunc(all, func(a, b seenHost) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
	})
	return slices.CompactFunc(all, func(a, b seenHost) bool { return a.Host == b.Host })
}

// portsOf are the ports of one host on which it has http routes.
func (p *Plan) portsOf(vs *virtualservice.VirtualService, name string) []seenHost {
	if strings.HasPrefix(name, "*") {
		return p.wildcard(vs, name)
	}
	if _, isService := p.facts.service(name); !isService {
		return []seenHost{{Host: mesh.Host{Name: name, Port: httpPort}, optional: true}}
	}
	var all []seenHost
	for _, port := range p.facts.ports(name) {
		if carriesHTTP(port) {
			all = append(all, seenHost{Host: mesh.Host{Name: name, Port: uint32(port.Port)}})
		}
	}
	if len(all) == 0 {
		p.hide(vs, fmt.Sprintf("host %s has no port for HTTP, or no Service", name))
	}
	return all
}

// wildcard stands for the sides' own hosts, as far as it fits.
func (p *Plan) wildcard(vs *virtualservice.VirtualService, pattern string) []seenHost {
	var all []seenHost
	for _, pair := range p.facts.Pairs {
		for _, host := range []string{pair.Canary.Host, pair.Stable.Host} {
			if strings.HasSuffix(host, strings.TrimPrefix(pattern, "*")) {
				all = append(all, p.portsOf(vs, host)...)
			}
		}
	}
	if len(all) == 0 {
		p.hide(vs, fmt.Sprintf("host %s is none that can be asked for", pattern))
	}
	return all
}

// addRoutes plans what a host has to be served. One for which the VirtualService has
// no route is none of its own.
func (p *Plan) addRoutes(vs *virtualservice.VirtualService, host seenHost) {
	routes := p.facts.routesFor(vs, host.Port)
	if len(routes) == 0 {
		return
	}
	p.routes = append(p.routes, routeCheck{
		host: host.Host, service: types.NamespacedName{Namespace: vs.Namespace, Name: vs.Name}, expected: routes, optional: host.optional,
	})
}

// addRoute plans the clusters of one http route.
func (p *Plan) addRoute(vs *virtualservice.VirtualService, route virtualservice.Route, hosts []seenHost) {
	blocks, err := blocksOf(route)
	switch {
	case err != nil || route.Malformed != nil:
		p.addUnseen(vs, route, "it cannot be read")
		return
	case route.Delegate != nil:
		p.hide(vs, fmt.Sprintf("route %s is left to another VirtualService", route))
		p.unseen = true
		return
	case len(hosts) == 0:
		p.addUnseen(vs, route, "")
		return
	}
	if slices.ContainsFunc(blocks, func(b matchBlock) bool { return !b.forUs(p.facts.Namespace) }) {
		p.addUnseen(vs, route, "some of its matches are for certain clients only")
	}
	for i, d := range route.Destinations {
		for _, host := range hosts {
			p.addCluster(vs, route, i, portOf(d, host.Port))
		}
	}
}

// addUnseen plans the clusters of a route that cannot be seen, for all ports that it
// may mean.
func (p *Plan) addUnseen(vs *virtualservice.VirtualService, route virtualservice.Route, why string) {
	for i, d := range route.Destinations {
		ports := []uint32{portOf(d, 0)}
		if ports[0] == 0 {
			ports = nil
			for _, port := range p.facts.ports(p.facts.resolve(d.Host, vs.Namespace)) {
				ports = append(ports, uint32(port.Port))
			}
		}
		_, r, _, ours := p.owner(vs, route, i)
		p.unseen = p.unseen || ours && r == canary
		if ours && why != "" {
			p.hide(vs, fmt.Sprintf("route %s: %s", route, why))
		}
		for _, port := range ports {
			p.addCluster(vs, route, i, port)
		}
	}
}

// addCluster plans the cluster of one destination on one port, if it is a side's.
func (p *Plan) addCluster(vs *virtualservice.VirtualService, route virtualservice.Route, i int, port uint32) {
	pair, r, own, ours := p.owner(vs, route, i)
	if !ours {
		return
	}
	d := route.Destinations[i]
	name := clusterName(port, d.Subset, p.facts.resolve(d.Host, vs.Namespace))
	check := p.clusters[name]
	check.pair, check.role, check.counted = pair, r, own
	check.weighted = check.weighted || d.Weight > 0 || len(route.Destinations) == 1
	p.clusters[name] = check
}

// owner is whose the i-th destination of a route is. own is false where it stands for
// the side although it names a subset that the side does not: see package
// virtualservice.
func (p *Plan) owner(vs *virtualservice.VirtualService, route virtualservice.Route, i int) (pair int, r role, own, ours bool) {
	d := route.Destinations[i]
	for pair := range p.facts.Pairs {
		for _, r := range []role{canary, stable} {
			side := p.facts.Pairs[pair].of(r)
			if !p.facts.same(d.Host, vs.Namespace, side.Host) {
				continue
			}
			if d.Subset == side.Subset {
				return pair, r, true, true
			}
			if side.Subset == "" && !p.plainlyNamed(vs, route, side.Host) {
				return pair, r, false, true
			}
		}
	}
	return 0, 0, false, false
}

// plainlyNamed tells whether a route has a destination of a host without a subset.
func (p *Plan) plainlyNamed(vs *virtualservice.VirtualService, route virtualservice.Route, host string) bool {
	return slices.ContainsFunc(route.Destinations, func(d virtualservice.Destination) bool {
		return d.Subset == "" && p.facts.same(d.Host, vs.Namespace, host)
	})
}

func (p *Plan) hide(vs *virtualservice.VirtualService, why string) {
	p.hidden[fmt.Sprintf("VirtualService %s/%s: %s", vs.Namespace, vs.Name, why)] = true
}

// Want is what to follow in the mesh.
func (p *Plan) Want() mesh.Want {
	want := mesh.Want{Clusters: slices.Sorted(maps.Keys(p.clusters))}
	for _, check := range p.routes {
		want.Routes = append(want.Routes, check.host)
	}
	return want
}

// Services are those whose endpoints are judged, sorted.
func (p *Plan) Services() []types.NamespacedName {
	services := map[types.NamespacedName]bool{}
	for _, check := range p.clusters {
		if service, ok := p.facts.service(p.side(check).Host); ok {
			services[service] = true
		}
	}
	return slices.SortedFunc(maps.Keys(services), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// Namespaces are those of the Services and of the Rollout's view, sorted: where the
// proxies are that have to know the weight.
func (p *Plan) Namespaces() []string {
	namespaces := map[string]bool{p.facts.Namespace: true}
	for _, service := range p.Services() {
		namespaces[service.Namespace] = true
	}
	return slices.Sorted(maps.Keys(namespaces))
}

// Hidden says, sorted, what of the objects cannot be seen in the mesh and why. What
// is in it is not judged.
func (p *Plan) Hidden() []string { return slices.Sorted(maps.Keys(p.hidden)) }

func (p *Plan) side(check clusterCheck) Side { return p.facts.Pairs[check.pair].of(check.role) }
