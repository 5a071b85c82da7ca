package gate

import (
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/utils/weightutil"
)

// Place is where in its steps a Rollout is.
type Place uint8

// The places.
const (
	// Between is a step that needs no healthy window: a pause, say. The canary is
	// watched, and pulled back if it is sick.
	Between Place = iota
	// Step is a setWeight step, and its weight is what the controller asks for. The step
	// is done once the weight is verified.
	Step
	// End is after the last step. The controller promotes once the pods are there.
	End
)

// Steps is what counts of a Rollout's steps.
type Steps struct {
	atEnd bool
	// weight is that of a setWeight step, brought into 0 to max; 0 in any other step.
	weight int32
}

// StepsOf reads the current step. No steps at all is the end of them.
func StepsOf(ro *v1alpha1.Rollout) Steps {
	canary := ro.Spec.Strategy.Canary
	if canary == nil {
		return Steps{atEnd: true}
	}
	index := int32(0)
	if ro.Status.CurrentStepIndex != nil {
		index = *ro.Status.CurrentStepIndex
	}
	if int(index) >= len(canary.Steps) {
		return Steps{atEnd: true}
	}
	if index < 0 || canary.Steps[index].SetWeight == nil {
		return Steps{}
	}
	return Steps{weight: max(0, min(*canary.Steps[index].SetWeight, weightutil.MaxTrafficWeight(ro)))}
}

// Place is where the Rollout is when the controller asks for this weight. While pods of a
// setWeight step are missing it asks for the weight of the step before, which completes
// nothing.
func (s Steps) Place(desired int32) Place {
	switch {
	case s.atEnd:
		return End
	case s.weight > 0 && s.weight == desired:
		return Step
	}
	return Between
}
