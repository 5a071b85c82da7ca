package router

import (
	"context"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// VerifyWeight says whether the objects hold what the controller asked for.
//
// False without an error stops a step, and at the full weight the whole
// reconcile; false with an error lets scaling, deadline and abort go on. Which
// of the two a held canary gets is the guard's table of answers.
func (r *Router) VerifyWeight(ctx context.Context, ro *v1alpha1.Rollout, desired int32, additional []v1alpha1.WeightDestination) (bool, error) {
	s, m, release, err := r.beginWhole(ctx, ro, additional)
	if err != nil {
		return false, err
	}
	defer release()
	if s.routesErr != nil {
		return false, s.routesErr
	}
	v, err := r.judge(s, m, desired)
	if err != nil {
		return false, err
	}
	if !v.answers.Verified {
		return false, errorOrNil(v.answers.VerifyErr)
	}
	target, err := r.target(s, v.next)
	if err != nil {
		return false, err
	}
	if waiting := s.waitingTemplates(target.Experiments); waiting != "" {
		return false, errorOrNil(waiting)
	}
	return s.holds(target) && s.labelled(m) && s.pinErr == nil && !r.stillSpreading(s, m, v), s.pinErr
}

// stillSpreading is true for settle after the last write at the full weight with
// dynamicStableScale: once it is verified the controller takes the stable's pods
// away, and proxies that have not heard of the weight yet would go on sending
// requests to them (argo-rollouts#3681). The answer without an error ends the
// reconcile; at most for settle, so that nothing waits for it for long.
func (r *Router) stillSpreading(s *situation, m *memory, v verdict) bool {
	elapsed, known := r.since(m.changedAt)
	return s.facts.DynamicStableScale && !s.facts.Returning && v.decision.Desired >= v.decision.Max &&
		known && elapsed < s.config.Guard.Settle
}

// labelled reports whether the subsets name the hashes that the controller last
// announced. A weight means little on a subset that selects other pods.
func (s *situation) labelled(m *memory) bool {
	if s.rule == nil {
		return true
	}
	routed, err := s.routed()
	if err != nil {
		return false
	}
	return s.labelledAs(routed, s.announced(m)) && s.hasSubsets()
}

// labelledAs compares what is named with what is to be; "" is any.
func (s *situation) labelledAs(routed, want hashes) bool {
	return (want.canary == "" || routed.canary == want.canary) && (want.stable == "" || routed.stable == want.stable)
}

// hasSubsets reports whether the templates of an experiment have their subsets.
func (s *situation) hasSubsets() bool {
	for _, t := range s.templates {
		if !s.named(t) {
			return false
		}
	}
	return true
}
