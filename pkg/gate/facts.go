package gate

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
)

// Facts is all that a decision rests on, gathered before it is made.
type Facts struct {
	// Limits are the Rollout's own, from its healthGate.
	Limits config.HealthGate
	// Rollout and Namespace go into the question.
	Rollout   types.UID
	Namespace string
	// Hosts are the two Services of host-level routing; empty where subsets are routed.
	Hosts Hosts

	// Hash and Stable are the pod-template hashes of the Rollout's status.
	Hash, Stable string
	// Stretch is what the routing does now.
	Stretch Stretch
	// InEffect is true when all that was asked for is written, and has reached the mesh
	// as far as that is verified. No window counts that is not wholly in effect.
	InEffect bool
	// Desired is the canary's weight that the controller asks for, 0 to max.
	Desired int32
	// Place is where in its steps the Rollout is.
	Place Place
	// OwnOnly is true for a rollback within rollbackWindow.
	OwnOnly bool

	// Aborted is status.abort, PromoteFull is status.promoteFull.
	Aborted, PromoteFull bool
	// Pinned is true while an operator's brake is on, readable or not.
	Pinned bool
	// Mark is what an earlier rollback of this hash has left on the Rollout.
	Mark Mark
	// Answer is the newest there is for this Rollout, nil before the first.
	Answer *Answer
}

// Stretch is a time without change: one revision against another at one weight. Two are
// the same if and only if they are equal.
type Stretch struct {
	// Canary and Stable are the hashes that the routing names.
	Canary, Stable string
	// Weight is the canary's, as it is written, in parts of Max.
	Weight, Max int32
}

// whole is true when the stable gets nothing.
func (s Stretch) whole() bool { return s.Weight >= s.Max }

// Hosts are full host names.
type Hosts struct{ Canary, Stable string }

// Question is one window to be asked about. It can be compared with ==; an answer belongs
// to exactly one.
type Question struct {
	Rollout   types.UID
	Namespace string
	Hosts     Hosts
	Stretch   Stretch
	// CanaryOnly leaves the stable's numbers out.
	CanaryOnly bool
	// Latency is false where latency is not judged.
	Latency bool
	// Provider is where to ask and what.
	Provider config.Prometheus
	// From and To are the window's ends; the times are UTC, in whole milliseconds and
	// without a monotonic reading.
	From, To time.Time
}

// Answer is what the source said, or why it said nothing.
type Answer struct {
	Question Question
	Numbers  Numbers
	// Err is a *QueryError where asking again cannot help. Any other means that the
	// source could not be asked.
	Err error
}

// Numbers are those of one window, of nothing before and after it.
type Numbers struct {
	Canary, Stable Side
	// Known is false when the source knew nothing about the service just before the
	// window, as after an outage: what it counts may then be older than the window.
	Known bool
}

// Side are the numbers of one side. A source counts in fractions when it has to guess
// what happened between two of its looks.
type Side struct {
	Requests, Errors float64
	// LatencySum is in milliseconds, of LatencyCount requests.
	LatencySum, LatencyCount float64
}

// QueryError says that a query is at fault: the Rollout's configuration, or its labels,
// must change.
type QueryError struct {
	// Query is its name under provider.prometheus.queries.
	Query string
	// Side is canary or stable; "" where the query is about both.
	Side string
	Err  error
}

func (e *QueryError) Error() string {
	side := ""
	if e.Side != "" {
		side = " for the " + e.Side
	}
	return "query " + e.Query + side + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *QueryError) Unwrap() error { return e.Err }
