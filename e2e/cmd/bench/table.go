package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// crowdText is the table of canaries that began at once, and below it that of their
// requests.
func crowdText(result crowdResult) string {
	var b strings.Builder
	b.WriteString("| Router | Median until Healthy | p99 | Slowest | Healthy | The controller's own limit | VirtualService versions | DestinationRule versions | Rollout versions | Requests, controller | Requests, plugin |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range result.rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d of %d | %s | %s | %s | %s | %s | %s |\n", r.router,
			r.quantile(.5), r.quantile(.99), r.quantile(1), len(r.took), r.canaries, seconds(r.limit(result.qps)),
			r.each(r.objects[virtualServiceResource.Resource]), r.each(r.objects[destinationRuleResource.Resource]), r.each(r.objects[rolloutResource.Resource]),
			r.each(r.requests.controller.all()), r.each(r.requests.plugin.all()))
	}
	return b.String() + "\n" + requestsText(result.rows) + "\n" + result.agreement()
}

// limit is what the requests for Rollouts take that the controller sends: each of its
// clients waits so that it sends no more than so many a second.
func (r crowdRow) limit(qps float64) time.Duration {
	sum := 0
	for kind, n := range r.requests.controller {
		if strings.HasPrefix(kind.resource, rolloutResource.Resource) && kind.verb != "watch" {
			sum += n
		}
	}
	burst := qps * defaultBurst / defaultQPS
	return time.Duration(max(0, float64(sum)-burst) / qps * float64(time.Second))
}

func (r crowdRow) quantile(q float64) string {
	d, known := quantile(r.took, r.canaries, q)
	if !known {
		return "-"
	}
	return seconds(d)
}

// each is a number for one canary.
func (r crowdRow) each(n int) string { return fmt.Sprintf("%.2f", float64(n)/float64(r.canaries)) }

// agreement holds the audit log against the API server's own counters.
func (r crowdResult) agreement() string {
	verdict := "as many as the audit log has"
	if logged := r.logged(); r.server.all() != logged {
		verdict = fmt.Sprintf("and the audit log has %d", logged)
	}
	return fmt.Sprintf("`apiserver_request_total` went up by %d writes of Istio's objects, %s.\n", r.server.all(), verdict)
}

// logged are the writes of Istio's objects in the audit log.
func (r crowdResult) logged() int {
	sum := 0
	for _, row := range r.rows {
		for _, by := range []counted{row.requests.controller, row.requests.plugin} {
			for kind, n := range by {
				if slices.Contains(writes, kind.verb) && istios(kind.resource) {
					sum += n
				}
			}
		}
	}
	return sum
}

// istios tells whether a resource is one of Istio's.
func istios(resource string) bool {
	return resource == virtualServiceResource.Resource || resource == destinationRuleResource.Resource
}

// all is the sum.
func (c counted) all() int {
	sum := 0
	for _, n := range c {
		sum += n
	}
	return sum
}

