package gate

import (
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// Answers says what SetWeight and VerifyWeight answer while the gate holds. otherwise is
// what they would answer without it. spent is true when the guard's hold has lasted for
// maxHold, so that no answer may keep deadline and abort from acting on pods that do not
// come.
//
// What is held is either a step, or a promotion. A step waits for NotVerified. With all of
// the traffic asked for that ends the reconcile, which is the only thing that keeps the
// controller from promoting: an error beside it would have it go on, and would not bring
// it back either. So it is given as soon as the canary's ReplicaSet is as large as a
// promotion needs, pods or no pods: when they become available, the controller knows it
// first. Until then the reason lets the controller scale.
//
// Traffic that is on its way back is never held up, whatever was last decided.
//
// After the last step with less than all of the traffic asked for, which is so while pods
// are missing, only an error from SetWeight stops a promotion. It is given when nothing is
// left to scale.
func Answers(f guard.Facts, d guard.Decision, otherwise guard.Answers, spent bool, place Place, held Decision) guard.Answers {
	switch {
	case held.Verdict != Hold && held.Verdict != RollBack, otherwise.SetWeightErr != "", f.Returning:
		return otherwise
	case place == Between && d.Desired < d.Max, place == Step && d.Desired < d.Max:
		return guard.Answers{VerifyErr: otherwise.VerifyErr}
	case place == End && d.Desired < d.Max && complete(f, d.Max):
		return guard.Answers{SetWeightErr: withoutPercent(held.Message) + "; until then the canary is not promoted"}
	case d.Desired < d.Max:
		return guard.Answers{VerifyErr: otherwise.VerifyErr}
	case place == Between || !largeEnough(f, d.Max) || d.Capped() && spent:
		return guard.Answers{VerifyErr: either(otherwise.VerifyErr, held.Message)}
	}
	return guard.Answers{}
}

// enough is how many available pods a promotion needs.
func enough(f guard.Facts, max int32) int32 {
	f.Desired = max
	return guard.Decide(f).Enough
}

func largeEnough(f guard.Facts, max int32) bool { return f.Canary.Size >= enough(f, max) }

// complete tells that the controller has nothing left to scale or to wait for.
func complete(f guard.Facts, max int32) bool {
	return largeEnough(f, max) && f.Canary.Available >= enough(f, max) &&
		(f.DynamicStableScale || f.Stable.Size >= f.Replicas)
}

// withoutPercent keeps the controller from taking what follows a percent sign for a verb:
// it makes its Event of this error by using it as a format.
func withoutPercent(text string) string { return strings.ReplaceAll(text, "%", "percent") }

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
