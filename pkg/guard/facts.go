package guard

import (
	"math"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/utils/weightutil"
)

// Pods are the pods behind one pod-template hash. The zero value says that there are none, which is also what a hash
// without a ReplicaSet has. Negative counts are read as 0.
type Pods struct {
	// Available pods, as in the ReplicaSet's status.availableReplicas.
	Available int32
	// Size is the ReplicaSet's spec.replicas: what it has been scaled to, whether or not the pods are there yet.
	Size int32
}

// Facts is all that a decision rests on, gathered before it is made. Any value is accepted; what cannot be is read as the
// nearest value that can. RolloutFacts fills in what a Rollout says, the caller adds what was seen in the cluster.
type Facts struct {
	// Desired is the canary's weight that the controller asks for, in parts of Max, as it came over the wire.
	Desired int32
	// Max is maxTrafficWeight; 0 and less mean the default of 100.
	Max int32
	// Replicas is spec.replicas, with nil resolved to 1.
	Replicas int32

	// Canary and Stable are the pods behind the hashes that the routing names at this moment. These need not be the
	// hashes of the status: on a dynamic rollback the canary side names the previous canary (argo-rollouts#3020).
	Canary, Stable Pods
	// SameHash is true when both sides name one hash, so that a weight moves no traffic between versions.
	SameHash bool

	// Intended is the canary count that the controller itself is aiming for; see IntendedCanaryReplicas.
	Intended int32
	// MinPods is minPodsPerReplicaSet; 0 when it is not set.
	MinPods int32
	// Threshold is replicaProgressThreshold; nil when it is not set.
	Threshold *v1alpha1.ReplicaProgressThreshold

	// Written is the canary's part of Max in the object now. It means nothing unless WrittenKnown.
	Written      int32
	WrittenKnown bool

	// DynamicStableScale is true when the controller takes pods from the stable as the canary's weight rises.
	DynamicStableScale bool
	// Returning is true when the controller is taking traffic back to the stable, and so scales it up: after an abort,
	// or because the template was set back to the stable revision.
	Returning bool
}

// RolloutFacts returns the facts that a Rollout tells by itself. Desired, Canary, Stable, SameHash, Intended and Written
// are left for the caller. The Rollout is only read.
func RolloutFacts(ro *v1alpha1.Rollout) Facts {
	f := Facts{
		Max:       int32(maxWeight(ro)),
		Replicas:  saturate(replicas(ro)),
		Returning: ro.Status.Abort || ro.Status.StableRS != "" && ro.Status.CurrentPodHash == ro.Status.StableRS,
	}
	canary := ro.Spec.Strategy.Canary
	if canary == nil {
		return f
	}
	f.Threshold = canary.ReplicaProgressThreshold
	f.DynamicStableScale = canary.DynamicStableScale
	if canary.MinPodsPerReplicaSet != nil {
		f.MinPods = *canary.MinPodsPerReplicaSet
	}
	return f
}

// defaultMaxWeight is the controller's default for maxTrafficWeight.
const defaultMaxWeight = 100

// maxWeight is maxTrafficWeight. The controller does not validate the field, and divides by it: a value that is not
// positive never gets as far as a weight, so reading it as the default cannot differ from what the controller does.
func maxWeight(ro *v1alpha1.Rollout) int64 {
	return positiveMax(weightutil.MaxTrafficWeight(ro))
}

func positiveMax(weight int32) int64 {
	if weight <= 0 {
		return defaultMaxWeight
	}
	return int64(weight)
}

// replicas is spec.replicas, which the controller defaults to 1.
func replicas(ro *v1alpha1.Rollout) int64 {
	if ro.Spec.Replicas == nil {
		return 1
	}
	return int64(*ro.Spec.Replicas)
}

// view is Facts in a form that can be reckoned with: everything in its range, and in int64, where the product of two
// int32 always fits.
type view struct {
	desired, max, replicas int64
	canary, stable         pods
	intended, minPods      int64
	written                int64
	need, enough           int64
	facts                  Facts
}

type pods struct{ available, size int64 }

func see(f Facts) view {
	v := view{
		max:      positiveMax(f.Max),
		replicas: nonNegative(f.Replicas),
		canary:   seePods(f.Canary),
		stable:   seePods(f.Stable),
		intended: int64(f.Intended),
		minPods:  nonNegative(f.MinPods),
		facts:    f,
	}
	// Rule 1. The controller has been seen to ask for -140 (argo-rollouts#3470) and for 200 (#4424).
	v.desired = clamp(f.Desired, v.max)
	v.written = clamp(f.Written, v.max)
	v.need = v.needFor(v.desired)
	v.enough = enoughOf(v.need, f.Threshold)
	return v
}

func seePods(p Pods) pods {
	return pods{available: nonNegative(p.Available), size: nonNegative(p.Size)}
}

// needFor is how many canary pods a weight needs at full load per pod (rule 4). The intended count bounds it, so that
// whoever asks for one pod and half of the traffic with setCanaryScale gets just that.
func (v view) needFor(weight int64) int64 {
	return max(1, min(v.intended, v.shareOf(weight)))
}

// shareOf is how many of spec.replicas pods a weight amounts to, rounded up.
func (v view) shareOf(weight int64) int64 {
	return ceilDiv(weight*v.replicas, v.max)
}

// enoughOf is how many of need pods replicaProgressThreshold is content with. It lowers need, never raises it, and never
// below one pod.
//
// The controller compares floating-point percentages and forgives a difference of 1e-10. In whole numbers that is plain
// "at least": two different values of available/need·100 and of the threshold are further apart than that.
func enoughOf(need int64, t *v1alpha1.ReplicaProgressThreshold) int64 {
	if t == nil || t.Value < 0 {
		return need
	}
	value := int64(t.Value)
	if t.Type == v1alpha1.ProgressTypePercentage {
		value = ceilDiv(value*need, 100)
	}
	return max(1, min(value, need))
}

func nonNegative(n int32) int64 { return max(0, int64(n)) }

// clamp brings a weight into 0 to limit.
func clamp(weight int32, limit int64) int64 {
	return max(0, min(int64(weight), limit))
}

// ceilDiv divides by a positive number, rounding up; towards 0 below 0, as math.Ceil does.
func ceilDiv(a, b int64) int64 {
	if a <= 0 {
		return a / b
	}
	return (a-1)/b + 1
}

// saturate is the nearest int32.
func saturate(n int64) int32 {
	return int32(max(math.MinInt32, min(n, math.MaxInt32)))
}
