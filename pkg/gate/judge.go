package gate

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
)

// Health is what a window has shown.
type Health uint8

// The three that there are.
const (
	// Undecided is not enough to go by. The step waits, and nothing is taken back.
	Undecided Health = iota
	// Healthy lets the canary go on.
	Healthy
	// Unhealthy is over one of the limits.
	Unhealthy
)

// Finding is the result of one window.
type Finding struct {
	Health Health
	Reason Reason
	// Why says it with its numbers, as in "5xx 4.2 % over 1 %".
	Why string
}

// fewestErrors is how many failed requests it takes to call a canary sick: with few
// requests one alone may be more than the budget.
const fewestErrors = 2

// Judge judges one window. It rests on the canary alone where the question was about the
// canary alone.
//
// Too few requests on a side that was asked about decide nothing, whatever else the window
// shows. The stable's failures never count against the canary, and while the stable fails
// its latency is no measure: failing is often fast.
func Judge(limits config.HealthGate, a Answer) Finding {
	if a.Err != nil {
		return unanswered(a.Err)
	}
	for _, rule := range rules {
		if f, decided := rule(window{limits, a.Numbers, a.Question}); decided {
			return f
		}
	}
	return Finding{Health: Healthy, Reason: ReasonHealthy, Why: window{limits, a.Numbers, a.Question}.summary()}
}

func unanswered(err error) Finding {
	var faulty *QueryError
	if errors.As(err, &faulty) {
		return Finding{Reason: ReasonQueryFaulty, Why: err.Error()}
	}
	return Finding{Reason: ReasonSourceAway, Why: "the numbers cannot be had: " + err.Error()}
}

// window is what a rule looks at.
type window struct {
	limits  config.HealthGate
	numbers Numbers
	asked   Question
}

type rule func(window) (Finding, bool)

// rules in their order of precedence. Where none of them decides, the window is healthy.
var rules = []rule{noNumbers, notKnown, quietCanary, quietStable, tooManyErrors, noLatency, tooSlow}

// noNumbers catches what only a source at fault can say.
func noNumbers(w window) (Finding, bool) {
	sides := []string{"canary", "stable"}
	if w.asked.CanaryOnly {
		sides = sides[:1]
	}
	for _, side := range sides {
		if name, x := w.of(side).fault(); name != "" {
			return unanswered(&QueryError{Query: name, Side: side, Err: fmt.Errorf("%v is no amount", x)}), true
		}
	}
	return Finding{}, false
}

func (w window) of(side string) Side {
	if side == "stable" {
		return w.numbers.Stable
	}
	return w.numbers.Canary
}

// fault names the query whose number is none.
func (s Side) fault() (query string, number float64) {
	amount := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
	switch {
	case !amount(s.Requests):
		return "requests", s.Requests
	case !amount(s.Errors):
		return "errors", s.Errors
	case !amount(s.LatencySum):
		return "latencySum", s.LatencySum
	case !amount(s.LatencyCount):
		return "latencyCount", s.LatencyCount
	}
	return "", 0
}

func notKnown(w window) (Finding, bool) {
	return Finding{Reason: ReasonNotKnown,
		Why: "the source knew nothing about the service before the window, so what it counts may be older"}, !w.numbers.Known
}

func quietCanary(w window) (Finding, bool) { return w.quiet("canary", w.numbers.Canary) }

func quietStable(w window) (Finding, bool) {
	if w.asked.CanaryOnly {
		return Finding{}, false
	}
	return w.quiet("stable", w.numbers.Stable)
}

func (w window) quiet(side string, numbers Side) (Finding, bool) {
	if numbers.Requests >= float64(w.limits.MinRequests) {
		return Finding{}, false
	}
	return Finding{Reason: ReasonQuiet, Why: fmt.Sprintf("%.0f of at least %d requests on the %s in %s",
		math.Floor(numbers.Requests), w.limits.MinRequests, side, w.limits.Interval)}, true
}

func tooManyErrors(w window) (Finding, bool) {
	canary := w.numbers.Canary
	percent := canary.errorPercent()
	if percent <= w.limits.Max5xxPercent {
		return Finding{}, false
	}
	why := fmt.Sprintf("5xx %s %% over %s %%", over(percent, w.limits.Max5xxPercent), number(w.limits.Max5xxPercent))
	if math.Round(canary.Errors) < fewestErrors {
		return Finding{Reason: ReasonSingleError, Why: why + ", but by one request"}, true
	}
	return Finding{Health: Unhealthy, Reason: ReasonUnhealthy, Why: why}, true
}

// compares tells whether the two sides' latencies are held against each other.
func (w window) compares() bool {
	return w.limits.MaxLatencyFactor > 0 && !w.asked.CanaryOnly &&
		w.numbers.Stable.errorPercent() <= w.limits.Max5xxPercent
}

// noLatency keeps a metric that nobody scrapes from being taken for a fast canary.
func noLatency(w window) (Finding, bool) {
	if !w.compares() {
		return Finding{}, false
	}
	for _, side := range []string{"canary", "stable"} {
		if w.of(side).LatencyCount <= 0 {
			return Finding{Reason: ReasonNoLatency, Why: fmt.Sprintf(
				"there are requests on the %s, but no latencies: see to query latencyCount, or set maxLatencyFactor to 0", side)}, true
		}
	}
	return Finding{}, false
}

func tooSlow(w window) (Finding, bool) {
	if !w.compares() {
		return Finding{}, false
	}
	canary, stable := w.numbers.Canary.latency(), w.numbers.Stable.latency()
	least := float64(w.limits.MinLatencyIncrease) / float64(time.Millisecond)
	if canary <= w.limits.MaxLatencyFactor*stable || canary-stable <= least {
		return Finding{}, false
	}
	return Finding{Health: Unhealthy, Reason: ReasonUnhealthy, Why: fmt.Sprintf("mean latency %s ms over %s times the stable's %s ms",
		number(round(canary)), number(w.limits.MaxLatencyFactor), number(round(stable)))}, true
}

// summary is what a healthy window showed.
func (w window) summary() string {
	canary := w.numbers.Canary
	text := fmt.Sprintf("%.0f requests on the canary in %s, 5xx %s %%", math.Floor(canary.Requests), w.limits.Interval, number(round(canary.errorPercent())))
	if w.compares() {
		text += fmt.Sprintf(", mean latency %s ms against the stable's %s ms", number(round(canary.latency())), number(round(w.numbers.Stable.latency())))
	}
	return text
}

// errorPercent is 0 where there were no requests.
func (s Side) errorPercent() float64 {
	if s.Requests <= 0 {
		return 0
	}
	return 100 * s.Errors / s.Requests
}

// latency is the mean, in milliseconds; it means nothing without requests.
func (s Side) latency() float64 { return s.LatencySum / s.LatencyCount }

// round keeps one decimal.
func round(x float64) float64 { return math.Round(10*x) / 10 }

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// over writes a number that is over a limit so that it can be seen to be.
func over(x, limit float64) string {
	if short := round(x); short > limit {
		return number(short)
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}
