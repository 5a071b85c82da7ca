package virtualservice

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Selection says which routes to handle. The zero value lists nothing and means the
// routes that need no listing; see the package comment for the rules.
type Selection struct {
	// HTTP are names of http routes.
	HTTP []string
	TLS  []TLSRoute
	TCP  []TCPRoute
	// AllMatching adds every route, of any protocol, that holds both destinations.
	AllMatching bool
	// Managed are names of http routes that the Rollout itself creates
	// (managedRoutes). Empty names in it are ignored.
	Managed []string
}

// TLSRoute means the tls routes with this port and exactly this set of SNI hosts,
// in any order; without SNI hosts, the routes with this port whatever their hosts.
// Port 0 is a route that names no port.
type TLSRoute struct {
	Port     int64
	SNIHosts []string
}

// TCPRoute means the tcp routes with this port; 0 is a route that names no port.
type TCPRoute struct {
	Port int64
}

// listed tells whether the user named any route.
func (s Selection) listed() bool {
	return len(s.HTTP)+len(s.TLS)+len(s.TCP) > 0
}

func (s Selection) managed(route *Route) bool {
	return route.Protocol == HTTP && route.Name != "" && slices.Contains(s.Managed, route.Name)
}

// Select returns the routes to handle, http before tls before tcp and in the order
// of the object, each once. All of them are checked: each has exactly one stable and
// one canary destination. The caller must not change them.
//
// Errors name the object, the route and the remedy, and are for the user to solve:
// calling again with the same object gives the same error. Without an error there
// is at least one route.
func (vs *VirtualService) Select(selection Selection, split Split) ([]Route, error) {
	if err := vs.usable(split); err != nil {
		return nil, err
	}
	find := newFinder(vs, split, nil)
	routes, err := vs.pick(selection, find)
	if err != nil {
		return nil, err
	}
	for i := range routes {
		if _, err := find.pairOf(&routes[i]); err != nil {
			return nil, err
		}
	}
	return routes, nil
}

// usable is what every method asks before it looks at routes.
func (vs *VirtualService) usable(split Split) error {
	if vs.Malformed != nil {
		return vs.errorf("it is malformed: %w", vs.Malformed)
	}
	if err := split.validate(); err != nil {
		return vs.errorf("%w", err)
	}
	return nil
}

func (vs *VirtualService) pick(selection Selection, find *finder) ([]Route, error) {
	if !selection.listed() && !selection.AllMatching {
		return vs.only(selection, find)
	}
	routes, err := vs.named(selection)
	if err != nil {
		return nil, err
	}
	if selection.AllMatching {
		routes = vs.matching(routes, selection, find)
	}
	if len(routes) == 0 {
		return nil, vs.errorf("allMatchingRoutes is set, but %s", vs.noneHoldsBoth(selection, find.split))
	}
	return once(routes), nil
}

// once sorts the routes and drops those that were asked for twice.
func once(routes []Route) []Route {
	slices.SortFunc(routes, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Protocol.rank(), b.Protocol.rank()), cmp.Compare(a.Index, b.Index))
	})
	return slices.CompactFunc(routes, func(a, b Route) bool {
		return a.Protocol == b.Protocol && a.Index == b.Index
	})
}

// rank is the place of a protocol in patches and messages.
func (p Protocol) rank() int {
	return slices.Index([]Protocol{HTTP, TLS, TCP}, p)
}

// named are the routes that the user listed; each entry must mean at least one.
func (vs *VirtualService) named(selection Selection) ([]Route, error) {
	routes, err := vs.namedHTTP(selection)
	if err != nil {
		return nil, err
	}
	for _, want := range selection.TLS {
		found := filter(vs.TLS, want.means)
		if len(found) == 0 {
			return nil, vs.errorf("no tls route with %s, as listed under tlsRoutes; it has %s", want, describe(vs.TLS, TLS))
		}
		routes = append(routes, found...)
	}
	for _, want := range selection.TCP {
		found := filter(vs.TCP, want.means)
		if len(found) == 0 {
			return nil, vs.errorf("no tcp route with port %d, as listed under tcpRoutes; it has %s", want.Port, describe(vs.TCP, TCP))
		}
		routes = append(routes, found...)
	}
	return routes, nil
}

// namedHTTP finds http routes by name. An empty name means none: a route without a
// name cannot be listed.
func (vs *VirtualService) namedHTTP(selection Selection) ([]Route, error) {
	if len(selection.HTTP) == 0 {
		return nil, nil
	}
	byName := make(map[string][]Route, len(vs.HTTP))
	for _, route := range vs.HTTP {
		byName[route.Name] = append(byName[route.Name], route)
	}
	var routes []Route
	for _, name := range selection.HTTP {
		if name != "" && slices.Contains(selection.Managed, name) {
			return nil, vs.errorf("route %q is listed under routes and under managedRoutes: remove it from one of them", name)
		}
		if name == "" || len(byName[name]) == 0 {
			return nil, vs.errorf("no http route %q, as listed under routes; it has %s", name, describe(vs.HTTP, HTTP))
		}
		routes = append(routes, byName[name]...)
	}
	return routes, nil
}

