package scenarios

import (
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func TestAPodThatFlapsForAMinuteCostsFewWrites(t *testing.T) {
	t.Parallel()
	f := Flapping{Level: Host, Replicas: 20, Flaps: 30}
	recorded := play(t, controller(t, lab.DefaultVersion), f.Workload(Plugin), f.Play)
	hold(t, recorded, limits(Flaps, "", 0))
	flapping, err := recorded.Since(Flaps)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	before := flapping.States()[0]
	for _, s := range flapping.States() {
		if s.Pods[s.CanaryHash].Available < before.Pods[before.CanaryHash].Available {
			lost++
		}
		before = s
	}
	if lost != f.Flaps {
		t.Errorf("a pod was lost %d times, want %d", lost, f.Flaps)
	}
	// Down with each loss, and up with each return, since the return reaches what
	// was asked for: two writes a flap, and not one more.
	m := flapping.Measure()
	writes := m.WritesOf(timeline.KindVirtualService)
	t.Logf("%d VirtualService writes for %d flaps of one of 10 pods; more traffic than the pods can take: %.0f points at most, %s in all",
		writes, f.Flaps, m.Canary.Points, m.Canary.Lasted)
	if writes > 2*f.Flaps {
		t.Errorf("%d VirtualService writes for %d flaps", writes, f.Flaps)
	}
}
