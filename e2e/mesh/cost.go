package mesh

import (
	"bytes"
	"context"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// Cost is what istiod had to do, from its own metrics.
type Cost struct {
	// Pushes is how often it had something for proxies, endpoints included, and
	// Computing how long it took to take the changes in.
	Pushes    int
	Computing time.Duration
	// Sent counts the configurations sent to proxies by type: cds, eds, lds, rds.
	Sent map[string]int
	// Generating is the time that istiod took to make them.
	Generating time.Duration
	// Convergence is the mean time from a change to a proxy that has it.
	Convergence time.Duration

	converged int
	waiting   time.Duration
}

// readCost is all that an istiod has done since it started.
func readCost(ctx context.Context, i *lab.Istiod) (Cost, error) {
	text, err := i.Metrics(ctx)
	if err != nil {
		return Cost{}, fmt.Errorf("istiod's metrics: %w", err)
	}
	return parseCost(text)
}

// parseCost leaves at 0 what is not there: istiod shows a metric from its first
// use on.
func parseCost(text []byte) (Cost, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return Cost{}, fmt.Errorf("istiod's metrics: %w", err)
	}
	c := Cost{Sent: map[string]int{}}
	c.Pushes, c.Computing = histogram(families["pilot_pushcontext_init_seconds"])
	_, c.Generating = histogram(families["pilot_xds_push_time"])
	c.converged, c.waiting = histogram(families["pilot_proxy_convergence_time"])
	for _, metric := range families["pilot_xds_pushes"].GetMetric() {
		c.Sent[label(metric, "type")] += int(metric.GetCounter().GetValue())
	}
	c.mean()
	return c, nil
}

// histogram sums a histogram of seconds up over its labels.
func histogram(family *dto.MetricFamily) (count int, sum time.Duration) {
	for _, metric := range family.GetMetric() {
		count += int(metric.GetHistogram().GetSampleCount())
		sum += time.Duration(metric.GetHistogram().GetSampleSum() * float64(time.Second))
	}
	return count, sum
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// since is what was done after an earlier reading of the same istiod.
func (c Cost) since(before Cost) Cost {
	d := Cost{
		Pushes: c.Pushes - before.Pushes, Computing: c.Computing - before.Computing, Generating: c.Generating - before.Generating,
		Sent: map[string]int{}, converged: c.converged - before.converged, waiting: c.waiting - before.waiting,
	}
	for kind, n := range c.Sent {
		d.Sent[kind] = n - before.Sent[kind]
	}
	d.mean()
	return d
}

func (c *Cost) mean() {
	c.Convergence = 0
	if c.converged > 0 {
		c.Convergence = c.waiting / time.Duration(c.converged)
	}
}
