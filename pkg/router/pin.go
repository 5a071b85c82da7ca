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
func pinOf(ro *v1alpha1.Rollout, max int32) (*int32, error) {
	text, there := ro.Annotations[PinAnnotation]
	if !there {
		return nil, nil
	}
	weight, err := strconv.ParseInt(text, 10, 32)
	if err != nil || weight < 0 || weight > int64(max) {
		return nil, fmt.Errorf("annotation %s of Rollout %s/%s is %q: write a whole number from 0 to %d (maxTrafficWeight), or remove it; nothing was changed",
			PinAnnotation, ro.Namespace, ro.Name, text, max)
	}
	pin := int32(weight)
	return &pin, nil
}

// pinned applies the brake to a verdict. It only lowers: a Rollout that is on its
// way back to the stable is not held up.
func (v verdict) pinned(pin *int32) verdict {
	if pin == nil || v.decision.Desired <= *pin {
		return v
	}
	v.pin = pin
	v.next = min(v.next, *pin)
	v.answers = pinAnswers(v, *pin)
	return v
}

// pinAnswers keep every step from completing. At the full weight an error lets
// the controller scale the canary up; once nothing is left to scale, only an
// answer without one keeps it from promoting.
func pinAnswers(v verdict, pin int32) guard.Answers {
	if v.answers.SetWeightErr != "" {
		return v.answers // held for a stronger reason
	}
	d := v.decision
	if d.Desired == d.Max && !d.Capped() && d.Canary.Size >= d.Need {
		return guard.Answers{}
	}
	return guard.Answers{VerifyErr: pinMessage(d.Desired, pin)}
}

func pinMessage(desired, pin int32) string {
	return fmt.Sprintf("canary pinned at %d of %d by the annotation %s", pin, desired, PinAnnotation)
}
