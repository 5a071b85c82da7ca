package lint

import (
	"slices"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

func withoutSubset(s *subject, tell tell) {
	if len(s.rules) == 0 {
		return
	}
	for _, host := range s.hosts() {
		for _, from := range s.w.index.bare[host] {
			if s.handles(from.o, from.route) {
				continue
			}
			if !tell(from.o, destinationField(*from.route, *from.to, ".destination"), "route %s sends to host %s without a subset", from.route, from.to.Host) {
				return
			}
		}
	}
}

// handles tells whether the route is one of the subject's own.
func (s *subject) handles(o *object, route *virtualservice.Route) bool {
	return slices.ContainsFunc(s.services, func(x *routed) bool { return x.o == o && x.handled[placeOf(route)] })
}

// hosts are the hostKeys of the sides, each once.
func (s *subject) hosts() []string {
	var hosts []string
	for _, side := range s.sides() {
		if host := s.w.hostKey(side.Host); side.Host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// rootService looks for a Service in the input that is none of the sides and selects
// the pods of both.
func rootService(s *subject, tell tell) {
	pods, known := s.podLabels()
	if len(s.rules) > 0 || len(s.problems) > 0 || !known {
		return
	}
	sides := s.hosts()
	for service := range s.w.index.selecting(s.o.Namespace, pods) {
		host := s.w.keyOf(service.Name, service.Namespace)
		if slices.Contains(sides, host) {
			continue
		}
		for _, from := range s.w.index.sends[host] {
			if s.handles(from.o, from.route) {
				continue
			}
			if !tell(from.o, destinationField(*from.route, *from.to, ".destination.host"), "route %s sends to Service %s, which selects the pods of both sides of %s", from.route, from.to.Host, s.o) {
				return
			}
		}
	}
}
