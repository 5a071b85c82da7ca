package docs

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/docs/markdown"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
)

// howToMark is what whoever writes a block needs to know.
const howToMark = `Put one of these into the line above the fence:
	<!-- runnable -->                                                      whole objects, which a test applies
	<!-- runnable in examples/subset-level/rollout.yaml at PATH -->        a part of a Rollout, such as spec.strategy, or "plugin" for the plugin's block
	<!-- runnable in examples/subset-level/rollout.yaml instead of PATH -->  the same, and nothing else is left there
	<!-- fragment: why it cannot be applied -->                            only parsed
(go doc ./docs/markdown says more)`

// fences are those of all pages in one of the languages.
func fences(t *testing.T, languages ...string) []markdown.Fence {
	t.Helper()
	var found []markdown.Fence
	for _, page := range pages(t) {
		all, err := page.Fences()
		if err != nil {
			t.Error(err)
			continue
		}
		for _, f := range all {
			for _, language := range languages {
				if f.Language == language {
					found = append(found, f)
				}
			}
		}
	}
	return found
}

func TestEveryBlockOfYAMLIsMarkedAndWhatItSays(t *testing.T) {
	blocks := fences(t, "yaml")
	if len(blocks) < 10 {
		t.Errorf("only %d blocks were found", len(blocks))
	}
	for _, f := range blocks {
		for _, fault := range faultsOf(f) {
			t.Errorf("%s: %s", f.At, fault)
		}
	}
}

// faultsOf is what can be told of a block without an API server.
func faultsOf(f markdown.Fence) []string {
	if f.Kind == markdown.None {
		return []string{"no marker above it. " + howToMark}
	}
	manifest, err := f.Manifest("..")
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	for document := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		var object any
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			faults = append(faults, err.Error())
			continue
		}
		faults = append(faults, pluginFaults(object, f.Why)...)
		if f.Kind == markdown.Fragment {
			continue
		}
		if err := configured(object); err != nil {
			faults = append(faults, err.Error())
		}
	}
	return faults
}

// configured reads the plugin's block of a Rollout as the plugin does: the API server
// does not look into it.
func configured(object any) error {
	if fields, ok := object.(map[string]any); !ok || fields["kind"] != "Rollout" {
		return nil
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var ro v1alpha1.Rollout
	if err := json.Unmarshal(raw, &ro); err != nil {
		return err
	}
	if ro.Namespace == "" {
		ro.Namespace = "any"
	}
	canary := ro.Spec.Strategy.Canary
	if canary == nil || canary.TrafficRouting == nil || canary.TrafficRouting.Plugins[config.DefaultPluginName] == nil {
		return nil
	}
	_, err = config.FromRollout(&ro, config.Options{
		PluginName: config.DefaultPluginName,
		// What an operator allows is not the block's matter.
		Prometheus: config.PrometheusAddresses{Default: "http://prometheus.monitoring:9090", Any: true},
	})
	return err
}

func TestABlockThatIsFaultyOrNotMarkedIsFound(t *testing.T) {
	const rollout = "examples/subset-level/rollout.yaml"
	for name, tc := range map[string]struct{ text, want string }{
		"no marker":                  {"```yaml\na: 1\n```", "no marker"},
		"a fragment that is no YAML": {"<!-- fragment: a part -->\n```yaml\na: [\n```", "yaml"},
		"a key that is there twice":  {"<!-- fragment: a part -->\n```yaml\na: 1\na: 2\n```", "already set"},
		"no such file":               {"<!-- runnable in nowhere.yaml at spec -->\n```yaml\na: 1\n```", "nowhere.yaml"},
		"a typing error in the plugin's block": {
			"<!-- runnable in " + rollout + " at plugin -->\n```yaml\nguard: {mod: Off}\n```", "mod"},
		"a plugin of another name": {
			"<!-- runnable in " + rollout + " at spec.strategy.canary.trafficRouting -->\n```yaml\nplugins: {argoproj-labs/itsio: {}}\n```", "argoproj-labs/itsio"},
		"a plugin of another name in the marker": {
			"<!-- runnable in " + rollout + " at spec.strategy.canary.trafficRouting.plugins.argoproj-labs/itsio -->\n```yaml\nguard: {mode: Observe}\n```", "argoproj-labs/itsio"},
		"a plugin of another name in a fragment": {
			"<!-- fragment: a part -->\n```yaml\na: 1\n---\ntrafficRouting: {plugins: {argoproj-labs/itsio: {}}}\n```", "argoproj-labs/itsio"},
		"a value that the plugin refuses": {
			"<!-- runnable in " + rollout + " at plugin -->\n```yaml\nguard: {mode: Perhaps}\n```", "Perhaps"},
	} {
		blocks, err := markdown.Parse("p.md", tc.text).Fences()
		if err != nil {
			t.Fatal(err)
		}
		if faults := strings.Join(faultsOf(blocks[0]), "\n"); !strings.Contains(faults, tc.want) {
			t.Errorf("%s: faults are %q, want %q among them", name, faults, tc.want)
		}
	}
	good := "<!-- runnable in " + rollout + " at plugin -->\n```yaml\nguard: {mode: Observe}\n```"
	blocks, err := markdown.Parse("p.md", good).Fences()
	if err != nil {
		t.Fatal(err)
	}
	if faults := faultsOf(blocks[0]); len(faults) > 0 {
		t.Errorf("a good block has the faults %q", faults)
	}
}
