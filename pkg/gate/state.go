package gate

import (
	"fmt"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
)

// Verdict is what the gate says.
type Verdict uint8

// The verdicts.
const (
	// Off: there is nothing to say, and the answers are as without a gate.
	Off Verdict = iota
	// Watching: the canary is judged, and no step waits for it.
	Watching
	// Hold: the step waits.
	Hold
	// Pass: a window was healthy.
	Pass
	// RollBack: the canary is sick, and is to be pulled back.
	RollBack
)

// Reason is a stable code, for telling whether there is something new to say.
type Reason string

// The reasons.
const (
	// ReasonPinned to ReasonFirst: the gate is off.
	ReasonPinned      Reason = "Pinned"
	ReasonAborted     Reason = "Aborted"
	ReasonPromoteFull Reason = "PromoteFull"
	ReasonNoTraffic   Reason = "NoTraffic"
	ReasonOneRevision Reason = "OneRevision"
	// ReasonNotInEffect: the weight is not written, or not in the mesh yet.
	ReasonNotInEffect Reason = "NotInEffect"
	// ReasonWindowOpen: the first window is not over.
	ReasonWindowOpen Reason = "WindowOpen"
	// ReasonNotKnown to ReasonNoLatency: the last window decides nothing.
	ReasonNotKnown    Reason = "NotKnown"
	ReasonQuiet       Reason = "Quiet"
	ReasonSingleError Reason = "SingleError"
	ReasonNoLatency   Reason = "NoLatency"
	// ReasonSourceAway and ReasonQueryFaulty: there is no answer.
	ReasonSourceAway  Reason = "SourceAway"
	ReasonQueryFaulty Reason = "QueryFaulty"
	// ReasonHealthy and ReasonUnhealthy: the last window decides.
	ReasonHealthy   Reason = "Healthy"
	ReasonUnhealthy Reason = "Unhealthy"
)

const (
	// retryAfter is when to ask again after no answer; a shorter interval counts first.
	retryAfter = 10 * time.Second
	// lostAfter is when an answer that has not come never will: a source bounds each
	// question far below.
	lostAfter = 2 * time.Minute
	// spreadLeast and spreadMost bound two waits of a tenth of the interval. One is after
	// a weight is in effect, before its first window: proxies hear of it one after the
	// other, and requests that were routed before still end. The other is after a window,
	// before the question about it: what was counted in it is still being gathered, and
	// the queries of one question have to see the same.
	spreadLeast, spreadMost = time.Second, 10 * time.Second
)

// Decision is what is to be done now. Everything in it is said anew each time.
type Decision struct {
	Verdict Verdict
	Reason  Reason
	// Message is for people: a sentence with its numbers. Of a rollback it is what the
	// Event and the annotation say.
	Message string
	// Ask is a question to ask now, nil for none. There is one for each window.
	Ask *Question
	// Again is when to look anew, 0 for not before something changes.
	Again time.Duration
	// Mark is what the annotation has to say, nil when it is right: of a RollBack before
	// the abort, of an aborted Rollout afterwards. The zero Mark says that a person has
	// retried, and the annotation goes.
	Mark *Mark
}

// State is what is remembered of one Rollout between calls. The zero value knows nothing,
// as a new process does: it waits for a whole window. It is a value; Next returns the next
// one.
type State struct {
	key key
	// since is when the stretch came into effect, zero if it is not.
	since time.Time
	// asked is the last question, waiting tells that its answer has not come.
	asked   Question
	waiting bool
	// due is when to ask next at the earliest.
	due time.Time
	// passed is true once a window of this stretch was healthy, until one is not.
	passed bool
	// finding is that of the last window; it has no reason before the first.
	finding Finding
	// begun is a rollback that was decided and has not been seen done.
	begun begun
}

// key is what a window belongs to.
type key struct {
	stretch Stretch
	limits  config.HealthGate
	ownOnly bool
}

type begun struct{ hash, text string }

// Next takes one look. now must not go back.
func (s State) Next(now time.Time, f Facts) (State, Decision) {
	// The second mark is written after the abort: who shows it and is not aborted any
	// more has been retried by a person.
	if s.begun.hash != f.Hash || f.Mark == (Mark{Aborted, s.begun.text}) {
		s.begun = begun{}
	}
	if reason := f.off(); reason != "" {
		mark := s.toFinish(f)
		if reason == ReasonAborted {
			s.begun = begun{}
		}
		return State{begun: s.begun}, Decision{Verdict: Off, Reason: reason, Mark: mark}
	}
	if text := s.rollingBack(f); text != "" {
		s.begun = begun{f.Hash, text}
		return s, rollBack(text)
	}
	s = s.follow(now, f).take(now, f)
	if s.finding.Health == Unhealthy && s.aborts(f) {
		s.begun = begun{f.Hash, fmt.Sprintf("rolled back from %d: %s", f.Stretch.Weight, s.finding.Why)}
		return s, rollBack(s.begun.text)
	}
	d := s.decision(now, f)
	if f.Mark.Phase != "" {
		d.Mark = &Mark{} // aborted once and not any more, or never to be
	}
	d.Ask, s = s.ask(now, f)
	d.Again = s.again(now, f)
	return s, d
}

// Braked tells whether the canary is to have no weight: a rollback was decided, by this
// process or another, and the Rollout is not aborted yet.
func (s State) Braked(f Facts) bool { return f.off() == "" && s.rollingBack(f) != "" }

