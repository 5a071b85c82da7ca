package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func main() {
	ctx := context.Background()
	plugin, err := lab.BuildPlugin(ctx, lab.PluginOptions{})
	if err != nil {
		panic(err)
	}
	l, err := lab.Start(ctx, lab.Options{})
	if err != nil {
		panic(err)
	}
	defer l.Stop()
	c, err := l.StartController(ctx, lab.ControllerOptions{PluginPath: plugin})
	if err != nil {
		fmt.Println(err)
		return
	}
	dump := func(name string, tl timeline.Timeline, err error) {
		fmt.Println("=====", name, err)
		timeline.Print(os.Stdout, tl)
		seen := map[string]bool{}
		for _, e := range tl.Entries {
			if ev, ok := e.Fact.(timeline.Event); ok && !seen[ev.Message] {
				seen[ev.Message] = true
				fmt.Printf("%.1f %s %s %s\n", e.At.Seconds(), ev.Type, ev.Reason, ev.Message)
			}
			if r, ok := e.Fact.(timeline.Rollout); ok {
				k := r.Phase + r.Message
				if !seen[k] {
					seen[k] = true
					fmt.Printf("%.1f PHASE %s %q step %d/%d asks %d\n", e.At.Seconds(), r.Phase, r.Message, r.StepIndex, r.Steps, r.DesiredWeight)
				}
			}
		}
	}
	i := scenarios.Incident{Level: scenarios.Subset, Replicas: 20, Last: 100, Ready: 2, Wait: 3 * time.Second}
	i.During = func(ctx context.Context, s *scenarios.Scene, hash string) error {
		for _, unready := range []bool{true, false} {
			if err := s.Fail(ctx, hash, unready); err != nil {
				return err
			}
			time.Sleep(3 * time.Second)
		}
		return nil
	}
	tl, err := scenarios.Play(ctx, l, c, i.Workload(scenarios.Plugin), i.Play)
	dump("incident", tl, err)
	j := scenarios.Incident{Level: scenarios.Subset, Replicas: 10, Last: 100, Ready: 2, Wait: 3 * time.Second, Edit: func(ro *v1alpha1.Rollout) {
		ro.Spec.Strategy.Canary.DynamicStableScale = true
		ro.Spec.Strategy.Canary.ScaleDownDelaySeconds = nil
	}}
	tl, err = scenarios.Play(ctx, l, c, j.Workload(scenarios.Plugin), j.Play)
	dump("dynamic", tl, err)
}
