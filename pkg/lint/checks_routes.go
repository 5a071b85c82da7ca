package lint

import (
	"cmp"
	"slices"
	"strings"

	jsonobject "github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch/object"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// stops is what an object or route that cannot be handled costs.
const stops = "The plugin answers every call with this error: no weight is written, and the controller neither scales nor aborts."

var routeChecks = []*Check{
	{
		Code: "ARI0201", Severity: Error, Title: "A VirtualService that does not exist", judge: missingVirtualService,
		Happens: stops, Instead: "Correct the name, or create the VirtualService.",
		Not:       "Offline an object that is not in the input is a note, unless --complete says that all are there.",
		Elsewhere: "Istio IST0101",
	},
	{
		Code: "ARI0202", Severity: Error, Title: "A listed route that does not exist", judge: routeTrouble(noRoute),
		Happens: stops, Instead: "List a route that the VirtualService has; the message names them.",
	},
	{
		Code: "ARI0203", Severity: Error, Title: "No route is listed, and none can be chosen", judge: routeTrouble(noChoice),
		Happens: stops, Instead: "List the routes, set allMatchingRoutes: true, or give one of the routes both destinations.",
		Not: "Without a list the only route is meant, or of several http routes the only one without a name.",
	},
	{
		Code: "ARI0204", Severity: Error, Title: "A route without exactly one stable and one canary destination", judge: routeTrouble(destinations),
		Happens: stops, Instead: "Give the route one destination for each side, the canary's with weight 0; or list another route.",
		Not:       "Routes that the Rollout does not handle are never judged.",
		Elsewhere: "Kiali KIA1105 (a destination that stands twice)",
	},
	{
		Code: "ARI0205", Severity: Error, Title: "A route that delegates", judge: routeTrouble(delegates),
		Happens: stops, Instead: "Name the VirtualService to which the route delegates in place of the root.",
	},
	{
		Code: "ARI0206", Severity: Error, Title: "A route that redirects or answers itself", judge: routeTrouble(answers),
		Happens: stops, Instead: "List another route.",
	},
	{
		Code: "ARI0207", Severity: Error, Title: "A VirtualService or DestinationRule that cannot be read", judge: malformedObjects,
		Happens: stops + " For hosts, gateways, exportTo and what a match is, which it does not read, the API server refuses the object.", Instead: "Give the field the type that the message names.",
		Elsewhere: "Istio IST0106",
	},
	{
		Code: "ARI0208", Severity: Error, Title: "Weights that cannot be shared", judge: unsharedWeights,
		Happens: "The plugin refuses to write any weight into this route, as the share of the other destinations would change or leave nothing.",
		Instead: "Let the weights add up to maxTrafficWeight (100), and leave something for the Rollout's own destinations.",
		Not:     "Weights of the Rollout's own two destinations may add up to anything: they are written anew.",
	},
	{
		Code: "ARI0209", Severity: Error, Title: "A route whose weights are all 0, or one of them below 0", judge: weightless,
		Happens: "Istio refuses a VirtualService with a negative weight, or with a route of several destinations without any weight.",
		Instead: "Write weight: 100 for the stable and weight: 0 for the canary destination.",
		Not:     "A route with a single destination needs no weight.",
	},
}

func missingVirtualService(s *subject, tell tell) {
	for _, x := range s.services {
		if x.o != nil {
			continue
		}
		if _, missing := s.w.find(virtualServiceKind, x.want.Namespace, x.want.Name); missing {
			tell(s.o, x.at+".name", "there is no VirtualService %s/%s", x.want.Namespace, x.want.Name)
		}
	}
}

// routeTrouble reports one kind of trouble: with a route at the route, else at the
// entry that asks for it.
func routeTrouble(kind trouble) func(*subject, tell) {
	return func(s *subject, tell tell) {
		for _, x := range s.services {
			for _, o := range x.outcomes {
				switch {
				case o.trouble != kind:
				case o.route != nil:
					tell(x.o, routeField(*o.route, ""), "%s", about(x.o, o.err))
				default:
					tell(s.o, o.at, "%s", o.err)
				}
			}
		}
	}
}

// about is an error without the object's name in front, which stands there already.
func about(o *object, err error) string {
	return strings.TrimPrefix(err.Error(), o.String()+": ")
}

func malformedObjects(s *subject, tell tell) {
	for _, x := range s.services {
		switch {
		case x.vs == nil:
		case x.vs.Malformed != nil:
			tell(x.o, pathIn(x.vs.Malformed), "%s", x.vs.Malformed)
		default:
			malformedRoutes(x, tell)
			unread(x, tell)
		}
	}
	for _, r := range s.rules {
		if r.dr == nil {
			continue
		}
		if r.dr.Malformed != nil {
			tell(r.o, pathIn(r.dr.Malformed), "%s", r.dr.Malformed)
		} else if r.dr.Host == "" {
			tell(r.o, "spec.host", "the DestinationRule has no host")
		}
	}
}

func malformedRoutes(x *routed, tell tell) {
	for _, o := range x.outcomes {
		if o.trouble == unusable && o.route != nil {
			tell(x.o, pathIn(o.route.Malformed), "%s", about(x.o, o.err))
		}
	}
}

// unread judges the fields that package virtualservice passes over, since weights do not
// depend on them.
func unread(x *routed, tell tell) {
	spec := jsonobject.Root(x.o.content).Field("spec")
	for _, name := range []string{"hosts", "gateways", "exportTo"} {
		if _, err := spec.Field(name).Texts(); err != nil {
			tell(x.o, pathIn(err), "%s", err)
		}
	}
	entries, _ := spec.Field("http").Items()
	for _, entry := range entries {
		matches, err := entry.Field("match").Items()
		for _, match := range matches {
			err = cmp.Or(err, match.Object())
		}
		if err != nil {
			tell(x.o, pathIn(err), "%s", err)
		}
	}
}

// pathIn is the field that an error of package object begins with.
func pathIn(err error) string {
	path, _, _ := strings.Cut(err.Error(), ":")
	if path, _, _ = strings.Cut(path, " "); !strings.HasPrefix(path, "spec") {
		return ""
	}
	return path
}

func unsharedWeights(s *subject, tell tell) {
	for _, x := range s.services {
		for i, err := range s.patchErrors(x) {
			if err != nil {
				tell(x.o, routeField(x.routes[i], ".route"), "%s", about(x.o, err))
			}
		}
	}
}

// patchErrors computes the patch of each weight that the steps ask for, and keeps the
// first error of each route.
func (s *subject) patchErrors(x *routed) []error {
	if x.unshared == nil {
		for i := range x.routes {
			x.unshared = append(x.unshared, s.patchError(x, x.routes[i:i+1]))
		}
	}
	return x.unshared
}

func (s *subject) patchError(x *routed, routes []virtualservice.Route) error {
	among := only(x.vs, routes)
	for _, weight := range s.weights() {
		_, _, err := among.Set(routes, s.split, virtualservice.Target{Canary: weight, ManagedNames: s.managed})
		if err != nil {
			return err
		}
	}
	return nil
}

// weights are those that the controller asks for on its way, within 0 to max.
func (s *subject) weights() []int32 {
	weights := []int32{0, s.split.Max}
	for _, step := range s.canary().Steps {
		if step.SetWeight != nil {
			weights = append(weights, min(max(*step.SetWeight, 0), s.split.Max))
		}
	}
	return weights
}

func negative(route virtualservice.Route) bool {
	return slices.ContainsFunc(route.Destinations, func(d virtualservice.Destination) bool { return d.Weight < 0 })
}

func weightless(s *subject, tell tell) {
	for _, x := range s.services {
		for _, route := range x.routes {
			var sum int64
			for _, d := range route.Destinations {
				if sum += max(d.Weight, 0); d.Weight < 0 {
					tell(x.o, destinationField(route, d, ".weight"), "the weight is %d, below 0", d.Weight)
				}
			}
			if sum == 0 && !negative(route) && len(route.Destinations) > 1 {
				tell(x.o, routeField(route, ".route"), "route %s has %d destinations and no weight", route, len(route.Destinations))
			}
		}
	}
}
