package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

var trafficChecks = []*Check{
	{
		Code: "ARI0210", Severity: Error, Title: "A host that does not exist", judge: missingHosts,
		Happens:   "Requests to this destination fail with 503.",
		Instead:   "Correct the host, or create the Service. Istio completes names without a dot only: write web or web.shop.svc.cluster.local, not web.shop or web.shop.svc.",
		Not:       "Hosts of a ServiceEntry in the input and names outside of the cluster are accepted, as is example.com if the input has nothing of a namespace called com; offline a Service that is not in the input is a note. A Service that only another cluster of the mesh has is not seen: ignore the code then.",
		Elsewhere: "Istio IST0101, Kiali KIA1101",
	},
	{
		Code: "ARI0211", Severity: Error, Title: "A port that the Service does not have", judge: missingPorts,
		Happens: "Requests to this destination fail with 503.",
		Instead: "Write one of the Service's ports (its port, not its targetPort).",
		Not:     "A destination without a port is not judged: Istio takes the port of the request.",
	},
	{
		Code: "ARI0212", Severity: Info, Title: "A destination that is neither stable nor canary", judge: foreignDestinations,
		Happens: "It keeps its weight, and stable and canary share the rest: a setWeight of 50 is half of what is left.",
		Instead: "Nothing, if that is meant. Otherwise remove the destination.",
		Not:     "Destinations with weight 0 are not counted.",
	},
	{
		Code: "ARI0220", Severity: Error, Title: "Another VirtualService for the same host", judge: sameHost, bounded: true,
		Happens:   "For sidecars Istio takes one of the two for the whole host, by age, and ignores the other: the weights may have no effect.",
		Instead:   "Put the routes into one VirtualService, or make the other one a delegate without hosts.",
		Not:       "VirtualServices of a gateway are merged and may share a host; so may two that are exported to different namespaces. Only equal hosts are compared, no wildcards. Of one Rollout 20 are told; a note says that there are more.",
		Elsewhere: "Istio IST0109, Kiali KIA1106",
	},
	{
		Code: "ARI0221", Severity: Warning, Title: "A route that catches everything before ours", judge: catchAll,
		Happens:   "No request reaches the Rollout's route, nor the header and mirror routes that are put before it: the weights have no effect.",
		Instead:   "Move the catch-all behind the Rollout's route, or give it a match.",
		Not:       "Only a route without any condition counts: no match, an empty one, the path prefix /, or a regular expression for every path, as in ^/.*$.",
		Elsewhere: "Istio IST0130",
	},
	{
		Code: "ARI0222", Severity: Warning, Title: "A route to the host without its subset", judge: withoutSubset, bounded: true,
		Happens:   "Requests that take this route go to stable and canary pods alike, by the number of pods and not by weight: an aborted or held canary still gets them.",
		Instead:   "Give the route both subsets and let the Rollout handle it, or name the stable subset.",
		Not:       "Not for a split by Services, and not for destinations with weight 0 beside others. Of one Rollout 20 are told; a note says that there are more.",
		Elsewhere: "Istio IST0140",
	},
	{
		Code: "ARI0223", Severity: Error, Title: "Two Rollouts for one route or subset", judge: rivals,
		Happens: "The plugin lets the older Rollout have it and refuses all calls for the younger one.",
		Instead: "Give each Rollout routes, subsets and names of managed routes of its own.",
	},
	{
		Code: "ARI0224", Severity: Info, Title: "A route to a Service of both sides", judge: rootService, bounded: true,
		Happens: "Requests that take this route go to stable and canary pods alike, by the number of pods and not by weight. A gateway does not follow the routes that the mesh has for that Service.",
		Instead: "Give the route both Services and let the Rollout handle it, or name the stable Service.",
		Not:     "Only for a split by Services (with subsets it is ARI0222), for Services in the input whose selector matches the pod template, and not for destinations with weight 0 beside others. Of one Rollout 20 are told; a note says that there are more.",
	},
	{
		Code: "ARI0225", Severity: Warning, Title: "Another router for the same traffic", judge: otherRouters, bounded: true,
		Happens: "Requests that take an HTTPRoute of the Gateway API follow its own weights, which this plugin does not write. Another plugin, or another router of the controller, gets each weight at once, whatever the guard holds here, and may answer for both: the controller keeps one word on whether a weight is verified, that of the router which it asked last.",
		Instead: "Let the Rollout's VirtualServices route all of it: remove the other router, or name only the stable Service in the HTTPRoute. Where each has a way of its own into the cluster, and that is meant, ignore the code.",
		Not:     "Only for rules that name both Services of the Rollout's namespace, whatever their weights; so not for a split by subsets without canaryService and stableService. Beside another router the HTTPRoute is taken for that one's, and not told. Of a cluster, only HTTPRoutes of the chosen namespace are read. Of one Rollout 20 are told; a note says that there are more.",
	},
}

