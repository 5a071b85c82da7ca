package simulate

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cli"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// TestARollbackOfAnExampleOverloadsItsPodsUnderTheNativeRouterOnly plays an example of
// the repository as a person would, and its canary after it in the same lab.
func TestARollbackOfAnExampleOverloadsItsPodsUnderTheNativeRouterOnly(t *testing.T) {
	settings := Defaults()
	settings.Pause, settings.Replicas = time.Second, 6
	plan := examplePlan(t, settings, "../../examples/subset-level")
	err := lab.WithPlugin(t.Context(), lab.PluginRun{Race: true}, func(l *lab.Lab, c *lab.Controller) error {
		stage := Stage{Lab: l, Controller: c, Progress: os.Stderr}
		rollback := played(t, stage, plan, Rollback, settings)
		if rollback.Native.Canary.Points == 0 || rollback.Native.Worst == nil {
			t.Errorf("the native router's peak is %+v, worst %+v: it should go beyond the pods", rollback.Native.Canary, rollback.Native.Worst)
		}
		if rollback.Plugin.Canary.Points != 0 || rollback.Plugin.Worst != nil {
			t.Errorf("the plugin's peak is %+v, worst %+v", rollback.Plugin.Canary, rollback.Plugin.Worst)
		}
		canary := played(t, stage, plan, Canary, settings)
		if !canary.Native.Over || canary.Native.Phase != "Healthy" {
			t.Errorf("the canary with the native router ended %q", canary.Native.Phase)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func examplePlan(t *testing.T, s Settings, folder string) Plan {
	t.Helper()
	var in lint.Input
	if err := cli.ReadFiles(t.Context(), &in, nil, []string{folder}); err != nil {
		t.Fatal(err)
	}
	plan, err := Derive(in, s)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// played plays a scenario that has to end well with the plugin. The table is printed
// when the test fails.
func played(t *testing.T, stage Stage, plan Plan, scenario Scenario, s Settings) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.Timeout)
	defer cancel()
	p, err := Play(ctx, stage, plan, scenario, s)
	if err != nil {
		t.Fatal(err)
	}
	r := Judge(plan, p)
	for _, broken := range r.Broken {
		t.Errorf("%s: %s", scenario, broken)
	}
	if r.Plugin.Phase != "Healthy" {
		t.Errorf("%s with the plugin ended %q", scenario, r.Plugin.Phase)
	}
	t.Cleanup(func() {
		if t.Failed() {
			var out bytes.Buffer
			if err := WriteResult(&out, r); err == nil {
				t.Log(out.String())
			}
		}
	})
	return r
}
