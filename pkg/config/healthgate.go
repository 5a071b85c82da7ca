package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// OnUnhealthy is what becomes of a canary that a window has shown to be sick.
type OnUnhealthy string

// The two answers. There are no others.
const (
	// Abort takes all traffic from the canary and aborts the Rollout. It is the default.
	Abort OnUnhealthy = "Abort"
	// HoldStep leaves the weight as it is, and the step unfinished, until a later window
	// is healthy or a person decides. It is spelled Hold.
	HoldStep OnUnhealthy = "Hold"
)

// Reporter is whose reports of a request are counted, as Istio's label reporter has it.
type Reporter string

// The reporters. There are no others.
const (
	// Destination is the proxy of the pod that serves the request. It is the default with
	// a DestinationRule: the scraped pod's own labels tell its hash.
	Destination Reporter = "destination"
	// Source is the proxy of the client. It is the default for routing by Services: it
	// knows which of the two the request was for, and a pod of both does not. It also
	// counts what never reached a pod.
	Source Reporter = "source"
	// Waypoint is ambient mode's proxy in between.
	Waypoint Reporter = "waypoint"
)

// DefaultHashLabel is the label of a scraped pod's series under the labelmap rule of
// Istio's and Prometheus' own examples, which spells the pod's label
// rollouts-pod-template-hash this way.
const DefaultHashLabel = "rollouts_pod_template_hash"

// HealthGate is what a step's window has to show before the canary goes on. It can be
// compared with ==.
type HealthGate struct {
	// Prometheus is where the numbers come from.
	Prometheus Prometheus
	// Interval is the window: 10 s to 1 h, default 60 s.
	Interval time.Duration
	// MinRequests is how many requests each side must have had in a window that counts:
	// 1 to 1 000 000 000, default 50.
	MinRequests int64
	// Max5xxPercent is how many of 100 of the canary's requests may fail: 0 to 100,
	// default 1.
	Max5xxPercent float64
	// MaxLatencyFactor is how many times the stable's mean latency the canary's may be:
	// 1 to 100, default 1.5; 0 says that latency is not judged.
	MaxLatencyFactor float64
	// MinLatencyIncrease is how much slower than the stable the canary must be, whatever
	// the factor: 0 to 1 h, default 10 ms.
	MinLatencyIncrease time.Duration
	OnUnhealthy        OnUnhealthy
}

// Prometheus says where to ask and what.
type Prometheus struct {
	// Address is the URL of the server, one that the operator has named.
	Address  string
	Reporter Reporter
	// HashLabel is the series' label that tells a pod's hash. It counts with a
	// DestinationRule only.
	HashLabel string
	Queries   Queries
}

// Queries replace the plugin's own; "" is the plugin's own. Each gives one number for one
// side and window, and may name what Placeholders lists.
type Queries struct {
	// Requests is how many there were, Errors how many of them failed.
	Requests, Errors string
	// LatencySum is the time of all requests in milliseconds, LatencyCount how many
	// requests that is the time of.
	LatencySum, LatencyCount string
}

// Placeholders are what a query may name between {{ and }}.
var Placeholders = []string{"window", "namespace", "hash", "service", "side"}

// maxQuery bounds one query, in bytes: it goes into the URL or body of each request.
const maxQuery = 4096

var (
	intervalSpan        = span{10 * time.Second, time.Hour, `"10s" to "1h"`}
	latencyIncreaseSpan = span{0, time.Hour, `"0s" to "1h"`}

	decimal     = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{1,6})?$`)
	labelName   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,254}$`)
	placeholder = regexp.MustCompile(`\{\{([^{}]*)\}\}`)
)

