package router

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// Health is where the health gate's numbers come from. Its methods return at once;
// HealthAnswered is told of answers.
type Health interface {
	Ask(gate.Question)
	Answer(types.UID) *gate.Answer
	Forget(types.UID)
}

// markTimeout bounds the first mark of a rollback: the sick canary's weight does not
// wait for it longer.
const markTimeout = 2 * time.Second

// gated tells whether the Rollout has opted in.
func (r *Router) gated(s *situation) bool {
	return s.config.HealthGate != nil && r.options.Health != nil
}

// HealthAnswered is told when there is an answer about a Rollout. It returns at once.
func (r *Router) HealthAnswered(rollout types.UID) { r.watch.queue.Add(rollout) }

// gateFacts brings together what the gate decides on.
func (r *Router) gateFacts(s *situation, m *memory, v verdict, inEffect bool) gate.Facts {
	f := gate.Facts{
		Limits: *s.config.HealthGate, Rollout: s.ref.UID, Namespace: s.ref.Namespace,
		Hash: s.status.canary, Stable: s.status.stable, Stretch: s.stretch(m), InEffect: inEffect,
		Desired: v.decision.Desired, Place: s.steps.Place(v.decision.Desired), OwnOnly: s.skippedSteps(),
		Aborted: s.aborted, PromoteFull: s.promoteFull, Pinned: s.isPinned(), Mark: s.mark,
		Answer: r.options.Health.Answer(s.ref.UID),
	}
	if !s.bySubsets() {
		f.Hosts = gate.Hosts{Canary: s.split.Canary.Host, Stable: s.split.Stable.Host}
	}
	return f
}

// stretch is what the routing does now.
func (s *situation) stretch(m *memory) gate.Stretch {
	h := s.judged(s.routed(), s.announced(m))
	return gate.Stretch{Canary: h.canary, Stable: h.stable, Weight: s.written, Max: s.facts.Max}
}

// braked keeps all weight from a canary whose rollback was decided and is not done yet.
// The watch carries it out.
func (r *Router) braked(s *situation, m *memory, v verdict) verdict {
	if !r.gated(s) || !m.gate.Braked(r.gateFacts(s, m, v, false)) {
		return v
	}
	v.braked = true
	if v.facts.Stable.Available <= 0 && v.facts.Canary.Available > 0 {
		return v // a sick canary is better than nobody
	}
	v.next = min(v.next, stableCannotTake(v.facts))
	return v
}

// gateAnswers are the answers while the gate holds, by what it last said.
func (r *Router) gateAnswers(s *situation, m *memory, v verdict, otherwise guard.Answers) guard.Answers {
	if !r.gated(s) {
		return otherwise
	}
	spent := v.held >= s.config.Guard.MaxHold
	return gate.Answers(v.facts, v.decision, otherwise, spent, s.steps.Place(v.decision.Desired), m.gated)
}

// verifyHealth is the last look of VerifyWeight: what is in effect has to be healthy,
// too. An error of what comes before is no way around the gate.
func (r *Router) verifyHealth(s *situation, m *memory, v verdict, found finding, err error) (finding, error) {
	if !r.gated(s) {
		return found, err
	}
	inEffect := found.verified && err == nil
	m.effective = gate.Stretch{}
	if inEffect {
		m.effective = s.stretch(m)
	}
	d := r.askGate(s, m, v, inEffect)
	if d.Verdict == gate.RollBack || d.Mark != nil || s.staleMark() {
		r.watch.queue.Add(s.ref.UID)
	}
	if d.Verdict != gate.Hold && d.Verdict != gate.RollBack {
		return found, err
	}
	otherwise := found.answers
	if err != nil {
		otherwise = guard.Answers{VerifyErr: err.Error()}
	}
	found.verified, found.answers = false, r.gateAnswers(s, m, v, otherwise)
	if found.again != nil {
		return found, nil
	}
	return found, errorOrNil(found.answers.VerifyErr)
}

// staleMark tells that the annotation speaks of a revision that is no canary any more:
// one that was superseded, promoted, or promoted in full by a person. Left behind, it
// would abort the same pod template, should it come again.
func (s *situation) staleMark() bool {
	return s.markOther || s.mark.Phase != "" && (s.status.canary == s.status.stable || s.promoteFull)
}

