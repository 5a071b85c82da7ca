package lint

import (
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// routes finds routes of one VirtualService, which may have one for each of thousands
// of Rollouts.
type routes struct {
	vs      *virtualservice.VirtualService
	byName  map[string][]*virtualservice.Route
	byMatch map[connection][]*virtualservice.Route
	// bySide are the routes with a destination of a side, by hostKey; built when first
	// asked for, as opened is.
	bySide map[virtualservice.Side][]*virtualservice.Route
	opened []*virtualservice.Route
	looked bool
}

// connection is what a tls or tcp route is listed by. hosts are the SNI hosts in order;
// any stands for all routes of the port.
type connection struct {
	protocol virtualservice.Protocol
	port     int64
	hosts    string
}

// whatever is no host and no subset.
const whatever = "\x00"

// routesOf are the routes of a VirtualService of the input.
func (w *world) routesOf(o *object) *routes {
	if known := w.routes[o]; known != nil {
		return known
	}
	vs := w.services[o]
	r := &routes{vs: vs, byName: map[string][]*virtualservice.Route{}, byMatch: map[connection][]*virtualservice.Route{}}
	for i := range vs.HTTP {
		r.byName[vs.HTTP[i].Name] = append(r.byName[vs.HTTP[i].Name], &vs.HTTP[i])
	}
	for _, list := range [][]virtualservice.Route{vs.TLS, vs.TCP} {
		for i := range list {
			r.addMatch(&list[i])
		}
	}
	w.routes[o] = r
	return r
}

// addMatch leaves out a route whose matches name several ports, which cannot be listed.
func (r *routes) addMatch(route *virtualservice.Route) {
	at := connection{protocol: route.Protocol}
	var hosts []string
	for i, match := range route.Matches {
		if i > 0 && match.Port != at.port {
			return
		}
		at.port, hosts = match.Port, append(hosts, match.SNIHosts...)
	}
	at.hosts = whatever
	r.byMatch[at] = append(r.byMatch[at], route)
	at.hosts = setOf(hosts)
	r.byMatch[at] = append(r.byMatch[at], route)
}

// setOf is the same text for equal sets.
func setOf(texts []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(texts))), " ")
}

// named are the http routes of that name; none of the empty one.
func (r *routes) named(name string) []*virtualservice.Route {
	if name == "" {
		return nil
	}
	return r.byName[name]
}

func (r *routes) tls(want config.TLSRoute) []*virtualservice.Route {
	hosts := whatever
	if len(want.SNIHosts) > 0 {
		hosts = setOf(want.SNIHosts)
	}
	return r.byMatch[connection{virtualservice.TLS, want.Port, hosts}]
}

func (r *routes) tcp(port int64) []*virtualservice.Route {
	return r.byMatch[connection{virtualservice.TCP, port, whatever}]
}

// open are the http routes that every request takes.
func (r *routes) open() []*virtualservice.Route {
	if !r.looked {
		r.looked = true
		for i := range r.vs.HTTP {
			if unconditional(r.vs.HTTP[i].Raw) {
				r.opened = append(r.opened, &r.vs.HTTP[i])
			}
		}
	}
	return r.opened
}

// holding are the routes that have a destination of one of the sides, and perhaps others
// on the same host, in the order of the object.
func (r *routes) holding(w *world, sides []virtualservice.Side) []*virtualservice.Route {
	if r.bySide == nil {
		r.addSides(w)
	}
	var found []*virtualservice.Route
	for _, side := range sides {
		at := virtualservice.Side{Host: w.hostKey(side.Host), Subset: side.Subset}
		if side.Subset == "" {
			at.Subset = whatever // the host alone may decide
		}
		found = append(found, r.bySide[at]...)
	}
	return found
}

func (r *routes) addSides(w *world) {
	r.bySide = map[virtualservice.Side][]*virtualservice.Route{}
	add := func(side virtualservice.Side, route *virtualservice.Route) {
		if there := r.bySide[side]; len(there) == 0 || there[len(there)-1] != route {
			r.bySide[side] = append(there, route)
		}
	}
	for _, list := range [][]virtualservice.Route{r.vs.HTTP, r.vs.TLS, r.vs.TCP} {
		for i := range list {
			for _, d := range list[i].Destinations {
				host := w.keyOf(d.Host, r.vs.Namespace)
				add(virtualservice.Side{Host: host, Subset: d.Subset}, &list[i])
				add(virtualservice.Side{Host: host, Subset: whatever}, &list[i])
			}
		}
	}
}

// place tells routes of one VirtualService apart.
type place struct {
	protocol virtualservice.Protocol
	index    int
}

func placeOf(route *virtualservice.Route) place { return place{route.Protocol, route.Index} }

// only is the VirtualService as if it had no other routes. They keep their places in it,
// so that what is computed of them is what it would be with all others.
func only(vs *virtualservice.VirtualService, routes []virtualservice.Route) *virtualservice.VirtualService {
	few := *vs
	few.HTTP, few.TLS, few.TCP = nil, nil, nil
	for _, route := range routes {
		switch route.Protocol {
		case virtualservice.HTTP:
			few.HTTP = append(few.HTTP, route)
		case virtualservice.TLS:
			few.TLS = append(few.TLS, route)
		case virtualservice.TCP:
			few.TCP = append(few.TCP, route)
		}
	}
	return &few
}

func copies(routes []*virtualservice.Route) []virtualservice.Route {
	all := make([]virtualservice.Route, len(routes))
	for i, route := range routes {
		all[i] = *route
	}
	return all
}
