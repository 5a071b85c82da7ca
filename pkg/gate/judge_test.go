package gate_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
)

// limits are the defaults.
func limits() config.HealthGate {
	return config.HealthGate{
		Prometheus: config.Prometheus{Address: "http://prometheus:9090", Reporter: config.Destination, HashLabel: config.DefaultHashLabel},
		Interval:   time.Minute, MinRequests: 50, Max5xxPercent: 1, MaxLatencyFactor: 1.5,
		MinLatencyIncrease: 10 * time.Millisecond, OnUnhealthy: config.Abort,
	}
}

// sideOf has requests of a mean latency, so many of which failed.
func sideOf(requests, errors, milliseconds float64) gate.Side {
	return gate.Side{Requests: requests, Errors: errors, LatencySum: requests * milliseconds, LatencyCount: requests}
}

// fine are numbers of a healthy window.
func fine() gate.Numbers {
	return gate.Numbers{Canary: sideOf(200, 0, 30), Stable: sideOf(1800, 2, 30), Known: true}
}

func TestJudge(t *testing.T) {
	undecided := func(reason gate.Reason, why string) gate.Finding { return gate.Finding{Reason: reason, Why: why} }
	unhealthy := func(why string) gate.Finding {
		return gate.Finding{Health: gate.Unhealthy, Reason: gate.ReasonUnhealthy, Why: why}
	}
	healthy := func(why string) gate.Finding {
		return gate.Finding{Health: gate.Healthy, Reason: gate.ReasonHealthy, Why: why}
	}
	const compared = "200 requests on the canary in 1m0s, 5xx 0 %, mean latency 30 ms against the stable's 30 ms"
	for sentence, tc := range map[string]struct {
		limits func(*config.HealthGate)
		change func(*gate.Answer)
		want   gate.Finding
	}{
		"both sides are well": {want: healthy(compared)},
		"the canary fails more often than it may": {
			change: func(a *gate.Answer) { a.Numbers.Canary = sideOf(1000, 42, 30) },
			want:   unhealthy("5xx 4.2 % over 1 %"),
		},
		"the canary fails exactly as often as it may": {
			change: func(a *gate.Answer) { a.Numbers.Canary = sideOf(200, 2, 30) },
			want:   healthy("200 requests on the canary in 1m0s, 5xx 1 %, mean latency 30 ms against the stable's 30 ms"),
		},
		"the canary is over its budget by a hair: the number shows it": {
			change: func(a *gate.Answer) { a.Numbers.Canary = sideOf(100000, 1001, 30) },
			want:   unhealthy("5xx 1.001 % over 1 %"),
		},
		"no failure at all is allowed, and there are two": {
			limits: func(l *config.HealthGate) { l.Max5xxPercent = 0 },
			change: func(a *gate.Answer) { a.Numbers.Canary = sideOf(200, 2, 30) },
			want:   unhealthy("5xx 1 % over 0 %"),
		},
		"one failed request of fifty is over the budget, and says nothing": {
			change: func(a *gate.Answer) { a.Numbers.Canary = sideOf(50, 1, 30) },
			want:   undecided(gate.ReasonSingleError, "5xx 2 % over 1 %, but by one request"),
		},
		"the canary had too few requests": {
			change: func(a *gate.Answer) { a.Numbers.Canary = sideOf(49.9, 0, 30) },
			want:   undecided(gate.ReasonQuiet, "49 of at least 50 requests on the canary in 1m0s"),
		},
		"the canary had no request": {
			change: func(a *gate.Answer) { a.Numbers.Canary = gate.Side{} },
			want:   undecided(gate.ReasonQuiet, "0 of at least 50 requests on the canary in 1m0s"),
		},
		"the stable had too few requests": {
			change: func(a *gate.Answer) { a.Numbers.Stable = sideOf(12, 0, 30) },
			want:   undecided(gate.ReasonQuiet, "12 of at least 50 requests on the stable in 1m0s"),
		},
		"all of the few requests failed: a quiet canary is not a sick one": {
			change: func(a *gate.Answer) { a.Numbers.Canary = sideOf(49, 49, 30) },
			want:   undecided(gate.ReasonQuiet, "49 of at least 50 requests on the canary in 1m0s"),
		},
		"the stable fails while the canary is fine: the canary goes forward": {
			change: func(a *gate.Answer) { a.Numbers.Stable = sideOf(1800, 900, 30) },
			want:   healthy("200 requests on the canary in 1m0s, 5xx 0 %"),
		},
		"the stable fails fast, so its latency is no measure for the canary": {
			change: func(a *gate.Answer) { a.Numbers.Stable = sideOf(1800, 1800, 0.2) },
			want:   healthy("200 requests on the canary in 1m0s, 5xx 0 %"),
		},
		"both sides fail: the canary is over its own budget": {
			change: func(a *gate.Answer) {
				a.Numbers.Canary, a.Numbers.Stable = sideOf(200, 100, 30), sideOf(1800, 900, 30)
			},
			want: unhealthy("5xx 50 % over 1 %"),
		},
		"the canary is slow": {
			change: func(a *gate.Answer) { a.Numbers.Canary = sideOf(200, 0, 130.04) },
			want:   unhealthy("mean latency 130 ms over 1.5 times the stable's 30 ms"),
		},
		"the canary is exactly as slow as it may be": {
			change: func(a *gate.Answer) { a.Numbers.Canary = sideOf(200, 0, 45) },
			want:   healthy("200 requests on the canary in 1m0s, 5xx 0 %, mean latency 45 ms against the stable's 30 ms"),
		},
		"the canary is twice as slow, which nobody notices at 1 ms": {
			change: func(a *gate.Answer) {
				a.Numbers.Canary, a.Numbers.Stable = sideOf(200, 0, 2), sideOf(1800, 0, 1)
			},
			want: healthy("200 requests on the canary in 1m0s, 5xx 0 %, mean latency 2 ms against the stable's 1 ms"),
		},
		"latency is not judged": {
			limits: func(l *config.HealthGate) { l.MaxLatencyFactor = 0 },
			change: func(a *gate.Answer) { a.Numbers.Canary = gate.Side{Requests: 200} },
			want:   healthy("200 requests on the canary in 1m0s, 5xx 0 %"),
		},
		"nobody scrapes the canary's latency": {
			change: func(a *gate.Answer) { a.Numbers.Canary = gate.Side{Requests: 200} },
			want: undecided(gate.ReasonNoLatency,
				"there are requests on the canary, but no latencies: see to query latencyCount, or set maxLatencyFactor to 0"),
		},
		"nobody scrapes the stable's latency": {
			change: func(a *gate.Answer) { a.Numbers.Stable.LatencyCount = 0 },
			want: undecided(gate.ReasonNoLatency,
				"there are requests on the stable, but no latencies: see to query latencyCount, or set maxLatencyFactor to 0"),
		},
		"the canary has all of the traffic: it is judged alone": {
			change: func(a *gate.Answer) { a.Question.CanaryOnly, a.Numbers.Stable = true, gate.Side{} },
			want:   healthy("200 requests on the canary in 1m0s, 5xx 0 %"),
		},
		"a canary that is judged alone fails": {
			change: func(a *gate.Answer) { a.Question.CanaryOnly, a.Numbers.Canary = true, sideOf(200, 3, 30) },
			want:   unhealthy("5xx 1.5 % over 1 %"),
		},
		"the source came up in the window: its counters may be old": {
			change: func(a *gate.Answer) { a.Numbers.Known = false; a.Numbers.Canary = sideOf(200, 200, 30) },
			want:   undecided(gate.ReasonNotKnown, "the source knew nothing about the service before the window, so what it counts may be older"),
		},
		"the source is away": {
			change: func(a *gate.Answer) { a.Err, a.Numbers = errors.New("connection refused"), gate.Numbers{} },
			want:   undecided(gate.ReasonSourceAway, "the numbers cannot be had: connection refused"),
		},
		"a query is at fault": {
			change: func(a *gate.Answer) {
				a.Err = fmt.Errorf("wrapped: %w", &gate.QueryError{Query: "errors", Side: "canary", Err: errors.New("parse error")})
			},
			want: undecided(gate.ReasonQueryFaulty, "wrapped: query errors for the canary: parse error"),
		},
		"a number is none": {
			change: func(a *gate.Answer) { a.Numbers.Canary.Errors = math.NaN() },
			want:   undecided(gate.ReasonQueryFaulty, "query errors for the canary: NaN is no amount"),
		},
		"a number of the stable is negative": {
			change: func(a *gate.Answer) { a.Numbers.Stable.LatencySum = -1 },
			want:   undecided(gate.ReasonQueryFaulty, "query latencySum for the stable: -1 is no amount"),
		},
		"a number is without end": {
			change: func(a *gate.Answer) { a.Numbers.Stable.Requests = math.Inf(1) },
			want:   undecided(gate.ReasonQueryFaulty, "query requests for the stable: +Inf is no amount"),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			l, a := limits(), gate.Answer{Numbers: fine()}
			if tc.limits != nil {
				tc.limits(&l)
			}
			if tc.change != nil {
				tc.change(&a)
			}
			if diff := cmp.Diff(tc.want, gate.Judge(l, a)); diff != "" {
				t.Errorf("finding (-want +got):\n%s", diff)
			}
		})
	}
}
