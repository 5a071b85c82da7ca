package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// What all tests share: the lab, the Prometheus of the operator, another one that a
// Rollout may name, the fleet that both scrape, and a controller with the plugin.
var shared struct {
	lab        *lab.Lab
	own, other *lab.Prometheus
	fleet      *Fleet
	controller *lab.Controller
	plugin     string
}

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// runTests is apart from TestMain so that its deferred Stop runs before the exit.
func runTests(m *testing.M) (code int) {
	if err := open(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := errors.Join(shared.fleet.Close(), shared.lab.Stop()); err != nil {
			fmt.Fprintln(os.Stderr, "stop the lab:", err)
		}
	}()
	code = m.Run()
	if found := faults(); len(found) > 0 {
		fmt.Printf("FAIL: in the controller's log, which holds what the plugin says:\n%s\n", strings.Join(found, "\n"))
		return 1
	}
	return code
}

func open(ctx context.Context) (err error) {
	if shared.plugin, err = lab.BuildPlugin(ctx, lab.PluginOptions{Race: true}); err != nil {
		return err
	}
	if shared.lab, err = lab.Start(ctx, lab.Options{}); err != nil {
		return err
	}
	for _, p := range []**lab.Prometheus{&shared.own, &shared.other} {
		if *p, err = shared.lab.StartPrometheus(ctx, lab.PrometheusOptions{}); err != nil {
			return errors.Join(err, shared.lab.Stop())
		}
	}
	if shared.fleet, err = NewFleet(shared.own, shared.other); err != nil {
		return errors.Join(err, shared.lab.Stop())
	}
	shared.controller, err = shared.lab.StartController(ctx, lab.ControllerOptions{
		InstanceID: "gate", PluginPath: shared.plugin,
		PluginArgs: []string{"--prometheus-address=" + shared.own.URL, "--allow-prometheus-addresses=" + shared.other.URL},
	})
	if err != nil {
		return errors.Join(err, shared.lab.Stop())
	}
	return nil
}

// faults are the lines that no log may have: the race detector's report, and a panic,
// recovered or not.
func faults() []string {
	content, err := os.ReadFile(shared.controller.Log())
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for line := range strings.Lines(string(content)) {
		if slices.ContainsFunc([]string{"DATA RACE", "recovered from a panic", "panic: "}, func(text string) bool { return strings.Contains(line, text) }) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

const (
	// window is the shortest that there is; with a scrape each second it has ten samples.
	window = 10 * time.Second
	// patience bounds one scenario. A good run takes a quarter of it.
	patience = 4 * time.Minute
	// busy is a rate at which every window has enough requests on both sides.
	busy = 80
)

// gated is a canary of two pods with a health gate, which change may change.
func gated(level scenarios.Level, steps []v1alpha1.CanaryStep, change func(gate map[string]any)) scenarios.Workload {
	gate := map[string]any{
		"provider": map[string]any{"prometheus": map[string]any{}},
		"interval": window.String(), "minRequests": 20,
	}
	if change != nil {
		change(gate)
	}
	return scenarios.Workload{Level: level, Router: scenarios.Plugin, Replicas: 2, Steps: steps, Edit: func(ro *v1alpha1.Rollout) {
		delay := int32(1)
		ro.Spec.Strategy.Canary.ScaleDownDelaySeconds = &delay
		plugins := ro.Spec.Strategy.Canary.TrafficRouting.Plugins
		block := map[string]any{}
		if err := json.Unmarshal(plugins[lab.DefaultPluginName], &block); err != nil {
			panic(err) // package scenarios wrote it
		}
		block["healthGate"] = gate
		plugins[lab.DefaultPluginName], _ = json.Marshal(block)
	}}
}

// dynamicStableScale takes pods from the stable as the canary's weight rises.
func dynamicStableScale(w scenarios.Workload) scenarios.Workload {
	edit := w.Edit
	w.Edit = func(ro *v1alpha1.Rollout) {
		edit(ro)
		ro.Spec.Strategy.Canary.DynamicStableScale, ro.Spec.Strategy.Canary.ScaleDownDelaySeconds = true, nil
	}
	return w
}

// play opens a scene with traffic, waits for its first version to be healthy, and plays a
// script in it. What was recorded is returned, and printed should the test fail.
func play(t *testing.T, w scenarios.Workload, rate float64, script func(context.Context, *scenarios.Scene, *Traffic) error) timeline.Timeline {
	t.Helper()
	return playWith(t, shared.controller, shared.fleet, w, rate, script)
}

// playWith is play with a controller and a fleet of the test's own.
func playWith(t *testing.T, c *lab.Controller, f *Fleet, w scenarios.Workload, rate float64, script func(context.Context, *scenarios.Scene, *Traffic) error) timeline.Timeline {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := scenarios.Open(ctx, shared.lab, c, w)
	if err != nil {
		t.Fatal(err)
	}
	traffic := Send(ctx, f, shared.lab, s, rate)
	if _, err = s.AwaitPhase(ctx, "", "Healthy"); err == nil {
		err = script(ctx, s, traffic)
	}
	recorded := s.Close(context.WithoutCancel(ctx))
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		var out bytes.Buffer
		if err := timeline.Print(&out, recorded); err != nil {
			t.Error(err)
		}
		t.Logf("timeline:\n%s\ncontroller's log (%s):\n%s", &out, c.Log(), c.Tail(60, s.Namespace))
	})
	if err = errors.Join(err, traffic.Err()); err != nil {
		t.Error(err)
	}
	return recorded
}

