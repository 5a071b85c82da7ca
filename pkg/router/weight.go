package router

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// SetWeight writes the canary's weight: desired (parts of maxTrafficWeight), or
// what the guard allows of it.
//
// An error means that not all was written, or, with dynamicStableScale, that the
// canary is held and the stable must not be scaled away; the controller is right
// to call again in both cases. One that is over by itself within seconds may be
// answered when it is over.
func (r *Router) SetWeight(ctx context.Context, ro *v1alpha1.Rollout, desired int32, additional []v1alpha1.WeightDestination) error {
	return r.outlast(ctx, r.setWeight(ctx, ro, desired, additional), func(ctx context.Context) bool {
		return r.mayBegin(ctx, ro, desired, additional)
	})
}

func (r *Router) setWeight(ctx context.Context, ro *v1alpha1.Rollout, desired int32, additional []v1alpha1.WeightDestination) error {
	s, m, release, err := r.begin(ctx, ro, additional)
	if err != nil {
		return err
	}
	defer release()
	r.noteDesired(s, m, desired)
	v := r.judge(s, m, desired)
	if v.braked {
		r.watch.queue.Add(s.ref.UID) // which aborts the Rollout
	}
	waiting := s.firstRequests(m, v.next)
	if waiting != "" && s.canaryWaits(m) != "" {
		v.next = 0
	}
	if s.stableFresh != "" && v.next < s.written {
		v.next = s.written // both Services have the same pods; the watch finishes it
		r.watch.queue.AddAfter(s.ref.UID, freshPoll)
	}
	if err := r.bringAbout(ctx, s, m, v); err != nil {
		return err
	}
	if waiting != "" {
		return passing("no first request yet: " + waiting)
	}
	return r.setAnswer(ctx, s, m, v)
}

// mayBegin tells whether nothing keeps the first request back any more.
func (r *Router) mayBegin(ctx context.Context, ro *v1alpha1.Rollout, desired int32, additional []v1alpha1.WeightDestination) bool {
	s, m, release, err := r.begin(ctx, ro, additional)
	if err != nil {
		return true
	}
	defer release()
	return s.firstRequests(m, r.judge(s, m, desired).next) == ""
}

// bringAbout writes what a verdict says, and tells of it.
func (r *Router) bringAbout(ctx context.Context, s *situation, m *memory, v verdict) error {
	if s.pinErr != nil && v.next > s.written {
		return s.pinErr
	}
	if s.broken != nil && !s.takes(v.next) {
		return s.broken
	}
	if err := r.stableFirst(ctx, s, m, v.next); err != nil {
		return errors.Join(s.broken, err) // joined: what mayBegin looks at is something else
	}
	if err := r.writeRoutes(ctx, s, m, v.next); err != nil {
		return errors.Join(s.broken, err)
	}
	if s.broken != nil {
		return s.broken // what could be taken from the canary has been
	}
	r.report(s, m, v)
	return nil
}

// setAnswer is what SetWeight answers once all is written.
func (r *Router) setAnswer(ctx context.Context, s *situation, m *memory, v verdict) error {
	if held := r.gateAnswers(s, m, v, v.answers).SetWeightErr; held != "" && v.answers.SetWeightErr == "" {
		// There will be no VerifyWeight to look for the gate.
		found, err := r.verifyObjects(ctx, s, m, v)
		_, _ = r.verifyHealth(s, m, v, found, err)
		return errors.New(held)
	}
	return errorOrNil(v.answers.SetWeightErr)
}

// takes tells whether this weight takes from the canary what it has: some of its
// weight, or its managed routes.
func (s *situation) takes(weight int32) bool {
	canary, _ := s.sideWeights()
	return weight < canary
}

// report tells what a SetWeight found, each of it once.
func (r *Router) report(s *situation, m *memory, v verdict) {
	r.reportContract(s, m)
	r.reportCap(s, m, v)
	r.reportPin(s, m, v)
	r.reportAborted(s, m, v)
	r.reportMetrics(s, v)
}

// stableFirst brings the stable's label up to the Rollout's status before traffic
// returns to that side. UpdateHash does so at a promotion, but v1.10 of the
// controller calls SetWeight before it when a new revision comes at once, and
// the side may then still name the revision before: traffic would flap back to
// it (argo-rollouts#1734), or meet no pod at all.
func (r *Router) stableFirst(ctx context.Context, s *situation, m *memory, weight int32) error {
	canary, _ := s.sideWeights()
	if !s.bySubsets() || weight >= canary {
		return nil
	}
	if s.podsOf(canarySide, s.routed().canary).Available == 0 {
		return nil // a canary without pods loses its weight, whatever the label says
	}
	if err := r.moveLabels(ctx, s, m, hashes{stable: s.status.stable}); err != nil {
		return err
	}
	if m.labelled != (hashes{}) && s.status.stable != "" {
		m.labelled.stable = s.status.stable
	}
	return nil
}

// noteDesired remembers what was asked for and warns, once per value, when it
// makes no sense: the controller has been seen to ask for -140 and for 200
// (argo-rollouts#3470, #4424).
func (r *Router) noteDesired(s *situation, m *memory, desired int32) {
	repeated := m.asked && m.desired == desired
	m.asked, m.desired = true, desired
	if !repeated && (desired < 0 || desired > s.facts.Max) {
		r.logFor(s).Warn("desired weight is outside of its range and was clamped", "desired", desired, "max", s.facts.Max)
	}
}

// verdict is what the guard makes of a situation.
type verdict struct {
	facts    guard.Facts
	decision guard.Decision
	// enforced is false in the modes Observe and Off: next is then what the
	// controller asked for.
	enforced bool
	// observed is true unless the mode is Off: the decision is worth reporting.
	observed bool
	// next is the canary's weight to write now, in parts of max.
	next    int32
	answers guard.Answers
	// braked tells that the health gate takes the weight away.
	braked bool
	// held is for how long the guard has capped the weight without a break.
	held time.Duration
	// pin is the brake that holds the weight down, nil when none does.
	pin *int32
}

// judge decides. It also keeps the clock of a hold, which is why it is called by
// SetWeight and VerifyWeight alike.
func (r *Router) judge(s *situation, m *memory, desired int32) verdict {
	return r.braked(s, m, r.guarded(s, m, desired))
}

// guarded is what guard and pin say.
func (r *Router) guarded(s *situation, m *memory, desired int32) verdict {
	facts := s.gather(s.judged(s.routed(), s.announced(m)), desired)
	d := guard.Decide(facts)
	if s.config.Guard.Mode != config.Enforce {
		return verdict{
			facts: facts, decision: d, held: m.hold(d, r.clock.Now()), observed: s.config.Guard.Mode == config.Observe, next: d.Desired,
			answers: guard.Answers{Verified: true},
		}.pinned(s.pin, facts)
	}
	held := m.hold(d, r.clock.Now())
	answers := guard.Answer(facts, d, held, s.config.Guard.MaxHold)
	switch {
	case s.missing != "" && answers.VerifyErr != "":
		// No pod has to come, and so nothing of the Rollout will change.
		answers = guard.AnswerUnseen(facts, d, answers.VerifyErr, held, s.config.Guard.MaxHold)
	default:
		answers = s.answerBehind(m, facts, d, answers)
	}
	return verdict{
		facts: facts, decision: d, enforced: true, observed: true,
		next:    guard.NextWeight(s.written, s.known && s.uniform, d, s.config.Guard.MinRaise),
		answers: answers, held: held,
	}.pinned(s.pin, facts)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
