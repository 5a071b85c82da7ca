package router

import (
	"slices"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// explainedInPart is what can be told of a Rollout that cannot be handled, as when one of its
// objects is missing or may not be read: the routes without what the subsets name, the sides
// without the routes, or either without the pods. What cannot be read has its error there.
func (r *Router) explainedInPart(ro *v1alpha1.Rollout, subject subject) Explanation {
	s := &situation{subject: subject}
	sidesErr := r.lookAtSides(s)
	r.lookAtServices(s)
	s.selects = r.selectorsOf(s)
	s.named = s.namedNow()
	podsErr := r.lookAtPods(s)
	s.facts.Intended = guard.IntendedCanaryReplicas(ro, s.podsOf(canarySide, s.status.canary), s.podsOf(stableSide, s.status.stable))
	e := Explanation{Config: s.config, Max: s.facts.Max, Services: s.servicesInPart(sidesErr == nil)}
	if sidesErr != nil {
		e.Sides = s.sidesInPart(ro, sidesErr)
	} else {
		e.Sides = r.explainSides(ro, s, &memory{announced: s.status})
	}
	for i := range e.Sides {
		e.Sides[i].Waits, e.Sides[i].PodsErr = "", podsErr // what a label waits for depends on the weights
	}
	return e
}

// servicesInPart are the VirtualServices that could be read, with those of their routes that
// lead to one of the two sides at least; by the names of the subsets alone where the host is
// not known.
func (s *situation) servicesInPart(sidesKnown bool) []ExplainedService {
	role := s.roleBySubset
	if sidesKnown {
		role = s.roleOf
	}
	var all []ExplainedService
	for _, vs := range s.services {
		one := ExplainedService{Namespace: vs.Namespace, Name: vs.Name}
		for _, route := range slices.Concat(vs.HTTP, vs.TLS, vs.TCP) {
			explained, ours := ExplainedRoute{Route: route.String()}, false
			for _, d := range route.Destinations {
				is := role(vs, route, d)
				ours = ours || is == "canary" || is == "stable"
				explained.Destinations = append(explained.Destinations, ExplainedDestination{Role: is, Host: d.Host, Subset: d.Subset, Weight: d.Weight})
			}
			if ours {
				one.Routes = append(one.Routes, explained)
			}
		}
		all = append(all, one)
	}
	return all
}

// roleBySubset is roleOf where no DestinationRule could be read.
func (s *situation) roleBySubset(_ *virtualservice.VirtualService, _ virtualservice.Route, d virtualservice.Destination) string {
	for _, want := range s.config.DestinationRules {
		switch d.Subset {
		case "":
		case want.CanarySubsetName:
			return "canary"
		case want.StableSubsetName:
			return "stable"
		}
	}
	return "foreign"
}

// sidesInPart are the subsets that should be there, with the pods of the revisions that they
// should name.
func (s *situation) sidesInPart(ro *v1alpha1.Rollout, why error) []ExplainedSide {
	var all []ExplainedSide
	for _, want := range s.config.DestinationRules {
		for _, which := range []side{canarySide, stableSide} {
			one := ExplainedSide{Canary: which == canarySide, Wanted: s.status.canary, HashErr: why, EndpointsErr: why}
			if which == stableSide {
				one.Wanted = s.status.stable
			}
			one.subset(want)
			s.countPods(&one, one.Wanted)
			one.Intended = s.intendedSize(ro, one.Wanted)
			all = append(all, one)
		}
	}
	return all
}
