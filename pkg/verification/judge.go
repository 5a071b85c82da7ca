package verification

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
)

// mostSaid bounds a message.
const mostSaid = 3

// problems collects what is waited for.
type problems []string

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Sprintf(format, args...))
}

// verdict is ok without problems; otherwise waiting says, for people, what is waited
// for.
func (p problems) verdict() (ok bool, waiting string) {
	if len(p) <= mostSaid {
		return len(p) == 0, strings.Join(p, "; ")
	}
	return false, fmt.Sprintf("%s; and %d more", strings.Join(p[:mostSaid], "; "), len(p)-mostSaid)
}

// Judge tells whether istiod serves what the objects say: the routes, and of each side
// with weight the clusters and their endpoints. waiting says what is not there yet;
// it is "" if ok.
func (p *Plan) Judge(served mesh.Served, endpoints Endpoints, counted Counts) (ok bool, waiting string) {
	var out problems
	for _, check := range p.routes {
		p.judgeRoutes(&out, check, served)
	}
	for _, name := range slices.Sorted(maps.Keys(p.clusters)) {
		if check := p.clusters[name]; check.weighted {
			p.judgeCluster(&out, name, check, served.Clusters[name], endpoints, counted)
		}
	}
	return out.verdict()
}

// JudgeEndpoints tells whether each side with weight has, by the EndpointSlices, the
// pods that were counted on. A host that is no Service of the cluster has none to look
// at.
func (p *Plan) JudgeEndpoints(endpoints Endpoints, counted Counts) (ok bool, waiting string) {
	var out problems
	for pair := range p.facts.Pairs {
		for _, r := range []role{canary, stable} {
			if p.weighted(pair, r) {
				p.judgeService(&out, p.facts.Pairs[pair].of(r), r, endpoints, counted)
			}
		}
	}
	return out.verdict()
}

// judgeService looks at what is behind the Service of a side.
func (p *Plan) judgeService(out *problems, side Side, r role, endpoints Endpoints, counted Counts) {
	service, isService := p.facts.service(side.Host)
	if have, need := len(podsOf(endpoints[service], side)), counted.of(r); isService && have < need {
		out.add("%d of %d pods of the %s are ready behind Service %s", have, need, r, service)
	}
}

// weighted tells whether a side of its own, and not one that stands for it, has weight
// in any route.
func (p *Plan) weighted(pair int, r role) bool {
	for _, check := range p.clusters {
		if check.pair == pair && check.role == r && check.weighted && check.counted {
			return true
		}
	}
	return false
}

// judgeRoutes compares what one host is served with what it has to be.
func (p *Plan) judgeRoutes(out *problems, check routeCheck, served mesh.Served) {
	routes, answered := served.Routes[check.host]
	switch {
	case !answered:
		out.add("istiod has not answered yet which routes %s has", shown(check.host))
	case !servedBy(routes, check):
		if len(routes) > 0 || !check.optional {
			out.add("istiod serves %s %s, not by VirtualService %s as seen from namespace %s", shown(check.host), origin(routes), check.service, p.facts.Namespace)
		}
	case !align(check.expected, routes):
		out.add("%s", p.explain(check, routes))
	}
}

// servedBy tells whether all routes are made of the VirtualService.
func servedBy(routes []mesh.Route, check routeCheck) bool {
	return len(routes) > 0 && !slices.ContainsFunc(routes, func(r mesh.Route) bool { return r.VirtualService != check.service })
}

// origin is what routes are made of.
func origin(routes []mesh.Route) string {
	if len(routes) == 0 {
		return "not at all"
	}
	for _, route := range routes {
		if route.VirtualService.Name != "" {
			return fmt.Sprintf("by VirtualService %s", route.VirtualService)
		}
	}
	return "without any VirtualService"
}

// align tells whether routes are, in their order, those that are expected.
func align(want []expected, routes []mesh.Route) bool {
	// reach[j] tells whether the expected so far can be the first j routes.
	reach := make([]bool, len(routes)+1)
	reach[0] = true
	for _, e := range want {
		next := make([]bool, len(routes)+1)
		for j := range reach {
			switch {
			case e.any:
				next[j] = reach[j] || j > 0 && next[j-1]
			case j > 0:
				next[j] = reach[j-1] && e.is(routes[j-1])
			}
		}
		reach = next
	}
	return reach[len(routes)]
}

