package lint

import (
	"maps"
	"slices"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

const pingPongPath = canaryPath + ".pingPong"

// tellServices follows what the controller asks of the Services that a canary names. What
// the plugin refuses as well, and what other checks say of the same Service, is not told
// again.
func (s *subject) tellServices(tell tell) {
	canary := s.canary()
	s.tellPair(tell, canaryPath+".canaryService", canaryPath+".stableService", canary.CanaryService, canary.StableService, s.needsServices())
	if pingPong := canary.PingPong; pingPong != nil {
		s.tellPair(tell, pingPongPath+".pingService", pingPongPath+".pongService", pingPong.PingService, pingPong.PongService, true)
	}
	for _, service := range s.namedServices() {
		s.tellService(service, tell)
	}
}

// tellPair reports two Services that are one, or that are not both there.
func (s *subject) tellPair(tell tell, firstAt, secondAt, first, second string, needed bool) {
	for _, side := range []struct{ at, name string }{{firstAt, first}, {secondAt, second}} {
		if needed && side.name == "" && !s.refused(side.at) {
			tell(s.o, side.at, "no Service is named, and the controller needs both")
		}
	}
	if first != "" && first == second && !s.refused(secondAt) {
		tell(s.o, secondAt, "Service %s is named for both sides, and the controller wants two Services", cut(second))
	}
}

// refused tells whether the plugin refuses the field, which is ARI0101.
func (s *subject) refused(path string) bool {
	for _, problem := range s.problems {
		if problem.Field == path {
			return true
		}
	}
	return false
}

// needsServices tells where the controller itself needs both Services: for a router of its
// own, and not for a plugin. A native block beside the plugin's is ARI0103.
func (s *subject) needsServices() bool {
	routing := s.canary().TrafficRouting
	switch {
	case routing == nil:
		return false
	case routing.SMI != nil, routing.Apisix != nil, routing.Ambassador != nil, routing.Nginx != nil, routing.AppMesh != nil, routing.Traefik != nil:
		return true
	case s.canary().PingPong != nil:
		return false
	}
	return routing.ALB != nil || s.native && routing.Istio.DestinationRule == nil
}

// namedService is a Service that the Rollout names, and where.
type namedService struct{ at, name string }

// namedServices are in the order in which the controller looks at them, each once.
func (s *subject) namedServices() []namedService {
	canary := s.canary()
	all := []namedService{{canaryPath + ".stableService", canary.StableService}, {canaryPath + ".canaryService", canary.CanaryService}}
	if canary.PingPong != nil {
		all = append(all, namedService{pingPongPath + ".pingService", canary.PingPong.PingService}, namedService{pingPongPath + ".pongService", canary.PingPong.PongService})
	}
	var named []namedService
	for _, service := range all {
		known := slices.ContainsFunc(named, func(other namedService) bool { return other.name == service.name })
		if service.name != "" && !known && !s.refused(service.at) {
			named = append(named, service)
		}
	}
	return named
}

// tellService reports a Service that does not exist, is another Rollout's, or selects what
// the pod template has not.
func (s *subject) tellService(service namedService, tell tell) {
	o, missing := s.w.find(serviceKind, s.o.Namespace, service.name)
	if missing && !s.toldMissing(service.name) {
		tell(s.o, service.at, "Service %s/%s does not exist", s.o.Namespace, cut(service.name))
	}
	if o == nil {
		return
	}
	if owner := o.labels("metadata", "annotations")[v1alpha1.ManagedByRolloutsKey]; owner != "" && owner != s.o.Name {
		tell(s.o, service.at, "%s is another Rollout's by its annotation %s: %s", o, v1alpha1.ManagedByRolloutsKey, cut(owner))
	}
	s.tellServiceSelector(o, tell)
}

// tellServiceSelector asks the pod template alone: to the controller, labels that are added
// to pods later are none of theirs.
func (s *subject) tellServiceSelector(service *object, tell tell) {
	pods, known := s.podLabels()
	if !known {
		return
	}
	selector := service.labels("spec", "selector")
	told := s.toldLacking(service, selector)
	for _, name := range slices.Sorted(maps.Keys(selector)) {
		have, there := pods[name]
		if name == hashLabel || there && have == selector[name] || slices.Contains(told, name) {
			continue
		}
		tell(service, "spec.selector"+below(name), "the selector asks for %s=%s, which the pod template of %s does not have", name, selector[name], s.o)
	}
}

// toldMissing tells whether a destination names the Service: ARI0210 is about that one.
func (s *subject) toldMissing(name string) bool {
	host := s.w.keyOf(name, s.o.Namespace)
	for _, x := range s.services {
		for _, route := range x.routes {
			for _, d := range route.Destinations {
				if s.w.keyOf(d.Host, x.o.Namespace) == host && s.w.hostMissing(d.Host, x.o.Namespace) {
					return true
				}
			}
		}
	}
	return false
}

// toldLacking are the labels of the selector that ARI0304 and ARI0305 tell of.
func (s *subject) toldLacking(service *object, selector map[string]string) []string {
	for _, side := range s.serviceSelections() {
		if side.o == service {
			return s.lacks(selector)
		}
	}
	return nil
}
