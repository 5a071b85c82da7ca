package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// namespace begins the name of every metric of the plugin.
const namespace = "rollouts_istio"

// Values of the label result.
const (
	resultOK    = "ok"
	resultError = "error"
)

var (
	// reactionBuckets resolve the two aims: a median of 50 ms, a 99th percentile
	// of 250 ms.
	reactionBuckets = []float64{.001, .0025, .005, .01, .025, .05, .075, .1, .15, .25, .5, 1, 2.5, 5, 10}
	// rpcBuckets reach from a call that changes nothing, far below a millisecond,
	// to one that ends at its deadline, ten seconds unless the operator says else.
	rpcBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
)

// Metrics is what the plugin tells of itself. Its methods may be called
// concurrently, also on nil, which does nothing.
type Metrics struct {
	// Busy is told, once for each Serve, why the address cannot be listened on
	// yet. Set it before Serve; nil is told nothing.
	Busy func(error)

	registry *prometheus.Registry

	desired, applied, capped *prometheus.GaugeVec
	writes, conflicts, drift *prometheus.CounterVec
	reaction                 prometheus.Histogram
	rpcs                     *prometheus.HistogramVec
	watches                  *watchAge

	mu sync.Mutex
	// reasons has the reason in the present series of capped. mu is held while
	// the three weights change, so that no series of an old reason stays.
	reasons map[rollout]string
}

type rollout struct{ namespace, name string }

// New returns metrics with a registry of their own.
func New() *Metrics { return newMetrics(time.Now) }

func newMetrics(now func() time.Time) *Metrics {
	byRollout := []string{"namespace", "rollout"}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		desired:  gauges("desired_weight", "Canary weight that the controller asks for, in parts of maxTrafficWeight.", byRollout...),
		applied:  gauges("applied_weight", "Canary weight that the plugin let through, in parts of maxTrafficWeight.", byRollout...),
		capped:   gauges("capped", "1 while the applied canary weight is below the desired one, else 0, with the reason of the decision.", append(byRollout, "reason")...),

		writes:    counters("writes_total", "Patches that the API server took, by kind of object."),
		conflicts: counters("write_conflicts_total", "Patches that the API server refused because the object had changed in between, by kind of object."),
		drift:     counters("drift_corrections_total", "Patches that put back what someone else had changed, by kind of object."),

		reaction: prometheus.NewHistogram(histogram("reaction_seconds",
			"Time from the change of a ReplicaSet, as the watch brought it, to the written patch.", reactionBuckets)),
		rpcs: prometheus.NewHistogramVec(histogram("rpc_duration_seconds",
			"Duration of the controller's calls, by call and by result, ok or error.", rpcBuckets), []string{"rpc", "result"}),
		watches: newWatchAge(now),
		reasons: map[rollout]string{},
	}
	m.registry.MustRegister(m.desired, m.applied, m.capped, m.writes, m.conflicts, m.drift, m.reaction, m.rpcs, m.watches,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func counters(name, help string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, []string{"kind"})
}

func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
}

// Weights says what the controller asks for and what the plugin let through, both
// in parts of maxTrafficWeight, and the code of the reason. The Rollout counts as
// capped while applied is below desired.
func (m *Metrics) Weights(namespace, name string, desired, applied int32, reason string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := rollout{namespace, name}
	if old, there := m.reasons[key]; there && old != reason {
		m.capped.DeleteLabelValues(namespace, name, old)
	}
	m.reasons[key] = reason
	m.desired.WithLabelValues(namespace, name).Set(float64(desired))
	m.applied.WithLabelValues(namespace, name).Set(float64(applied))
	m.capped.WithLabelValues(namespace, name, reason).Set(oneIf(applied < desired))
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

// Forget removes the series of a Rollout that nobody calls for any more. One
// that is not known is no error.
func (m *Metrics) Forget(namespace, name string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := rollout{namespace, name}
	m.capped.DeleteLabelValues(namespace, name, m.reasons[key])
	m.desired.DeleteLabelValues(namespace, name)
	m.applied.DeleteLabelValues(namespace, name)
	delete(m.reasons, key)
}

// Written counts a patch that the API server took. kind is that of the object,
// such as VirtualService.
func (m *Metrics) Written(kind string) {
	if m != nil {
		m.writes.WithLabelValues(kind).Inc()
	}
}

// Conflict counts a patch that was refused because the object had changed since
// it was read.
func (m *Metrics) Conflict(kind string) {
	if m != nil {
		m.conflicts.WithLabelValues(kind).Inc()
	}
}

// DriftCorrected counts a patch that put back what someone else had changed. It
// is one of those that Written counts, too.
func (m *Metrics) DriftCorrected(kind string) {
	if m != nil {
		m.drift.WithLabelValues(kind).Inc()
	}
}

// Reaction notes how long it took from a ReplicaSet's change, as the watch
// brought it, to the written patch.
func (m *Metrics) Reaction(d time.Duration) {
	if m != nil {
		m.reaction.Observe(d.Seconds())
	}
}

// RPC notes one call of the controller, by the name of the method, and whether it
// was answered with an error.
func (m *Metrics) RPC(name string, d time.Duration, err error) {
	if m == nil {
		return
	}
	result := resultOK
	if err != nil {
		result = resultError
	}
	m.rpcs.WithLabelValues(name, result).Observe(d.Seconds())
}

// Heard notes that the watch of a resource, such as replicasets, has just
// delivered something.
func (m *Metrics) Heard(resource string) {
	if m != nil {
		m.watches.heard(resource)
	}
}
