package mesh

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

const (
	// patience bounds one story. A good run takes a tenth of it; the machines that
	// run the tests are small and shared.
	patience = 4 * time.Minute
	// reaction is how long after the loss of a side's last pod requests may still
	// be lost to it: the time that a write takes, and the mesh to hear of it.
	reaction = timeline.DefaultGrace + time.Second
)

func TestNoRequestIsLostWithThePluginAndTheShareIsTheWeight(t *testing.T) {
	for _, level := range []scenarios.Level{scenarios.Subset, scenarios.Host} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			for _, story := range Stories(level) {
				if story.Name == incidentName {
					continue // it is played beside the native router's
				}
				t.Run(story.Name, func(t *testing.T) {
					t.Parallel()
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					result, err := stage.Play(ctx, story, scenarios.Plugin)
					check(t, result, err)
					checkShares(t, result)
				})
			}
		})
	}
}

func TestTheIncidentLosesRequestsWithTheNativeRouterAndNoneWithThePlugin(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	native, plugin, err := stage.Both(ctx, Incident(scenarios.Subset))
	check(t, plugin, err)
	checkShares(t, plugin)
	row := native.Row()
	t.Log(row)
	// 2 of 20 pods can take 28 of the 96 requests a second that all go to them.
	if row.Lost < row.Sent/100 {
		t.Errorf("the native router lost %d of %d requests: the load is none that 2 pods cannot carry", row.Lost, row.Sent)
	}
}

// check holds a result of the plugin's against its targets.
func check(t *testing.T, r Result, err error) {
	t.Helper()
	explain(t, r)
	if err != nil {
		t.Error(err)
	}
	t.Log(r.Row())
	saved := slices.DeleteFunc(r.Record.Lost(), func(lost fleet.Request) bool {
		return r.Story.Forced && excused(r, lost) || cutOff(r, lost)
	})
	if len(saved) > 0 {
		t.Errorf("%d requests were lost, the first at %.3f s: %s", len(saved), saved[0].At.Sub(r.Timeline.Start).Seconds(), saved[0].Failure)
	}
	if len(r.Record.Requests) < 100 {
		t.Errorf("only %d requests were sent", len(r.Record.Requests))
	}
}

// checkShares holds the shares against the weights.
func checkShares(t *testing.T, r Result) {
	t.Helper()
	for _, w := range r.Windows {
		if w.Long() && w.Off() > Points {
			t.Errorf("the share was %.1f points off: %s", w.Off(), w)
		}
	}
	if r.Story.Name == plainName {
		judgedAt(t, r, 10, 50)
	}
}

// judgedAt checks that the canary had those weights for long enough: shares that
// are never judged are never wrong.
func judgedAt(t *testing.T, r Result, weights ...float64) {
	t.Helper()
	judged := map[float64]bool{}
	for _, w := range r.Windows {
		judged[w.Weight] = judged[w.Weight] || w.Long()
	}
	for _, weight := range weights {
		if !judged[weight] {
			t.Errorf("weight %.0f was not held for long enough to judge the share: %v", weight, r.Windows)
		}
	}
}

// excused is whether the canary had just lost its last pod: no one can write
// before that.
func excused(r Result, lost fleet.Request) bool {
	at := lost.At.Sub(r.Timeline.Start)
	before := timeline.State{}
	for _, s := range r.Timeline.States() {
		if s.At > at {
			return false
		}
		died := before.Pods[s.CanaryHash].Available > 0 && s.Pods[s.CanaryHash].Available == 0
		if died && at-s.At <= reaction {
			return true
		}
		before = s
	}
	return false
}

// cutOff is whether the client had a route and could not get the cluster that it names,
// because istiod was dead. gRPC asks for a cluster when a route names it first, where envoy
// gets clusters ahead of routes; nothing that writes weights could know of it.
func cutOff(r Result, lost fleet.Request) bool {
	if !strings.Contains(lost.Failure, "failed to push new configuration") || !strings.Contains(lost.Failure, "error received from xDS stream") {
		return false
	}
	killed := func(m Moment) bool { return m.What == "kill "+string(IstiodProcess) && !m.At.After(lost.At) }
	back := func(m Moment) bool {
		return m.What == string(IstiodProcess)+" is back" && lost.At.Sub(m.At) > reconnected
	}
	return slices.ContainsFunc(r.Moments, killed) && !slices.ContainsFunc(r.Moments, back)
}

// reconnected is how long after the return of istiod every client has found it: gRPC's
// back-off may have come to some seconds.
const reconnected = 10 * time.Second

// explain prints, should the test fail, what happened around each lost request,
// the windows, and the timeline.
func explain(t *testing.T, r Result) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		var out bytes.Buffer
		_ = r.WriteLost(&out) // a Buffer takes everything
		for _, w := range r.Windows {
			out.WriteString(w.String() + "\n")
		}
		_ = timeline.Print(&out, r.Timeline)
		t.Logf("around the lost requests:\n%s\ncontroller's log:\n%s", &out, stage.Controller.Tail(40, r.Timeline.Subject.Namespace))
	})
}
