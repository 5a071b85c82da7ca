package lint

import (
	"fmt"
	"slices"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// trouble is why an entry selects no route that can be handled.
type trouble int

const (
	none trouble = iota
	unusable
	noRoute      // a listed route that is not there
	noChoice     // nothing listed, and it is not clear what is meant
	destinations // not exactly one stable and one canary destination
	delegates
	answers // redirects, or has a directResponse
)

// outcome is what one entry of a list of routes selects, or why it cannot.
type outcome struct {
	at      string // the path of the entry
	trouble trouble
	err     error
	// route is the one that cannot be handled, if it is there.
	route *virtualservice.Route
}

// choose asks the plugin's own selection, entry by entry, so that the trouble of one
// does not hide that of another.
func (s *subject) choose(x *routed) {
	selection := virtualservice.Selection{Managed: s.managed, AllMatching: x.want.AllMatchingRoutes}
	listed := false
	for i, name := range x.want.Routes {
		listed = true
		s.chooseOne(x, fmt.Sprintf("%s.routes[%d]", x.at, i), virtualservice.Selection{Managed: s.managed, HTTP: []string{name}},
			named(x.vs.HTTP, name))
	}
	for i, want := range x.want.TLSRoutes {
		listed = true
		tls := virtualservice.TLSRoute{Port: want.Port, SNIHosts: want.SNIHosts}
		s.chooseOne(x, fmt.Sprintf("%s.tlsRoutes[%d]", x.at, i), virtualservice.Selection{Managed: s.managed, TLS: []virtualservice.TLSRoute{tls}},
			meant(x.vs.TLS, want))
	}
	for i, want := range x.want.TCPRoutes {
		listed = true
		tcp := virtualservice.TCPRoute{Port: want.Port}
		s.chooseOne(x, fmt.Sprintf("%s.tcpRoutes[%d]", x.at, i), virtualservice.Selection{Managed: s.managed, TCP: []virtualservice.TCPRoute{tcp}},
			meant(x.vs.TCP, config.TLSRoute{Port: want.Port}))
	}
	if !listed {
		s.chooseOne(x, x.at, selection, s.onlyRoute(x))
	}
}

// chooseOne keeps what the selection gives. candidate is the route that it is about
// if it gives none; nil if there is no such route.
func (s *subject) chooseOne(x *routed, at string, selection virtualservice.Selection, candidate *virtualservice.Route) {
	routes, err := x.vs.Select(selection, s.split)
	o := outcome{at: at, err: err, route: candidate}
	if err != nil {
		o.trouble = troubleWith(x.vs, candidate, len(selection.HTTP)+len(selection.TLS)+len(selection.TCP) > 0)
	}
	x.outcomes = append(x.outcomes, o)
	for _, route := range routes {
		if !slices.ContainsFunc(x.routes, func(r virtualservice.Route) bool { return r.Protocol == route.Protocol && r.Index == route.Index }) {
			x.routes = append(x.routes, route)
		}
	}
}

// troubleWith tells kinds of errors apart by what the route is. The words are the
// selection's own.
func troubleWith(vs *virtualservice.VirtualService, route *virtualservice.Route, listed bool) trouble {
	switch {
	case vs.Malformed != nil || route != nil && route.Malformed != nil:
		return unusable
	case route == nil && listed:
		return noRoute
	case route == nil:
		return noChoice
	case route.Delegate != nil:
		return delegates
	case route.Redirect || route.DirectResponse:
		return answers
	}
	return destinations
}

func named(routes []virtualservice.Route, name string) *virtualservice.Route {
	for i := range routes {
		if routes[i].Name == name {
			return &routes[i]
		}
	}
	return nil
}

// meant is the first tls or tcp route with this port and, if any are listed, these
// SNI hosts.
func meant(routes []virtualservice.Route, want config.TLSRoute) *virtualservice.Route {
	for i := range routes {
		var hosts []string
		ports := true
		for _, match := range routes[i].Matches {
			hosts, ports = append(hosts, match.SNIHosts...), ports && match.Port == want.Port
		}
		if !ports || len(routes[i].Matches) == 0 && want.Port != 0 {
			continue
		}
		if len(want.SNIHosts) == 0 || sameSet(hosts, want.SNIHosts) {
			return &routes[i]
		}
	}
	return nil
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}

// onlyRoute is the route that is meant when none is listed: the only one there is.
func (s *subject) onlyRoute(x *routed) *virtualservice.Route {
	if x.want.AllMatchingRoutes {
		return nil
	}
	var only *virtualservice.Route
	for _, list := range [][]virtualservice.Route{x.vs.HTTP, x.vs.TLS, x.vs.TCP} {
		for i := range list {
			if slices.Contains(s.managed, list[i].Name) && list[i].Name != "" {
				continue
			}
			if only != nil {
				return nil
			}
			only = &list[i]
		}
	}
	return only
}

// routeField is the path of a route in its VirtualService.
func routeField(route virtualservice.Route, below string) string {
	return fmt.Sprintf("spec.%s[%d]%s", route.Protocol, route.Index, below)
}