// healthGate reads the part about health; nil when it is missing: nobody opted in then.
func (c *checker) healthGate(block object, s scope) *HealthGate {
	n, ok := block.find("healthGate")
	if !ok {
		return nil
	}
	g := &HealthGate{
		Interval: time.Minute, MinRequests: 50, Max5xxPercent: 1,
		MaxLatencyFactor: 1.5, MinLatencyIncrease: 10 * time.Millisecond, OnUnhealthy: Abort,
	}
	o, ok := c.object(n, block.at.Child("healthGate"), healthGateFields)
	if !ok {
		return g
	}
	g.Prometheus = c.provider(o, s, block.has("destinationRule") || block.has("destinationRules"))
	g.Interval = o.duration("interval", g.Interval, intervalSpan)
	g.MinRequests = o.count("minRequests", g.MinRequests, 1_000_000_000)
	g.Max5xxPercent = o.decimal("max5xxPercent", g.Max5xxPercent, func(x float64) bool { return x <= 100 },
		`a number from 0 to 100, such as "1" or "0.5"`)
	g.MaxLatencyFactor = o.decimal("maxLatencyFactor", g.MaxLatencyFactor, func(x float64) bool { return x == 0 || x >= 1 && x <= 100 },
		`a number from 1 to 100, such as "1.5", or "0" where latency says nothing`)
	g.MinLatencyIncrease = o.duration("minLatencyIncrease", g.MinLatencyIncrease, latencyIncreaseSpan)
	if answer, p := o.text("onUnhealthy"); p == given {
		g.OnUnhealthy = OnUnhealthy(c.oneOf(answer, o.at.Child("onUnhealthy"), "answer", string(Abort), string(HoldStep)))
	}
	return g
}

// provider reads who has the numbers. There is one kind, and it has to be named: a block
// without it would ask a server that nobody spoke of.
func (c *checker) provider(gate object, s scope, bySubsets bool) Prometheus {
	at := gate.at.Child("provider")
	n, ok := gate.find("provider")
	if !ok {
		c.add(field.Required(at, "say where the numbers come from: {prometheus: {}}"))
		return Prometheus{}
	}
	o, ok := c.object(n, at, providerFields)
	if !ok {
		return Prometheus{}
	}
	n, ok = o.find("prometheus")
	if !ok {
		c.add(field.Required(at.Child("prometheus"), "it is the only provider there is: write {} for the operator's server"))
		return Prometheus{}
	}
	o, ok = c.object(n, at.Child("prometheus"), prometheusFields)
	if !ok {
		return Prometheus{}
	}
	return c.prometheus(o, s, bySubsets)
}

func (c *checker) prometheus(o object, s scope, bySubsets bool) Prometheus {
	p := Prometheus{Reporter: Source, HashLabel: DefaultHashLabel, Address: c.prometheusAddress(o, s)}
	if bySubsets {
		p.Reporter = Destination
	}
	if reporter, there := o.text("reporter"); there == given {
		p.Reporter = Reporter(c.oneOf(reporter, o.at.Child("reporter"), "reporter", string(Destination), string(Source), string(Waypoint)))
	}
	if label, there := o.text("hashLabel"); there == given {
		p.HashLabel = label
		if !labelName.MatchString(label) {
			c.add(field.Invalid(o.at.Child("hashLabel"), show(label), "cannot be a label of Prometheus: use letters, digits and '_', as in "+DefaultHashLabel))
		}
	}
	if n, ok := o.find("queries"); ok {
		p.Queries = c.queries(n, o.at.Child("queries"), bySubsets)
	}
	if bySubsets && p.Reporter != Destination && p.Reporter != "" && !o.has("hashLabel") && !p.Queries.all() {
		c.add(field.Invalid(o.at.Child("reporter"), string(p.Reporter), fmt.Sprintf(
			"%s is the label of the pod that was scraped, which is not the one that serves the request: name the label that tells the serving pod's hash with hashLabel, or remove the field",
			DefaultHashLabel)))
	}
	return p
}

func (q Queries) all() bool {
	return q.Requests != "" && q.Errors != "" && q.LatencySum != "" && q.LatencyCount != ""
}

