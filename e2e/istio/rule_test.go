package istio

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
)

// trafficPolicies are some that Istio accepts, for a rule as for a subset.
var trafficPolicies = []any{
	fields{"loadBalancer": fields{"simple": "LEAST_REQUEST", "warmup": fields{"duration": "10s"}}},
	fields{"loadBalancer": fields{"consistentHash": fields{"httpHeaderName": "x-user"}}},
	fields{"connectionPool": fields{"tcp": fields{"maxConnections": int64(7)}, "http": fields{"http2MaxRequests": int64(1)}}},
	fields{"outlierDetection": fields{"consecutive5xxErrors": int64(3), "interval": "5s", "maxEjectionPercent": int64(50)}},
	fields{"tls": fields{"mode": "ISTIO_MUTUAL"}},
	fields{"portLevelSettings": []any{fields{"port": fields{"number": int64(80)}, "tls": fields{"mode": "DISABLE"}}}},
}

// subset may have labels, a hash among them, and a policy.
func subset(t *rapid.T, name string) any {
	s := fields{"name": name}
	maybe(t, s, "trafficPolicy", trafficPolicies...)
	maybe(t, s, "labels", fields{}, fields{"app": "web"}, fields{"app": "web", "rollouts-pod-template-hash": "5f8d7c9b"},
		fields{"example.com/part": "a.b_c"})
	return s
}

// drawRule is a rule with the subsets canary and stable, and maybe others.
func drawRule(t *rapid.T) *unstructured.Unstructured {
	names := append([]string{"canary", "stable"}, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"legacy", "v2", "exp-b"}), 0, 3, rapid.ID).Draw(t, "others")...)
	var subsets []any
	for _, name := range rapid.Permutation(names).Draw(t, "subsets") {
		subsets = append(subsets, subset(t, name))
	}
	spec := fields{"host": rapid.SampledFrom([]string{"web", "web.shop.svc.cluster.local", "*.example.com"}).Draw(t, "host"), "subsets": subsets}
	maybe(t, spec, "trafficPolicy", trafficPolicies...)
	maybe(t, spec, "exportTo", []any{"."}, []any{"*"}, []any{"shop", "lab"})
	metadata := fields{"name": "web", "namespace": "shop"}
	maybe(t, metadata, "annotations", fields{"note": "1"}, fields{"argo-rollouts.argoproj.io/managed-by-rollouts": "web"})
	return &unstructured.Unstructured{Object: fields{
		"apiVersion": "networking.istio.io/v1", "kind": "DestinationRule", "metadata": metadata, "spec": spec,
	}}
}

func drawRuleTarget(t *rapid.T) destinationrule.Target {
	hash := rapid.SampledFrom([]string{"", "h1", "h2", "5f8d7c9b"})
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"exp-a", "exp-b", "exp-c"}), 0, 3, rapid.ID)
	target := destinationrule.Target{
		Owner: "shop/web", CanarySubset: "canary", StableSubset: "stable",
		CanaryHash: hash.Draw(t, "canary hash"), StableHash: hash.Draw(t, "stable hash"),
		Drop: names.Draw(t, "drop"),
	}
	for _, name := range names.Draw(t, "experiments") {
		target.Experiments = append(target.Experiments, destinationrule.Experiment{Subset: name, Hash: rapid.SampledFrom([]string{"h3", "h4"}).Draw(t, name)})
	}
	return target
}

func TestIstioAcceptsEveryDestinationRuleAfterAPatchThatItAcceptedBefore(t *testing.T) {
	var seen tally
	rapid.Check(t, func(t *rapid.T) {
		u := drawRule(t)
		if _, err := Validate(asJSON(t, u)); err != nil {
			seen.refused++
			return
		}
		// Hashes move and experiments come and go, one after the other.
		for range 3 {
			patch, _, err := destinationrule.Parse(patched(t, u, nil), manager).Set(drawRuleTarget(t))
			if !seen.count(patch, err) {
				return
			}
			after := patched(t, u, patch)
			accepted(t, u, after, patch)
			u = after
		}
	})
	seen.enough(t, 1000)
}
