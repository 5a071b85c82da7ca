package timeline

import (
	"maps"
	"slices"
	"time"
)

// State is everything known at one moment: after one entry and until the next.
type State struct {
	// At is the time of the entry that made this state.
	At time.Duration
	// Max is the total of a route; all weights are in parts of it.
	Max int32
	// CanaryWeight and StableWeight are each the largest over the routes, the
	// worst case for that side. While routes differ their sum exceeds Max.
	CanaryWeight, StableWeight int32
	Routes                     []RouteState
	// CanaryHash and StableHash are what the routing really names: the subsets'
	// label rollouts-pod-template-hash, or the Services' selector. Empty when
	// it names no hash.
	CanaryHash, StableHash string
	// Pods by pod-template hash. Shared between states: not to be changed.
	Pods    map[string]Pods
	Rollout Rollout
	// Events on the Rollout since the start of the timeline, oldest first.
	// Shared between states like Pods.
	Events []Event
	// Entry is the change that led here; its Fact is nil in the first state.
	Entry Entry
}

// RouteState is the split of one route, in parts.
type RouteState struct {
	VirtualService, Route string
	// Canary and Stable are the weights of the two sides, Sum that of all
	// destinations, Lowest the smallest single one.
	Canary, Stable, Sum, Lowest int32
}

// world is the newest version of each object while folding.
type world struct {
	subject          Subject
	virtualServices  map[string]VirtualService
	destinationRules map[string]DestinationRule
	services         map[string]Service
	replicaSets      map[string]ReplicaSet
	// pods is made anew with each ReplicaSet, so that states can share it.
	pods    map[string]Pods
	rollout Rollout
	events  []Event
}

// States folds the timeline: the first state is what was found at the start,
// then follows one for each entry. There is always at least one.
func (t Timeline) States() []State {
	w := newWorld(t.Subject)
	var later []Entry
	for _, e := range t.Entries {
		if e.Found {
			e.Fact.apply(w, e)
			continue
		}
		later = append(later, e)
	}
	// An Event found at the start tells of an earlier time.
	w.events = nil
	states := []State{w.state(Entry{})}
	for _, e := range later {
		e.Fact.apply(w, e)
		states = append(states, w.state(e))
	}
	return states
}

func newWorld(s Subject) *world {
	return &world{
		subject:          s,
		virtualServices:  map[string]VirtualService{},
		destinationRules: map[string]DestinationRule{},
		services:         map[string]Service{},
		replicaSets:      map[string]ReplicaSet{},
	}
}

// put keeps or removes one version. A VirtualService that is gone routes nothing,
// a ReplicaSet that is gone has no pods.
func put[F Fact](m map[string]F, e Entry, f F) {
	if e.Deleted {
		delete(m, e.Name)
		return
	}
	m[e.Name] = f
}

func (f VirtualService) apply(w *world, e Entry)  { put(w.virtualServices, e, f) }
func (f DestinationRule) apply(w *world, e Entry) { put(w.destinationRules, e, f) }
func (f Service) apply(w *world, e Entry)         { put(w.services, e, f) }
func (Mark) apply(*world, Entry)                  {}

// apply makes a new map of pods: earlier states keep theirs.
func (f ReplicaSet) apply(w *world, e Entry) {
	put(w.replicaSets, e, f)
	w.pods = make(map[string]Pods, len(w.replicaSets))
	for _, rs := range w.replicaSets {
		w.pods[rs.Hash] = rs.Pods
	}
}

func (f Rollout) apply(w *world, e Entry) {
	w.rollout = f
	if e.Deleted {
		w.rollout = Rollout{}
	}
}

func (f Event) apply(w *world, e Entry) {
	if e.Deleted {
		return
	}
	w.events = append(w.events, f)
}

// state draws up what the world means for the canary at this entry.
func (w *world) state(e Entry) State {
	s := State{
		At: e.At, Max: w.subject.Max(), Rollout: w.rollout, Events: w.events, Entry: e,
		Routes: w.routes(), Pods: w.pods,
	}
	for i, r := range s.Routes {
		// The first as it is: a negative weight is to be seen.
		if i == 0 || r.Canary > s.CanaryWeight {
			s.CanaryWeight = r.Canary
		}
		if i == 0 || r.Stable > s.StableWeight {
			s.StableWeight = r.Stable
		}
	}
	s.CanaryHash = w.hash(w.subject.CanarySubset, w.subject.CanaryService)
	s.StableHash = w.hash(w.subject.StableSubset, w.subject.StableService)
	return s
}

// hash is what one side really names, which is not always what the Rollout's
// status calls the current or the stable hash.
func (w *world) hash(subset, service string) string {
	if w.subject.bySubset() {
		return w.destinationRules[w.subject.DestinationRule].Hashes[subset]
	}
	return w.services[service].Hash
}

// routes lists the routes that count, in a stable order.
func (w *world) routes() []RouteState {
	var out []RouteState
	for _, name := range slices.Sorted(maps.Keys(w.virtualServices)) {
		for _, r := range w.virtualServices[name].Routes {
			if rs, both := w.routeState(r); both && w.subject.counts(r.Name) {
				rs.VirtualService = name
				out = append(out, rs)
			}
		}
	}
	return out
}

// routeState sums a route up. A side may be named more than once, for example
// on two ports. both is false when a side is not named at all.
func (w *world) routeState(r Route) (rs RouteState, both bool) {
	host := w.destinationRules[w.subject.DestinationRule].Host
	rs.Route = r.Name
	var canary, stable bool
	for i, d := range r.Destinations {
		rs.Sum += d.Weight
		if i == 0 || d.Weight < rs.Lowest {
			rs.Lowest = d.Weight
		}
		switch {
		case w.subject.isCanary(d, host):
			canary, rs.Canary = true, rs.Canary+d.Weight
		case w.subject.isStable(d, host):
			stable, rs.Stable = true, rs.Stable+d.Weight
		}
	}
	return rs, canary && stable
}

// Percent is a weight as percent of Max.
func (s State) Percent(weight int32) float64 {
	if s.Max == 0 {
		return 0
	}
	return 100 * float64(weight) / float64(s.Max)
}

// Share is how much of all traffic the available pods of a hash can take, in
// percent: 100 · available / spec.replicas, at most 100. With spec.replicas 0
// nobody asked for pods and every share is 100.
func (s State) Share(hash string) float64 {
	if s.Rollout.Replicas <= 0 {
		return 100
	}
	return min(100, 100*float64(s.Pods[hash].Available)/float64(s.Rollout.Replicas))
}

// Toward is the traffic sent to one pod-template hash, in percent, whichever
// side names it. It follows a revision through its promotion, when both sides
// come to name it.
func (s State) Toward(hash string) float64 {
	switch {
	case hash == "":
		return 0
	case s.CanaryHash == hash && s.StableHash == hash:
		return min(100, s.Percent(s.CanaryWeight+s.StableWeight))
	case s.CanaryHash == hash:
		return s.Percent(s.CanaryWeight)
	case s.StableHash == hash:
		return s.Percent(s.StableWeight)
	default:
		return 0
	}
}

// Healthy is whether the Rollout is Healthy in its present spec.
func Healthy(s State) bool { return s.Is("Healthy") }

// Is tells whether the Rollout is in that phase and the status is current.
func (s State) Is(phase string) bool {
	return s.Rollout.Phase == phase && s.Rollout.Current
}