func missingHosts(s *subject, tell tell) {
	for _, r := range s.rules {
		if r.dr != nil && s.w.unfinished(r.dr.Host) {
			tell(r.o, "spec.host", "%s", s.w.finished(r.dr.Host))
		}
	}
	for _, x := range s.services {
		for _, route := range x.routes {
			for _, d := range route.Destinations {
				at := destinationField(route, d, ".destination.host")
				if s.w.unfinished(d.Host) {
					tell(x.o, at, "%s", s.w.finished(d.Host))
				} else if s.w.hostMissing(d.Host, x.o.Namespace) {
					tell(x.o, at, "there is no Service for host %s", d.Host)
				}
			}
		}
	}
}

// unfinished tells a name like web.shop or web.shop.svc, which the plugin understands
// and Istio does not: there only names without a dot are completed (destination.host in
// istio.io/api).
func (w *world) unfinished(host string) bool {
	labels := strings.Split(strings.ToLower(host), ".")
	switch {
	case len(labels) == 2 && w.namespaces[labels[1]]:
	case len(labels) == 3 && labels[2] == "svc":
	default:
		return false
	}
	return !w.index.named(host)
}

// finished says what to write in place of an unfinished host.
func (w *world) finished(host string) string {
	domain := w.options.ClusterDomain
	if domain == "" {
		domain = hostname.DefaultClusterDomain
	}
	return fmt.Sprintf("Istio does not complete host %s, as there is a dot in it: write %s.svc.%s", host, strings.TrimSuffix(strings.ToLower(host), ".svc"), domain)
}

func destinationField(route virtualservice.Route, d virtualservice.Destination, below string) string {
	return routeField(route, fmt.Sprintf(".route[%d]%s", d.Index, below))
}

// serviceOf is the Service of a host; missing tells that there is certainly none.
func (w *world) serviceOf(host, namespace string) (o *object, missing bool) {
	canonical := w.canonical(host, namespace)
	ns, name, ok := hostname.Service(canonical, w.options.ClusterDomain)
	if !ok || w.index.entries[w.hostKey(canonical)] || w.index.named(host) {
		return nil, false
	}
	if strings.Count(canonical, ".") == 1 && !w.namespaces[ns] {
		return nil, false // example.com looks like service.namespace
	}
	return w.find(serviceKind, ns, name)
}

func (w *world) hostMissing(host, namespace string) bool {
	_, missing := w.serviceOf(host, namespace)
	return missing
}

func missingPorts(s *subject, tell tell) {
	for _, x := range s.services {
		for _, route := range x.routes {
			for _, d := range route.Destinations {
				service, _ := s.w.serviceOf(d.Host, x.o.Namespace)
				if ports := portsOf(service); d.Port != 0 && len(ports) > 0 && !slices.Contains(ports, d.Port) {
					tell(x.o, destinationField(route, d, ".destination.port.number"), "%s has no port %d, but %v", service, d.Port, ports)
				}
			}
		}
	}
}

// portsOf are the ports of a Service; none of one that is not there, or that says
// nothing about them.
func portsOf(service *object) []int64 {
	if service == nil {
		return nil
	}
	var ports []int64
	for _, item := range service.list("spec", "ports") {
		if port, ok := at(item, "port").(int64); ok {
			ports = append(ports, port)
		}
	}
	return ports
}

func foreignDestinations(s *subject, tell tell) {
	for _, x := range s.services {
		for i, route := range x.routes {
			if s.patchErrors(x)[i] != nil {
				continue // ARI0208
			}
			for _, d := range route.Destinations {
				if d.Weight > 0 && !s.owns(d, x.o.Namespace) {
					tell(x.o, destinationField(route, d, ".weight"), "%s keeps its weight of %d", sideOf(d), d.Weight)
				}
			}
		}
	}
}

func sideOf(d virtualservice.Destination) virtualservice.Side {
	return virtualservice.Side{Host: d.Host, Subset: d.Subset}
}

