package guard_test

import (
	"math"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

func TestNextWeight(t *testing.T) {
	capped := func(weight int32) guard.Decision {
		return guard.Decision{Desired: 100, Weight: weight, Max: 100, Reason: guard.ReasonProportional}
	}
	free := guard.Decision{Desired: 52, Weight: 52, Max: 100, Reason: guard.ReasonEnoughPods}
	for sentence, tc := range map[string]struct {
		written  int32
		known    bool
		decision guard.Decision
		minRaise int32
		want     int32
	}{
		"an unknown weight is written, however small the rise":   {0, false, capped(1), 5, 1},
		"down goes at once, by one part too":                     {50, true, capped(49), 5, 49},
		"down to nothing goes at once":                           {50, true, capped(0), 5, 0},
		"the same weight stays":                                  {50, true, capped(50), 5, 50},
		"a rise below the minimum waits":                         {50, true, capped(54), 5, 50},
		"a rise of the minimum is written":                       {50, true, capped(55), 5, 55},
		"a rise above the minimum is written":                    {50, true, capped(90), 5, 90},
		"the weight asked for is reached by any rise":            {50, true, free, 5, 52},
		"a first canary pod of a hundred waits for the minimum":  {0, true, capped(1), 5, 0},
		"a minimum of 0 lets every rise through":                 {50, true, capped(51), 0, 51},
		"a negative minimum lets every rise through":             {50, true, capped(51), -9, 51},
		"a negative weight in the object is repaired at once":    {-2, true, capped(1), 5, 1},
		"a weight above the maximum in the object comes down":    {130, true, capped(99), 5, 99},
		"the widest span of weights there is does not overflow":  {math.MinInt32, true, capped(99), math.MaxInt32, 99},
		"an unreachable minimum still lets the full weight pass": {0, true, free, math.MaxInt32, 52},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := guard.NextWeight(tc.written, tc.known, tc.decision, tc.minRaise); got != tc.want {
				t.Errorf("NextWeight = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestDefaultMinRaise(t *testing.T) {
	for sentence, tc := range map[string]struct{ max, want int32 }{
		"5 of 100":                           {100, 5},
		"50 of 1000":                         {1000, 50},
		"rounded up":                         {101, 6},
		"never 0":                            {1, 1},
		"the default maximum in place of 0":  {0, 5},
		"the default maximum below 0":        {-3, 5},
		"no overflow at the largest maximum": {math.MaxInt32, 107374183},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := guard.DefaultMinRaise(tc.max); got != tc.want {
				t.Errorf("DefaultMinRaise(%d) = %d, want %d", tc.max, got, tc.want)
			}
		})
	}
}

// A canary that comes up pod by pod costs few writes and still arrives.
func TestARampIsFewWrites(t *testing.T) {
	for _, replicas := range []int32{20, 100, 1000} {
		var written, writes int32
		for available := int32(0); available <= replicas; available++ {
			d := guard.Decide(guard.Facts{
				Desired: 100, Max: 100, Replicas: replicas, Intended: replicas,
				Canary: pods(available, replicas), Stable: pods(replicas, replicas),
			})
			next := guard.NextWeight(written, true, d, guard.DefaultMinRaise(100))
			if next != written {
				written, writes = next, writes+1
			}
		}
		if written != 100 || writes > 20 {
			t.Errorf("%d replicas: weight %d after %d writes, want 100 after at most 20", replicas, written, writes)
		}
	}
}
