package guard

import "time"

// Answers are what the plugin tells the controller about a decision. What each of them does to a reconcile is in the
// package's documentation.
type Answers struct {
	// SetWeightErr is the error that SetWeight ends with after it has written the weight; "" means success. It stops the
	// reconcile: nothing is scaled, and no status, deadline or abort is looked at until the next try.
	SetWeightErr string
	// VerifyErr is the error that VerifyWeight returns beside NotVerified; "" means none. With an error the reconcile
	// goes on, without one it ends when all of the traffic was asked for.
	VerifyErr string
	// Verified is false while the canary is capped. When it is true the caller has still to compare the objects.
	Verified bool
}

// Answer says what SetWeight and VerifyWeight answer for a decision. held is how long the canary has been capped without
// a break. Once that reaches maxHold no answer stops a reconcile any more, so that deadline and abort can act; a maxHold
// of 0 or less never stops one.
func Answer(f Facts, d Decision, held, maxHold time.Duration) Answers {
	reason := d.Message()
	switch {
	case !d.Capped():
		return Answers{Verified: true}
	case held >= maxHold:
		return Answers{VerifyErr: reason}
	case holds(f):
		return Answers{SetWeightErr: reason + "; until then the stable ReplicaSet keeps its size"}
	case d.Desired == d.Max:
		// Without an error the controller would end the reconcile before it scales the canary, for ever where the
		// canary is too small.
		return Answers{VerifyErr: reason}
	default:
		return Answers{}
	}
}

// AnswerUnseen says what VerifyWeight answers for a weight that is written as decided, but that the mesh is not known to
// have yet: waiting says in words what is missing, waited for how long it has been so. A step waits, while scaling goes
// on. At the full weight the reconcile is stopped as soon as everything is scaled: after an answer with an error the
// controller comes back only when something of the Rollout changes, and then nothing does. Never once it has lasted for
// maxHold.
func AnswerUnseen(f Facts, d Decision, waiting string, waited, maxHold time.Duration) Answers {
	if waited < maxHold && (d.Desired < d.Max || scaled(f)) {
		return Answers{}
	}
	return Answers{VerifyErr: waiting}
}

// AnswerBehind says what VerifyWeight answers to a held canary in place of otherwise, while the controller has counted
// pods that the plugin has not heard of, as after an outage: facts are those with these pods, d is the decision without.
// Where they release the canary and nothing is left to scale, the answer is without an error, so that the controller asks
// again: after one it comes back only when something of the Rollout changes, and nothing does any more. It ends the
// reconcile, with status, analysis, deadline and abort, so the caller bounds for how long it believes in these pods.
func AnswerBehind(f Facts, d Decision, otherwise Answers) Answers {
	if otherwise.VerifyErr != "" && scaled(f) && f.Canary.Available >= d.Enough {
		return Answers{}
	}
	return otherwise
}

// scaled says whether a stopped reconcile keeps no pods from coming: neither those of the canary nor, where the traffic
// is on its way back, those of the stable.
func scaled(f Facts) bool {
	v := see(f)
	return !f.Returning && v.canary.size >= v.need
}

// holds says whether the reconcile has to be stopped to keep the stable's pods. With dynamicStableScale the controller
// sizes the stable by the weight it asked for, whatever VerifyWeight says. Where the stable is already as small as that
// there is nothing to keep.
func holds(f Facts) bool {
	v := see(f)
	return f.DynamicStableScale && scaled(f) && v.stable.size > v.stableShare()
}

// stableShare is the size that the weight asked for leaves to a stable under dynamicStableScale.
func (v view) stableShare() int64 {
	share := v.shareOf(v.max - v.desired)
	if share == 0 {
		return 0
	}
	return max(share, min(v.minPods, v.replicas))
}