// requestsText has a line for each kind of request, per canary: who sent it under
// which router.
func requestsText(rows []crowdRow) string {
	var b strings.Builder
	heads, line := []string{"Resource", "Verb"}, "|---|---|"
	var columns []counted
	for _, r := range rows {
		heads, columns = append(heads, fmt.Sprintf("%s: controller", r.router)), append(columns, r.requests.controller)
		line += "---|"
		if r.router == scenarios.Plugin {
			heads, columns = append(heads, "plugin: itself"), append(columns, r.requests.plugin)
			line += "---|"
		}
	}
	fmt.Fprintf(&b, "| %s |\n%s\n", strings.Join(heads, " | "), line)
	whole := counted{}
	for _, column := range columns {
		maps.Copy(whole, column)
	}
	for _, kind := range whole.kinds() {
		fmt.Fprintf(&b, "| %s | %s |", cmp.Or(kind.resource, "(none)"), kind.verb)
		for _, column := range columns {
			fmt.Fprintf(&b, " %s |", few(column[kind], rows[0].canaries))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// few is a number for each of many; what is less than one in a hundred of them is
// given as it is.
func few(n, of int) string {
	switch {
	case n == 0:
		return "0"
	case n*100 < of:
		return fmt.Sprintf("%d in all", n)
	default:
		return fmt.Sprintf("%.2f", float64(n)/float64(of))
	}
}

// idleText is the table of Rollouts at rest.
func idleText(rows []idleRow) string {
	var b strings.Builder
	b.WriteString("| Rollouts | Resident | of it pages of the binary | Resident at most | for each further Rollout | CPU per minute | Requests per minute, not watches | Watches begun per minute | CPU until each was asked about once | for each further Rollout |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|\n")
	for i, r := range rows {
		memory, cpu := "-", "-"
		if i > 0 {
			memory, cpu = r.beyond(rows[i-1])
		}
		fmt.Fprintf(&b, "| %d | %.1f MiB | %.1f MiB | %.1f MiB | %s | %s | %s | %s | %s | %s |\n", r.rollouts,
			mebibytes(r.after.resident), mebibytes(r.after.file), mebibytes(r.after.peak), memory,
			inMilliseconds(r.perMinute()), r.minutely(r.requests.all()-r.requests.of("watch")), r.minutely(r.requests.of("watch")),
			inMilliseconds(r.starting), cpu)
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "\n%d: from the plugin's start until the measured time it sent %s.\n", r.rollouts, r.early.list())
	}
	return b.String()
}

// beyond is what each Rollout costs that a row has more than another. Pages of the
// binary come with what it does, and not with Rollouts.
func (r idleRow) beyond(less idleRow) (memory, cpu string) {
	more := r.rollouts - less.rollouts
	bytes := (r.after.resident - r.after.file) - (less.after.resident - less.after.file)
	return fmt.Sprintf("%.1f KiB", float64(bytes)/float64(more)/(1<<10)),
		fmt.Sprintf("%.2f ms", (r.starting-less.starting).Seconds()*1000/float64(more))
}

func (r idleRow) perMinute() time.Duration {
	return time.Duration(float64(r.busy) * float64(time.Minute) / float64(r.window))
}

func (r idleRow) minutely(n int) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%.1f", float64(n)*float64(time.Minute)/float64(r.window))
}

// list is every kind of request with its number, in words.
func (c counted) list() string {
	if len(c) == 0 {
		return "nothing"
	}
	var all []string
	for _, kind := range c.kinds() {
		all = append(all, fmt.Sprintf("%d %s %s", c[kind], kind.verb, cmp.Or(kind.resource, "of the API's versions")))
	}
	return strings.Join(all, ", ")
}

// canaryText says what a canary's time went into.
func canaryText(rows []aloneRow) string {
	var b strings.Builder
	b.WriteString("| Level | Router | Healthy after | Limit: pods' start + pauses | Pods' start | Pauses | Pods are there, weight is not | Weight is there, status says no | Controller between steps | VirtualService versions | DestinationRule versions |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		p := r.parts
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %d | %d |\n", r.level, r.router, seconds(p.whole()), seconds(p.limit()),
			seconds(p.pods), seconds(p.pauses), seconds(p.weight), seconds(p.unaware), seconds(p.rest),
			r.measures.WritesOf(timeline.KindVirtualService), r.measures.WritesOf(timeline.KindDestinationRule))
	}
	return b.String()
}

// incidentText is the table of the rollback.
func incidentText(rows []aloneRow) string {
	var b strings.Builder
	b.WriteString("| Level | Router | Healthy after | Most weight beyond the pods' share | for | VirtualService versions | DestinationRule versions |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		m := r.measures
		fmt.Fprintf(&b, "| %s | %s | %s | %.0f points | %s | %d | %d |\n", r.level, r.router, seconds(r.parts.whole()),
			m.Canary.Points, seconds(m.Canary.Lasted), m.WritesOf(timeline.KindVirtualService), m.WritesOf(timeline.KindDestinationRule))
	}
	return b.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func inMilliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
