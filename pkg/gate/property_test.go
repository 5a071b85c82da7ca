package gate_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
)

func anySide(t *rapid.T, name string) gate.Side {
	requests := rapid.Float64Range(0, 500).Draw(t, name+" requests")
	return gate.Side{
		Requests: requests, Errors: requests * rapid.Float64Range(0, 0.05).Draw(t, name+" failing"),
		LatencySum: rapid.Float64Range(0, 50000).Draw(t, name+" time"), LatencyCount: requests,
	}
}

func anyLimits(t *rapid.T) config.HealthGate {
	l := limits()
	l.MinRequests = rapid.Int64Range(1, 400).Draw(t, "minRequests")
	l.Max5xxPercent = rapid.SampledFrom([]float64{0, 0.5, 1, 5, 100}).Draw(t, "max5xxPercent")
	l.MaxLatencyFactor = rapid.SampledFrom([]float64{0, 1, 1.5, 3}).Draw(t, "maxLatencyFactor")
	l.MinLatencyIncrease = rapid.SampledFrom([]time.Duration{0, 10 * time.Millisecond}).Draw(t, "minLatencyIncrease")
	return l
}

func anyAnswer(t *rapid.T) gate.Answer {
	return gate.Answer{
		Question: gate.Question{CanaryOnly: rapid.Bool().Draw(t, "canaryOnly")},
		Numbers:  gate.Numbers{Canary: anySide(t, "canary"), Stable: anySide(t, "stable"), Known: true},
	}
}

func TestFewRequestsDecideNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, a := anyLimits(t), anyAnswer(t)
		few := rapid.Float64Range(0, float64(l.MinRequests)-0.001).Draw(t, "few")
		if a.Question.CanaryOnly || rapid.Bool().Draw(t, "of the canary") {
			a.Numbers.Canary.Requests = few
		} else {
			a.Numbers.Stable.Requests = few
		}
		if f := gate.Judge(l, a); f.Health != gate.Undecided {
			t.Fatalf("%+v is decided: %+v", a.Numbers, f)
		}
	})
}

func TestTheStablesFailuresNeverCountAgainstTheCanary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, a := anyLimits(t), anyAnswer(t)
		before := gate.Judge(l, a)
		a.Numbers.Stable.Errors += rapid.Float64Range(0, 500).Draw(t, "more errors")
		if after := gate.Judge(l, a); after.Health == gate.Unhealthy && before.Health != gate.Unhealthy {
			t.Fatalf("%+v becomes %+v", before, after)
		}
	})
}

func TestACanaryThatFailsMoreIsNeverHealthier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, a := anyLimits(t), anyAnswer(t)
		before := gate.Judge(l, a)
		a.Numbers.Canary.Errors += rapid.Float64Range(0, 500).Draw(t, "more errors")
		if after := gate.Judge(l, a); after.Health == gate.Healthy && before.Health != gate.Healthy {
			t.Fatalf("%+v becomes %+v", before, after)
		}
	})
}

func TestNoNumbersPanicOrPassWhereTheyAreNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) float64 { return rapid.Float64().Draw(t, name) }
		a := anyAnswer(t)
		a.Numbers.Canary = gate.Side{Requests: number("requests"), Errors: number("errors"), LatencySum: number("sum"), LatencyCount: number("count")}
		f := gate.Judge(anyLimits(t), a)
		if c := a.Numbers.Canary; f.Health == gate.Healthy && !(c.Requests > 0 && c.Errors >= 0 && c.LatencySum >= 0 && c.LatencyCount >= 0) {
			t.Fatalf("%+v is healthy", c)
		}
	})
}

// model is what the gate has to keep to, told from outside.
type model struct {
	inEffectSince time.Time
	stretch       gate.Stretch
	open          *gate.Question
	lastAsked     gate.Question
	// healthy is true once a healthy answer came about the present stretch, sick once one
	// about it was over a limit.
	healthy, sick bool
}

func (m *model) step(now time.Time, f gate.Facts) {
	if f.Stretch != m.stretch || !f.InEffect {
		*m = model{stretch: f.Stretch}
	}
	if f.InEffect && m.inEffectSince.IsZero() {
		m.inEffectSince = now
	}
}

// TestWhateverHappens plays any sequence of what can happen to one revision and holds the
// gate to its promises.
func TestWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := at25()
		f.Limits.OnUnhealthy = rapid.SampledFrom([]config.OnUnhealthy{config.Abort, config.HoldStep}).Draw(t, "onUnhealthy")
		var (
			state gate.State
			now   = begin
			m     model
		)
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(90*time.Second)).Draw(t, "time")))
			happen(t, &f, &m)
			m.step(now, f)
			var d gate.Decision
			state, d = state.Next(now, f)
			m.check(t, now, f, state, d)
			if d.Verdict == gate.RollBack {
				return // what follows is another test
			}
		}
	})
}

