package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/rollout/trafficrouting/plugin/rpc"
)

// BenchmarkNoChange measures a reconcile that has nothing to change, all calls
// of it. plugin and empty are the two alone; ratio runs one and the other in
// turn, so that a moment in which the machine is busy falls on both, and divides
// their medians. The aim is at most 1.2. calm-ratio divides the fastest tenths: it
// is what is left of the ratio when others keep the machine busy.
func BenchmarkNoChange(b *testing.B) {
	s := apiServer(b)
	ro := large(b, rollout(fmt.Sprintf("large-%d", runs.Add(1))))
	if _, err := s.create(b.Context(), ro); err != nil {
		b.Fatal(err)
	}
	ours, nothing := plugin(b, s), empty(b)
	settle(b, ours, ro, startWeight)
	settle(b, nothing, ro, startWeight)
	for name, p := range map[string]rpc.TrafficRouterPlugin{"plugin": ours, "empty": nothing} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				timed(b, p, ro)
			}
		})
	}
	b.Run("ratio", func(b *testing.B) { ratio(b, ours, nothing, ro) })
}

func ratio(b *testing.B, ours, nothing rpc.TrafficRouterPlugin, ro *v1alpha1.Rollout) {
	var took, least []time.Duration
	for b.Loop() {
		took = append(took, timed(b, ours, ro))
		least = append(least, timed(b, nothing, ro))
	}
	b.ReportMetric(float64(quantile(took, .5).Microseconds()), "plugin-µs")
	b.ReportMetric(float64(quantile(least, .5).Microseconds()), "empty-µs")
	for name, q := range map[string]float64{"ratio": .5, "calm-ratio": .1} {
		b.ReportMetric(float64(quantile(took, q))/float64(quantile(least, q)), name)
	}
}

// timed reconciles once.
func timed(b *testing.B, p rpc.TrafficRouterPlugin, ro *v1alpha1.Rollout) time.Duration {
	b.Helper()
	began := time.Now()
	if err := reconcile(p, ro, startWeight); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// quantile returns the smallest of the durations that is not exceeded by the part
// q of them, and 0 of none.
func quantile(of []time.Duration, q float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
