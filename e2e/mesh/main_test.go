package mesh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/namespace"
)

// stage is the mesh of all tests.
var stage *Stage

// pluginVariable is the path of the plugin under test. Whoever sets it has built
// one; else it is built with the race detector.
const pluginVariable = "ROLLOUTS_MESH_PLUGIN"

func TestMain(m *testing.M) {
	run := outside
	if namespace.Inside() {
		run = func() (int, error) { return inside(m) }
	}
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// outside builds what is missing and runs this program again in a namespace.
func outside() (int, error) {
	ctx := context.Background()
	if err := lab.Build(ctx, os.Stderr, Programs()...); err != nil {
		return 0, err
	}
	if os.Getenv(pluginVariable) == "" {
		plugin, err := lab.BuildPlugin(ctx, lab.PluginOptions{Race: true})
		if err != nil {
			return 0, err
		}
		if err := os.Setenv(pluginVariable, plugin); err != nil {
			return 0, err
		}
	}
	return namespace.Run()
}

func inside(m *testing.M) (code int, err error) {
	began := time.Now()
	if stage, err = Open(context.Background(), Options{Plugin: os.Getenv(pluginVariable)}); err != nil {
		return 0, err
	}
	fmt.Printf("mesh up after %.1f s\n", time.Since(began).Seconds())
	code = m.Run()
	faults, err := faults(stage.Controller.Log())
	if len(faults) > 0 {
		fmt.Printf("FAIL: in the controller's log, which holds what the plugin says:\n%s\n", strings.Join(faults, "\n"))
		code = 1
	}
	return code, errors.Join(err, stage.Close())
}

// faults are the lines that no log may have: the race detector's report, and a
// panic, recovered or not.
func faults(log string) ([]string, error) {
	content, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(content)) {
		for _, text := range []string{"DATA RACE", "recovered from a panic", "panic: "} {
			if strings.Contains(line, text) {
				found = append(found, strings.TrimSpace(line))
			}
		}
	}
	return found, nil
}
