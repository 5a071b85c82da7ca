package timeline

import "testing"

func TestWeightsFollowTheirSteps(t *testing.T) {
	for sentence, tc := range map[string]struct {
		weights, steps []int32
		want           bool
	}{
		"exactly":                        {[]int32{10, 50, 100, 0}, []int32{10, 50, 100, 0}, true},
		"with a ramp before a step":      {[]int32{10, 40, 45, 50, 90, 100, 0}, []int32{10, 50, 100, 0}, true},
		"a step is missing":              {[]int32{10, 100, 0}, []int32{10, 50, 100, 0}, false},
		"the last is missing":            {[]int32{10, 50, 100}, []int32{10, 50, 100, 0}, false},
		"a fall on the way":              {[]int32{10, 45, 40, 50, 100, 0}, []int32{10, 50, 100, 0}, false},
		"more than the next step":        {[]int32{10, 60, 50, 100, 0}, []int32{10, 50, 100, 0}, false},
		"something after the last":       {[]int32{10, 50, 100, 0, 5}, []int32{10, 50, 100, 0}, false},
		"nothing was written, and asked": {nil, nil, true},
		"nothing was written, but asked": {nil, []int32{10}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := FollowSteps(tc.weights, tc.steps); got != tc.want {
				t.Errorf("%v after %v: %v", tc.weights, tc.steps, got)
			}
		})
	}
}
