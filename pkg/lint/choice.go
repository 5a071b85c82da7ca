package lint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

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
	for i, name := range x.want.Routes {
		s.chooseListed(x, fmt.Sprintf("%s.routes[%d]", x.at, i), virtualservice.Selection{Managed: s.managed, HTTP: []string{name}}, x.all.named(name))
	}
	for i, want := range x.want.TLSRoutes {
		tls := virtualservice.TLSRoute{Port: want.Port, SNIHosts: want.SNIHosts}
		s.chooseListed(x, fmt.Sprintf("%s.tlsRoutes[%d]", x.at, i), virtualservice.Selection{Managed: s.managed, TLS: []virtualservice.TLSRoute{tls}}, x.all.tls(want))
	}
	for i, want := range x.want.TCPRoutes {
		tcp := virtualservice.TCPRoute{Port: want.Port}
		s.chooseListed(x, fmt.Sprintf("%s.tcpRoutes[%d]", x.at, i), virtualservice.Selection{Managed: s.managed, TCP: []virtualservice.TCPRoute{tcp}}, x.all.tcp(want.Port))
	}
	if len(x.want.Routes)+len(x.want.TLSRoutes)+len(x.want.TCPRoutes) == 0 {
		s.chooseUnlisted(x)
	}
}

// chooseListed keeps what the selection gives for an entry of a list. candidates are the
// routes that it means.
func (s *subject) chooseListed(x *routed, at string, selection virtualservice.Selection, candidates []*virtualservice.Route) {
	o := outcome{at: at}
	var chosen []virtualservice.Route
	if len(candidates) > 0 {
		o.route = candidates[0]
		chosen, o.err = only(x.vs, copies(candidates)).Select(selection, s.split)
	} else {
		o.err = s.refusal(x.vs, selection)
	}
	if o.err != nil {
		o.trouble = troubleWith(x.vs, o.route, true)
	}
	x.take(o, chosen)
}

// mostNamed is how many routes the selection's errors name.
const mostNamed = 20

// refusal is what the selection says of routes that are not there, without the look at
// all others that it would take for each of thousands of Rollouts.
func (s *subject) refusal(vs *virtualservice.VirtualService, selection virtualservice.Selection) error {
	few := *vs
	few.HTTP, few.TLS, few.TCP = first(vs.HTTP), first(vs.TLS), first(vs.TCP)
	_, err := few.Select(selection, s.split)
	_, without := only(vs, nil).Select(selection, s.split)
	if err == nil || without == nil || err.Error() == without.Error() {
		return err // it is about something else than the routes that there are
	}
	list := vs.HTTP
	switch {
	case len(selection.TLS) > 0:
		list = vs.TLS
	case len(selection.TCP) > 0:
		list = vs.TCP
	}
	if more := len(list) - mostNamed; more > 0 {
		return fmt.Errorf("%w and %d more", err, more)
	}
	return err
}

func first(routes []virtualservice.Route) []virtualservice.Route {
	return routes[:min(len(routes), mostNamed)]
}

// chooseUnlisted keeps what the selection gives where no route is listed.
func (s *subject) chooseUnlisted(x *routed) {
	selection := virtualservice.Selection{Managed: s.managed, AllMatching: x.want.AllMatchingRoutes}
	o := outcome{at: x.at, route: s.onlyRoute(x)}
	if few := s.matching(x); len(few) > 0 {
		if chosen, err := only(x.vs, few).Select(selection, s.split); err == nil {
			x.take(o, chosen)
			return
		}
	}
	var chosen []virtualservice.Route
	if chosen, o.err = x.vs.Select(selection, s.split); o.err != nil {
		o.trouble = troubleWith(x.vs, o.route, false)
	}
	x.take(o, chosen)
}

// matching are the routes among which allMatchingRoutes finds its own; none without it.
func (s *subject) matching(x *routed) []virtualservice.Route {
	if !x.want.AllMatchingRoutes {
		return nil
	}
	few := map[place]virtualservice.Route{}
	for _, route := range x.all.holding(s.w, s.sides()) {
		few[placeOf(route)] = *route
	}
	return slices.SortedFunc(maps.Values(few), func(a, b virtualservice.Route) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Index, b.Index))
	})
}

// take adds the chosen routes, each once.
func (x *routed) take(o outcome, chosen []virtualservice.Route) {
	x.outcomes = append(x.outcomes, o)
	for _, route := range chosen {
		if at := placeOf(&route); !x.handled[at] {
			x.handled[at] = true
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