// means follows the native router: one port in all match blocks, and all their SNI
// hosts together are the set that was listed. With one difference: where no hosts
// are listed, they may be any. Istio wants hosts in every tls match, so that a port
// alone would otherwise never find a route.
func (t TLSRoute) means(route Route) bool {
	port, one := route.port()
	return one && port == t.Port && (len(t.SNIHosts) == 0 || slices.Equal(route.sniHosts(), set(t.SNIHosts)))
}

func (t TLSRoute) String() string {
	return fmt.Sprintf("port %d and sniHosts [%s]", t.Port, strings.Join(t.SNIHosts, " "))
}

func (t TCPRoute) means(route Route) bool {
	port, one := route.port()
	return one && port == t.Port
}

// matching adds all routes that hold both destinations.
func (vs *VirtualService) matching(routes []Route, selection Selection, find *finder) []Route {
	// Growing by copies costs more than the room.
	routes = slices.Grow(routes, len(vs.HTTP)+len(vs.TLS)+len(vs.TCP))
	for _, list := range vs.lists() {
		for i := range list {
			if !selection.managed(&list[i]) && find.holdsBoth(&list[i]) {
				routes = append(routes, list[i])
			}
		}
	}
	return routes
}

// only chooses without a list. A protocol whose only route is not ours may belong
// to somebody else, so it stops nothing; but several routes of which one is ours
// are never guessed at.
func (vs *VirtualService) only(selection Selection, find *finder) ([]Route, error) {
	var chosen, open []Route
	for _, list := range vs.lists() {
		candidates := filter(list, func(route Route) bool { return !selection.managed(&route) })
		open = append(open, candidates...)
		ours := filter(candidates, func(route Route) bool { return find.holdsBoth(&route) })
		route, found := needsNoName(candidates)
		switch {
		case found && find.holdsBoth(&route):
			chosen = append(chosen, route)
		case len(ours) > 0:
			return nil, vs.errorf("several %s routes and none listed (%s): list those to handle under %s, or set allMatchingRoutes: true",
				ours[0].Protocol, enumerate(texts(candidates)), listOf(ours[0].Protocol))
		}
	}
	if len(chosen) == 0 && len(open) == 1 {
		return open, nil // the check of the route says what is missing
	}
	if len(chosen) == 0 {
		return nil, vs.errorf("no routes listed, and %s", vs.noneHoldsBoth(selection, find.split))
	}
	return chosen, nil
}

// needsNoName is the route that is meant when none is listed: the only one, or of
// several http routes the only one without a name.
func needsNoName(routes []Route) (Route, bool) {
	if len(routes) > 1 {
		routes = filter(routes, func(route Route) bool { return route.Protocol == HTTP && route.Name == "" })
	}
	if len(routes) != 1 {
		return Route{}, false
	}
	return routes[0], true
}

// noneHoldsBoth is the second half of an error: what there is instead.
func (vs *VirtualService) noneHoldsBoth(selection Selection, split Split) string {
	var open []Route
	for _, list := range vs.lists() {
		open = append(open, filter(list, func(route Route) bool { return !selection.managed(&route) })...)
	}
	if len(open) == 0 {
		return fmt.Sprintf("it has no routes besides managedRoutes: add one with a stable destination (%s) and a canary destination (%s)%s",
			split.Stable, split.Canary, split.others())
	}
	return fmt.Sprintf("no route holds both the stable destination (%s) and the canary destination (%s)%s: add them to one of its routes (%s)",
		split.Stable, split.Canary, split.others(), enumerate(texts(open)))
}

// others names the further pairs in a message; "" if there are none.
func (s Split) others() string {
	var text strings.Builder
	for _, pair := range s.More {
		fmt.Fprintf(&text, ", or %s and %s", pair.Stable, pair.Canary)
	}
	return text.String()
}

// listOf is the field of the configuration in which routes of the protocol are listed.
func listOf(protocol Protocol) string {
	return map[Protocol]string{HTTP: "routes", TLS: "tlsRoutes", TCP: "tcpRoutes"}[protocol]
}

// describe is what a list has to offer, for somebody who asked for something else.
func describe(routes []Route, protocol Protocol) string {
	if len(routes) == 0 {
		return fmt.Sprintf("no %s routes", protocol)
	}
	return enumerate(texts(routes))
}

func texts(routes []Route) []string {
	var all []string
	for _, route := range routes {
		all = append(all, route.String())
	}
	return all
}

// mostNamed bounds an error message: VirtualServices with 500 routes exist.
const mostNamed = 20

func enumerate(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		return strings.Join(names[:mostNamed], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(names, ", ")
}

func filter(routes []Route, keep func(Route) bool) []Route {
	kept := make([]Route, 0, len(routes)) // growing by copies costs more than the room
	for _, route := range routes {
		if keep(route) {
			kept = append(kept, route)
		}
	}
	return kept
}
