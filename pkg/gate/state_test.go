package gate_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
)

const (
	// spread is what the gate leaves to the proxies before a window of a minute, and to
	// what counts after it.
	spread = 6 * time.Second
	window = time.Minute
	// first is when the first window is asked about.
	first = spread + window + spread
)

// begin is when the stories begin.
var begin = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// at25 is a canary at a step of 25 of 100, with the weight in effect.
func at25() gate.Facts {
	return gate.Facts{
		Limits: limits(), Rollout: "uid", Namespace: "shop", Hash: "new", Stable: "old",
		Stretch:  gate.Stretch{Canary: "new", Stable: "old", Weight: 25, Max: 100},
		InEffect: true, Desired: 25, Place: gate.Step,
	}
}

// story plays one Rollout.
type story struct {
	t     *testing.T
	now   time.Time
	facts gate.Facts
	state gate.State
	asked *gate.Question
}

func newStory(t *testing.T) *story { return &story{t: t, now: begin, facts: at25()} }

// look takes one look.
func (s *story) look() gate.Decision {
	s.t.Helper()
	var d gate.Decision
	s.state, d = s.state.Next(s.now, s.facts)
	if d.Ask != nil {
		s.asked = d.Ask
	}
	return d
}

// after lets time go by, and looks.
func (s *story) after(d time.Duration) gate.Decision {
	s.t.Helper()
	s.now = s.now.Add(d)
	return s.look()
}

// answered gives the numbers for what was asked last, and looks.
func (s *story) answered(n gate.Numbers, err error) gate.Decision {
	s.t.Helper()
	if s.asked == nil {
		s.t.Fatal("nothing was asked")
	}
	s.facts.Answer = &gate.Answer{Question: *s.asked, Numbers: n, Err: err}
	return s.look()
}

// passed plays a first healthy window.
func (s *story) passed() gate.Decision {
	s.t.Helper()
	s.look()
	s.after(first)
	return s.answered(fine(), nil)
}

func (s *story) expect(d gate.Decision, verdict gate.Verdict, reason gate.Reason) {
	s.t.Helper()
	if d.Verdict != verdict || d.Reason != reason {
		s.t.Fatalf("verdict %d for %s (%s), want %d for %s", d.Verdict, d.Reason, d.Message, verdict, reason)
	}
}

func sick() gate.Numbers {
	n := fine()
	n.Canary = sideOf(1000, 42, 30)
	return n
}

func TestTheFirstWindowIsAskedForOnceAndThenTheStepPasses(t *testing.T) {
	s := newStory(t)
	d := s.look()
	s.expect(d, gate.Hold, gate.ReasonWindowOpen)
	if want := "health gate: the first window at 25 of 100 is over 1m6s after 2026-11-30T09:00:00Z"; d.Message != want {
		t.Errorf("it says %q, want %q", d.Message, want)
	}
	if d.Again != first || d.Ask != nil {
		t.Errorf("look again after %s (asked: %v), want %s", d.Again, d.Ask, first)
	}
	if d := s.after(first - time.Millisecond); d.Ask != nil || d.Again != time.Millisecond {
		t.Errorf("a moment too early: asked %v, again after %s", d.Ask, d.Again)
	}
	d = s.after(time.Millisecond)
	want := &gate.Question{
		Rollout: "uid", Namespace: "shop", Stretch: s.facts.Stretch, Latency: true, Provider: limits().Prometheus,
		From: begin.Add(spread), To: begin.Add(spread + window),
	}
	if diff := cmp.Diff(want, d.Ask); diff != "" {
		t.Fatalf("question (-want +got):\n%s", diff)
	}
	if d := s.after(time.Second); d.Ask != nil {
		t.Error("it is asked twice")
	}
	d = s.answered(fine(), nil)
	s.expect(d, gate.Pass, gate.ReasonHealthy)
	if d.Again != window-time.Second {
		t.Errorf("the next window is over after %s", d.Again)
	}
	if d := s.after(window - time.Second); d.Ask == nil || !d.Ask.From.Equal(want.To) {
		t.Errorf("the next window is %+v, want one that begins where the first ended", d.Ask)
	}
}

