package scenarios

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// Allowed is the guard's rule in the terms of a recorded state: the highest
// canary weight, in parts, that is right for the pods and the Rollout of that
// state. The guard's own tests say that the rule is right; here it is only asked
// about facts that a recorder, not the plugin, has gathered.
func Allowed(s timeline.State) int32 {
	var ro v1alpha1.Rollout
	if s.Rollout.Object == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(s.Rollout.Object.Object, &ro) != nil {
		return 0 // nothing is known that would allow a weight
	}
	f := guard.RolloutFacts(&ro)
	f.Desired = s.Rollout.DesiredWeight
	f.Canary, f.Stable = pods(s, s.CanaryHash), pods(s, s.StableHash)
	f.SameHash = s.CanaryHash != "" && s.CanaryHash == s.StableHash
	f.Written, f.WrittenKnown = s.CanaryWeight, true
	f.Intended = guard.IntendedCanaryReplicas(&ro, f.Canary, f.Stable)
	return guard.Decide(f).Weight
}

func pods(s timeline.State, hash string) guard.Pods {
	p := s.Pods[hash]
	return guard.Pods{Available: p.Available, Size: p.Size}
}
