package examples

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// controllerNamespace is where the install examples put the configuration.
const controllerNamespace = "argo-rollouts"

// installedPath is where install/base/argo-rollouts-config-file.yaml looks for the
// plugin; here it lies elsewhere.
const installedPath = "/istio-plugin/rollouts-plugin-trafficrouter-istio"

// shared is the lab of all tests, with one controller for all namespaces, installed
// from install/cluster-wide, and the plugin's binary.
var (
	shared     *lab.Lab
	controller *installation
	plugin     string
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// runTests is apart from TestMain so that its deferred Stop runs before the exit.
func runTests(m *testing.M) int {
	ctx := context.Background()
	built, err := lab.BuildPlugin(ctx, lab.PluginOptions{Race: true})
	if err == nil {
		plugin, err = filepath.Abs(built)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if shared, err = lab.Start(ctx, lab.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the lab:", err)
		}
	}()
	if controller, err = install(ctx, "cluster-wide", "", map[string]string{installedPath: plugin}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := checkRequests(code == 0 && wholeRun()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// file is the path of one of the examples.
func file(name string) string { return filepath.Join("..", "..", "examples", name) }

// newNamespace returns a namespace of the test's own and prints what the
// controller said of it should the test fail.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace, err := shared.Namespace(t.Context(), "example")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("controller's log:\n%s", controller.Tail(60, namespace))
		}
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := shared.DeleteNamespace(ctx, namespace); err != nil {
			t.Error(err)
		}
	})
	return namespace
}

// apply applies files of the examples as they are.
func apply(ctx context.Context, t *testing.T, namespace string, files ...string) {
	t.Helper()
	for _, f := range files {
		content, err := os.ReadFile(file(f))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shared.Apply(ctx, namespace, content); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
	}
}
