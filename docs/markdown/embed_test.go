package markdown

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const file = `
kind: Service
---
kind: Rollout
spec:
  replicas: 3
  strategy:
    canary:
      steps: [{setWeight: 1}]
      trafficRouting: {plugins: {argoproj-labs/istio: {virtualService: {name: web}}}}
`

func TestAPartGoesToItsPlaceInTheRollout(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "f.yaml"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ marker, body, want string }{
		"maps are merged": {"at spec.strategy", "canary: {maxSurge: 1}",
			`{kind: Rollout, spec: {replicas: 3, strategy: {canary: {maxSurge: 1, steps: [{setWeight: 1}], trafficRouting: {plugins: {argoproj-labs/istio: {virtualService: {name: web}}}}}}}}`},
		"lists are replaced": {"at spec.strategy.canary.steps", "- pause: {}",
			`{kind: Rollout, spec: {replicas: 3, strategy: {canary: {steps: [{pause: {}}], trafficRouting: {plugins: {argoproj-labs/istio: {virtualService: {name: web}}}}}}}}`},
		"the plugin's block": {"at plugin", "guard: {mode: Off}",
			`{kind: Rollout, spec: {replicas: 3, strategy: {canary: {steps: [{setWeight: 1}], trafficRouting: {plugins: {argoproj-labs/istio: {guard: {mode: Off}, virtualService: {name: web}}}}}}}}`},
		"instead of what is there": {"instead of plugin", "tcpRoutes: []",
			`{kind: Rollout, spec: {replicas: 3, strategy: {canary: {steps: [{setWeight: 1}], trafficRouting: {plugins: {argoproj-labs/istio: {tcpRoutes: []}}}}}}}`},
		"a place that is not there": {"at metadata", "name: web",
			`{kind: Rollout, metadata: {name: web}, spec: {replicas: 3, strategy: {canary: {steps: [{setWeight: 1}], trafficRouting: {plugins: {argoproj-labs/istio: {virtualService: {name: web}}}}}}}}`},
	} {
		f := fences(t, "<!-- runnable in f.yaml "+tc.marker+" -->\n```yaml\n"+tc.body+"\n```\n")[0]
		got, err := f.Manifest(root)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(decoded(t, tc.want), decoded(t, string(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := yaml.UnmarshalStrict([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestAPartWithoutAPlaceIsAnErrorWithItsPlaceOnThePage(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "no-rollout.yaml"), []byte("kind: Service\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for marker, want := range map[string]string{
		"runnable in nowhere.yaml at spec":    "nowhere.yaml",
		"runnable in no-rollout.yaml at spec": "does not have one Rollout",
	} {
		_, err := fences(t, "<!-- "+marker+" -->\n```yaml\na: 1\n```\n")[0].Manifest(root)
		if err == nil || !strings.Contains(err.Error(), "p.md:2") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", marker, err)
		}
	}
}
