package virtualservice

import (
	"fmt"
	"math"
	"slices"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
)

// Side is one of the two ends between which weight moves.
type Side struct {
	// Host is a name as hostname.Canonical returns it.
	Host string
	// Subset is empty in a split by hosts.
	Subset string
}

// Pair are the two sides between which the weight of one route moves. They differ in
// host (a split by Services, no subsets) or have the same host and differ in subset.
type Pair struct {
	Stable, Canary Side
}

// Split says what the two sides are and on which scale weights are written.
type Split struct {
	// Stable and Canary are the only pair of most Rollouts.
	Stable, Canary Side
	// More are further pairs, of a Rollout that serves several hosts, each different
	// from all others. A route holds the sides of one pair only.
	More []Pair
	// Max is maxTrafficWeight: the sum of a route's weights, at least 1.
	Max int32
	// Experiments are further destinations that belong to this Rollout: of templates
	// that have a share and of those whose experiment is over. What is in here and not
	// in a Target is taken out of the routes, but for the destinations of the sides. One
	// without a host is the subset of the host that the route's own sides have.
	Experiments []Side
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

// pairs are all pairs, the first one first.
func (s Split) pairs() []Pair {
	return append([]Pair{{Stable: s.Stable, Canary: s.Canary}}, s.More...)
}

// validate refuses what cannot tell the sides apart.
func (s Split) validate() error {
	if s.Max < 1 {
		return fmt.Errorf("maxTrafficWeight is %d: set it to 1 or more", s.Max)
	}
	if err := s.validatePair(Pair{Stable: s.Stable, Canary: s.Canary}); err != nil || len(s.More) == 0 {
		return err
	}
	all := s.pairs()
	for i, pair := range all[1:] {
		if err := s.validatePair(pair); err != nil {
			return err
		}
		for _, other := range all[:i+1] {
			if side, both := s.shared(pair, other); both {
				return fmt.Errorf("two DestinationRules have the same subset (%s): each needs a host or subsets of its own", side)
			}
		}
	}
	return nil
}

// shared is a side that two pairs have in common.
func (s Split) shared(a, b Pair) (Side, bool) {
	for _, side := range []Side{a.Stable, a.Canary} {
		if s.same(side, b.Stable) || s.same(side, b.Canary) {
			return side, true
		}
	}
	return Side{}, false
}

func (s Split) validatePair(p Pair) error {
	switch {
	case p.Stable.Host == "" || p.Canary.Host == "":
		return fmt.Errorf("the split has no host for both sides: set canaryService and stableService, or destinationRule")
	case (p.Stable.Subset == "") != (p.Canary.Subset == ""):
		return fmt.Errorf("only one side of the split has a subset: set both canarySubsetName and stableSubsetName")
	case p.Stable.Subset == p.Canary.Subset && hostname.Same(p.Stable.Host, p.Canary.Host, s.ClusterDomain):
		return fmt.Errorf("stable and canary are both %s: they must differ in host or in subset", p.Stable)
	}
	return nil
}

// apart refuses a destination of an experiment that is a side's as well.
func (s Split) apart(side Side) error {
	if side.Host == "" && side.Subset == "" {
		return fmt.Errorf("a destination of an experiment has no host and no subset: give its template a service")
	}
	for _, pair := range s.pairs() {
		for _, role := range []struct {
			name string
			side Side
		}{{"stable", pair.Stable}, {"canary", pair.Canary}} {
			if s.same(side.on(pair), role.side) {
				return fmt.Errorf("the destination of an experiment (%s) is the %s destination: they must differ in host or in subset", side.on(pair), role.name)
			}
		}
	}
	return nil
}

// on completes the side of an experiment in a route that holds this pair.
func (s Side) on(p Pair) Side {
	if s.Host == "" {
		s.Host = p.Canary.Host
	}
	return s
}

func (s Split) same(a, b Side) bool {
	return a.Subset == b.Subset && hostname.Same(a.Host, b.Host, s.ClusterDomain)
}

// finder finds our destinations in the routes of one VirtualService. The hosts of
// 500 routes are a handful of different texts, so each is compared once and
// remembered; that makes it fit for one goroutine only.
type finder struct {
	vs    *VirtualService
	split Split
	pairs []Pair
	// experiments are the wanted destinations, followed by all of the split's.
	experiments []Side
	wanted      int
	hosts       map[string]owners
}

// owners tells whose host a text is: places in the lists of finder.
type owners struct {
	stable, canary, experiments []int
}

// tally counts the destinations of one side and knows where the first is.
type tally struct {
	count, first int
}

func (t *tally) add(place int) {
	if t.count == 0 {
		t.first = place
	}
	t.count++
}

// newFinder takes the destinations that are to be there besides the two sides.
func newFinder(vs *VirtualService, split Split, wanted []Side) *finder {
	return &finder{
		vs: vs, split: split, pairs: split.pairs(), hosts: map[string]owners{},
		experiments: slices.Concat(wanted, split.Experiments), wanted: len(wanted),
	}
}

// ownersOf compares in the namespace of the VirtualService, where Istio completes
// short hosts.
func (f *finder) ownersOf(host string) owners {
	if known, found := f.hosts[host]; found {
		return known
	}
	domain := f.split.ClusterDomain
	name := hostname.Canonical(host, f.vs.Namespace, domain)
	answer := owners{}
	for i, pair := range f.pairs {
		if hostname.Same(name, pair.Stable.Host, domain) {
			answer.stable = append(answer.stable, i)
		}
		if hostname.Same(name, pair.Canary.Host, domain) {
			answer.canary = append(answer.canary, i)
		}
	}
	for i, side := range f.experiments {
		if side.Host != "" && hostname.Same(name, side.Host, domain) || side.Host == "" && len(answer.canary) > 0 {
			answer.experiments = append(answer.experiments, i)
		}
	}
	f.hosts[host] = answer
	return answer
}

// sides counts the destinations of both sides of one of the pairs. More than one of a
// side makes a route unusable, but that is for the caller to say.
func (f *finder) sides(destinations []Destination, of int) (stable, canary tally) {
	pair := f.pairs[of]
	var stableHost, canaryHost tally
	for i := range destinations {
		d := &destinations[i]
		owned := f.ownersOf(d.Host)
		if slices.Contains(owned.stable, of) {
			stableHost.add(i)
			if d.Subset == pair.Stable.Subset {
				stable.add(i)
			}
		}
		if slices.Contains(owned.canary, of) {
			canaryHost.add(i)
			if d.Subset == pair.Canary.Subset {
				canary.add(i)
			}
		}
	}
	return pair.Stable.orHost(stable, stableHost), pair.Canary.orHost(canary, canaryHost)
}

// orHost lets the host alone decide for a side without a subset of which there is
// no destination without one.
func (s Side) orHost(exact, host tally) tally {
	if exact.count == 0 && s.Subset == "" {
		return host
	}
	return exact
}

// holdsBoth tells whether the route has destinations of both sides of a pair, be they
// one each or more.
func (f *finder) holdsBoth(route *Route) bool {
	for i := range f.pairs {
		if stable, canary := f.sides(route.Destinations, i); stable.count > 0 && canary.count > 0 {
			return true
		}
	}
	return false
}

// pair is a route that was found fit to be written.
type pair struct {
	route *Route
	// sides are those of which stable and canary are the destinations.
	sides          Pair
	stable, canary *Destination
	// wanted are the destinations of wanted experiments in the order in which they
	// are wanted, nil for one that is not there.
	wanted []*Destination
	// leftover are further destinations of ours, in the order of the route.
	leftover []*Destination
	// foreign is the sum of all other destinations' weights, 0 or more.
	foreign int64
}

// pairOf checks a selected route and finds our destinations in it. The errors name
// object and route, and say what to do.
func (f *finder) pairOf(route *Route) (pair, error) {
	if err := f.vs.forwards(route); err != nil {
		return pair{}, err
	}
	sides, stable, canary, err := f.only(route)
	if err != nil {
		return pair{}, err
	}
	if err := f.vs.one("stable", sides.Stable, stable, route); err != nil {
		return pair{}, err
	}
	if err := f.vs.one("canary", sides.Canary, canary, route); err != nil {
		return pair{}, err
	}
	p := pair{
		route: route, sides: sides,
		stable: &route.Destinations[stable.first],
		canary: &route.Destinations[canary.first],
	}
	if f.wanted > 0 {
		p.wanted = make([]*Destination, f.wanted)
	}
	return p, f.others(&p)
}

// only is the one pair of which the route holds destinations, and how many; the first
// if it holds none. Of two pairs one would be taken for foreign destinations, and its
// canary would get what nobody decided.
func (f *finder) only(route *Route) (sides Pair, stable, canary tally, err error) {
	sides, found := f.pairs[0], false
	for i, other := range f.pairs {
		s, c := f.sides(route.Destinations, i)
		switch {
		case s.count+c.count == 0:
		case found:
			return sides, stable, canary, f.vs.errorf("route %s holds destinations of two DestinationRules (%s; %s): let each route send to one of the hosts",
				route, sides.Canary, other.Canary)
		default:
			sides, stable, canary, found = other, s, c, true
		}
	}
	return sides, stable, canary, nil
}

// others divides the destinations besides the two sides into ours and foreign ones.
// A foreign weight outside int32 is refused by Istio as well; it is refused here
// because a share of the rest would be taken from it.
func (f *finder) others(p *pair) error {
	for i := range p.route.Destinations {
		d := &p.route.Destinations[i]
		if d == p.stable || d == p.canary || f.experiment(p, d) {
			continue
		}
		if d.Weight < 0 || d.Weight > math.MaxInt32 {
			return f.vs.errorf("route %s: %s.weight is %d: set it to 0 or more", p.route, p.route.path(i), d.Weight)
		}
		p.foreign += d.Weight
	}
	return nil
}

// experiment keeps a destination of an experiment; false if it is none. A wanted one
// that is there twice stays once.
func (f *finder) experiment(p *pair, d *Destination) bool {
	if len(f.experiments) == 0 {
		return false
	}
	for _, at := range f.ownersOf(d.Host).experiments {
		side := f.experiments[at]
		if side.Subset != d.Subset || side.Host == "" && !f.onHostOf(p, d) {
			continue
		}
		if at < f.wanted && p.wanted[at] == nil {
			p.wanted[at] = d
		} else {
			p.leftover = append(p.leftover, d)
		}
		return true
	}
	return false
}

// onHostOf tells whether a destination has the host of the route's own sides.
func (f *finder) onHostOf(p *pair, d *Destination) bool {
	return len(f.pairs) == 1 || hostname.Same(hostname.Canonical(d.Host, f.vs.Namespace, f.split.ClusterDomain), p.sides.Canary.Host, f.split.ClusterDomain)
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

// one is an error unless there is exactly one destination of a side.
func (vs *VirtualService) one(role string, side Side, found tally, route *Route) error {
	switch found.count {
	case 1:
		return nil
	case 0:
		return vs.errorf("route %s has no %s destination (%s): add it to the route, or select another route; %s",
			route, role, side, destinationsOf(route))
	}
	return vs.errorf("route %s has %d %s destinations (%s), the first at %s: leave one of them; %s",
		route, found.count, role, side, route.path(found.first), destinationsOf(route))
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
