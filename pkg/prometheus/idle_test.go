package prometheus_test

import (
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/prometheus"
)

// Where nobody has opted in, the plugin makes a Client and a Desk and asks neither.
func TestNothingRunsUntilSomebodyAsks(t *testing.T) {
	before := runtime.NumGoroutine()
	var desks []*prometheus.Desk
	for range 100 {
		d := prometheus.NewDesk(prometheus.New(prometheus.Options{Address: "http://p", TokenFile: "/no/such/file", CAFile: "/no/such/file"}))
		d.OnAnswered(func(types.UID) {})
		desks = append(desks, d)
	}
	if after := runtime.NumGoroutine(); after-before > 10 { // other tests' servers come and go
		t.Errorf("%d goroutines, %d before", after, before)
	}
	if allocated := testing.AllocsPerRun(100, func() { _ = desks[0].Answer("uid"); desks[0].Forget("uid") }); allocated > 0 {
		t.Errorf("%v allocations for a Rollout that nobody asked about", allocated)
	}
}