// off is why the gate has nothing to say, "" if it has.
func (f Facts) off() Reason {
	switch {
	case f.Aborted:
		return ReasonAborted
	case f.Pinned:
		return ReasonPinned
	case f.PromoteFull:
		return ReasonPromoteFull
	case f.Hash == "" || f.Stable == "" || f.Hash == f.Stable:
		return ReasonOneRevision
	case f.Desired <= 0:
		return ReasonNoTraffic
	}
	return ""
}

// toFinish is the mark that an aborted Rollout still needs.
func (s State) toFinish(f Facts) *Mark {
	switch {
	case !f.Aborted:
		return nil
	case f.Mark.Phase == Aborting:
		return &Mark{Aborted, f.Mark.Text}
	case f.Mark.Phase == "" && s.begun.text != "":
		return &Mark{Aborted, s.begun.text}
	}
	return nil
}

// rollingBack is the text of a rollback that was begun and is not done, "" for none. A
// rollback within rollbackWindow is never pulled back: the controller itself takes back
// what aborts one, and promotes.
func (s State) rollingBack(f Facts) string {
	switch {
	case f.OwnOnly:
		return ""
	case s.begun.hash == f.Hash && s.begun.text != "":
		return s.begun.text
	case f.Mark.Phase == Aborting && f.Mark.Text == "":
		return "rolled back"
	case f.Mark.Phase == Aborting:
		return f.Mark.Text
	}
	return ""
}

func rollBack(text string) Decision {
	return Decision{Verdict: RollBack, Reason: ReasonUnhealthy, Message: text, Mark: &Mark{Aborting, text}}
}

func (s State) aborts(f Facts) bool { return f.Limits.OnUnhealthy == config.Abort && !f.OwnOnly }

// follow begins anew when anything has changed, or is not in effect.
func (s State) follow(now time.Time, f Facts) State {
	k := key{f.Stretch, f.Limits, f.OwnOnly}
	if k != s.key || !f.InEffect {
		s = State{key: k, begun: s.begun}
	}
	if f.InEffect && s.since.IsZero() {
		s.since = now
	}
	return s
}

// take takes in the answer, if it is to the question that was asked last.
func (s State) take(now time.Time, f Facts) State {
	if s.waiting && now.Sub(s.asked.To) >= lostAfter {
		s.waiting = false
	}
	if !s.waiting || f.Answer == nil || f.Answer.Question != s.asked {
		return s
	}
	s.waiting = false
	s.finding = Judge(f.Limits, *f.Answer)
	s.due = s.asked.To.Add(f.Limits.Interval + spread(f))
	if f.Answer.Err != nil {
		s.due = now.Add(min(retryAfter, f.Limits.Interval))
	}
	switch s.finding.Health {
	case Healthy:
		s.passed = true
	case Unhealthy:
		s.passed = false
	}
	return s
}

func (s State) decision(now time.Time, f Facts) Decision {
	if s.passed {
		return Decision{Verdict: Pass, Reason: ReasonHealthy, Message: "health gate: " + s.finding.Why}
	}
	d := Decision{Verdict: Hold, Reason: s.finding.Reason, Message: s.finding.Why}
	switch {
	case !f.InEffect:
		d.Reason, d.Message = ReasonNotInEffect, fmt.Sprintf("%d of %d is not in effect yet", f.Desired, f.Stretch.Max)
	case d.Reason == "":
		d.Reason, d.Message = ReasonWindowOpen, fmt.Sprintf("the first window at %d of %d is over %s after %s",
			f.Stretch.Weight, f.Stretch.Max, s.firstEnd(f).Sub(s.since), s.since.UTC().Format(time.RFC3339))
	case s.finding.Health == Unhealthy && f.OwnOnly:
		d.Message += "; the controller would take back an abort within rollbackWindow, so the canary keeps its weight and is not promoted"
	}
	d.Message = "health gate: " + d.Message
	if f.Place == Between {
		d.Verdict = Watching
	}
	return d
}

func spread(f Facts) time.Duration {
	return max(spreadLeast, min(f.Limits.Interval/10, spreadMost))
}

// firstEnd is when the first window of the stretch is over.
func (s State) firstEnd(f Facts) time.Time { return s.since.Add(spread(f) + f.Limits.Interval) }

// nextAsk is when the next question is due.
func (s State) nextAsk(f Facts) time.Time {
	if first := s.firstEnd(f).Add(spread(f)); s.due.Before(first) {
		return first
	}
	return s.due
}

func (s State) ask(now time.Time, f Facts) (*Question, State) {
	if !f.InEffect || s.waiting || now.Before(s.nextAsk(f)) {
		return nil, s
	}
	to := now.Add(-spread(f)).UTC().Round(0).Truncate(time.Millisecond)
	s.waiting = true
	s.asked = Question{
		Rollout: f.Rollout, Namespace: f.Namespace, Hosts: f.Hosts, Stretch: f.Stretch,
		CanaryOnly: f.OwnOnly || f.Stretch.whole(), Latency: f.Limits.MaxLatencyFactor > 0,
		Provider: f.Limits.Prometheus, From: to.Add(-f.Limits.Interval), To: to,
	}
	question := s.asked
	return &question, s
}

// again is when there will be something to do although nothing else happens.
func (s State) again(now time.Time, f Facts) time.Duration {
	switch {
	case !f.InEffect:
		return 0
	case s.waiting:
		return s.asked.To.Add(lostAfter).Sub(now)
	}
	return max(time.Millisecond, s.nextAsk(f).Sub(now))
}