// askGate takes one look, asks what is to be asked, and tells what is new.
func (r *Router) askGate(s *situation, m *memory, v verdict, inEffect bool) gate.Decision {
	state, d := m.gate.Next(r.clock.Now(), r.gateFacts(s, m, v, inEffect))
	m.gate, m.gated = state, d
	if d.Verdict != gate.RollBack {
		m.rolledBack = ""
	}
	if d.Ask != nil {
		r.options.Health.Ask(*d.Ask)
	}
	if d.Again > 0 {
		r.watch.queue.AddAfter(s.ref.UID, d.Again)
	}
	r.reportGate(s, m, d)
	return d
}

// watchHealth looks between the calls, and carries a rollback out.
func (r *Router) watchHealth(ctx context.Context, s *situation, m *memory) (again time.Duration, err error) {
	if !r.gated(s) {
		return 0, nil
	}
	v := r.judge(s, m, m.desired)
	now := s.stretch(m)
	d := r.askGate(s, m, v, m.effective == now && now != (gate.Stretch{}) && (v.next == s.written || v.braked))
	switch {
	case d.Verdict == gate.RollBack && m.rolledBack == rolledBack(s, d):
		// Done; the controller is about to call with the aborted Rollout.
	case d.Verdict == gate.RollBack:
		if ours, err := r.stillOurs(ctx, s, m, false); err != nil || !ours {
			return notNow, err
		}
		err = r.rollBack(ctx, s, m, r.braked(s, m, v), d)
	case d.Mark != nil:
		err = r.mark(ctx, s, *d.Mark)
	case s.staleMark():
		err = r.mark(ctx, s, gate.Mark{})
	}
	if errors.Is(err, cluster.ErrSuperseded) {
		m.gate = gate.State{}
		return 0, nil
	}
	return 0, err
}

// rollBack takes all weight from the canary and aborts the Rollout. The mark that keeps
// it from being armed again comes first, but the weight does not wait for it; the watch
// comes back until all is done.
func (r *Router) rollBack(ctx context.Context, s *situation, m *memory, v verdict, d gate.Decision) error {
	failed := r.markFirst(ctx, s, *d.Mark)
	if errors.Is(failed, cluster.ErrSuperseded) {
		return failed
	}
	unwritten := r.writeRoutes(ctx, s, m, v.next)
	if err := r.cluster.AbortRollout(ctx, s.ref, s.status.canary); err != nil || unwritten != nil {
		return errors.Join(failed, unwritten, err)
	}
	if err := r.mark(ctx, s, gate.Mark{Phase: gate.Aborted, Text: d.Mark.Text}); err != nil {
		return errors.Join(failed, err)
	}
	r.reportRolledBack(s, m, d)
	return nil // the second mark has made good a first one that failed
}

func (r *Router) markFirst(ctx context.Context, s *situation, mark gate.Mark) error {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	return r.mark(ctx, s, mark)
}

// mark writes the annotation; the zero mark removes it.
func (r *Router) mark(ctx context.Context, s *situation, mark gate.Mark) error {
	value := ""
	if mark != (gate.Mark{}) {
		value = mark.Value(s.status.canary)
	}
	return r.cluster.MarkRollout(ctx, s.ref, s.status.canary, gate.Annotation, value)
}

// reportGate tells when a hold begins or changes its reason, and of each window that
// lets the canary go on.
func (r *Router) reportGate(s *situation, m *memory, d gate.Decision) {
	before := m.gateTold
	m.gateTold = d.Reason
	if d.Reason == before {
		return
	}
	switch {
	case d.Verdict == gate.Hold:
		warning := d.Reason == gate.ReasonUnhealthy || d.Reason == gate.ReasonSourceAway || d.Reason == gate.ReasonQueryFaulty
		r.cluster.Event(s.ref, warning, EventCanaryHeldByHealthGate, d.Message)
	case d.Verdict == gate.Pass:
		r.cluster.Event(s.ref, false, EventHealthGatePassed, d.Message)
	default:
		return
	}
	r.logFor(s).Info("health gate", "reason", d.Reason, "why", d.Message)
}

// rolledBack names one rollback.
func rolledBack(s *situation, d gate.Decision) string { return s.status.canary + " " + d.Message }

// reportRolledBack tells of a rollback that is done.
func (r *Router) reportRolledBack(s *situation, m *memory, d gate.Decision) {
	m.rolledBack = rolledBack(s, d)
	r.cluster.Event(s.ref, true, EventCanaryRolledBack, d.Message)
	r.logFor(s).Warn("canary rolled back", "revision", s.status.canary, "why", d.Message)
}
