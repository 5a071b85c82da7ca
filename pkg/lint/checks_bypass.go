package lint

import (
	"slices"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

func withoutSubset(s *subject, tell tell) {
	if len(s.rules) == 0 {
		return
	}
	for _, o := range s.w.byKind[virtualServiceKind] {
		vs := s.w.services[o]
		for _, route := range slices.Concat(vs.HTTP, vs.TLS, vs.TCP) {
			if s.handles(o, route) {
				continue
			}
			for _, d := range route.Destinations {
				if d.Subset == "" && (d.Weight > 0 || len(route.Destinations) == 1) && s.isHost(d.Host, o.Namespace) {
					tell(o, destinationField(route, d, ".destination"), "route %s sends to host %s without a subset", route, d.Host)
				}
			}
		}
	}
}

// handles tells whether the route is one of the subject's own.
func (s *subject) handles(o *object, route virtualservice.Route) bool {
	return slices.ContainsFunc(s.services, func(x *routed) bool {
		return x.o == o && slices.ContainsFunc(x.routes, func(r virtualservice.Route) bool {
			return r.Protocol == route.Protocol && r.Index == route.Index
		})
	})
}

// isHost tells whether a host is that of one of the sides.
func (s *subject) isHost(host, namespace string) bool {
	canonical := s.w.canonical(host, namespace)
	return slices.ContainsFunc(s.sides(), func(side virtualservice.Side) bool {
		return side.Host != "" && s.w.same(canonical, side.Host)
	})
}

func rootService(s *subject, tell tell) {
	if len(s.rules) > 0 || len(s.problems) > 0 {
		return
	}
	for _, o := range s.w.byKind[virtualServiceKind] {
		vs := s.w.services[o]
		for _, route := range slices.Concat(vs.HTTP, vs.TLS, vs.TCP) {
			if s.handles(o, route) {
				continue
			}
			for _, d := range route.Destinations {
				if (d.Weight > 0 || len(route.Destinations) == 1) && s.isRoot(d.Host, o.Namespace) {
					tell(o, destinationField(route, d, ".destination.host"), "route %s sends to Service %s, which selects the pods of both sides of %s", route, d.Host, s.o)
				}
			}
		}
	}
}

// isRoot tells a Service in the input that is none of the sides and selects the pods of
// both.
func (s *subject) isRoot(host, namespace string) bool {
	canonical := s.w.canonical(host, namespace)
	at := slices.IndexFunc(s.w.byKind[serviceKind], func(o *object) bool {
		return o.Namespace == s.o.Namespace && s.w.same(s.w.canonical(o.Name, o.Namespace), canonical)
	})
	if at < 0 || s.isHost(host, namespace) {
		return false
	}
	asked := s.w.byKind[serviceKind][at].labels("spec", "selector")
	pods, known := s.podLabels()
	if !known || len(asked) == 0 {
		return false
	}
	for key, value := range asked {
		if pods[key] != value {
			return false
		}
	}
	return true
}
