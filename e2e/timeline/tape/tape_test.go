package tape

import (
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// stands are the figures of a state that the tape decides.
type stands struct {
	seconds           float64
	weight            int32
	stable, available int32
	replicas          int32
	phase             string
}

func of(s timeline.State) stands {
	return stands{s.At.Seconds(), s.CanaryWeight, s.Pods[Stable].Available, s.Pods[Canary].Available, s.Rollout.Replicas, s.Rollout.Phase}
}

func TestATapeIsTheStoryThatWasWritten(t *testing.T) {
	written := New("web").At(0.5).Phase("Progressing").At(2).Pods(Canary, 3).Weight(15).At(4).Scale(40).Phase("Healthy").Timeline(9)
	want := []stands{
		{0, 0, 20, 0, 20, "Healthy"}, {0.5, 0, 20, 0, 20, "Progressing"}, {2, 0, 20, 3, 20, "Progressing"},
		{2, 15, 20, 3, 20, "Progressing"}, {4, 15, 20, 3, 40, "Healthy"},
	}
	states := written.States()
	if len(states) != len(want) || written.End.Seconds() != 9 {
		t.Fatalf("%d states in %s, want %d in 9s", len(states), written.End, len(want))
	}
	for i, w := range want {
		if got := of(states[i]); got != w {
			t.Errorf("state %d is %+v, want %+v", i, got, w)
		}
	}
}

func TestATapeMayBeginInTheMiddle(t *testing.T) {
	states := Halfway("web").Timeline(1).States()
	if want := (stands{0, 50, 20, 10, 20, "Healthy"}); len(states) != 1 || of(states[0]) != want {
		t.Errorf("it begins with %+v, want %+v", of(states[0]), want)
	}
}
