package timeline

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Kind of a recorded object, as Kubernetes names it.
type Kind string

// The kinds that a timeline holds. KindMark is a moment named by the test.
const (
	KindVirtualService  Kind = "VirtualService"
	KindDestinationRule Kind = "DestinationRule"
	KindService         Kind = "Service"
	KindReplicaSet      Kind = "ReplicaSet"
	KindRollout         Kind = "Rollout"
	KindEvent           Kind = "Event"
	KindMark            Kind = "Mark"
)

// Fact is what one version of an object says about the canary. The set is
// closed: the types of this file.
type Fact interface {
	// Kind of the object the fact was read from.
	Kind() Kind
	// apply brings the world of the fold up to the version that the entry holds.
	apply(w *world, e Entry)
}

// VirtualService is the routing of one VirtualService: http, tls and tcp
// routes in that order.
type VirtualService struct{ Routes []Route }

// Route is one route with all its destinations.
type Route struct {
	// Name of the route; http[0], tls[1] … when it has none.
	Name         string
	Destinations []Destination
}

// Destination is one weighted destination of a route.
type Destination struct {
	Host, Subset string
	Weight       int32
}

// DestinationRule is the host and the subsets of one DestinationRule.
type DestinationRule struct {
	Host string
	// Hashes maps a subset's name to its label rollouts-pod-template-hash,
	// empty when it has none.
	Hashes map[string]string
}

// Service is one Service.
type Service struct {
	// Hash is rollouts-pod-template-hash in the selector, empty without it.
	Hash string
}

// ReplicaSet is one ReplicaSet of the Rollout. Those of experiments and of other
// Rollouts are not recorded.
type ReplicaSet struct {
	Hash string
	Pods Pods
}

// Pods counts the pods of one pod-template hash.
type Pods struct {
	// Size is spec.replicas, what the ReplicaSet is meant to have.
	Size int32
	// Ready and Available are the status's counts.
	Ready, Available int32
}

// Rollout is what a Rollout asks for and what its status shows. The controller
// writes the status at the end of a reconcile, after it has called the router,
// and not at all when the reconcile fails: it may be behind the routing.
type Rollout struct {
	Phase, Message string
	// StepIndex is the current step, -1 when there is none; Steps is how many
	// steps the strategy has.
	StepIndex, Steps int32
	// DesiredWeight is the weight that the controller recorded as asked for,
	// in parts; the routing may hold less.
	DesiredWeight int32
	// Verified is nil when the router does not verify.
	Verified          *bool
	Abort             bool
	PodHash, StableRS string
	// Replicas is spec.replicas, 1 when it is not set.
	Replicas int32
	// Current is whether the status speaks of the present spec. Right after a
	// change of the spec the old phase still stands there.
	Current bool
	// Object is the whole Rollout, for a rule that needs its steps. Nil in
	// timelines made by hand. Not to be changed.
	Object *unstructured.Unstructured `json:"-"`
}

// Event is one Event on the Rollout. One whose count goes up is recorded again
// each time.
type Event struct{ Type, Reason, Message string }

// Mark is a moment that the test named; the name is the entry's.
type Mark struct{}

// Kind implements Fact.
func (VirtualService) Kind() Kind { return KindVirtualService }

// Kind implements Fact.
func (DestinationRule) Kind() Kind { return KindDestinationRule }

// Kind implements Fact.
func (Service) Kind() Kind { return KindService }

// Kind implements Fact.
func (ReplicaSet) Kind() Kind { return KindReplicaSet }

// Kind implements Fact.
func (Rollout) Kind() Kind { return KindRollout }

// Kind implements Fact.
func (Event) Kind() Kind { return KindEvent }

// Kind implements Fact.
func (Mark) Kind() Kind { return KindMark }