func (e expected) is(route mesh.Route) bool {
	return e.name == route.Name && slices.Equal(e.clusters, route.Clusters)
}

// explain says what is wrong with the routes of a host. The canary's weight is what
// people look for.
func (p *Plan) explain(check routeCheck, routes []mesh.Route) string {
	for i, e := range check.expected {
		if e.any {
			break // nobody knows which is which
		}
		if i >= len(routes) || routes[i].Name != e.name {
			break
		}
		if e.is(routes[i]) {
			continue
		}
		is, isKnown := p.canaryPart(routes[i].Clusters)
		want, wantKnown := p.canaryPart(e.clusters)
		where := fmt.Sprintf("route %s of VirtualService %s, %s", orUnnamed(e.name), check.service, shown(check.host))
		if is != want && isKnown && wantKnown {
			return fmt.Sprintf("istiod still serves canary %d where %d is written (%s)", is, want, where)
		}
		return fmt.Sprintf("istiod still serves other destinations than are written (%s)", where)
	}
	return fmt.Sprintf("istiod still serves other routes than are written (%d of VirtualService %s, %s)", len(routes), check.service, shown(check.host))
}

func orUnnamed(name string) string {
	if name == "" {
		return "without a name"
	}
	return name
}

func shown(host mesh.Host) string { return fmt.Sprintf("host %s port %d", host.Name, host.Port) }

// judgeCluster tells whether a cluster exists and has the pods of its side.
func (p *Plan) judgeCluster(out *problems, name string, check clusterCheck, is mesh.Cluster, endpoints Endpoints, counted Counts) {
	switch {
	case !is.Asked || !is.Listed:
		out.add("istiod has not answered yet for cluster %s", name)
	case !is.Exists:
		out.add("cluster %s is not there", name)
	default:
		p.judgePods(out, name, check, is.Endpoints, endpoints, counted)
	}
}

// judgePods compares the endpoints of a cluster with the pods of its side. An address
// that the EndpointSlices do not have may be another cluster's of the mesh.
func (p *Plan) judgePods(out *problems, name string, check clusterCheck, is []mesh.Endpoint, endpoints Endpoints, counted Counts) {
	side := p.side(check)
	service, _ := p.facts.service(side.Host)
	known, asked := endpoints[service]
	need := 0
	if check.counted {
		need = counted.of(check.role)
	}
	if !asked || side.hash() == "" {
		// Which pods they are to be is not known.
		if have := len(healthy(is)); have < need {
			out.add("%d of %d endpoints of the %s (cluster %s)", have, need, check.role, name)
		}
		return
	}
	addresses, have := healthy(is), map[string]bool{}
	for _, e := range known {
		switch {
		case !addresses[e.Address]:
		case e.Ready && side.has(e.Labels):
			have[podKey(e)] = true
		default:
			out.add("%s is still an endpoint of the %s, which is %s (cluster %s)", podName(e), check.role, side.hash(), name)
			return
		}
	}
	if len(have) < need {
		out.add("%d of %d endpoints of the %s (cluster %s)", len(have), need, check.role, name)
	}
}

// healthy are the addresses that get requests.
func healthy(endpoints []mesh.Endpoint) map[string]bool {
	addresses := map[string]bool{}
	for _, e := range endpoints {
		if e.Healthy && e.Address != "" {
			addresses[e.Address] = true
		}
	}
	return addresses
}

// podsOf are the ready pods of a side behind its Service.
func podsOf(endpoints []cluster.Endpoint, side Side) map[string]bool {
	pods := map[string]bool{}
	for _, e := range endpoints {
		if e.Ready && (side.hash() == "" || side.has(e.Labels)) {
			pods[podKey(e)] = true
		}
	}
	return pods
}

// podKey is one for all addresses of a pod.
func podKey(e cluster.Endpoint) string {
	if e.Pod == "" {
		return e.Address
	}
	return "pod " + e.Pod
}

func podName(e cluster.Endpoint) string {
	name := podKey(e)
	if hash := e.Labels[hashLabel]; hash != "" {
		name += " of " + hash
	}
	if e.Terminating {
		name += ", which is being deleted,"
	}
	return name
}
