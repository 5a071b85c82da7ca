package lint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/managedroute"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

var managedChecks = []*Check{
	{
		Code: "ARI0230", Severity: Error, Title: "A header or mirror route that has no place", judge: misplacedRoutes,
		Happens: "The plugin makes no managed route and verifies no weight from that step on.",
		Instead: "Correct the step's match, or that of the route before which the managed route is to stand.",
		Not:     "With several VirtualServices a place in one of them is enough.",
	},
	{
		Code: "ARI0231", Severity: Warning, Title: "A managed route behind one that takes every request", judge: shadowedRoutes,
		Happens: "Managed routes stand in the order of managedRoutes, and the first that matches counts: the later one gets no request.",
		Instead: "Put the wider one last in trafficRouting.managedRoutes.",
		Not:     "Only a mirror step without any condition, as in ARI0221, counts as taking every request, and only while both routes are there.",
	},
	{
		Code: "ARI0232", Severity: Warning, Title: "A route of yours with the name of a managed route", judge: borrowedNames,
		Happens: "The plugin takes the route for its own and removes it.",
		Instead: "Give one of the two another name.",
		Not:     "Not for objects read from a cluster, where the plugin itself may have made the route.",
	},
}

// stepRoute is the managed route that the i-th step asks for; none where the step is
// no such step, or cannot be read.
func (s *subject) stepRoute(i int) (virtualservice.ManagedRoute, bool) {
	step := s.canary().Steps[i]
	name := ""
	switch {
	case step.SetHeaderRoute != nil:
		name = step.SetHeaderRoute.Name
	case step.SetMirrorRoute != nil:
		name = step.SetMirrorRoute.Name
	}
	for _, route := range s.routesAt(i) {
		if route.Name == name && name != "" {
			return route, true
		}
	}
	return virtualservice.ManagedRoute{}, false
}

// routesAt are the managed routes that are there at the i-th step, in order.
func (s *subject) routesAt(i int) []virtualservice.ManagedRoute {
	set, err := managedroute.FromRollout(s.atStep(i))
	if err != nil {
		return nil // ARI0104
	}
	return set.Routes()
}

func misplacedRoutes(s *subject, tell tell) {
	for i := range s.canary().Steps {
		route, wanted := s.stepRoute(i)
		if !wanted {
			continue
		}
		if err := s.placeError(route); err != nil {
			tell(s.o, stepPath(i, ""), "%s", err)
		}
	}
}

// placeError is why a managed route can be made nowhere. What is wrong with the
// routes or weights themselves is for other checks.
func (s *subject) placeError(route virtualservice.ManagedRoute) error {
	var first error
	asked, placed := false, false
	for _, x := range s.services {
		if len(x.routes) == 0 || slices.ContainsFunc(s.patchErrors(x), func(err error) bool { return err != nil }) {
			return nil
		}
		target := virtualservice.Target{Managed: []virtualservice.ManagedRoute{route}, ManagedNames: s.managed}
		_, _, err := only(x.vs, x.routes).Set(x.routes, s.split, target)
		asked = true
		switch {
		case err == nil:
			placed = true
		case !errors.Is(err, virtualservice.ErrNoPlace):
			return err
		case first == nil:
			first = err
		}
	}
	if !asked || placed {
		return nil
	}
	return first
}

func shadowedRoutes(s *subject, tell tell) {
	seen := map[string]bool{}
	for i := range s.canary().Steps {
		routes := s.routesAt(i)
		at := slices.IndexFunc(routes, takesAll)
		if at < 0 || at == len(routes)-1 {
			continue
		}
		behind := routes[at+1].Name
		if pair := routes[at].Name + "\x00" + behind; !seen[pair] {
			seen[pair] = true
			tell(s.o, stepPath(i, ""), "managed route %q takes every request, so %q behind it gets none", routes[at].Name, behind)
		}
	}
}

// takesAll tells a managed route whose step sets no condition.
func takesAll(route virtualservice.ManagedRoute) bool {
	return route.Mirror != nil && slices.ContainsFunc(route.Mirror.Match, func(match virtualservice.MirrorMatch) bool {
		anyPath := match.Path == nil || *match.Path == virtualservice.StringMatch{Prefix: "/"} || *match.Path == virtualservice.StringMatch{Regex: match.Path.Regex} && everyPath(match.Path.Regex)
		return match.Method == nil && anyPath && len(match.Headers) == 0
	})
}

func borrowedNames(s *subject, tell tell) {
	for _, x := range s.services {
		if x.vs == nil || x.o.live() {
			continue
		}
		for _, name := range s.managed {
			for _, route := range x.all.named(name) {
				tell(x.o, fmt.Sprintf("spec.http[%d].name", route.Index), "route %q is in managedRoutes of %s", name, s.o)
			}
		}
	}
}
