package timeline

import (
	"fmt"
	"time"
)

const (
	// DefaultLag is how old the pods may be that a write was decided on.
	DefaultLag = 500 * time.Millisecond
	// DefaultGrace is how long traffic may go to a side that has just lost its
	// last pod: pods may die at any moment, and nobody writes before that.
	DefaultGrace = time.Second
)

// Limits says what a run is held against by [Violations].
type Limits struct {
	// Rule is the highest canary weight, in parts, that is right in a state.
	// Nil leaves this out.
	Rule func(State) int32
	// Lag and Grace: 0 means the default; give a nanosecond for none.
	Lag, Grace time.Duration
	// Mark and Phase: the Rollout has to reach Phase within Deadline of the
	// mark. An empty Mark means the start, an empty Phase Healthy; a Deadline
	// of 0 leaves this out.
	Mark, Phase string
	Deadline    time.Duration
}

// Violations holds a timeline against all invariants and returns a sentence for
// each breach, none when all is well. A gap in the recording is a breach too.
func Violations(t Timeline, l Limits) []string {
	bad := append([]string(nil), t.Gaps...)
	if l.Rule != nil {
		bad = append(bad, CanaryWithinRule(t, l.Rule, orDefault(l.Lag, DefaultLag))...)
	}
	bad = append(bad, NoTrafficToMissingPods(t, orDefault(l.Grace, DefaultGrace))...)
	bad = append(bad, WeightsSumToMax(t)...)
	if l.Deadline > 0 {
		bad = append(bad, Reached(t, l.Mark, orDefault(l.Phase, "Healthy"), l.Deadline)...)
	}
	return bad
}

// orDefault lets the zero value of a setting mean its default.
func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// CanaryWithinRule holds the canary weight of each VirtualService write against
// a rule. The rule is asked about the moment before the write: the hashes and
// weights of then, which are in the API for all to see. Pods and Rollout the
// writer saw a little earlier, so the weight is right when the rule allows it
// with those of any state in force during the last lag before the write. The
// controller writes the weight it asks for into the status only after the router
// has answered, so the rule is asked twice, also with the next other weight that
// the status shows. Routes of other VirtualServices do not count: they may be
// written a moment later.
func CanaryWithinRule(t Timeline, rule func(State) int32, lag time.Duration) []string {
	var bad []string
	states := t.States()
	for i := 1; i < len(states); i++ {
		if !states[i].Entry.isWrite(KindVirtualService) {
			continue
		}
		worst, ok := worstRoute(states[i])
		if !ok {
			continue
		}
		if allowed := mostAllowed(states, i, rule, lag); worst.Canary > allowed {
			bad = append(bad, tooMuch(t, states[i-1], states[i], worst, allowed, lag))
		}
	}
	return bad
}

// worstRoute is the route with most canary weight in the VirtualService that
// the state's entry wrote.
func worstRoute(s State) (worst RouteState, ok bool) {
	for _, r := range s.Routes {
		if r.VirtualService == s.Entry.Name && (!ok || r.Canary > worst.Canary) {
			worst, ok = r, true
		}
	}
	return worst, ok
}

// mostAllowed asks the rule about the write that made the state at i, with the
// pods and the Rollout of each state in force within lag before it.
func mostAllowed(states []State, i int, rule func(State) int32, lag time.Duration) int32 {
	before, next := states[i-1], nextDesired(states, i)
	var most int32
	for j := i - 1; j >= 0; j-- {
		seen := before
		seen.Pods, seen.Rollout = states[j].Pods, states[j].Rollout
		most = max(most, askBoth(seen, rule, next))
		// An earlier state was no longer in force when the window begins.
		if states[j].At < states[i].At-lag {
			break
		}
	}
	return most
}

// askBoth gives the writer the benefit of the doubt about what it was asked for.
// About the pods there is none: they bound the weight either way.
func askBoth(s State, rule func(State) int32, desired int32) int32 {
	as := rule(s)
	s.Rollout.DesiredWeight = desired
	return max(as, rule(s))
}

// nextDesired is the next other weight that the status shows as asked for. It
// may come late: a reconcile that ends in an error writes no status.
func nextDesired(states []State, i int) int32 {
	now := states[i].Rollout.DesiredWeight
	for _, s := range states[i+1:] {
		if s.Rollout.DesiredWeight != now {
			return s.Rollout.DesiredWeight
		}
	}
	return now
}

