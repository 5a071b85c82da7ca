package simulate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// FuzzDerive gives it any text. What it takes has to be complete: a Rollout for each
// router, objects that can be sent, and something to record.
func FuzzDerive(f *testing.F) {
	examples, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil || len(examples) == 0 {
		f.Fatalf("no examples: %v", err)
	}
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		rolloutOf(nativeSubset, someSteps), rolloutOf(pluginHost, hostServices), rolloutOf(nativeHost, hostServices) + "\n---" + liveFiles,
		rolloutOf("maxTrafficWeight: 7\n        "+nativeSubset, "      steps: [null, {pause: {duration: x}}]\n"),
		"kind: Rollout\napiVersion: argoproj.io/v1alpha1\nmetadata: {name: a}\nspec: {strategy: {canary: {trafficRouting: []}}}",
		"a: &a [*a]", "{}", "- 1",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var in lint.Input
		in.Read("web.yaml", text)
		plan, err := Derive(in, Defaults())
		if err != nil {
			return
		}
		for _, v := range []Variant{plan.Native, plan.Plugin} {
			last := v.Objects[len(v.Objects)-1]
			if last["kind"] != "Rollout" || canaryOfAny(last)["trafficRouting"] == nil {
				t.Errorf("the last object is no Rollout with a router: %v", last)
			}
			if _, err := json.Marshal(v.Objects); err != nil {
				t.Error(err)
			}
			subject := v.Subject
			subject.Namespace = "lab"
			if err := subject.Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}

func canaryOfAny(rollout map[string]any) map[string]any {
	canary, _ := at(rollout, "spec", "strategy", "canary").(map[string]any)
	return canary
}
