package gate_test

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
)

func TestPlace(t *testing.T) {
	setWeight := func(w int32) v1alpha1.CanaryStep { return v1alpha1.CanaryStep{SetWeight: ptr.To(w)} }
	pause := v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}}
	steps := []v1alpha1.CanaryStep{setWeight(10), pause, setWeight(0), setWeight(100)}
	for sentence, tc := range map[string]struct {
		steps   []v1alpha1.CanaryStep
		index   *int32
		max     *int32
		desired int32
		want    gate.Place
	}{
		"at a weight, which is asked for":                       {steps, ptr.To[int32](0), nil, 10, gate.Step},
		"before the controller has noted a step":                {steps, nil, nil, 10, gate.Step},
		"at a weight, with pods missing: the one before counts": {steps, ptr.To[int32](3), nil, 10, gate.Between},
		"at a pause": {steps, ptr.To[int32](1), nil, 10, gate.Between},
		"at weight 0 there is nothing to be seen":            {steps, ptr.To[int32](2), nil, 0, gate.Between},
		"at the full weight, which is not the end":           {steps, ptr.To[int32](3), nil, 100, gate.Step},
		"behind the last step":                               {steps, ptr.To[int32](4), nil, 100, gate.End},
		"behind the last step, with pods missing":            {steps, ptr.To[int32](4), nil, 10, gate.End},
		"no steps at all":                                    {nil, nil, nil, 100, gate.End},
		"an index that cannot be":                            {steps, ptr.To[int32](-1), nil, 10, gate.Between},
		"more than there is was written, and is all":         {[]v1alpha1.CanaryStep{setWeight(200)}, nil, nil, 100, gate.Step},
		"more than there is was written, of tenths of parts": {[]v1alpha1.CanaryStep{setWeight(200)}, nil, ptr.To[int32](1000), 200, gate.Step},
	} {
		t.Run(sentence, func(t *testing.T) {
			ro := &v1alpha1.Rollout{}
			ro.Spec.Strategy.Canary = &v1alpha1.CanaryStrategy{
				Steps: tc.steps, TrafficRouting: &v1alpha1.RolloutTrafficRouting{MaxTrafficWeight: tc.max},
			}
			ro.Status.CurrentStepIndex = tc.index
			if got := gate.StepsOf(ro).Place(tc.desired); got != tc.want {
				t.Errorf("the place is %v, want %v", got, tc.want)
			}
		})
	}
	if got := gate.StepsOf(&v1alpha1.Rollout{}).Place(100); got != gate.End {
		t.Errorf("without a canary strategy the place is %v", got)
	}
}
