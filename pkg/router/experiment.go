package router

import (
	"fmt"
	"slices"
	"strings"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// template is one template of a running experiment that is to have a share of
// the traffic.
type template struct {
	// service is the Service that the controller made for it; at subset level its
	// name is the subset's name too, as with the native router.
	service, hash string
	// weight is its share, in parts of maxTrafficWeight.
	weight int32
}

// templatesOf takes from a call what can be routed. Entries without a Service are
// left out: the controller sends them for templates that have none, and a host
// without a name would take the whole VirtualService down. unnamed is how many.
func templatesOf(additional []v1alpha1.WeightDestination) (templates []template, unnamed int) {
	for _, d := range additional {
		if d.ServiceName == "" {
			unnamed++
			continue
		}
		templates = append(templates, template{service: d.ServiceName, hash: d.PodTemplateHash, weight: max(0, d.Weight)})
	}
	return templates, unnamed
}

// noteTemplates remembers the templates that a call came with and warns, once per
// change, of those that cannot be routed.
func (r *Router) noteTemplates(m *memory, ro *v1alpha1.Rollout, additional []v1alpha1.WeightDestination) {
	templates, unnamed := templatesOf(additional)
	if unnamed != m.unnamed && unnamed > 0 {
		r.log.Warn("templates of an experiment without a service get no traffic", "namespace", ro.Namespace, "rollout", ro.Name, "templates", unnamed)
		r.cluster.Event(referenceTo(ro), true, EventExperimentWithoutService, fmt.Sprintf(
			"%d templates of the experiment have no Service and get no traffic: give their pods a container port, and set service.name in the template", unnamed))
	}
	m.templates, m.unnamed = templates, unnamed
}

// takeTemplates makes the templates' destinations, and those that an earlier
// experiment left, part of the split.
func (s *situation) takeTemplates(templates []template) {
	s.templates = templates
	services := make([]string, 0, len(templates))
	for _, t := range templates {
		services = append(services, t.service)
	}
	for _, vs := range s.services {
		services = append(services, vs.ExperimentServices(s.owner())...)
	}
	slices.Sort(services)
	s.split.Experiments = nil
	for _, service := range slices.Compact(services) {
		s.split.Experiments = append(s.split.Experiments, s.templateSide(service))
	}
}

// templateSide is where the requests for a template go; a subset is one of the host
// that the route sends to.
func (s *situation) templateSide(service string) virtualservice.Side {
	if s.bySubsets() {
		return virtualservice.Side{Subset: service}
	}
	return virtualservice.Side{Host: hostname.Canonical(service, s.ref.Namespace, s.split.ClusterDomain)}
}

// servable are the templates that can take requests now: those with a pod, and at
// subset level with a subset that is persisted and names them
// (argo-rollouts#3420: traffic went to templates whose pods were not ready).
func (r *Router) servable(s *situation) []virtualservice.Experiment {
	var experiments []virtualservice.Experiment
	for _, t := range s.templates {
		fresh := s.fresh[t.key()] != "" && !s.routedTo(s.templateSide(t.service))
		if fresh || r.cluster.ExperimentAvailable(s.ref.Namespace, t.hash) <= 0 || !s.hasSubset(t) {
			continue
		}
		experiments = append(experiments, virtualservice.Experiment{
			Service: t.service, Side: s.templateSide(t.service), Weight: t.weight,
		})
	}
	return experiments
}

// hasSubset tells whether the template's subset is there; at host level it is the
// controller's Service and needs nothing of ours.
func (s *situation) hasSubset(t template) bool {
	return !slices.ContainsFunc(s.rules, func(x rule) bool { return !x.hasAll([]template{t}) })
}

// hasAll tells whether the subsets of all templates are there.
func (x rule) hasAll(templates []template) bool {
	return !slices.ContainsFunc(templates, func(t template) bool {
		hash, err := x.Hash(t.service)
		return err != nil || hash != t.hash
	})
}

// subsets are those that a DestinationRule has to have for the templates. One
// that names other pods while a route still leads there waits: SetWeight takes its
// share first.
func (s *situation) subsets(x rule) []destinationrule.Experiment {
	var all []destinationrule.Experiment
	for _, t := range s.templates {
		hash, err := x.Hash(t.service)
		if err == nil && hash != "" && hash != t.hash && s.routedTo(s.templateSide(t.service)) {
			continue
		}
		all = append(all, destinationrule.Experiment{Subset: t.service, Hash: t.hash})
	}
	return all
}

// unused are the subsets of ended experiments that no route names any more. A
// subset has to outlive its last weight by settle: a proxy that has the route
// but not the subset answers 503.
func (r *Router) unused(s *situation, m *memory) []string {
	changed := m.changedAt
	if changed.IsZero() {
		changed = s.lastChange()
	}
	if elapsed, known := r.since(changed); known && elapsed < s.config.Guard.Settle {
		return nil
	}
	var names []string
	for _, name := range s.accounted() {
		wanted := slices.ContainsFunc(s.templates, func(t template) bool { return t.service == name })
		if !wanted && !s.routedTo(s.templateSide(name)) {
			names = append(names, name)
		}
	}
	return names
}

// accounted are the subsets for experiments in any of the DestinationRules.
func (s *situation) accounted() []string {
	var names []string
	for _, rule := range s.rules {
		names = append(names, rule.ExperimentSubsets(s.owner())...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// routedTo tells whether one of our VirtualServices names this destination.
func (s *situation) routedTo(side virtualservice.Side) bool {
	return slices.ContainsFunc(s.services, func(vs *virtualservice.VirtualService) bool {
		return vs.Names(side, s.split)
	})
}

// waitingTemplates says which templates do not have their share yet; "" when all have.
func (s *situation) waitingTemplates(served []virtualservice.Experiment) string {
	var waiting []string
	for _, t := range s.templates {
		if !slices.ContainsFunc(served, func(e virtualservice.Experiment) bool { return e.Service == t.service }) {
			waiting = append(waiting, t.service)
		}
	}
	if len(waiting) == 0 {
		return ""
	}
	return "the experiment's share of " + strings.Join(waiting, ", ") + " stays on the stable until one of its pods is available"
}

// key tells a template from the revision whose pod template, and so hash, it has.
func (t template) key() string { return "template " + t.hash }
