package managedroute

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// Set is what of the names in managedRoutes is to have a route.
type Set struct {
	// names are those of managedRoutes, in order: the order of the routes.
	names  []string
	routes map[string]virtualservice.ManagedRoute
}

// FromRollout derives the set from the steps up to the current one. It is empty
// for a Rollout that is not on its way: fully promoted, aborted, promoted in full,
// or deployed for the first time. The Rollout is only read.
//
// Steps that lie ahead are not judged. An error names the step and its remedy;
// calling again cannot help until the Rollout has changed.
func FromRollout(ro *v1alpha1.Rollout) (Set, error) {
	canary := ro.Spec.Strategy.Canary
	if canary == nil || canary.TrafficRouting == nil {
		return Set{}, nil
	}
	s := Set{names: Names(ro), routes: map[string]virtualservice.ManagedRoute{}}
	if !underWay(ro.Status) {
		return s, nil
	}
	at := field.NewPath("spec", "strategy", "canary", "steps")
	for i, step := range canary.Steps {
		if i > reached(ro.Status) {
			break
		}
		if err := s.take(step, at.Index(i)); err != nil {
			return Set{}, fmt.Errorf("steps of Rollout %s/%s: %w", ro.Namespace, ro.Name, err)
		}
	}
	return s, nil
}

// Names are the names of managedRoutes, in order, without empty ones.
func Names(ro *v1alpha1.Rollout) []string {
	var names []string
	canary := ro.Spec.Strategy.Canary
	if canary == nil || canary.TrafficRouting == nil {
		return nil
	}
	for _, route := range canary.TrafficRouting.ManagedRoutes {
		if route.Name != "" && !slices.Contains(names, route.Name) {
			names = append(names, route.Name)
		}
	}
	return names
}

// underWay is the opposite of when the controller itself removes all managed
// routes, but for the pods.
func underWay(s v1alpha1.RolloutStatus) bool {
	return !s.Abort && !s.PromoteFull && s.StableRS != "" && s.StableRS != s.CurrentPodHash
}

// reached is the index of the last step that counts. At the end of the steps it
// is one more than there are.
func reached(s v1alpha1.RolloutStatus) int {
	if s.CurrentStepIndex == nil {
		return 0
	}
	return int(*s.CurrentStepIndex)
}

// AtEnd tells whether the Rollout has done all of its steps, or skipped them.
func AtEnd(ro *v1alpha1.Rollout) bool {
	canary := ro.Spec.Strategy.Canary
	return canary != nil && len(canary.Steps) > 0 && reached(ro.Status) >= len(canary.Steps)
}

// Header takes in a step that the controller is at. It is in the set already
// unless the Rollout that came with the call does not show it yet.
func (s Set) Header(step *v1alpha1.SetHeaderRoute) error {
	if step == nil {
		return nil
	}
	return s.header(step, field.NewPath("setHeaderRoute"))
}

// Mirror is to mirror routes what Header is to header routes.
func (s Set) Mirror(step *v1alpha1.SetMirrorRoute) error {
	if step == nil {
		return nil
	}
	return s.mirror(step, field.NewPath("setMirrorRoute"))
}

// Routes are the routes to be in place, in the order of managedRoutes.
func (s Set) Routes() []virtualservice.ManagedRoute {
	var routes []virtualservice.ManagedRoute
	for _, name := range s.names {
		if route, wanted := s.routes[name]; wanted {
			routes = append(routes, route)
		}
	}
	return routes
}

func (s Set) take(step v1alpha1.CanaryStep, at *field.Path) error {
	if step.SetHeaderRoute != nil {
		if err := s.header(step.SetHeaderRoute, at.Child("setHeaderRoute")); err != nil {
			return err
		}
	}
	if step.SetMirrorRoute != nil {
		return s.mirror(step.SetMirrorRoute, at.Child("setMirrorRoute"))
	}
	return nil
}

func (s Set) header(step *v1alpha1.SetHeaderRoute, at *field.Path) error {
	if len(step.Match) == 0 {
		delete(s.routes, step.Name)
		return nil
	}
	if err := s.known(step.Name, at); err != nil {
		return err
	}
	route := virtualservice.ManagedRoute{Name: step.Name}
	for i, match := range step.Match {
		name := at.Child("match").Index(i)
		if match.HeaderName == "" {
			return field.Required(name.Child("headerName"), "name the request header")
		}
		value, err := text(match.HeaderValue, name.Child("headerValue"))
		if err != nil {
			return err
		}
		route.Header = append(route.Header, virtualservice.HeaderMatch{Name: match.HeaderName, Value: value})
	}
	s.routes[step.Name] = route
	return nil
}

func (s Set) mirror(step *v1alpha1.SetMirrorRoute, at *field.Path) error {
	if len(step.Match) == 0 {
		delete(s.routes, step.Name)
		return nil
	}
	if err := s.known(step.Name, at); err != nil {
		return err
	}
	mirror := &virtualservice.Mirror{Percentage: 100}
	if step.Percentage != nil {
		mirror.Percentage = *step.Percentage
	}
	if mirror.Percentage < 0 || mirror.Percentage > 100 {
		return field.Invalid(at.Child("percentage"), mirror.Percentage, "must be from 0 to 100")
	}
	for i := range step.Match {
		match, err := mirrorMatch(&step.Match[i], at.Child("match").Index(i))
		if err != nil {
			return err
		}
		mirror.Match = append(mirror.Match, match)
	}
	s.routes[step.Name] = virtualservice.ManagedRoute{Name: step.Name, Mirror: mirror}
	return nil
}

func mirrorMatch(match *v1alpha1.RouteMatch, at *field.Path) (out virtualservice.MirrorMatch, err error) {
	if out.Method, err = optional(match.Method, at.Child("method")); err != nil {
		return out, err
	}
	if out.Path, err = optional(match.Path, at.Child("path")); err != nil {
		return out, err
	}
	for name, value := range match.Headers {
		converted, err := text(&value, at.Child("headers").Key(name))
		if err != nil {
			return out, err
		}
		if out.Headers == nil {
			out.Headers = map[string]virtualservice.StringMatch{}
		}
		out.Headers[name] = converted
	}
	return out, nil
}

// known refuses a route that nothing would ever remove again.
func (s Set) known(name string, at *field.Path) error {
	if slices.Contains(s.names, name) && name != "" {
		return nil
	}
	return field.Invalid(at.Child("name"), name,
		"is not in spec.strategy.canary.trafficRouting.managedRoutes: add it there, in the order in which the routes are to stand")
}

// optional converts what may be left out; nil stays nil.
func optional(match *v1alpha1.StringMatch, at *field.Path) (*virtualservice.StringMatch, error) {
	if match == nil {
		return nil, nil
	}
	value, err := text(match, at)
	if err != nil {
		return nil, err
	}
	if value == (virtualservice.StringMatch{}) {
		return nil, field.Required(at, "set one of exact, prefix and regex")
	}
	return &value, nil
}

// text converts one match; nothing set means that a header is there, whatever its
// value, as in Istio.
func text(match *v1alpha1.StringMatch, at *field.Path) (virtualservice.StringMatch, error) {
	if match == nil {
		return virtualservice.StringMatch{}, nil
	}
	set := 0
	for _, value := range []string{match.Exact, match.Prefix, match.Regex} {
		if value != "" {
			set++
		}
	}
	if set > 1 {
		return virtualservice.StringMatch{}, field.Invalid(at, *match, "more than one of exact, prefix and regex is set: keep one")
	}
	return virtualservice.StringMatch{Exact: match.Exact, Prefix: match.Prefix, Regex: match.Regex}, nil
}
