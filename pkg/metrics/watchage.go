package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// watchAge collects how long each watch has been silent. The age is reckoned when
// Prometheus asks: a gauge that somebody has to set would stand still with the
// watch that it is there to judge.
type watchAge struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu   sync.Mutex
	last map[string]time.Time // by resource
}

func newWatchAge(now func() time.Time) *watchAge {
	return &watchAge{
		desc: prometheus.NewDesc(prometheus.BuildFQName(namespace, "", "watch_age_seconds"),
			"Time since the watch of a resource last delivered anything.", []string{"resource"}, nil),
		now:  now,
		last: map[string]time.Time{},
	}
}

func (w *watchAge) heard(resource string) {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[resource] = now
}

// Describe implements prometheus.Collector.
func (w *watchAge) Describe(out chan<- *prometheus.Desc) { out <- w.desc }

// Collect implements prometheus.Collector.
func (w *watchAge) Collect(out chan<- prometheus.Metric) {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for resource, last := range w.last {
		out <- prometheus.MustNewConstMetric(w.desc, prometheus.GaugeValue, now.Sub(last).Seconds(), resource)
	}
}