func TestAWeightThatChangesBeginsANewWindow(t *testing.T) {
	for sentence, change := range map[string]func(*gate.Facts){
		"the weight":             func(f *gate.Facts) { f.Stretch.Weight, f.Desired = 50, 50 },
		"the canary":             func(f *gate.Facts) { f.Stretch.Canary, f.Hash = "newer", "newer" },
		"the stable":             func(f *gate.Facts) { f.Stretch.Stable, f.Stable = "older", "older" },
		"the limits":             func(f *gate.Facts) { f.Limits.MinRequests = 1 },
		"it is not in effect":    func(f *gate.Facts) { f.InEffect = false },
		"a rollback in a window": func(f *gate.Facts) { f.OwnOnly = true },
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newStory(t)
			s.passed()
			before := s.facts
			change(&s.facts)
			if d := s.after(time.Second); d.Verdict == gate.Pass {
				t.Fatal("what was seen before counts for what is now")
			}
			s.facts = before
			d := s.after(time.Second)
			s.expect(d, gate.Hold, gate.ReasonWindowOpen)
			if d := s.after(first - time.Millisecond); d.Ask != nil {
				t.Error("the window begins before the weight is back in effect")
			}
		})
	}
}

func TestAnAnswerToAnotherQuestionCountsForNothing(t *testing.T) {
	s := newStory(t)
	s.look()
	s.after(first)
	asked := *s.asked
	s.facts.Stretch.Weight, s.facts.Desired = 50, 50
	s.after(time.Second)
	s.after(first)
	s.facts.Answer = &gate.Answer{Question: asked, Numbers: fine()}
	s.expect(s.look(), gate.Hold, gate.ReasonWindowOpen)
	s.facts.Answer = &gate.Answer{Question: asked, Numbers: sick()}
	s.expect(s.look(), gate.Hold, gate.ReasonWindowOpen)
}

func TestASickCanaryIsRolledBackUntilTheRolloutIsAborted(t *testing.T) {
	s := newStory(t)
	s.look()
	s.after(first)
	d := s.answered(sick(), nil)
	const text = "rolled back from 25: 5xx 4.2 % over 1 %"
	want := gate.Decision{Verdict: gate.RollBack, Reason: gate.ReasonUnhealthy, Message: text, Mark: &gate.Mark{Phase: gate.Aborting, Text: text}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Fatalf("decision (-want +got):\n%s", diff)
	}
	t.Run("the weight is 0 by now, and it is still to be done", func(t *testing.T) {
		s.facts.Stretch.Weight, s.facts.InEffect = 0, false
		if diff := cmp.Diff(want, s.after(time.Second)); diff != "" {
			t.Fatalf("decision (-want +got):\n%s", diff)
		}
		if !s.state.Braked(s.facts) {
			t.Error("the canary may have its weight back")
		}
	})
	t.Run("a new process finds the mark and finishes", func(t *testing.T) {
		f := s.facts
		f.Mark = gate.Mark{Phase: gate.Aborting, Text: text}
		if !(gate.State{}).Braked(f) {
			t.Error("the canary may have its weight back")
		}
		if _, d := (gate.State{}).Next(s.now, f); !cmp.Equal(want, d) {
			t.Errorf("decision (-want +got):\n%s", cmp.Diff(want, d))
		}
	})
	t.Run("aborted: the mark says so, and the gate is off", func(t *testing.T) {
		f := s.facts
		f.Aborted, f.Desired, f.Mark = true, 0, gate.Mark{Phase: gate.Aborting, Text: text}
		state, d := s.state.Next(s.now, f)
		s.expect(d, gate.Off, gate.ReasonAborted)
		if diff := cmp.Diff(&gate.Mark{Phase: gate.Aborted, Text: text}, d.Mark); diff != "" {
			t.Errorf("mark (-want +got):\n%s", diff)
		}
		if state.Braked(f) {
			t.Error("an aborted Rollout is the controller's")
		}
	})
	t.Run("aborted, and the first mark could not be written", func(t *testing.T) {
		f := s.facts
		f.Aborted, f.Desired = true, 0
		_, d := s.state.Next(s.now, f)
		if diff := cmp.Diff(&gate.Mark{Phase: gate.Aborted, Text: text}, d.Mark); diff != "" {
			t.Errorf("mark (-want +got):\n%s", diff)
		}
	})
	t.Run("aborted and marked: nothing is left to do", func(t *testing.T) {
		f := s.facts
		f.Aborted, f.Desired, f.Mark = true, 0, gate.Mark{Phase: gate.Aborted, Text: text}
		if _, d := s.state.Next(s.now, f); d.Mark != nil {
			t.Errorf("the mark is to be %+v", d.Mark)
		}
	})
	t.Run("a new revision has nothing to do with it", func(t *testing.T) {
		f := s.facts
		f.Hash, f.Stretch.Canary = "newer", "newer"
		state, d := s.state.Next(s.now, f)
		s.expect(d, gate.Hold, gate.ReasonNotInEffect)
		if state.Braked(f) {
			t.Error("the new canary gets no weight")
		}
	})
}