// happen changes one thing.
func happen(t *rapid.T, f *gate.Facts, m *model) {
	switch rapid.IntRange(0, 7).Draw(t, "what") {
	case 0:
		f.Stretch.Weight = rapid.SampledFrom([]int32{10, 25}).Draw(t, "weight")
		f.Desired = f.Stretch.Weight
	case 1:
		f.InEffect = rapid.Bool().Draw(t, "in effect")
	case 2:
		f.Place = rapid.SampledFrom([]gate.Place{gate.Between, gate.Step, gate.End}).Draw(t, "place")
	default:
		if m.open == nil {
			return
		}
		a := &gate.Answer{Question: *m.open, Numbers: fine()}
		switch rapid.IntRange(0, 3).Draw(t, "answer") {
		case 0:
			a.Numbers = sick()
		case 1:
			a.Numbers = gate.Numbers{Known: true}
		case 2:
			a.Err = errors.New("away")
		}
		f.Answer = a
	}
}

func (m *model) check(t *rapid.T, now time.Time, f gate.Facts, state gate.State, d gate.Decision) {
	if m.open != nil && f.Answer != nil && f.Answer.Question == *m.open && now.Sub(m.open.To) < 2*time.Minute {
		switch gate.Judge(f.Limits, *f.Answer).Health {
		case gate.Healthy:
			m.healthy, m.sick = true, false
		case gate.Unhealthy:
			m.healthy, m.sick = false, true
		}
		m.open = nil
	}
	if (d.Verdict == gate.Pass) != m.healthy {
		t.Fatalf("verdict %d (%s), but healthy is %t", d.Verdict, d.Message, m.healthy)
	}
	if back := m.sick && f.Limits.OnUnhealthy == config.Abort; (d.Verdict == gate.RollBack) != back || state.Braked(f) != back {
		t.Fatalf("verdict %d (%s), braked %t, but sick is %t", d.Verdict, d.Message, state.Braked(f), m.sick)
	}
	if d.Ask != nil {
		m.asks(t, now, f, *d.Ask)
	}
	if f.InEffect && d.Verdict != gate.RollBack && d.Again <= 0 {
		t.Fatalf("nobody looks again: %+v", d)
	}
}

// asks holds a question to what it may be about.
func (m *model) asks(t *rapid.T, now time.Time, f gate.Facts, q gate.Question) {
	switch {
	case !f.InEffect:
		t.Fatal("asked about a weight that is not in effect")
	case q.From.Before(m.inEffectSince):
		t.Fatalf("the window begins %s before the weight is in effect", m.inEffectSince.Sub(q.From))
	case q.To.After(now) || q.To.Sub(q.From) != f.Limits.Interval || q.Stretch != f.Stretch:
		t.Fatalf("the question at %s is %+v", now, q)
	case m.open != nil && now.Sub(m.open.To) < 2*time.Minute:
		t.Fatal("two questions are open")
	case q == m.lastAsked:
		t.Fatal("one window is asked about twice")
	}
	m.open, m.lastAsked = &q, q
}

// TestARollbackIsOneWay plays what can happen once a rollback was decided: restarts, lost
// writes, other weights. The canary gets nothing until the Rollout was aborted.
func TestARollbackIsOneWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := at25()
		mark := gate.Mark{Phase: gate.Aborting, Text: "rolled back from 25: 5xx 4.2 % over 1 %"}
		f.Mark = mark
		state, d := gate.State{}.Next(begin, f)
		now := begin
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Minute)).Draw(t, "time")))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				state, f.Mark = gate.State{}, mark // the process is a new one, the mark was written
			case 1:
				f.Stretch.Weight = rapid.SampledFrom([]int32{0, 25, 50}).Draw(t, "weight")
				f.Desired = max(1, f.Stretch.Weight)
			case 2:
				f.InEffect = rapid.Bool().Draw(t, "in effect")
			case 3:
				f.Answer = &gate.Answer{Numbers: fine()}
			}
			if state, d = state.Next(now, f); d.Verdict != gate.RollBack || !state.Braked(f) || d.Message != mark.Text {
				t.Fatalf("the rollback is forgotten: %+v", d)
			}
		}
		f.Aborted, f.Desired = true, 0
		if _, d = state.Next(now, f); d.Verdict != gate.Off || d.Mark == nil || *d.Mark != (gate.Mark{Phase: gate.Aborted, Text: mark.Text}) {
			t.Fatalf("after the abort: %+v", d)
		}
	})
}
