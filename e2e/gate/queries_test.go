package gate

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/prometheus"
)

// now is the end of the newest window that all queries of a question see alike.
func now() time.Time {
	return time.Now().Add(-2 * time.Second).UTC().Round(0).Truncate(time.Millisecond)
}

// about is a question about the newest window.
func about(namespace, address string) gate.Question {
	to := now()
	return gate.Question{
		Rollout: types.UID(namespace), Namespace: namespace, Latency: true,
		Stretch:  gate.Stretch{Canary: "new", Stable: "old", Weight: 25, Max: 100},
		Provider: config.Prometheus{Address: address, Reporter: config.Destination, HashLabel: config.DefaultHashLabel},
		From:     to.Add(-window), To: to,
	}
}

func ask(t *testing.T, q gate.Question) gate.Numbers {
	t.Helper()
	numbers, err := prometheus.New(prometheus.Options{}).Numbers(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

// pod is a proxy of a hash that nobody but the test counts for.
func pod(t *testing.T, namespace, name, hash string) *proxy {
	t.Helper()
	p, err := shared.fleet.Proxy("/"+namespace+"/"+name, map[string]string{"pod": name, "rollouts_pod_template_hash": hash})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.fleet.Keep("/"+namespace+"/"+name, nil) })
	return p
}

// inbound are the labels of what a pod of a namespace served.
func inbound(namespace, code string) labels {
	return labels{"destination", namespace, host(service, namespace), code}
}

// near is within what a counter's samples may leave open.
func near(got, want float64) bool { return math.Abs(got-want) <= 0.15*want+0.5 }

// scraped waits until Prometheus has looked at what was counted.
func scraped(ctx context.Context, t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := lab.Until(ctx, what, func(context.Context) (bool, error) { return so(), nil }); err != nil {
		t.Fatal(err)
	}
}

// later lets Prometheus scrape for so long.
func later(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

func TestANewSeriesCountsFromItsFirstRequest(t *testing.T) {
	t.Parallel()
	namespace := "new-series"
	stable := pod(t, namespace, "stable", "old")
	stable.add(inbound(namespace, "200"), 100000, 30)
	later(t, 2*window)
	for i := range 12 { // each pod's first failure is a series of its own
		p := pod(t, namespace, fmt.Sprintf("canary-%d", i), "new")
		p.add(inbound(namespace, "200"), 9, 30)
		p.add(inbound(namespace, "503"), 1, 30)
	}
	stable.add(inbound(namespace, "200"), 60, 30)
	scraped(t.Context(), t, "the canary's requests", func() bool { return ask(t, about(namespace, shared.own.URL)).Canary.Requests > 100 })
	n := ask(t, about(namespace, shared.own.URL))
	if !n.Known || !near(n.Canary.Requests, 120) || !near(n.Canary.Errors, 12) || !near(n.Canary.LatencySum, 3600) || !near(n.Canary.LatencyCount, 120) {
		t.Errorf("of 120 requests of 30 ms, 12 of which failed, there are %+v", n)
	}
	if !near(n.Stable.Requests, 60) || n.Stable.Errors != 0 {
		t.Errorf("of 60 requests of the stable, which has had 100000 before, there are %+v", n.Stable)
	}
	later(t, window+2*time.Second)
	if n := ask(t, about(namespace, shared.own.URL)); n.Canary.Requests > 0.5 || n.Canary.Errors > 0.5 {
		t.Errorf("a window later, without a request, there are %+v", n.Canary)
	}
}

func TestAResetCountsNothingTwice(t *testing.T) {
	t.Parallel()
	namespace := "reset"
	canary := pod(t, namespace, "canary", "new")
	canary.add(inbound(namespace, "200"), 100000, 30)
	canary.add(inbound(namespace, "503"), 50000, 30)
	later(t, 2*window)
	canary.reset()
	canary.add(inbound(namespace, "200"), 80, 30)
	canary.add(inbound(namespace, "503"), 0, 30)
	var n gate.Numbers
	scraped(t.Context(), t, "the canary's requests", func() bool { n = ask(t, about(namespace, shared.own.URL)); return n.Canary.Requests > 70 })
	if !near(n.Canary.Requests, 80) || n.Canary.Errors > 0.5 {
		t.Errorf("of 80 requests after a reset there are %+v", n.Canary)
	}
}

func TestCountersThatAreOlderThanTheWindowAreNotKnown(t *testing.T) {
	t.Parallel()
	namespace := "unknown"
	canary := pod(t, namespace, "canary", "new")
	canary.add(inbound(namespace, "503"), 50000, 30)
	scraped(t.Context(), t, "the first look", func() bool { return ask(t, about(namespace, shared.own.URL)).Canary.Requests > 0 })
	if n := ask(t, about(namespace, shared.own.URL)); n.Known {
		t.Errorf("Prometheus has just come to know a counter of 50000: %+v", n)
	}
	later(t, 2*window)
	if n := ask(t, about(namespace, shared.own.URL)); !n.Known || n.Canary.Requests > 0.5 {
		t.Errorf("two windows later: %+v", n)
	}
}

func TestNobodyKnownIsNoTraffic(t *testing.T) {
	t.Parallel()
	if n := ask(t, about("nobody", shared.own.URL)); n != (gate.Numbers{}) {
		t.Errorf("numbers %+v", n)
	}
}

func TestEqualTemplatesOfOtherNamespacesDoNotCount(t *testing.T) {
	t.Parallel()
	ours, theirs := pod(t, "ours", "canary", "new"), pod(t, "theirs", "canary", "new")
	ours.add(inbound("ours", "200"), 1, 30)
	theirs.add(inbound("theirs", "200"), 1, 30)
	later(t, 2*window)
	ours.add(inbound("ours", "200"), 50, 30)
	theirs.add(inbound("theirs", "503"), 500, 30)
	var n gate.Numbers
	scraped(t.Context(), t, "our requests", func() bool { n = ask(t, about("ours", shared.own.URL)); return n.Canary.Requests > 45 })
	if !near(n.Canary.Requests, 50) || n.Canary.Errors != 0 {
		t.Errorf("of 50 requests there are %+v", n.Canary)
	}
}

func TestOfServicesTheClientKnowsWhichWasMeant(t *testing.T) {
	t.Parallel()
	const namespace = "services"
	client := pod(t, namespace, "client", "")
	outbound := func(side, code string) labels {
		return labels{"source", namespace, host(service+"-"+side, namespace), code}
	}
	client.add(outbound("stable", "200"), 1, 30)
	later(t, 2*window)
	client.add(outbound("stable", "200"), 90, 30)
	client.add(outbound("canary", "200"), 8, 60)
	client.add(outbound("canary", "503"), 2, 60)
	q := about(namespace, shared.own.URL)
	q.Provider.Reporter = config.Source
	q.Hosts = gate.Hosts{Canary: host(service+"-canary", namespace), Stable: host(service+"-stable", namespace)}
	var n gate.Numbers
	scraped(t.Context(), t, "the requests", func() bool {
		q.To = now()
		q.From = q.To.Add(-window)
		n = ask(t, q)
		return n.Canary.Errors > 1 && n.Stable.Requests > 70
	})
	if !near(n.Stable.Requests, 90) || n.Stable.Errors != 0 || !near(n.Canary.Requests, 10) || !near(n.Canary.Errors, 2) || !near(n.Canary.LatencySum/n.Canary.LatencyCount, 60) {
		t.Errorf("numbers %+v", n)
	}
}