// prometheusAddress is the operator's server, or another one that the operator lets
// Rollouts name: the plugin reaches more of the network than a Rollout's author.
func (c *checker) prometheusAddress(o object, s scope) string {
	at := o.at.Child("address")
	text, p := o.text("address")
	switch {
	case p == absent && s.prometheus.Default == "":
		c.add(field.Required(at, "the operator has named no server: have the plugin started with --prometheus-address"))
		return ""
	case p == absent:
		return s.prometheus.Default
	case p == faulty:
		return ""
	}
	address, err := ParsePrometheusAddress(text)
	if err != nil {
		c.add(field.Invalid(at, show(withoutPassword(text)), err.Error()))
		return ""
	}
	if !s.prometheus.Allows(address) {
		c.add(field.Forbidden(at, fmt.Sprintf(
			"the Rollout may not have %s asked: remove the field for the operator's own server, or have the operator add the address to --allow-prometheus-addresses", show(address))))
	}
	return address
}

func (c *checker) queries(n node, at *field.Path, bySubsets bool) Queries {
	o, ok := c.object(n, at, queriesFields)
	if !ok {
		return Queries{}
	}
	return Queries{
		Requests: c.query(o, "requests", bySubsets), Errors: c.query(o, "errors", bySubsets),
		LatencySum: c.query(o, "latencySum", bySubsets), LatencyCount: c.query(o, "latencyCount", bySubsets),
	}
}

// query reads one of them. One that does not name the window would read lifetime counters,
// one that does not name the side the same number for both.
func (c *checker) query(o object, name string, bySubsets bool) string {
	text, p := o.text(name)
	if p != given {
		return ""
	}
	problem := func(detail string) { c.add(field.Invalid(o.at.Child(name), show(text), detail)) }
	if len(text) > maxQuery {
		problem(fmt.Sprintf("is longer than %d bytes: use a recording rule", maxQuery))
	}
	named := map[string]bool{}
	for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
		word := strings.TrimSpace(found[1])
		named[word] = true
		if !known(word) {
			problem("names {{" + show(word) + "}}, which is not known. There are {{" + strings.Join(Placeholders, "}}, {{") + "}}")
		}
	}
	if !named["window"] {
		problem("does not name {{window}}, so it cannot be about the window alone: use it as in increase(…[{{window}}])")
	}
	switch {
	case bySubsets && named["service"]:
		problem("names {{service}}, but with a destinationRule both sides have the same Services: use {{hash}}")
	case !named["hash"] && !named["service"] && !named["side"]:
		problem("does not tell canary and stable apart: name {{hash}}" + map[bool]string{false: " or {{service}}"}[bySubsets])
	}
	return text
}

func known(word string) bool {
	for _, p := range Placeholders {
		if p == word {
			return true
		}
	}
	return false
}

// count reads a whole number from 1.
func (o object) count(name string, otherwise, most int64) int64 {
	n, ok := o.find(name)
	if !ok {
		return otherwise
	}
	if n.kind == kindNumber {
		if value, err := strconv.ParseInt(n.text, 10, 64); err == nil && value >= 1 && value <= most {
			return value
		}
	}
	o.c.add(field.Invalid(o.at.Child(name), n.sketch(), fmt.Sprintf("must be a whole number from 1 to %d", most)))
	return otherwise
}

// decimal reads a number, written as one or as a string: CRDs have their decimals in
// strings, people write them either way.
func (o object) decimal(name string, otherwise float64, fits func(float64) bool, words string) float64 {
	n, ok := o.find(name)
	if !ok {
		return otherwise
	}
	if (n.kind == kindNumber || n.kind == kindString) && decimal.MatchString(n.text) {
		if value, err := strconv.ParseFloat(n.text, 64); err == nil && fits(value) {
			return value
		}
	}
	o.c.add(field.Invalid(o.at.Child(name), n.sketch(), "must be "+words))
	return otherwise
}