// owns tells whether the destination is one of the sides, or an experiment's.
func (s *subject) owns(d virtualservice.Destination, namespace string) bool {
	host := s.w.canonical(d.Host, namespace)
	for _, step := range s.canary().Steps {
		if step.Experiment == nil {
			continue
		}
		for _, template := range step.Experiment.Templates {
			if template.Service != nil && (template.Service.Name == d.Subset || s.w.same(host, s.w.canonical(template.Service.Name, s.o.Namespace))) {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.sides(), func(side virtualservice.Side) bool {
		return s.w.same(host, side.Host) && (side.Subset == d.Subset || side.Subset == "")
	})
}

func sameHost(s *subject, tell tell) {
	for _, x := range s.services {
		if x.o == nil || !forSidecars(x.o) {
			continue
		}
		told := map[*object]bool{x.o: true}
		for i, host := range x.o.texts("spec", "hosts") {
			for other := range s.w.index.rivals(x.o, s.w.keyOf(host, x.o.Namespace)) {
				if told[other] {
					continue
				}
				told[other] = true
				if !tell(x.o, fmt.Sprintf("spec.hosts[%d]", i), "%s is for host %s too, %s", other, host, other.place()) {
					return
				}
			}
		}
	}
}

// forSidecars tells whether a VirtualService applies to the mesh.
func forSidecars(o *object) bool {
	gateways := o.texts("spec", "gateways")
	return len(gateways) == 0 || slices.Contains(gateways, "mesh")
}

// exportsOf are the namespaces that see an object, "*" for all.
func exportsOf(o *object) []string {
	scopes := o.texts("spec", "exportTo")
	if len(scopes) == 0 {
		return []string{"*"}
	}
	for i, scope := range scopes {
		if scope == "." {
			scopes[i] = o.Namespace
		}
	}
	return scopes
}

func catchAll(s *subject, tell tell) {
	for _, x := range s.services {
		for _, route := range x.routes {
			if route.Protocol != virtualservice.HTTP {
				continue
			}
			for _, before := range x.all.open() {
				if before.Index >= route.Index {
					break
				}
				if !slices.Contains(s.managed, before.Name) {
					tell(x.o, routeField(route, ""), "route %s comes after route %s, which takes every request", route, before)
					break
				}
			}
		}
	}
}

// unconditional tells a route that every request takes.
func unconditional(raw json.RawMessage) bool {
	var route struct {
		Match []map[string]json.RawMessage `json:"match"`
	}
	if json.Unmarshal(raw, &route) != nil {
		return false
	}
	return len(route.Match) == 0 || slices.ContainsFunc(route.Match, open)
}

// open tells a match block without a condition.
func open(block map[string]json.RawMessage) bool {
	for name, condition := range block {
		switch name {
		case "name", "statPrefix", "ignoreUriCase":
		case "uri":
			var uri map[string]string
			if json.Unmarshal(condition, &uri) != nil || len(uri) != 1 || uri["prefix"] != "/" && !everyPath(uri["regex"]) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// everyPath tells the usual ways to write a regular expression for every path.
func everyPath(regex string) bool {
	bare := strings.TrimSuffix(strings.TrimPrefix(regex, "^"), "$")
	return slices.Contains([]string{".*", "/.*", "(.*)", "/(.*)"}, bare)
}

// rivals are reported at the second of two Rollouts in the input: which is older it
// does not say.
func rivals(s *subject, tell tell) {
	for thing, field := range s.things() {
		if owner := s.w.owner(thing); owner != s {
			tell(s.o, field, "%s is handled by %s too", thing, owner.o)
		}
	}
}

// owner is the first Rollout that handles a thing.
func (w *world) owner(thing string) *subject {
	if w.owners == nil {
		w.owners = map[string]*subject{}
		for _, s := range w.subjects {
			for thing := range s.things() {
				if _, taken := w.owners[thing]; !taken {
					w.owners[thing] = s
				}
			}
		}
	}
	return w.owners[thing]
}

// things are what a Rollout handles, each with the field that asks for it.
func (s *subject) things() map[string]string {
	things := map[string]string{}
	for _, x := range s.services {
		for _, route := range x.routes {
			things[fmt.Sprintf("%s, route %s", x.o, route)] = x.at
		}
		for i, name := range s.managed {
			if x.o != nil {
				things[fmt.Sprintf("%s, managed route %q", x.o, name)] = fmt.Sprintf("%s.managedRoutes[%d]", routingPath, i)
			}
		}
	}
	for _, r := range s.rules {
		if r.o != nil {
			things[fmt.Sprintf("%s, subset %q", r.o, r.want.CanarySubsetName)] = r.at
			things[fmt.Sprintf("%s, subset %q", r.o, r.want.StableSubsetName)] = r.at
		}
	}
	return things
}
