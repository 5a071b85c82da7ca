package router

import (
	"context"
	"slices"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// relieve takes away what the pods of this moment cannot serve: weight, managed
// routes and shares of an experiment. It gives the canary nothing, so neither a
// quarrel, nor another process, nor a Rollout that has moved on stands in its way.
func (r *Router) relieve(ctx context.Context, s *situation, m *memory, v verdict) (wrote bool, err error) {
	if !s.known {
		return false, nil
	}
	target := virtualservice.Target{
		Owner: s.owner(), Canary: s.bearable(v, s.judged(s.routed(), s.announced(m))), Lower: true,
		Experiments: s.present(r.servable(s)), Managed: s.presentRoutes(v), ManagedNames: s.managed,
	}
	if target.Canary == s.written && !s.unserved(target, v) {
		return false, nil
	}
	if !r.askedLately(ctx, s, m) {
		return false, nil
	}
	if s.check(target) != nil {
		target.Managed = nil // what cannot be made does not keep up what cannot be served
	}
	if err := r.writeAll(ctx, s, m, target); err != nil {
		return false, err
	}
	if !s.bySubsets() || s.labelledAs(m.labelled) {
		// What a label that somebody else moved has cost comes back with the label.
		m.applied = reduced(m.applied, target)
	}
	r.reportCap(s, m, v)
	r.reportMetrics(s, v)
	return true, nil
}

// bearable is as much of the written weight as the canary's pods can take, asked
// for or not.
func (s *situation) bearable(v verdict, h hashes) int32 {
	if !v.enforced {
		return s.written
	}
	next := s.written
	for _, d := range []guard.Decision{v.decision, guard.Decide(s.gather(h, s.written))} {
		if d.Capped() && d.Reason != guard.ReasonNoPods {
			next = min(next, d.Weight)
		}
	}
	return next
}

// podless is true when requests to the canary meet nobody and the stable has pods.
func (v verdict) podless() bool {
	return v.decision.Canary.Available <= 0 && v.decision.Stable.Available > 0
}

// presentRoutes are those of the wanted managed routes that are in place, none
// where they would lead to nobody.
func (s *situation) presentRoutes(v verdict) []virtualservice.ManagedRoute {
	if v.podless() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.wantedRoutes()), func(route virtualservice.ManagedRoute) bool {
		return !slices.ContainsFunc(s.services, func(vs *virtualservice.VirtualService) bool {
			return slices.ContainsFunc(vs.HTTP, func(there virtualservice.Route) bool { return there.Name == route.Name })
		})
	})
}

// present are those of the templates whose destination is in place.
func (s *situation) present(experiments []virtualservice.Experiment) []virtualservice.Experiment {
	return slices.DeleteFunc(experiments, func(e virtualservice.Experiment) bool { return !s.routedTo(e.Side) })
}

// unserved tells whether a managed route, or a template's destination, is in place
// that leads to nobody.
func (s *situation) unserved(target virtualservice.Target, v verdict) bool {
	if v.podless() && s.hasManaged() {
		return true
	}
	return slices.ContainsFunc(s.templates, func(t template) bool {
		side := s.templateSide(t.service)
		served := slices.ContainsFunc(target.Experiments, func(e virtualservice.Experiment) bool { return e.Service == t.service })
		return !served && s.routedTo(side)
	})
}

// reduced is the applied target without what was taken away; nil stays nil.
func reduced(applied *virtualservice.Target, to virtualservice.Target) *virtualservice.Target {
	if applied == nil {
		return nil
	}
	out := *applied
	out.Canary = min(out.Canary, to.Canary)
	out.Managed, out.Experiments = commonRoutes(out.Managed, to.Managed), commonExperiments(out.Experiments, to.Experiments)
	return &out
}

func commonRoutes(a, b []virtualservice.ManagedRoute) []virtualservice.ManagedRoute {
	return slices.DeleteFunc(slices.Clone(a), func(route virtualservice.ManagedRoute) bool {
		return !slices.ContainsFunc(b, func(other virtualservice.ManagedRoute) bool { return other.Name == route.Name })
	})
}

func commonExperiments(a, b []virtualservice.Experiment) []virtualservice.Experiment {
	return slices.DeleteFunc(slices.Clone(a), func(e virtualservice.Experiment) bool {
		return !slices.ContainsFunc(b, func(other virtualservice.Experiment) bool { return other.Service == e.Service })
	})
}