// steps are the weights of a canary without any pause.
func steps(weights ...int32) []v1alpha1.CanaryStep {
	var all []v1alpha1.CanaryStep
	for _, w := range weights {
		all = append(all, scenarios.SetWeight(w))
	}
	return all
}

// promoted waits until a version that was deployed with this mark is the stable, and has
// given back its weight.
func promoted(ctx context.Context, s *scenarios.Scene, mark string) error {
	if _, err := s.AwaitPhase(ctx, mark, "Healthy"); err != nil {
		return err
	}
	_, err := s.Await(ctx, "weight 0 after the promotion", func(st timeline.State) bool {
		return st.CanaryWeight == 0 && st.StableHash == st.Rollout.PodHash
	})
	return err
}

// promotedByHand deploys a version that nobody judges.
func promotedByHand(ctx context.Context, s *scenarios.Scene, mark string, version int) error {
	if err := s.Deploy(ctx, mark, version); err != nil {
		return err
	}
	if err := atWeight(ctx, s, 50); err != nil {
		return err
	}
	if err := s.PromoteFull(ctx, mark+" by hand"); err != nil {
		return err
	}
	return promoted(ctx, s, mark+" by hand")
}

// atWeight waits until the canary has a weight.
func atWeight(ctx context.Context, s *scenarios.Scene, weight int32) error {
	_, err := s.Await(ctx, fmt.Sprintf("weight %d", weight), func(st timeline.State) bool { return st.CanaryWeight == weight })
	return err
}

// rolledBack waits until the gate has aborted the Rollout and the canary has nothing.
func rolledBack(ctx context.Context, s *scenarios.Scene) error {
	_, err := s.Await(ctx, "the rollback", func(st timeline.State) bool {
		return st.Rollout.Abort && st.CanaryWeight == 0 && event(st, "CanaryRolledBack") != ""
	})
	return err
}

// told waits for an Event.
func told(ctx context.Context, s *scenarios.Scene, reason, text string) error {
	_, err := s.Await(ctx, "Event "+reason+" with "+text, func(st timeline.State) bool {
		return slices.ContainsFunc(st.Events, func(e timeline.Event) bool { return e.Reason == reason && strings.Contains(e.Message, text) })
	})
	return err
}

// event is the newest Event's text, "" if there is none.
func event(st timeline.State, reason string) string {
	for _, e := range slices.Backward(st.Events) {
		if e.Reason == reason {
			return e.Message
		}
	}
	return ""
}

// stays waits for a while and holds that it is so at each moment of it.
func stays(ctx context.Context, s *scenarios.Scene, what string, d time.Duration, so func(timeline.State) bool) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	state, err := s.Await(ctx, what, func(st timeline.State) bool { return !so(st) })
	if err == nil {
		return fmt.Errorf("not any more: %s: weight %d, aborted %t, stable %s of %s", what, state.CanaryWeight, state.Rollout.Abort, state.Rollout.StableRS, state.Rollout.PodHash)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// stretch is a time at one weight.
type stretch struct {
	weight   int32
	from, to time.Duration
}

// stretches are those of the canary between a mark and its promotion.
func stretches(recorded timeline.Timeline, mark string) []stretch {
	var all []stretch
	marked := false
	for _, st := range recorded.States() {
		marked = marked || st.Entry.Name == mark
		if !marked {
			continue
		}
		if len(all) > 0 {
			all[len(all)-1].to = st.At
		}
		if st.Rollout.PodHash != "" && st.Rollout.StableRS == st.Rollout.PodHash && len(all) > 0 && all[len(all)-1].weight > 0 {
			return all
		}
		if len(all) == 0 || all[len(all)-1].weight != st.CanaryWeight {
			all = append(all, stretch{st.CanaryWeight, st.At, st.At})
		}
	}
	return all
}

// eachHasItsWindow holds that the canary was given these weights, each for a window at
// least, before it was promoted.
func eachHasItsWindow(t *testing.T, recorded timeline.Timeline, mark string, weights ...int32) {
	t.Helper()
	var given []int32
	for _, s := range stretches(recorded, mark) {
		if s.weight == 0 {
			continue
		}
		given = append(given, s.weight)
		if s.to-s.from < window {
			t.Errorf("weight %d from %s to %s, which is less than a window", s.weight, s.from, s.to)
		}
	}
	if !slices.Equal(given, weights) {
		t.Errorf("the canary was given %v, want %v", given, weights)
	}
}
