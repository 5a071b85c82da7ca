package simulate

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/golden"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// official are the manifests of Argo Rollouts that have the native router's block, as
// patterns in its repository; those of one entry are given together.
var official = [][]string{
	{"examples/istio/istio-mirror.yaml"},
	{"examples/istio/istio-subset-split.yaml"},
	{"examples/traffic-routing-experiment-step/istio-host-split-experiment-step.yaml"},
	{"docs/getting-started/istio/*.yaml"},
	{"test/e2e/header-routing/istio-hr-host.yaml"},
	{"test/e2e/mirror-route/istio-mirror-host.yaml"},
	{"test/e2e/istio/istio-host-http-tls-split.yaml"},
	{"test/e2e/istio/istio-host-only-tls-split.yaml"},
	{"test/e2e/istio/istio-host-split-experiment-step.yaml"},
	{"test/e2e/istio/istio-host-split-ping-pong.yaml"},
	{"test/e2e/istio/istio-host-split-update-in-middle.yaml"},
	{"test/e2e/istio/istio-host-split.yaml"},
	{"test/e2e/istio/istio-rollout-abort-delete-all-canary-pods.yaml"},
	{"test/e2e/istio/istio-subset-split-experiment-step.yaml"},
	{"test/e2e/istio/istio-subset-split-in-stable-downscale-after-canary-abort.yaml"},
	{"test/e2e/istio/istio-subset-split-single-route.yaml"},
	{"test/e2e/istio/istio-subset-split.yaml"},
	{"test/e2e/istio/*.yaml"},
}

// officialFolder is where the go command keeps them.
func officialFolder(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/argoproj/argo-rollouts").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestWhatBecomesOfTheManifestsOfArgoRollouts(t *testing.T) {
	folder := officialFolder(t)
	var out bytes.Buffer
	for _, patterns := range official {
		fmt.Fprintf(&out, "$ simulate -f %s\n", strings.Join(patterns, " -f "))
		plan, err := Derive(officialInput(t, folder, patterns), Defaults())
		if err != nil {
			fmt.Fprintf(&out, "%v\n\n", err)
			continue
		}
		plan.Notes.Lint = "" // what the linter finds is its own tests' matter
		if err := WriteNotes(&out, plan); err != nil {
			t.Fatal(err)
		}
		for router, v := range map[string]Variant{"native": plan.Native, "plugin": plan.Plugin} {
			complete(t, router, plan, v)
		}
		out.WriteString("\n")
	}
	golden.Compare(t, "official.txt", out.String())
}

func officialInput(t *testing.T, folder string, patterns []string) lint.Input {
	t.Helper()
	var in lint.Input
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v, %d files", pattern, err, len(paths))
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			in.Read(filepath.Base(path), data)
		}
	}
	return in
}

// complete wants each VirtualService and Service that the play asks for to be there.
func complete(t *testing.T, router string, plan Plan, v Variant) {
	t.Helper()
	for _, name := range v.Subject.VirtualServices {
		if v.object("VirtualService", name) == nil {
			t.Errorf("%s, %s: VirtualService %s is not there", plan.Rollout, router, name)
		}
	}
	for _, name := range []string{v.Subject.CanaryService, v.Subject.StableService} {
		if name != "" && v.object("Service", name) == nil {
			t.Errorf("%s, %s: Service %s is not there", plan.Rollout, router, name)
		}
	}
	if name := v.Subject.DestinationRule; name != "" && v.object("DestinationRule", name) == nil {
		t.Errorf("%s, %s: DestinationRule %s is not there", plan.Rollout, router, name)
	}
}
