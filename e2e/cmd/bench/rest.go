package main

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// parts say what a canary's time went into. Every moment counts for one of them.
type parts struct {
	// pauses are its pause steps.
	pauses time.Duration
	// pods is the time in which pods were started that a step had asked for.
	pods time.Duration
	// weight is the time in which the pods for a setWeight step were there and the routes
	// did not have its weight: the router waits, or the controller does, before it asks.
	weight time.Duration
	// unaware is the time in which the routes had it and the status said that it was not
	// verified: the controller asks a plugin again after 10 s.
	unaware time.Duration
	// rest is all else: the controller between two steps, at work or in its back-off.
	rest time.Duration
}

// limit is what no router can take less than: pods have to start, and pauses last.
func (p parts) limit() time.Duration { return p.pauses + p.pods }

func (p parts) whole() time.Duration { return p.limit() + p.weight + p.unaware + p.rest }

// partsOf divides the time from the start of a timeline until the Rollout is Healthy
// with its new revision. A Rollout that never was is an error.
func partsOf(t timeline.Timeline) (p parts, err error) {
	end, ok := t.UntilPhase("", "Healthy")
	if !ok {
		return p, errors.New("the Rollout was never Healthy")
	}
	states := t.States()
	for i, s := range states {
		next := end
		if i+1 < len(states) {
			next = min(end, states[i+1].At)
		}
		if s.At >= end {
			break
		}
		*p.of(s) += next - s.At
	}
	return p, nil
}

// of is the part that a moment belongs to.
func (p *parts) of(s timeline.State) *time.Duration {
	pods := s.Pods[s.Rollout.PodHash]
	want, sets := stepWeight(s.Rollout)
	scaled := pods.Size*100 >= want*s.Rollout.Replicas
	switch {
	case s.Is("Paused"):
		return &p.pauses
	case pods.Available < pods.Size:
		return &p.pods
	case s.Rollout.Verified != nil && !*s.Rollout.Verified && s.CanaryWeight >= s.Rollout.DesiredWeight:
		return &p.unaware
	case sets && scaled && s.CanaryWeight < want:
		return &p.weight
	default:
		return &p.rest
	}
}

// stepWeight is the weight of the current step, in hundredths; ok is false where that
// sets none.
func stepWeight(ro timeline.Rollout) (weight int32, ok bool) {
	if ro.Object == nil || ro.StepIndex < 0 || ro.StepIndex >= ro.Steps {
		return 0, false
	}
	steps, _, _ := unstructured.NestedSlice(ro.Object.Object, "spec", "strategy", "canary", "steps")
	if int(ro.StepIndex) >= len(steps) {
		return 0, false
	}
	step, _ := steps[ro.StepIndex].(map[string]any)
	found, ok, _ := unstructured.NestedInt64(step, "setWeight")
	return int32(found), ok
}
