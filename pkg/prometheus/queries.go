package prometheus

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
)

// Istio's standard metrics.
const (
	requestsMetric     = "istio_requests_total"
	latencySumMetric   = "istio_request_duration_milliseconds_sum"
	latencyCountMetric = "istio_request_duration_milliseconds_count"
)

// leastHistory is how far before a window a counter is looked for at least, to tell
// whether it is new. It is Prometheus' own measure for a sample that is too old.
const leastHistory = 5 * time.Minute

// side is one of the two that numbers are about.
type side struct {
	name, hash, host string
}

func sidesOf(q gate.Question) []side {
	sides := []side{
		{"canary", q.Stretch.Canary, q.Hosts.Canary},
		{"stable", q.Stretch.Stable, q.Hosts.Stable},
	}
	if q.CanaryOnly {
		return sides[:1]
	}
	return sides
}

// query is one number that a side needs.
type query struct {
	name string
	// own is the text in the Rollout, "" for the default.
	own    string
	metric string
	// failed restricts the default to what failed.
	failed bool
	into   func(*gate.Side) *float64
}

// queriesOf are those of one side.
func queriesOf(q gate.Question) []query {
	own := q.Provider.Queries
	queries := []query{
		{"requests", own.Requests, requestsMetric, false, func(s *gate.Side) *float64 { return &s.Requests }},
		{"errors", own.Errors, requestsMetric, true, func(s *gate.Side) *float64 { return &s.Errors }},
	}
	if !q.Latency || q.CanaryOnly {
		return queries
	}
	return append(queries,
		query{"latencySum", own.LatencySum, latencySumMetric, false, func(s *gate.Side) *float64 { return &s.LatencySum }},
		query{"latencyCount", own.LatencyCount, latencyCountMetric, false, func(s *gate.Side) *float64 { return &s.LatencyCount }})
}

// text is the query as it is sent.
func (x query) text(q gate.Question, s side) string {
	if x.own != "" {
		return fill(x.own, q, s)
	}
	matchers := belongs(q, s)
	if x.failed {
		matchers += `,response_code=~"5.."`
	}
	series := x.metric + "{" + matchers + "}"
	window := lengthOf(q)
	return fmt.Sprintf("sum((max_over_time(%[1]s[%[2]s]) unless present_over_time(%[1]s[%[3]s] offset %[2]s)) or increase(%[1]s[%[2]s]))",
		series, duration(window), duration(max(window, leastHistory)))
}

// presence counts what the server knew about the service in the time of a window before
// the window; "" where it cannot be said, because the requests are counted by a query of
// the Rollout's own.
func presence(q gate.Question) string {
	if q.Provider.Queries.Requests != "" {
		return ""
	}
	canary, stable := side{hash: q.Stretch.Canary, host: q.Hosts.Canary}, side{hash: q.Stretch.Stable, host: q.Hosts.Stable}
	window := duration(lengthOf(q))
	known := func(s side) string {
		return fmt.Sprintf("present_over_time(%s{%s}[%s] offset %s)", requestsMetric, belongs(q, s), window, window)
	}
	return fmt.Sprintf("count(%s or %s)", known(canary), known(stable))
}

// belongs are the matchers of one side: the Service that the request was for, or the hash
// of the pod that served it. Equal templates in two namespaces have equal hashes.
func belongs(q gate.Question, s side) string {
	reporter := "reporter=" + strconv.Quote(string(q.Provider.Reporter))
	if s.host != "" {
		return reporter + ",destination_service=" + strconv.Quote(s.host)
	}
	return reporter + ",destination_workload_namespace=" + strconv.Quote(q.Namespace) +
		"," + q.Provider.HashLabel + "=" + strconv.Quote(s.hash)
}

func lengthOf(q gate.Question) time.Duration { return q.To.Sub(q.From) }

var placeholder = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// fill puts the question into a query of the Rollout's own. What is put in are names that
// Kubernetes has checked, and nothing that could end a string of the query.
func fill(text string, q gate.Question, s side) string {
	words := map[string]string{
		"window": duration(lengthOf(q)), "namespace": q.Namespace, "hash": s.hash, "service": s.host, "side": s.name,
	}
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		return words[strings.TrimSpace(found[2:len(found)-2])]
	})
}

// duration spells one as Prometheus does.
func duration(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return fmt.Sprintf("%dms", d/time.Millisecond)
}
