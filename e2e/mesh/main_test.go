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
	faults, err := stage.Controller.Faults()
	if len(faults) > 0 {
		fmt.Printf("FAIL: in the controller's log, which holds what the plugin says:\n%s\n", strings.Join(faults, "\n"))
		code = 1
	}
	return code, errors.Join(err, stage.Close())
}
