package guard

// Reason is a stable code for the rule that made a decision. It is fit for a metric's label and for telling whether a
// cap has changed its cause.
type Reason string

// The reasons, in the order in which the rules are asked.
const (
	// ReasonNothingAsked: the controller asks for weight 0, so there is nothing to cap (rule 2).
	ReasonNothingAsked Reason = "NothingAsked"
	// ReasonSameHash: both sides name one hash, so a weight changes nothing (rule 2).
	ReasonSameHash Reason = "SameHash"
	// ReasonNoCanaryPods: the canary has no available pod and the stable has some (rule 3). Capped at 0: header and
	// mirror routes to the canary have to go as well.
	ReasonNoCanaryPods Reason = "NoCanaryPods"
	// ReasonNoReplicasAsked: spec.replicas is 0, so there is nothing to measure the canary by (rule 2).
	ReasonNoReplicasAsked Reason = "NoReplicasAsked"
	// ReasonNoPods: neither side has an available pod, and no weight is better than the one that is there (rule 3).
	ReasonNoPods Reason = "NoPods"
	// ReasonEnoughPods: as many canary pods are available as the weight needs (rule 4).
	ReasonEnoughPods Reason = "EnoughPods"
	// ReasonEqualLoad: the canary gets more than its part of the needed pods, since its pods are still no busier than
	// those of a small stable (rule 6).
	ReasonEqualLoad Reason = "EqualLoad"
	// ReasonProportional: the canary gets the part of the weight that it has of the needed pods (rule 5).
	ReasonProportional Reason = "Proportional"
)

// Decision is how much traffic the canary may get, and why. It is a value; nothing in it is shared.
type Decision struct {
	// Desired is what the controller asked for, brought into 0 to Max.
	Desired int32
	// Weight is what the canary may get: 0 to Desired, in parts of Max.
	Weight int32
	// Max is the sum of both sides' weights, always positive.
	Max int32
	// Need is how many canary pods Desired needs, at least 1.
	Need int32
	// Enough is Need as lowered by replicaProgressThreshold: this many available pods release the canary.
	Enough int32
	// Canary and Stable are the pods that were counted.
	Canary, Stable Pods
	// Reason is the rule that decided.
	Reason Reason
}

// Capped is true when the canary gets less than was asked for. The caller then owes the controller the Answers of Answer.
func (d Decision) Capped() bool { return d.Weight < d.Desired }

// rule judges the facts. A rule that has nothing to say leaves the word to the next one.
type rule func(view) (reason Reason, weight int64, decided bool)

// rules in their order of precedence. Where none of them decides, it is ReasonProportional.
var rules = []rule{
	nothingAsked,
	sameHash,
	noCanaryPods,
	noReplicasAsked,
	noPods,
	enoughPods,
	equalLoad,
}

// Decide says how much of the traffic the canary may get. It never panics and never answers outside of 0 to Desired,
// whatever the facts.
func Decide(f Facts) Decision {
	v := see(f)
	for _, judge := range rules {
		if reason, weight, decided := judge(v); decided {
			return v.decision(reason, weight)
		}
	}
	return v.decision(ReasonProportional, v.proportion())
}

// decision applies rule 7: the plugin lowers what it is asked for and never raises it.
func (v view) decision(reason Reason, weight int64) Decision {
	return Decision{
		Desired: saturate(v.desired),
		Weight:  saturate(max(0, min(weight, v.desired))),
		Max:     saturate(v.max),
		Need:    saturate(v.need),
		Enough:  saturate(v.enough),
		Canary:  v.facts.Canary,
		Stable:  v.facts.Stable,
		Reason:  reason,
	}
}

func nothingAsked(v view) (Reason, int64, bool) {
	return ReasonNothingAsked, 0, v.desired == 0
}

func sameHash(v view) (Reason, int64, bool) {
	return ReasonSameHash, v.desired, v.facts.SameHash
}

func noCanaryPods(v view) (Reason, int64, bool) {
	return ReasonNoCanaryPods, 0, v.canary.available == 0 && v.stable.available > 0
}

// noReplicasAsked is asked after noCanaryPods: on the way to 0 replicas too, no traffic belongs on a side without pods
// while the other has some.
func noReplicasAsked(v view) (Reason, int64, bool) {
	return ReasonNoReplicasAsked, v.desired, v.replicas == 0
}

func noPods(v view) (Reason, int64, bool) {
	weight := v.desired
	if v.facts.WrittenKnown {
		weight = v.written
	}
	return ReasonNoPods, weight, v.canary.available == 0
}

func enoughPods(v view) (Reason, int64, bool) {
	return ReasonEnoughPods, v.desired, v.canary.available >= v.enough
}

// equalLoad keeps the canary's pods as busy as the stable's. It has the word where that is more than the proportional
// share: where the stable is small, because of dynamicStableScale or because an autoscaler has just raised the count.
func equalLoad(v view) (Reason, int64, bool) {
	weight := v.max * v.canary.available / (v.canary.available + v.stable.available)
	return ReasonEqualLoad, weight, weight > v.proportion()
}

// proportion gives each canary pod the load that it would have at full size. It measures by the whole need even where a
// threshold would be content with less: the threshold says when the step is done, not how much a pod can bear.
func (v view) proportion() int64 {
	return v.desired * v.canary.available / v.need
}
