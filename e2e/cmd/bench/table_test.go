package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden holds a text against the file of that name in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-update writes it anew):\n%s", name, diff)
	}
}

// someResult is four canaries with each router, of which one with the native router
// never ended.
func someResult() crowdResult {
	second := time.Second
	native := crowdRow{
		router: scenarios.Native, canaries: 4, took: []time.Duration{40 * second, 50 * second, 60 * second},
		requests: traffic{controller: counted{{"update", "virtualservices"}: 12, {"update", "destinationrules"}: 8, {"patch", "rollouts/status"}: 200, {"get", "rollouts"}: 8}, plugin: counted{}},
		objects:  versions{"virtualservices": 12, "destinationrules": 8, "rollouts": 52},
	}
	plugin := crowdRow{
		router: scenarios.Plugin, canaries: 4, took: []time.Duration{10 * second, 20 * second, 25 * second, 25*second + 50*time.Millisecond},
		requests: traffic{
			controller: counted{{"patch", "rollouts/status"}: 40, {"watch", "rollouts"}: 1, {"create", "events"}: 6},
			plugin:     counted{{"patch", "virtualservices"}: 12, {"patch", "destinationrules"}: 7, {"create", "events"}: 4},
		},
		objects: versions{"virtualservices": 12, "destinationrules": 7, "rollouts": 50},
	}
	return crowdResult{rows: []crowdRow{native, plugin}, qps: defaultQPS, server: counted{{"update", "virtualservices"}: 20, {"patch", "virtualservices"}: 19}}
}

func TestTheTableOfACrowd(t *testing.T) { golden(t, "crowd.md", crowdText(someResult())) }

func TestCountersThatDisagreeAreToldOf(t *testing.T) {
	result := someResult()
	result.server[kindOfRequest{"patch", "virtualservices"}]++
	golden(t, "disagreement.md", result.agreement())
}

func TestTheTableOfIdleRollouts(t *testing.T) {
	const mib = 1 << 20
	golden(t, "idle.md", idleText([]idleRow{
		{rollouts: 1, starting: 200 * time.Millisecond, after: consumption{resident: 36 * mib, file: 28 * mib, peak: 36 * mib}, window: time.Minute, busy: 20 * time.Millisecond,
			requests: counted{}, early: counted{{"get", ""}: 4, {"watch", "pods"}: 1}},
		{rollouts: 1001, starting: 2200 * time.Millisecond, after: consumption{resident: 58 * mib, file: 30 * mib, peak: 60 * mib}, window: 2 * time.Minute, busy: 300 * time.Millisecond,
			requests: counted{{"watch", "pods"}: 1, {"get", "rollouts"}: 2}, early: counted{}},
	}))
}

func TestTheTablesOfOneCanaryAndOfTheIncident(t *testing.T) {
	second := time.Second
	rows := []aloneRow{
		{level: scenarios.Subset, router: scenarios.Native, parts: parts{pauses: 2 * second, pods: 3 * second, weight: 20 * second, rest: 5 * second},
			measures: timeline.Measures{Canary: timeline.Peak{Points: 90, Lasted: 5 * second}, Writes: map[timeline.Kind]map[string]int{timeline.KindVirtualService: {"a": 4}, timeline.KindDestinationRule: {"a": 2}}}},
		{level: scenarios.Subset, router: scenarios.Plugin, parts: parts{pauses: 2 * second, pods: 3 * second, unaware: 4 * second, rest: second},
			measures: timeline.Measures{Writes: map[timeline.Kind]map[string]int{timeline.KindVirtualService: {"a": 4}}}},
	}
	golden(t, "canary.md", canaryText(rows))
	golden(t, "incident.md", incidentText(rows))
}

func TestAQuantileOfWhatHasNotEndedIsNotKnown(t *testing.T) {
	took := []time.Duration{1, 2, 3}
	for name, test := range map[string]struct {
		of    int
		q     float64
		want  time.Duration
		known bool
	}{
		"the median of all":                     {3, .5, 2, true},
		"the slowest of all":                    {3, 1, 3, true},
		"the median where one is missing":       {4, .5, 3, true},
		"the slowest where one is missing":      {4, 1, 0, false},
		"the median where the most are missing": {7, .5, 0, false},
		"nothing":                               {0, .5, 0, false},
	} {
		if got, known := quantile(took, test.of, test.q); got != test.want || known != test.known {
			t.Errorf("%s: %d, %v", name, got, known)
		}
	}
}