func TestARetryByAPersonBeginsAnewAndTakesTheMarkAway(t *testing.T) {
	s := newStory(t)
	s.facts.Mark = gate.Mark{Phase: gate.Aborted, Text: "rolled back from 25: 5xx 4.2 % over 1 %"}
	d := s.look()
	s.expect(d, gate.Hold, gate.ReasonWindowOpen)
	if diff := cmp.Diff(&gate.Mark{}, d.Mark); diff != "" {
		t.Errorf("mark (-want +got):\n%s", diff)
	}
	if s.state.Braked(s.facts) {
		t.Error("the canary gets no weight")
	}
}

func TestWhatDecidesNothingHoldsAndIsAskedAgain(t *testing.T) {
	quiet := fine()
	quiet.Canary = sideOf(3, 3, 30)
	for sentence, tc := range map[string]struct {
		numbers gate.Numbers
		err     error
		reason  gate.Reason
		again   time.Duration
	}{
		"a quiet service":      {quiet, nil, gate.ReasonQuiet, window},
		"no answer":            {gate.Numbers{}, errors.New("connection refused"), gate.ReasonSourceAway, 10 * time.Second},
		"a query at fault":     {gate.Numbers{}, &gate.QueryError{Query: "errors", Err: errors.New("parse error")}, gate.ReasonQueryFaulty, 10 * time.Second},
		"numbers that are new": {gate.Numbers{Canary: fine().Canary, Stable: fine().Stable}, nil, gate.ReasonNotKnown, window},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newStory(t)
			s.look()
			s.after(first)
			d := s.answered(tc.numbers, tc.err)
			s.expect(d, gate.Hold, tc.reason)
			if d.Again != tc.again {
				t.Errorf("again after %s, want %s", d.Again, tc.again)
			}
			if d := s.after(tc.again - time.Millisecond); d.Ask != nil {
				t.Error("it is asked again too early")
			}
			if d := s.after(time.Millisecond); d.Ask == nil || d.Ask.To.Sub(d.Ask.From) != window {
				t.Errorf("the next question is %+v", d.Ask)
			}
			s.expect(s.answered(fine(), nil), gate.Pass, gate.ReasonHealthy)
		})
	}
}

func TestAStepThatHasPassedStaysPassedUntilTheCanaryIsSick(t *testing.T) {
	s := newStory(t)
	s.passed()
	s.after(window)
	s.expect(s.answered(gate.Numbers{}, errors.New("away")), gate.Pass, gate.ReasonHealthy)
	s.after(window)
	s.expect(s.answered(sick(), nil), gate.RollBack, gate.ReasonUnhealthy)
}

func TestWithHoldASickCanaryWaitsAndGoesOnWhenItIsWell(t *testing.T) {
	s := newStory(t)
	s.facts.Limits.OnUnhealthy = config.HoldStep
	s.passed()
	s.after(window)
	d := s.answered(sick(), nil)
	s.expect(d, gate.Hold, gate.ReasonUnhealthy)
	if want := "health gate: 5xx 4.2 % over 1 %"; d.Message != want || d.Mark != nil {
		t.Errorf("it says %q and marks %v, want %q", d.Message, d.Mark, want)
	}
	s.after(window)
	s.expect(s.answered(fine(), nil), gate.Pass, gate.ReasonHealthy)
}

func TestARollbackWithinRollbackWindowIsJudgedAloneAndNeverPulledBack(t *testing.T) {
	s := newStory(t)
	s.facts.OwnOnly, s.facts.Place, s.facts.Desired, s.facts.Stretch.Weight = true, gate.End, 100, 100
	s.facts.Mark = gate.Mark{Phase: gate.Aborting, Text: "of a time before"}
	d := s.look()
	s.expect(d, gate.Hold, gate.ReasonWindowOpen)
	if diff := cmp.Diff(&gate.Mark{}, d.Mark); diff != "" || s.state.Braked(s.facts) {
		t.Errorf("mark (-want +got):\n%s", diff)
	}
	s.facts.Mark = gate.Mark{}
	s.after(first)
	if !s.asked.CanaryOnly {
		t.Error("the stable is asked about")
	}
	d = s.answered(sick(), nil)
	s.expect(d, gate.Hold, gate.ReasonUnhealthy)
	if want := "health gate: 5xx 4.2 % over 1 %; the controller would take back an abort within rollbackWindow, so the canary keeps its weight and is not promoted"; d.Message != want {
		t.Errorf("it says %q, want %q", d.Message, want)
	}
	s.after(window)
	s.expect(s.answered(fine(), nil), gate.Pass, gate.ReasonHealthy)
}

