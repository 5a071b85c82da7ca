package metrics

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// scrape returns what Prometheus would get, through a real HTTP server.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	code, text := get(t, server.URL+"/metrics")
	if code != http.StatusOK {
		t.Fatalf("code %d: %s", code, text)
	}
	return text
}

func get(t *testing.T, url string) (code int, text string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// samples are the lines of the metrics whose names begin with any of the
// prefixes, without the plugin's own prefix.
func samples(text string, prefixes ...string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line, ours := strings.CutPrefix(strings.TrimSpace(line), namespace+"_")
		if ours && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) }) {
			out = append(out, line)
		}
	}
	return out
}

func assertSamples(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

func TestWeights(t *testing.T) {
	for sentence, c := range map[string]struct {
		play func(m *Metrics)
		want []string
	}{
		"a capped Rollout shows both weights and the reason": {
			func(m *Metrics) { m.Weights("shop", "cart", 50, 10, "Proportional") },
			[]string{
				`applied_weight{namespace="shop",rollout="cart"} 10`,
				`capped{namespace="shop",reason="Proportional",rollout="cart"} 1`,
				`desired_weight{namespace="shop",rollout="cart"} 50`,
			},
		},
		"one that gets what it asks for is not capped": {
			func(m *Metrics) { m.Weights("shop", "cart", 50, 50, "EnoughPods") },
			[]string{
				`applied_weight{namespace="shop",rollout="cart"} 50`,
				`capped{namespace="shop",reason="EnoughPods",rollout="cart"} 0`,
				`desired_weight{namespace="shop",rollout="cart"} 50`,
			},
		},
		"the series of an older reason goes, that of another Rollout stays": {
			func(m *Metrics) {
				m.Weights("shop", "till", 20, 0, "NoCanaryPods")
				m.Weights("shop", "cart", 50, 0, "NoCanaryPods")
				m.Weights("shop", "cart", 50, 0, "NoCanaryPods")
				m.Weights("shop", "cart", 60, 60, "EnoughPods")
			},
			[]string{
				`applied_weight{namespace="shop",rollout="cart"} 60`,
				`applied_weight{namespace="shop",rollout="till"} 0`,
				`capped{namespace="shop",reason="EnoughPods",rollout="cart"} 0`,
				`capped{namespace="shop",reason="NoCanaryPods",rollout="till"} 1`,
				`desired_weight{namespace="shop",rollout="cart"} 60`,
				`desired_weight{namespace="shop",rollout="till"} 20`,
			},
		},
		"a Rollout that is forgotten leaves nothing, its namesake elsewhere stays": {
			func(m *Metrics) {
				m.Weights("shop", "cart", 50, 10, "Proportional")
				m.Weights("lab", "cart", 5, 5, "EnoughPods")
				m.Forget("shop", "cart")
				m.Forget("shop", "never-seen")
			},
			[]string{
				`applied_weight{namespace="lab",rollout="cart"} 5`,
				`capped{namespace="lab",reason="EnoughPods",rollout="cart"} 0`,
				`desired_weight{namespace="lab",rollout="cart"} 5`,
			},
		},
		"a Rollout that comes back after it was forgotten is shown again, once": {
			func(m *Metrics) {
				m.Weights("shop", "cart", 50, 10, "Proportional")
				m.Forget("shop", "cart")
				m.Weights("shop", "cart", 50, 0, "NoCanaryPods")
			},
			[]string{
				`applied_weight{namespace="shop",rollout="cart"} 0`,
				`capped{namespace="shop",reason="NoCanaryPods",rollout="cart"} 1`,
				`desired_weight{namespace="shop",rollout="cart"} 50`,
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			m := New()
			c.play(m)
			assertSamples(t, samples(scrape(t, m), "applied_weight", "capped", "desired_weight"), c.want...)
		})
	}
}

func TestWritesConflictsAndCorrectionsAreCountedApartAndByKind(t *testing.T) {
	m := New()
	for range 3 {
		m.Written("VirtualService")
	}
	m.Written("DestinationRule")
	m.Conflict("DestinationRule")
	m.Conflict("DestinationRule")
	m.DriftCorrected("VirtualService")
	assertSamples(t, samples(scrape(t, m), "writes", "write_conflicts", "drift"),
		`drift_corrections_total{kind="VirtualService"} 1`,
		`write_conflicts_total{kind="DestinationRule"} 2`,
		`writes_total{kind="DestinationRule"} 1`,
		`writes_total{kind="VirtualService"} 3`,
	)
}

func TestDurationsAreInSecondsAndTheAimsAreEdgesOfBuckets(t *testing.T) {
	m := New()
	m.Reaction(40 * time.Millisecond)
	m.Reaction(200 * time.Millisecond)
	m.Reaction(3 * time.Second)
	assertSamples(t, samples(scrape(t, m), `reaction_seconds_bucket{le="0.05"}`, `reaction_seconds_bucket{le="0.25"}`, "reaction_seconds_sum", "reaction_seconds_count"),
		`reaction_seconds_bucket{le="0.05"} 1`,
		`reaction_seconds_bucket{le="0.25"} 2`,
		`reaction_seconds_sum 3.24`,
		`reaction_seconds_count 3`,
	)
}

func TestCallsAreCountedByNameAndResult(t *testing.T) {
	m := New()
	m.RPC("SetWeight", 2*time.Millisecond, nil)
	m.RPC("SetWeight", 4*time.Millisecond, nil)
	m.RPC("SetWeight", time.Second, errors.New("an object's name must never become a label"))
	m.RPC("Type", time.Microsecond, nil)
	assertSamples(t, samples(scrape(t, m), "rpc_duration_seconds_count", "rpc_duration_seconds_sum"),
		`rpc_duration_seconds_sum{result="error",rpc="SetWeight"} 1`,
		`rpc_duration_seconds_count{result="error",rpc="SetWeight"} 1`,
		`rpc_duration_seconds_sum{result="ok",rpc="SetWeight"} 0.006`,
		`rpc_duration_seconds_count{result="ok",rpc="SetWeight"} 2`,
		`rpc_duration_seconds_sum{result="ok",rpc="Type"} 1e-06`,
		`rpc_duration_seconds_count{result="ok",rpc="Type"} 1`,
	)
}

func TestTheAgeOfAWatchGrowsWithoutAnybodySettingIt(t *testing.T) {
	now := time.Unix(1e9, 0)
	m := newMetrics(func() time.Time { return now })
	assertSamples(t, samples(scrape(t, m), "watch_age"))
	m.Heard("virtualservices")
	now = now.Add(20 * time.Second)
	m.Heard("replicasets")
	now = now.Add(1500 * time.Millisecond)
	assertSamples(t, samples(scrape(t, m), "watch_age"),
		`watch_age_seconds{resource="replicasets"} 1.5`,
		`watch_age_seconds{resource="virtualservices"} 21.5`,
	)
	m.Heard("virtualservices")
	assertSamples(t, samples(scrape(t, m), `watch_age_seconds{resource="virtual`),
		`watch_age_seconds{resource="virtualservices"} 0`,
	)
}

// everything calls each method, so that no metric is without a sample.
func everything(m *Metrics) {
	m.Weights("shop", "cart", 50, 10, "Proportional")
	m.Written("VirtualService")
	m.Conflict("VirtualService")
	m.DriftCorrected("VirtualService")
	m.Reaction(time.Millisecond)
	m.RPC("Type", time.Millisecond, nil)
	m.Heard("replicasets")
}

func TestNamesUnitsAndHelpTextsAreAsPrometheusWantsThem(t *testing.T) {
	m := New()
	everything(m)
	text := scrape(t, m)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, namespace) {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, of := range []string{"go_goroutines ", "process_cpu_seconds_total "} {
		if !strings.Contains(text, "\n"+of) {
			t.Errorf("no %s", of)
		}
	}
}

func TestNilDoesNothing(t *testing.T) {
	var m *Metrics
	everything(m)
	m.Forget("shop", "cart")
	if err := m.Serve(t.Context(), "no address"); err != nil {
		t.Error(err)
	}
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	if code, _ := get(t, server.URL+"/metrics"); code != http.StatusNotFound {
		t.Errorf("code %d", code)
	}
}

func TestTwoMetricsInOneProcessShareNothing(t *testing.T) {
	one, other := New(), New()
	one.Written("VirtualService")
	assertSamples(t, samples(scrape(t, other), "writes"))
}

func TestManyGoroutinesLeaveOneReasonPerRollout(t *testing.T) {
	m := New()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 100 {
				everything(m)
				m.Weights("shop", "cart", 50, int32(i), string(rune('A'+i)))
				m.Weights("shop", "till", 50, int32(i), string(rune('A'+i)))
				m.Forget("shop", "till")
			}
		})
	}
	group.Go(func() { scrape(t, m) })
	group.Wait()
	text := scrape(t, m)
	if got := samples(text, "capped{"); len(got) != 1 {
		t.Errorf("want one series for cart, got %v", got)
	}
	assertSamples(t, samples(text, "writes_total"), `writes_total{kind="VirtualService"} 800`)
}
