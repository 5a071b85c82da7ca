package router

import (
	"fmt"
	"strconv"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// PinAnnotation on a Rollout is an operator's brake: the canary gets at most so
// many parts of maxTrafficWeight, and no step completes, until it is removed.
const PinAnnotation = "istio.argoproj-labs.io/pin-canary-weight"

// pinOf reads the brake; nil means that there is none. One that cannot be read
// is an error: somebody wants traffic to stop, and has to learn that it has not.
// It stops whatever would give the canary more, and never what gives it less.
func pinOf(ro *v1alpha1.Rollout, max int32) (*int32, error) {
	text, there := ro.Annotations[PinAnnotation]
	if !there {
		return nil, nil
	}
	weight, err := strconv.ParseInt(text, 10, 32)
	if err != nil || weight < 0 || weight > int64(max) {
		return nil, fmt.Errorf("annotation %s of Rollout %s/%s is %q: write a whole number from 0 to %d (maxTrafficWeight), or remove it; until then the canary gets no more",
			PinAnnotation, ro.Namespace, ro.Name, text, max)
	}
	pin := int32(weight)
	return &pin, nil
}

// pinned applies the brake to a verdict. It only lowers: a Rollout that is on its
// way back to the stable is not held up. With dynamicStableScale it goes no lower
// than the stable, as it is now, can take the rest.
func (v verdict) pinned(pin *int32, f guard.Facts) verdict {
	if pin == nil || v.decision.Desired <= *pin {
		return v
	}
	v.pin = pin
	v.next = min(v.next, max(*pin, stableCannotTake(f)))
	v.answers = pinAnswers(v, *pin, f)
	return v
}

// stableCannotTake is the part of max that the stable has no pods for, because
// dynamicStableScale has taken them away; 0 where it is not in use.
func stableCannotTake(f guard.Facts) int32 {
	if !f.DynamicStableScale || f.Replicas <= 0 {
		return 0
	}
	available := min(int64(f.Stable.Available), int64(f.Replicas))
	return int32(int64(f.Max) - int64(f.Max)*available/int64(f.Replicas))
}

// pinAnswers keep every step from completing. With dynamicStableScale the
// reconcile is ended, since the controller would size the stable by the weight
// that it asks for. At the full weight an error lets the controller scale the
// canary up; once nothing is left to scale, only an answer without one keeps it
// from promoting.
func pinAnswers(v verdict, pin int32, f guard.Facts) guard.Answers {
	d := v.decision
	reason := pinMessage(d.Desired, pin)
	switch {
	case v.answers.SetWeightErr != "":
		return v.answers // held for a stronger reason
	case f.DynamicStableScale && !f.Returning && f.Canary.Size >= d.Need:
		return guard.Answers{SetWeightErr: reason + "; until it is removed the stable ReplicaSet keeps its size"}
	case d.Desired == d.Max && f.Canary.Available >= d.Need && f.Canary.Size >= d.Need:
		return guard.Answers{}
	default:
		return guard.Answers{VerifyErr: reason}
	}
}

func pinMessage(desired, pin int32) string {
	return fmt.Sprintf("canary pinned at %d of %d by the annotation %s", pin, desired, PinAnnotation)
}
