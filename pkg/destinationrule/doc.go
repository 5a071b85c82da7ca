// Package destinationrule reads what the plugin has to know of an Istio
// DestinationRule and computes the JSON patch that makes its stable and its canary
// subset name the pods of one ReplicaSet each.
//
//	dr := destinationrule.Parse(u, fieldManager)
//	hash, err := dr.Hash("canary")
//	patch, changes, err := dr.Set(destinationrule.Target{
//		CanarySubset: "canary", CanaryHash: canaryHash, StableSubset: "stable", StableHash: stableHash,
//	})
//	body, err := patch.Guarded(dr.ResourceVersion).Marshal()
//
// A subset names pods by the label rollouts-pod-template-hash among its labels. Only
// the values of this label in our two subsets change. Other labels, trafficPolicy,
// subsets of other names and every field of the rule stay as they are, in their
// order; so does whatever a later version of Istio adds.
//
// An experiment has a subset only while it runs. Such subsets are added, get their
// label and are removed by name. Only what stands under the Rollout's own name in
// the annotation of package ownership is removed.
//
// There is one exception more. The native router of Argo Rollouts leaves its annotation
// argo-rollouts.argoproj.io/managed-by-rollouts behind, and its controller
// strips the hash labels from a rule that has it and belongs to no native Rollout
// (rollout/trafficrouting/istio of argo-rollouts). Set removes it; it is never
// written.
//
// The package reads and writes nothing in a cluster, keeps no state and logs nothing.
// It does not judge whether a hash may move yet, whether pods with it exist, or
// whether the other labels of a subset match any pod. The field formats are those of
// istio.io/api networking/v1. All functions are pure and safe for concurrent use.
package destinationrule
