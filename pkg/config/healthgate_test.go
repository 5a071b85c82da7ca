package config

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// operators is what an operator may have set.
var operators = PrometheusAddresses{Default: "http://prometheus.monitoring:9090", Allowed: []string{"https://other.example/prom"}}

// theGate is what an empty block amounts to with a DestinationRule.
func theGate(changes ...func(*HealthGate)) *HealthGate {
	g := &HealthGate{
		Prometheus: Prometheus{Address: "http://prometheus.monitoring:9090", Reporter: Destination, HashLabel: "rollouts_pod_template_hash"},
		Interval:   time.Minute, MinRequests: 50, Max5xxPercent: 1, MaxLatencyFactor: 1.5, MinLatencyIncrease: 10 * time.Millisecond, OnUnhealthy: Abort,
	}
	for _, change := range changes {
		change(g)
	}
	return g
}

const subsetBlock = `{virtualService: {name: web}, destinationRule: {name: web, canarySubsetName: canary, stableSubsetName: stable}, healthGate: `

func TestHealthGate(t *testing.T) {
	const ours = `sum(increase(app_requests{hash="{{ hash }}",ns="{{namespace}}"}[{{window}}]))`
	tests := map[string]struct {
		block string
		want  *HealthGate
	}{
		"nobody opts in": {`{virtualService: {name: web}}`, nil},
		"the operator's server and all defaults": {
			subsetBlock + `{provider: {prometheus: {}}}}`, theGate()},
		"with two Services the client's proxy is the one that knows which was meant": {
			`{virtualService: {name: web}, healthGate: {provider: {prometheus: {}}}}`,
			theGate(func(g *HealthGate) { g.Prometheus.Reporter = Source })},
		"everything written out": {
			subsetBlock + `{provider: {prometheus: {address: "https://OTHER.example/prom/", reporter: waypoint, hashLabel: version, queries: {requests: '` + ours + `'}}},
				interval: 5m, minRequests: 1000, max5xxPercent: "0.25", maxLatencyFactor: "2", minLatencyIncrease: 1s, onUnhealthy: Hold}}`,
			&HealthGate{
				Prometheus: Prometheus{Address: "https://other.example/prom", Reporter: Waypoint, HashLabel: "version", Queries: Queries{Requests: ours}},
				Interval:   5 * time.Minute, MinRequests: 1000, Max5xxPercent: 0.25, MaxLatencyFactor: 2, MinLatencyIncrease: time.Second, OnUnhealthy: HoldStep,
			}},
		"decimals may be written as numbers": {
			subsetBlock + `{provider: {prometheus: {}}, max5xxPercent: 0.5, maxLatencyFactor: 3}}`,
			theGate(func(g *HealthGate) { g.Max5xxPercent, g.MaxLatencyFactor = 0.5, 3 })},
		"latency is not judged, and no failure is allowed": {
			subsetBlock + `{provider: {prometheus: {}}, max5xxPercent: "0", maxLatencyFactor: "0"}}`,
			theGate(func(g *HealthGate) { g.Max5xxPercent, g.MaxLatencyFactor = 0, 0 })},
		"the ends of the ranges": {
			subsetBlock + `{provider: {prometheus: {}}, interval: 10s, minRequests: 1, max5xxPercent: "100", maxLatencyFactor: "1", minLatencyIncrease: 0s}}`,
			theGate(func(g *HealthGate) {
				g.Interval, g.MinRequests, g.Max5xxPercent, g.MaxLatencyFactor, g.MinLatencyIncrease = 10*time.Second, 1, 100, 1, 0
			})},
		"all queries are one's own, so whose labels count is, too": {
			subsetBlock + `{provider: {prometheus: {reporter: source, queries: {requests: '` + ours + `', errors: '` + ours + `', latencySum: '` + ours + `', latencyCount: '` + ours + `'}}}}}`,
			theGate(func(g *HealthGate) {
				g.Prometheus.Reporter = Source
				g.Prometheus.Queries = Queries{ours, ours, ours, ours}
			})},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			cfg, err := FromRollout(aRollout(t, tc.block), Options{Prometheus: operators})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, cfg.HealthGate); diff != "" {
				t.Errorf("HealthGate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultyHealthGate(t *testing.T) {
	const at = `….healthGate.`
	prometheus := func(fields string) string { return subsetBlock + `{provider: {prometheus: {` + fields + `}}}}` }
	gate := func(fields string) string { return subsetBlock + `{provider: {prometheus: {}}, ` + fields + `}}` }
	tests := map[string]struct {
		block string
		none  bool // the operator has named no server
		want  []string
	}{
		"it is null": {
			block: subsetBlock + `null}`,
			want:  []string{`….healthGate: Invalid value: null: give an object or remove the field`}},
		"nobody says where the numbers come from": {
			block: subsetBlock + `{}}`,
			want:  []string{at + `provider: Required value: say where the numbers come from: {prometheus: {}}`}},
		"a provider that there is not": {
			block: subsetBlock + `{provider: {datadog: {}}}}`,
			want: []string{
				at + `provider.datadog: Forbidden: unknown field: remove it. Known here: prometheus`,
				at + `provider.prometheus: Required value: it is the only provider there is: write {} for the operator's server`}},
		"the operator has named no server": {
			block: prometheus(``), none: true,
			want: []string{at + `provider.prometheus.address: Required value: the operator has named no server: have the plugin started with --prometheus-address`}},
		"an address that the operator has not allowed": {
			block: prometheus(`address: "http://169.254.169.254"`),
			want:  []string{at + `provider.prometheus.address: Forbidden: the Rollout may not have http://169.254.169.254 asked: remove the field for the operator's own server, or have the operator add the address to --allow-prometheus-addresses`}},
		"an address that only begins as an allowed one does": {
			block: prometheus(`address: "https://other.example/prom/../admin"`),
			want:  []string{at + `provider.prometheus.address: Forbidden: the Rollout may not have https://other.example/prom/../admin asked: remove the field for the operator's own server, or have the operator add the address to --allow-prometheus-addresses`}},
		"an address with credentials": {
			block: prometheus(`address: "https://me:secret@other.example/prom"`),
			want:  []string{at + `provider.prometheus.address: Invalid value: "https://me:xxxxx@other.example/prom": must not hold a user: credentials are the operator's, from a file`}},
		"a reporter that there is not": {
			block: prometheus(`reporter: dest`),
			want:  []string{at + `provider.prometheus.reporter: Invalid value: "dest": unknown reporter. There are destination, source, waypoint`}},
		"the client reports, and the label is that of the pod that was scraped": {
			block: prometheus(`reporter: source`),
			want:  []string{at + `provider.prometheus.reporter: Invalid value: "source": rollouts_pod_template_hash is the label of the pod that was scraped, which is not the one that serves the request: name the label that tells the serving pod's hash with hashLabel, or remove the field`}},
		"a label that cannot be one": {
			block: prometheus(`hashLabel: 'a="b"} or vector(0) #'`),
			want:  []string{at + `provider.prometheus.hashLabel: Invalid value: "a=\"b\"} or vector(0) #": cannot be a label of Prometheus: use letters, digits and '_', as in rollouts_pod_template_hash`}},
		"an interval without a unit": {
			block: gate(`interval: 60`),
			want:  []string{at + `interval: Invalid value: 60: must be a string with a duration and its unit, from "10s" to "1h"`}},
		"an interval that no scrape fits into": {
			block: gate(`interval: 5s`),
			want:  []string{at + `interval: Invalid value: "5s": must be a string with a duration and its unit, from "10s" to "1h"`}},
		"no request is enough": {
			block: gate(`minRequests: 0`),
			want:  []string{at + `minRequests: Invalid value: 0: must be a whole number from 1 to 1000000000`}},
		"half a request": {
			block: gate(`minRequests: 0.5`),
			want:  []string{at + `minRequests: Invalid value: 0.5: must be a whole number from 1 to 1000000000`}},
		"requests in words": {
			block: gate(`minRequests: "50"`),
			want:  []string{at + `minRequests: Invalid value: "50": must be a whole number from 1 to 1000000000`}},
		"more than all": {
			block: gate(`max5xxPercent: "100.1"`),
			want:  []string{at + `max5xxPercent: Invalid value: "100.1": must be a number from 0 to 100, such as "1" or "0.5"`}},
		"a percentage with its sign": {
			block: gate(`max5xxPercent: "1%"`),
			want:  []string{at + `max5xxPercent: Invalid value: "1%": must be a number from 0 to 100, such as "1" or "0.5"`}},
		"a percentage below 0": {
			block: gate(`max5xxPercent: -1`),
			want:  []string{at + `max5xxPercent: Invalid value: -1: must be a number from 0 to 100, such as "1" or "0.5"`}},
		"a canary that has to be faster": {
			block: gate(`maxLatencyFactor: "0.9"`),
			want:  []string{at + `maxLatencyFactor: Invalid value: "0.9": must be a number from 1 to 100, such as "1.5", or "0" where latency says nothing`}},
		"a factor that is no number": {
			block: gate(`maxLatencyFactor: NaN`),
			want:  []string{at + `maxLatencyFactor: Invalid value: "NaN": must be a number from 1 to 100, such as "1.5", or "0" where latency says nothing`}},
		"an answer that there is not": {
			block: gate(`onUnhealthy: Rollback`),
			want:  []string{at + `onUnhealthy: Invalid value: "Rollback": unknown answer. There are Abort, Hold`}},
		"a query about a whole life": {
			block: prometheus(`queries: {requests: 'sum(app_requests{hash="{{hash}}"})'}`),
			want:  []string{at + `provider.prometheus.queries.requests: Invalid value: "sum(app_requests{hash=\"{{hash}}\"})": does not name {{window}}, so it cannot be about the window alone: use it as in increase(…[{{window}}])`}},
		"a query that says the same of both sides": {
			block: prometheus(`queries: {errors: 'sum(increase(app_errors[{{window}}]))'}`),
			want:  []string{at + `provider.prometheus.queries.errors: Invalid value: "sum(increase(app_errors[{{window}}]))": does not tell canary and stable apart: name {{hash}}`}},
		"the same with two Services": {
			block: `{virtualService: {name: web}, healthGate: {provider: {prometheus: {queries: {errors: 'sum(increase(app_errors[{{window}}]))'}}}}}`,
			want:  []string{at + `provider.prometheus.queries.errors: Invalid value: "sum(increase(app_errors[{{window}}]))": does not tell canary and stable apart: name {{hash}} or {{service}}`}},
		"a query by Service where both sides have the same": {
			block: prometheus(`queries: {latencySum: 'sum(increase(t{s="{{service}}"}[{{window}}]))'}`),
			want:  []string{at + `provider.prometheus.queries.latencySum: Invalid value: "sum(increase(t{s=\"{{service}}\"}[{{window}}]))": names {{service}}, but with a destinationRule both sides have the same Services: use {{hash}}`}},
		"a word that is not known": {
			block: prometheus(`queries: {latencyCount: 'sum(increase(t{h="{{hash}}",x="{{args.x}}"}[{{window}}]))'}`),
			want:  []string{at + `provider.prometheus.queries.latencyCount: Invalid value: "sum(increase(t{h=\"{{hash}}\",x=\"{{args.x}}\"}[{{window}}]))": names {{args.x}}, which is not known. There are {{window}}, {{namespace}}, {{hash}}, {{service}}, {{side}}`}},
		"a query without end": {
			block: prometheus(`queries: {requests: '{{hash}}{{window}}` + strings.Repeat("x", 5000) + `'}`),
			want:  []string{at + `provider.prometheus.queries.requests: Invalid value: "{{hash}}{{window}}` + strings.Repeat("x", 62) + `… (5018 bytes)": is longer than 4096 bytes: use a recording rule`}},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			o := Options{Prometheus: operators}
			if tc.none {
				o = Options{}
			}
			_, err := FromRollout(aRollout(t, tc.block), o)
			if diff := cmp.Diff(tc.want, problems(t, err)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddressesOfPrometheus(t *testing.T) {
	for text, want := range map[string]string{
		"http://prometheus.monitoring:9090":   "http://prometheus.monitoring:9090",
		" http://Prometheus.Monitoring:9090/": "http://prometheus.monitoring:9090",
		"https://mimir.example/prometheus//":  "https://mimir.example/prometheus",
		"http://[::1]:9090":                   "http://[::1]:9090",
	} {
		if got, err := ParsePrometheusAddress(text); err != nil || got != want {
			t.Errorf("%q is %q (%v), want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                        "must begin with http:// or https://",
		"prometheus:9090":         "must begin with http:// or https://",
		"file:///etc/passwd":      "must begin with http:// or https://",
		"http://":                 "names no host: write it as in http://prometheus.monitoring:9090",
		"http://:9090":            "names no host: write it as in http://prometheus.monitoring:9090",
		"http://a b":              "is no URL: write it as in http://prometheus.monitoring:9090",
		"http://user@prometheus":  "must not hold a user: credentials are the operator's, from a file",
		"http://prometheus?x=1":   "must end with the path, if there is one: remove what follows ? or #",
		"http://prometheus?":      "must end with the path, if there is one: remove what follows ? or #",
		"http://prometheus/#/api": "must end with the path, if there is one: remove what follows ? or #",
	} {
		if got, err := ParsePrometheusAddress(text); err == nil || err.Error() != want {
			t.Errorf("%q is %q (%v), want the error %q", text, got, err, want)
		}
	}
}

func TestAllowedAddressesOfPrometheus(t *testing.T) {
	p := PrometheusAddresses{Default: "http://own:9090"}
	if p.Allows("http://a") || p.Allows("") || !p.Allows("http://own:9090") {
		t.Error("without the flag the operator's own address is the only one")
	}
	if err := p.Allow("https://b/, http://A:1,http://a:1"); err != nil {
		t.Fatal(err)
	}
	if got := p.Listed(); got != "http://a:1,https://b" || !p.Allows("https://b") || p.Allows("https://b/x") {
		t.Errorf("allowed are %q", got)
	}
	if err := p.Allow("http://a,nonsense"); err == nil || err.Error() != `"nonsense" must begin with http:// or https://` {
		t.Errorf("a faulty list: %v", err)
	}
	if err := p.Allow("*"); err != nil || !p.Allows("http://anything") || p.Allows("") || p.Listed() != "*" {
		t.Errorf("any: %v, %q", err, p.Listed())
	}
	if err := p.Allow(""); err != nil || p.Allows("http://anything") || p.Listed() != "" {
		t.Errorf("none: %v, %q", err, p.Listed())
	}
}

func genHealthGate(t *rapid.T, bySubsets bool) *HealthGate {
	if !rapid.Bool().Draw(t, "healthGate") {
		return nil
	}
	query := func(name string) string {
		if !rapid.Bool().Draw(t, name+" of one's own") {
			return ""
		}
		return "sum(increase(x{h=\"{{hash}}\"}[{{window}}])) + " + rapid.StringMatching(`[a-z ]{0,9}[0-9]`).Draw(t, name)
	}
	g := &HealthGate{
		Prometheus: Prometheus{
			Address: operators.Default, Reporter: Source, HashLabel: rapid.StringMatching(`[a-z_][a-z0-9_]{0,9}`).Draw(t, "hashLabel"),
			Queries: Queries{query("requests"), query("errors"), query("latencySum"), query("latencyCount")},
		},
		Interval:           time.Duration(rapid.Int64Range(int64(10*time.Second), int64(time.Hour)).Draw(t, "interval")),
		MinRequests:        rapid.Int64Range(1, 1_000_000_000).Draw(t, "minRequests"),
		Max5xxPercent:      float64(rapid.IntRange(0, 100_000).Draw(t, "max5xxPercent")) / 1000,
		MaxLatencyFactor:   rapid.SampledFrom([]float64{0, 1, 1.5, 100}).Draw(t, "maxLatencyFactor"),
		MinLatencyIncrease: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "minLatencyIncrease")),
		OnUnhealthy:        rapid.SampledFrom([]OnUnhealthy{Abort, HoldStep}).Draw(t, "onUnhealthy"),
	}
	if bySubsets {
		g.Prometheus.Reporter = Destination
	}
	return g
}

// healthGateBlock writes it back as it would stand in a Rollout.
func healthGateBlock(g HealthGate) map[string]any {
	queries := map[string]any{}
	for name, text := range map[string]string{
		"requests": g.Prometheus.Queries.Requests, "errors": g.Prometheus.Queries.Errors,
		"latencySum": g.Prometheus.Queries.LatencySum, "latencyCount": g.Prometheus.Queries.LatencyCount,
	} {
		if text != "" {
			queries[name] = text
		}
	}
	return map[string]any{
		"provider": map[string]any{"prometheus": map[string]any{
			"reporter": g.Prometheus.Reporter, "hashLabel": g.Prometheus.HashLabel, "queries": queries}},
		"interval": g.Interval.String(), "minRequests": g.MinRequests, "max5xxPercent": g.Max5xxPercent,
		"maxLatencyFactor": g.MaxLatencyFactor, "minLatencyIncrease": g.MinLatencyIncrease.String(), "onUnhealthy": g.OnUnhealthy,
	}
}

func TestHealthGateIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := genHealthGate(rt, true)
		if want == nil {
			return
		}
		rules := map[string]any{"name": "web", "canarySubsetName": "c", "stableSubsetName": "s"}
		raw := jsonOf(t, map[string]any{"virtualService": map[string]any{"name": "web"}, "destinationRule": rules, "healthGate": healthGateBlock(*want)})
		cfg, err := FromRollout(withBlock(raw), Options{Prometheus: operators})
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, cfg.HealthGate); diff != "" {
			rt.Fatalf("HealthGate (-want +got):\n%s", diff)
		}
	})
}

func jsonOf(t *testing.T, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func checkHealthGate(t *testing.T, g *HealthGate) {
	t.Helper()
	if g == nil {
		return
	}
	if g.Prometheus.Address == "" || g.Interval < 10*time.Second || g.Interval > time.Hour || g.MinRequests < 1 ||
		!(g.Max5xxPercent >= 0 && g.Max5xxPercent <= 100) || !(g.MaxLatencyFactor == 0 || g.MaxLatencyFactor >= 1) {
		t.Fatalf("healthGate %+v", g)
	}
	if !labelName.MatchString(g.Prometheus.HashLabel) || g.OnUnhealthy != Abort && g.OnUnhealthy != HoldStep {
		t.Fatalf("healthGate %+v", g)
	}
}