func TestAllOfTheTrafficLeavesNothingToCompareWith(t *testing.T) {
	s := newStory(t)
	s.facts.Stretch.Weight, s.facts.Desired, s.facts.Place = 100, 100, gate.End
	s.look()
	s.after(first)
	if !s.asked.CanaryOnly {
		t.Error("the stable is asked about, and gets nothing")
	}
}

func TestBetweenTheStepsTheCanaryIsWatched(t *testing.T) {
	s := newStory(t)
	s.facts.Place = gate.Between
	s.expect(s.look(), gate.Watching, gate.ReasonWindowOpen)
	s.after(first)
	s.expect(s.answered(sick(), nil), gate.RollBack, gate.ReasonUnhealthy)
}

func TestTheGateIsOff(t *testing.T) {
	for sentence, tc := range map[string]struct {
		change func(*gate.Facts)
		reason gate.Reason
	}{
		"under an operator's brake":      {func(f *gate.Facts) { f.Pinned = true }, gate.ReasonPinned},
		"when a person promotes in full": {func(f *gate.Facts) { f.PromoteFull = true }, gate.ReasonPromoteFull},
		"when the Rollout is aborted":    {func(f *gate.Facts) { f.Aborted = true }, gate.ReasonAborted},
		"when the canary is the stable":  {func(f *gate.Facts) { f.Hash = f.Stable }, gate.ReasonOneRevision},
		"at the first deployment":        {func(f *gate.Facts) { f.Stable = "" }, gate.ReasonOneRevision},
		"without a canary":               {func(f *gate.Facts) { f.Hash = "" }, gate.ReasonOneRevision},
		"when no traffic is asked for":   {func(f *gate.Facts) { f.Desired = 0 }, gate.ReasonNoTraffic},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newStory(t)
			s.passed()
			s.after(window)
			s.facts.Mark = gate.Mark{Phase: gate.Aborting, Text: "why"}
			tc.change(&s.facts)
			d := s.answered(sick(), nil)
			s.expect(d, gate.Off, tc.reason)
			if d.Ask != nil || d.Again != 0 || s.state.Braked(s.facts) {
				t.Errorf("it asks %v, looks again after %s, brakes: %t", d.Ask, d.Again, s.state.Braked(s.facts))
			}
			if !s.facts.Aborted && d.Mark != nil {
				t.Errorf("it writes %+v", d.Mark)
			}
		})
	}
}

func TestABrakeThatIsTakenOffLetsARollbackGoOn(t *testing.T) {
	s := newStory(t)
	s.look()
	s.after(first)
	s.answered(sick(), nil)
	s.facts.Pinned = true
	s.expect(s.after(time.Second), gate.Off, gate.ReasonPinned)
	s.facts.Pinned = false
	s.expect(s.after(time.Second), gate.RollBack, gate.ReasonUnhealthy)
}

func TestAWeightThatThePodsCannotTakeIsNotInEffect(t *testing.T) {
	s := newStory(t)
	s.facts.InEffect, s.facts.Stretch.Weight = false, 10
	d := s.look()
	s.expect(d, gate.Hold, gate.ReasonNotInEffect)
	if d.Again != 0 || d.Ask != nil {
		t.Errorf("it looks again after %s and asks %v", d.Again, d.Ask)
	}
	if want := "health gate: 25 of 100 is not in effect yet"; d.Message != want {
		t.Errorf("it says %q, want %q", d.Message, want)
	}
}

func TestAnAnswerThatNeverComesIsAskedForAnew(t *testing.T) {
	s := newStory(t)
	s.look()
	d := s.after(first)
	before := *d.Ask
	if d.Again != 2*time.Minute-spread {
		t.Errorf("again after %s", d.Again)
	}
	if d := s.after(2*time.Minute - spread - time.Millisecond); d.Ask != nil {
		t.Error("it is asked again while the answer may come")
	}
	if d := s.after(time.Millisecond); d.Ask == nil || *d.Ask == before {
		t.Errorf("the next question is %+v", d.Ask)
	}
}

func TestAShortIntervalHasAShortSpreadAndRetry(t *testing.T) {
	s := newStory(t)
	s.facts.Limits.Interval = 5 * time.Second
	s.look()
	if d := s.after(7 * time.Second); d.Ask == nil {
		t.Fatal("nothing is asked after the interval and two seconds")
	}
	if d := s.answered(gate.Numbers{}, errors.New("away")); d.Again != 5*time.Second {
		t.Errorf("again after %s", d.Again)
	}
}

func TestALongIntervalHasABoundedSpread(t *testing.T) {
	s := newStory(t)
	s.facts.Limits.Interval = time.Hour
	if d := s.look(); d.Again != time.Hour+20*time.Second {
		t.Errorf("again after %s", d.Again)
	}
}