// tooMuch says what was written and what would have been right, with the numbers
// that decide it.
func tooMuch(t Timeline, before, s State, r RouteState, allowed int32, lag time.Duration) string {
	pods := s.Pods[s.CanaryHash]
	return fmt.Sprintf("at %s the canary weight of VirtualService %s/%s route %s was set from %d to %d of %d,"+
		" but at most %d was allowed: canary %s had %d of %d pods available (pods of the last %s considered)",
		seconds(s.At), t.Subject.Namespace, r.VirtualService, r.Route, before.canaryOf(r), r.Canary, s.Max,
		allowed, named(s.CanaryHash), pods.Available, s.Rollout.Replicas, lag)
}

// canaryOf is the weight that a route had in this state, 0 when it was not there.
func (s State) canaryOf(r RouteState) int32 {
	for _, old := range s.Routes {
		if old.VirtualService == r.VirtualService && old.Route == r.Route {
			return old.Canary
		}
	}
	return 0
}

// NoTrafficToMissingPods finds each period longer than grace in which a side
// had weight and no available pod behind its hash while the other side had
// some.
func NoTrafficToMissingPods(t Timeline, grace time.Duration) []string {
	var bad []string
	for n := range 2 {
		for _, o := range outages(t, n) {
			if o.to-o.from > grace {
				bad = append(bad, o.sentence(t.Subject.Max(), grace))
			}
		}
	}
	return bad
}

// outage is an unbroken period in which one side had weight and no pod; worst
// is the side at its highest weight.
type outage struct {
	from, to time.Duration
	worst    side
}

// outages of the canary (n = 0) or the stable side (n = 1).
func outages(t Timeline, n int) []outage {
	var all []outage
	running := false
	t.eachState(func(s State, lasted time.Duration) {
		d := s.sides()[n]
		if !s.missing(d) {
			running = false
			return
		}
		if !running {
			all = append(all, outage{from: s.At, worst: d})
			running = true
		}
		o := &all[len(all)-1]
		o.to = s.At + lasted
		if d.weight > o.worst.weight {
			o.worst = d
		}
	})
	return all
}

func (o outage) sentence(total int32, grace time.Duration) string {
	d := o.worst
	return fmt.Sprintf("from %s to %s the %s side had weight %d of %d though its hash %s had no available pod"+
		" and the %s side's %s had %d; that is %s, and %s are allowed",
		seconds(o.from), seconds(o.to), d.name, d.weight, total, named(d.hash),
		d.other, named(d.otherHash), d.otherHas, seconds(o.to-o.from), seconds(grace))
}

// Reached checks that the Rollout was in a phase within the deadline after a
// mark, in the sense of [Timeline.UntilPhase].
func Reached(t Timeline, mark, phase string, deadline time.Duration) []string {
	from, known := t.markIndex(mark)
	if !known {
		return []string{fmt.Sprintf("the mark %q was never set, so nothing can be said about the time until %s", mark, phase)}
	}
	took, ok := t.until(from, phase)
	if ok && took <= deadline {
		return nil
	}
	since := "the start"
	if mark != "" {
		since = fmt.Sprintf("%q", mark)
	}
	if ok {
		return []string{fmt.Sprintf("the Rollout was %s only %s after %s, %s were allowed", phase, seconds(took), since, seconds(deadline))}
	}
	states := t.States()
	last := states[len(states)-1].Rollout
	return []string{fmt.Sprintf("the Rollout was never %s after %s (%s were allowed, the recording ends at %s): it is %s, %q",
		phase, since, seconds(deadline), seconds(t.End), orDefault(last.Phase, "without a phase"), last.Message)}
}

// WeightsSumToMax checks each route that names both sides at each write of its
// VirtualService: no weight below 0, and all of them together exactly max.
func WeightsSumToMax(t Timeline) []string {
	var bad []string
	for _, s := range t.States() {
		if !s.Entry.isWrite(KindVirtualService) {
			continue
		}
		for _, r := range s.Routes {
			if r.VirtualService != s.Entry.Name {
				continue
			}
			bad = append(bad, wrongSum(t, s, r)...)
		}
	}
	return bad
}

// wrongSum reports both faults of a route: a negative weight may be hidden in a
// sum that is right.
func wrongSum(t Timeline, s State, r RouteState) []string {
	where := fmt.Sprintf("at %s VirtualService %s/%s route %s", seconds(s.At), t.Subject.Namespace, r.VirtualService, r.Route)
	var bad []string
	if r.Lowest < 0 {
		bad = append(bad, fmt.Sprintf("%s had a destination of weight %d", where, r.Lowest))
	}
	if r.Sum != s.Max {
		bad = append(bad, fmt.Sprintf("%s had weights that sum to %d, not %d (canary %d, stable %d)", where, r.Sum, s.Max, r.Canary, r.Stable))
	}
	return bad
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

func named(hash string) string {
	if hash == "" {
		return "(no hash)"
	}
	return hash
}
