package scenarios

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// outside is the host of the same pods for clients beyond the mesh.
const outside = name + ".example.com"

// twoHosts is a Rollout behind two hosts, each with a DestinationRule and a
// VirtualService of its own.
func twoHosts() routed {
	w := canary(Subset, SetWeight(30), stop())
	rule := block{
		"apiVersion": "networking.istio.io/v1", "kind": "DestinationRule", "metadata": block{"name": "outside"},
		"spec": block{
			"host": outside, "trafficPolicy": block{"tls": block{"mode": "DISABLE"}},
			"subsets": []any{block{"name": "live", "labels": block{"app": name}}, block{"name": "next", "labels": block{"app": name}}},
		},
	}
	to := func(subset string, weight int) block {
		return block{"destination": block{"host": outside, "subset": subset}, "weight": weight}
	}
	return routed{
		Workload: w,
		objects: append(around(Subset), w.virtualService(), rule, virtualServiceOf("outside", block{
			"hosts": []any{outside},
			"http":  []any{block{"name": "only", "route": []any{to("live", 100), to("next", 0)}}},
		})),
		config: block{
			"virtualServices": []any{block{"name": name, "routes": []any{"primary"}}, block{"name": "outside"}},
			"destinationRules": []any{
				block{"name": name, "canarySubsetName": "canary", "stableSubsetName": "stable"},
				block{"name": "outside", "canarySubsetName": "next", "stableSubsetName": "live"},
			},
		},
	}
}

// asInMesh says whether the subsets of the outer host name the hashes that those of
// the inner one name.
func asInMesh(inner *snapshot) func(*unstructured.Unstructured) string {
	return func(outer *unstructured.Unstructured) string {
		return cmp.Diff(hashesOf(inner.object, "stable", "canary"), hashesOf(outer, "live", "next"))
	}
}

func hashesOf(rule *unstructured.Unstructured, subsets ...string) []string {
	var found []string
	for _, subset := range subsets {
		for _, s := range listOf(rule.Object["spec"], "subsets") {
			if labels, _ := s["labels"].(block); s["name"] == subset {
				found = append(found, fmt.Sprint(labels[v1alpha1.DefaultRolloutUniqueLabelKey]))
			}
		}
	}
	return found
}

func TestTwoHostsWithADestinationRuleEachGoTogether(t *testing.T) {
	t.Parallel()
	var paused, end snapshot
	recorded := playRouted(t, controller(t, lab.DefaultVersion), twoHosts(),
		deployed, deploy("upgrade", 2), pausedAt(1), weighed(30), paused.take(destinationRules, name),
		becomes(virtualServices, "outside", weighs("only", 70, 30)), becomes(destinationRules, "outside", asInMesh(&paused)),
		mark("by hand"), update(destinationRules, "outside", func(spec block) {
			listOf(spec, "subsets")[0]["labels"].(block)[v1alpha1.DefaultRolloutUniqueLabelKey] = "nobody"
		}),
		becomes(destinationRules, "outside", asInMesh(&paused)), becomes(virtualServices, "outside", weighs("only", 70, 30)),
		goOn, promotedAfter("upgrade"), end.take(destinationRules, name),
		becomes(virtualServices, "outside", weighs("only", 100, 0)), becomes(destinationRules, "outside", asInMesh(&end)))
	hold(t, recorded, limits("upgrade", "Healthy", time.Minute))
	endsPromoted(t, recorded)
	if before, after := hashesOf(paused.object, "stable"), hashesOf(end.object, "stable"); cmp.Equal(before, after) {
		t.Errorf("the stable subset still names %v after the promotion", before)
	}
}
