package virtualservice

import (
	"fmt"
	"math"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
)

// Side is one of the two ends between which weight moves.
type Side struct {
	// Host is a name as hostname.Canonical returns it.
	Host string
	// Subset is empty in a split by hosts.
	Subset string
}

// Split says what the two sides are and on which scale weights are written.
type Split struct {
	// Stable and Canary differ in host (a split by Services, no subsets) or have the
	// same host and differ in subset.
	Stable, Canary Side
	// Max is maxTrafficWeight: the sum of a route's weights, at least 1.
	Max int32
	// ClusterDomain completes the hosts of destinations; empty is cluster.local.
	ClusterDomain string
}

// String is how a destination of that side looks to people.
func (s Side) String() string {
	if s.Subset == "" {
		return fmt.Sprintf("host %s", s.Host)
	}
	return fmt.Sprintf("host %s, subset %s", s.Host, s.Subset)
}

// validate refuses what cannot tell the two sides apart.
func (s Split) validate() error {
	switch {
	case s.Max < 1:
		return fmt.Errorf("maxTrafficWeight is %d: set it to 1 or more", s.Max)
	case s.Stable.Host == "" || s.Canary.Host == "":
		return fmt.Errorf("the split has no host for both sides: set canaryService and stableService, or destinationRule")
	case (s.Stable.Subset == "") != (s.Canary.Subset == ""):
		return fmt.Errorf("only one side of the split has a subset: set both canarySubsetName and stableSubsetName")
	case s.Stable.Subset == s.Canary.Subset && hostname.Same(s.Stable.Host, s.Canary.Host, s.ClusterDomain):
		return fmt.Errorf("stable and canary are both %s: they must differ in host or in subset", s.Stable)
	}
	return nil
}

// finder finds our destinations in the routes of one VirtualService. The hosts of
// 500 routes are a handful of different texts, so each is compared once and
// remembered; that makes it fit for one goroutine only.
type finder struct {
	vs    *VirtualService
	split Split
	hosts map[string]owners
}

// owners tells whose host a text is.
type owners struct {
	stable, canary bool
}

// role is one side of the split, with what errors call it.
type role struct {
	name string
	side Side
	owns func(owners) bool
}

func newFinder(vs *VirtualService, split Split) *finder {
	return &finder{vs: vs, split: split, hosts: map[string]owners{}}
}

func (f *finder) stable() role {
	return role{"stable", f.split.Stable, func(o owners) bool { return o.stable }}
}

func (f *finder) canary() role {
	return role{"canary", f.split.Canary, func(o owners) bool { return o.canary }}
}

// ownersOf compares in the namespace of the VirtualService, where Istio completes
// short hosts.
func (f *finder) ownersOf(host string) owners {
	if known, found := f.hosts[host]; found {
		return known
	}
	domain := f.split.ClusterDomain
	name := hostname.Canonical(host, f.vs.Namespace, domain)
	answer := owners{
		stable: hostname.Same(name, f.split.Stable.Host, domain),
		canary: hostname.Same(name, f.split.Canary.Host, domain),
	}
	f.hosts[host] = answer
	return answer
}

// places counts the destinations of one side and says where the first is. More
// than one makes a route unusable, but that is for the caller to say.
func (f *finder) places(r role, destinations []Destination) (count, first int) {
	sameHost, firstSameHost := 0, 0
	for i := len(destinations) - 1; i >= 0; i-- {
		d := &destinations[i]
		if !r.owns(f.ownersOf(d.Host)) {
			continue
		}
		sameHost, firstSameHost = sameHost+1, i
		if d.Subset == r.side.Subset {
			count, first = count+1, i
		}
	}
	if count == 0 && r.side.Subset == "" {
		return sameHost, firstSameHost
	}
	return count, first
}

// holdsBoth tells whether the route has destinations of both sides, be they one
// each or more.
func (f *finder) holdsBoth(route Route) bool {
	stables, _ := f.places(f.stable(), route.Destinations)
	canaries, _ := f.places(f.canary(), route.Destinations)
	return stables > 0 && canaries > 0
}

// pair is a route that was found fit to be written.
type pair struct {
	route          *Route
	stable, canary *Destination
	// foreign is the sum of all other destinations' weights, 0 or more.
	foreign int64
}

// pairOf checks a selected route and finds our destinations in it. The errors name
// object and route, and say what to do.
func (f *finder) pairOf(route *Route) (pair, error) {
	if err := f.vs.forwards(route); err != nil {
		return pair{}, err
	}
	stable, err := f.one(f.stable(), route)
	if err != nil {
		return pair{}, err
	}
	canary, err := f.one(f.canary(), route)
	if err != nil {
		return pair{}, err
	}
	foreign, err := f.vs.foreign(route, stable, canary)
	return pair{route: route, stable: &route.Destinations[stable], canary: &route.Destinations[canary], foreign: foreign}, err
}

// forwards refuses routes that send no request to destinations of their own.
func (vs *VirtualService) forwards(route *Route) error {
	switch {
	case route.Malformed != nil:
		return vs.errorf("route %s is malformed: %w", route, route.Malformed)
	case route.Delegate != nil:
		namespace := route.Delegate.Namespace
		if namespace == "" {
			namespace = vs.Namespace
		}
		return vs.errorf("route %s delegates to VirtualService %s/%s: name that one as virtualService instead",
			route, namespace, route.Delegate.Name)
	case route.Redirect:
		return vs.errorf("route %s redirects and has no weights: list another route under routes", route)
	case route.DirectResponse:
		return vs.errorf("route %s answers with a directResponse and has no weights: list another route under routes", route)
	}
	return nil
}

// one is the index of the only destination of a side.
func (f *finder) one(r role, route *Route) (int, error) {
	count, first := f.places(r, route.Destinations)
	switch count {
	case 1:
		return first, nil
	case 0:
		return 0, f.vs.errorf("route %s has no %s destination (%s): add it to the route, or select another route; %s",
			route, r.name, r.side, destinationsOf(route))
	}
	return 0, f.vs.errorf("route %s has %d %s destinations (%s), the first at %s: leave one of them; %s",
		route, count, r.name, r.side, route.path(first), destinationsOf(route))
}

// foreign adds up the weights that are not ours. A weight outside int32 is refused
// by Istio as well; it is refused here because a share of the rest would be taken
// from it.
func (vs *VirtualService) foreign(route *Route, stable, canary int) (int64, error) {
	var sum int64
	for i, d := range route.Destinations {
		if i == stable || i == canary {
			continue
		}
		if d.Weight < 0 || d.Weight > math.MaxInt32 {
			return 0, vs.errorf("route %s: %s.weight is %d: set it to 0 or more", route, route.path(i), d.Weight)
		}
		sum += d.Weight
	}
	return sum, nil
}

func destinationsOf(route *Route) string {
	if len(route.Destinations) == 0 {
		return "it has no destinations"
	}
	var names []string
	for _, d := range route.Destinations {
		names = append(names, Side{Host: d.Host, Subset: d.Subset}.String())
	}
	return "it has " + enumerate(names)
}
