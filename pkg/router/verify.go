package router

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// verifyPatience is how long VerifyWeight looks again at what the mesh has, before it
// answers that it has not got it: the controller would come back after ten seconds
// only. A push takes some tenths of a second.
const (
	verifyPatience = 2 * time.Second
	// verifyAll is the part of it that every call has, with a seat or without.
	verifyAll  = 600 * time.Millisecond
	verifyPoll = 25 * time.Millisecond
	// proxiesPoll is for what costs istiod an answer each time.
	proxiesPoll = 500 * time.Millisecond
)

// VerifyWeight says whether the objects hold what the controller asked for and, as far
// as verify.level asks for it, whether the mesh does.
//
// False without an error stops a step, and at the full weight the whole
// reconcile; false with an error lets scaling, deadline and abort go on. Which
// of the two a held canary gets is the guard's table of answers.
func (r *Router) VerifyWeight(ctx context.Context, ro *v1alpha1.Rollout, desired int32, additional []v1alpha1.WeightDestination) (bool, error) {
	found, err := r.verify(ctx, ro, desired, additional, false)
	if err != nil || found.again == nil {
		return found.verified, err
	}
	// Between the two looks the turn is free: the watch must be able to lower the weight.
	r.lookAgain(ctx, found)
	found, err = r.verify(ctx, ro, desired, additional, true)
	if err != nil || found.again == nil {
		return found.verified, err
	}
	return false, errorOrNil(found.answers.VerifyErr)
}

// lookAgain waits until nothing is missing: for as long as a push takes, and with a seat
// for r.patience. With a mesh that takes no weights all of the controller's workers would
// stand here, and what is sent back comes again in ten seconds.
func (r *Router) lookAgain(ctx context.Context, f finding) {
	look := func(d time.Duration) bool {
		return wait.PollUntilContextTimeout(ctx, f.every, d, false, func(context.Context) (bool, error) { return f.again(), nil }) == nil
	}
	first := min(verifyAll, r.patience)
	if !look(first) {
		seated(r.looking, func() { look(r.patience - first) })
	}
}

// finding is what one look of VerifyWeight has found.
type finding struct {
	verified bool
	// again is nil unless the objects are right and the mesh has not got them yet: it
	// tells whether it has by now. answers are for the case that it has not.
	again   func() bool
	every   time.Duration
	answers guard.Answers
}

// verify looks once; last tells that there will be no second look.
func (r *Router) verify(ctx context.Context, ro *v1alpha1.Rollout, desired int32, additional []v1alpha1.WeightDestination, last bool) (finding, error) {
	s, m, release, err := r.beginWhole(ctx, ro, additional)
	if err != nil && r.holdsPromotion(ro, desired) {
		r.log.Warn("not verified, and so not promoted", "namespace", ro.Namespace, "rollout", ro.Name, "error", err)
		return finding{}, nil
	}
	if err != nil {
		return finding{}, err
	}
	defer release()
	v := r.judge(s, m, desired)
	found, err := r.verifyObjects(ctx, s, m, v)
	if found.again != nil && !last {
		return found, err
	}
	if found.again != nil {
		r.reportLate(s, m, v)
	}
	return r.verifyHealth(s, m, v, found, err)
}

// verifyObjects looks at all but the canary's health.
func (r *Router) verifyObjects(ctx context.Context, s *situation, m *memory, v verdict) (finding, error) {
	if s.routesErr != nil {
		return finding{}, s.routesErr
	}
	if !v.answers.Verified {
		m.unseenSince = time.Time{}
		return finding{}, errorOrNil(v.answers.VerifyErr)
	}
	target := r.target(s, v.next)
	if waiting := s.waitingTemplates(target.Experiments); waiting != "" {
		r.reportShareWaits(s, m, waiting)
		if v.decision.Desired < v.decision.Max {
			return finding{}, nil // after an error nothing might bring the controller back
		}
		return finding{}, errors.New(waiting)
	}
	m.shareWaits = ""
	if !s.holds(target) || !s.labelled(m) || s.pinErr != nil {
		return finding{}, s.pinErr
	}
	return r.verifyInMesh(ctx, s, m, v), nil
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
	return !s.bySubsets() || s.labelledAs(s.announced(m)) && s.hasSubsets()
}

// hasSubsets reports whether the templates of an experiment have their subsets.
func (s *situation) hasSubsets() bool {
	for _, t := range s.templates {
		if !s.hasSubset(t) {
			return false
		}
	}
	return true
}

// holdsPromotion tells that an error at the full weight would have the controller
// promote past the health gate, or past a pin. UpdateHash and SetWeight of the next
// reconcile answer with the same error, so nothing is stuck without a word.
func (r *Router) holdsPromotion(ro *v1alpha1.Rollout, desired int32) bool {
	s, err := r.subjectOf(ro)
	if err != nil || desired < s.facts.Max {
		return false
	}
	return s.config.HealthGate != nil && r.options.Health != nil || s.pin != nil && *s.pin < s.facts.Max
}
