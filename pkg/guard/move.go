package guard

import (
	"fmt"
	"strings"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// Label is one subset's pod-template hash: what it is, what UpdateHash was asked to make it, and what hangs on it.
type Label struct {
	// From is the hash that the DestinationRule names now. "" means none: the subset selects pods of every revision,
	// perhaps those of the Deployment that the Rollout replaces, and is taken to be serving whatever FromPods says.
	From string
	// To is the hash that UpdateHash was given. "" means that the controller has no ReplicaSet for this side; the label
	// stays as it is.
	To string
	// FromPods and ToPods are the pods behind the two hashes.
	FromPods, ToPods Pods
	// Weight is this side's traffic in the VirtualService, in parts of Max; of several routes the highest.
	Weight int32
	// Lowered is how long ago Weight last went down. It means nothing unless LoweredKnown; an unknown time is long ago,
	// so the time has to outlive a restart of the plugin.
	Lowered      time.Duration
	LoweredKnown bool
}

// moves is true when there is a label to write.
func (l Label) moves() bool { return l.To != "" && l.To != l.From }

// serving is true when requests to the subset as it is find a pod.
func (l Label) serving() bool { return l.From == "" || l.FromPods.Available > 0 }

// ready is true when requests to the subset find a pod after the move.
func (l Label) ready() bool { return l.ToPods.Available > 0 }

// Move is all that the order of a hash change rests on: both labels of an UpdateHash, since neither side is safe by
// itself. Any value is accepted.
type Move struct {
	Canary, Stable Label
	// Max, Replicas, Intended and Threshold are as in Facts; Intended is for the canary's new hash.
	Max, Replicas, Intended int32
	Threshold               *v1alpha1.ReplicaProgressThreshold
	// Settle is how long a written weight is given to reach every proxy.
	Settle time.Duration
}

// MoveStep is what to do about one label now.
type MoveStep int

const (
	// Nothing: the label is right, or there is no hash to write.
	Nothing MoveStep = iota
	// MoveLabel: write the label now.
	MoveLabel
	// LowerFirst: the new hash cannot take the canary's weight. Write the weight in Plan.Weight; the label has to wait.
	LowerFirst
	// WaitSettle: the weight is low enough, but not every proxy may know it yet. Write nothing for Plan.Remaining.
	WaitSettle
	// WaitPods: the label serves traffic, the new hash has not the pods for it, and no weight would help.
	WaitPods
)

// String is the name of the constant.
func (s MoveStep) String() string {
	names := [...]string{"Nothing", "MoveLabel", "LowerFirst", "WaitSettle", "WaitPods"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("MoveStep(%d)", int(s))
	}
	return names[s]
}

// Plan is one step on the way to the labels that were asked for. Carry it out in this order, leaving out what is not
// there, and end UpdateHash with the answer:
//
//  1. write the labels whose step is MoveLabel, both in one patch;
//  2. if Canary is LowerFirst, write Weight;
//  3. answer Err, or success if it is empty.
//
// The order is that of a promotion: the stable's label is in place before traffic returns to the stable side. An error
// makes the controller come back within milliseconds, and the next plan is made from what it finds then.
type Plan struct {
	Canary, Stable MoveStep
	// Weight is the canary's new weight with LowerFirst, in parts of Max.
	Weight int32
	// Remaining is the longest time to wait with WaitSettle; at most twice Move.Settle.
	Remaining time.Duration
	// Err is what UpdateHash answers. It is empty only when every label that was asked for is in place once the plan is
	// carried out: with an old label in place the controller would scale its pods away (argo-rollouts#4390).
	Err string
}

// PlanMove says what UpdateHash may do now. Its promise is that carrying out plan after plan, no subset with a weight
// above 0, in the object or still on its way to the proxies, changes from a hash with available pods to one without.
//
// The canary's label is never held up for longer than Settle, whatever the state of its pods: its weight can be lowered.
// WaitPods can last, and only where the alternative is to send traffic to nobody. The controller itself does not call
// before the stable has the pods for its share, so it takes a view of the cluster that is a moment behind, a Deployment
// that is being replaced, or a stable that lost all its pods right after its promotion.
func PlanMove(m Move) Plan {
	p := Plan{Stable: m.planStable()}
	after := m.stableAfter(p.Stable)
	p.Canary, p.Weight = m.planCanary(after)
	for _, side := range []struct {
		step  MoveStep
		label Label
	}{{p.Canary, m.Canary}, {p.Stable, m.Stable}} {
		if side.step == WaitSettle {
			p.Remaining = max(p.Remaining, side.label.unsettled(m.Settle))
		}
	}
	p.Err = m.answer(p)
	return p
}

// side is what a subset names: a hash and its pods.
type side struct {
	hash    string
	pods    Pods
	serving bool
}

// stableAfter is the stable side once its step is done. The canary's step is judged by it, since it is carried out
// afterwards.
func (m Move) stableAfter(step MoveStep) side {
	if step == MoveLabel {
		return side{hash: m.Stable.To, pods: m.Stable.ToPods, serving: m.Stable.ready()}
	}
	pods := m.Stable.FromPods
	if m.Stable.From == "" && pods.Available <= 0 {
		pods = Pods{Available: m.Replicas, Size: m.Replicas} // Not the Rollout's to count: taken to be whole.
	}
	return side{hash: m.Stable.From, pods: pods, serving: m.Stable.serving()}
}

// planStable plans for the side whose weight the plugin does not lower: that would raise the canary's.
func (m Move) planStable() MoveStep {
	l := m.Stable
	joins := m.Canary.From == l.To // the canary side names the new hash already: a promotion
	switch {
	case !l.moves():
		return Nothing
	case l.Weight <= 0 && joins && l.ready():
		return MoveLabel // The new hash has the traffic already; a late proxy can only add what it has elsewhere.
	case l.Weight <= 0 || m.stableTakes(joins):
		return m.settled(l, m.fullStable())
	case l.From != "" && max(0, l.ToPods.Available) >= l.FromPods.Available:
		return MoveLabel // Too few, but no fewer than now: a sick stable does not block the way (argo-rollouts#4839).
	default:
		return WaitPods
	}
}

// stableTakes says whether the new stable hash has the pods for its weight, and for the canary's too where that side
// names the same hash.
func (m Move) stableTakes(joins bool) bool {
	v := m.view()
	weight := clamp(m.Stable.Weight, v.max)
	if joins {
		weight = min(v.max, weight+clamp(m.Canary.Weight, v.max))
	}
	return v.stable.available >= enoughOf(max(1, v.shareOf(weight)), m.Threshold)
}

func (m Move) fullStable() bool {
	v := m.view()
	return v.stable.available >= enoughOf(max(1, v.replicas), m.Threshold)
}

// view sees the sizes of the move, with the stable's new pods.
func (m Move) view() view {
	return see(Facts{Max: m.Max, Replicas: m.Replicas, Intended: m.Intended, Stable: m.Stable.ToPods})
}

// planCanary plans for the side whose weight can be lowered.
func (m Move) planCanary(stable side) (step MoveStep, weight int32) {
	l := m.Canary
	switch {
	case !l.moves():
		return Nothing, 0
	case l.To == stable.hash && l.ready():
		return MoveLabel, 0 // All traffic is on this hash then, wherever the weight is.
	case m.canaryTakes(l.Weight, stable):
		return m.settled(l, m.canaryTakes(saturate(m.view().max), stable)), 0
	case stable.serving:
		return LowerFirst, m.canaryFits(stable)
	case l.serving():
		return WaitPods, 0 // The old hash has the only pods there are.
	default:
		return MoveLabel, 0
	}
}

// canaryTakes says whether the new canary hash has the pods for a weight, by the guard's own rules.
func (m Move) canaryTakes(weight int32, stable side) bool {
	if weight <= 0 {
		return true
	}
	d := Decide(Facts{
		Desired: weight, Max: m.Max, Replicas: m.Replicas,
		Canary: m.Canary.ToPods, Stable: stable.pods,
		Intended: m.Intended, Threshold: m.Threshold,
	})
	return m.Canary.ready() && !d.Capped()
}

// canaryFits is a weight that the new canary hash takes without doubt, for one that does not take the present weight: by
// spec.replicas or by equal load. The intended count is left out. It may be less than the weight at hand needs, and would
// be measured anew against each lower weight, so that it would come down in many writes rather than in one. The result is
// below the present weight, which would have fitted otherwise.
func (m Move) canaryFits(stable side) int32 {
	v := m.view()
	available := nonNegative(m.Canary.ToPods.Available)
	if available == 0 {
		return 0
	}
	bySize := v.max * available / max(1, v.replicas)
	byLoad := v.max * available / (available + nonNegative(stable.pods.Available))
	return saturate(max(bySize, byLoad))
}

// settled moves a label whose weight fits, unless proxies may still know a higher one. It does not wait where waiting
// saves nothing: when the new hash could take everything, or when the old one has no pods.
func (m Move) settled(l Label, takesAll bool) MoveStep {
	if takesAll || !l.serving() || l.unsettled(m.Settle) <= 0 {
		return MoveLabel
	}
	return WaitSettle
}

// unsettled is for how much longer a proxy may not know the weight. A time in the future is another machine's clock; one
// by more than settle is nonsense, and must not hold a Rollout up until that clock has caught up.
func (l Label) unsettled(settle time.Duration) time.Duration {
	if !l.LoweredKnown || l.Lowered >= settle || l.Lowered < -settle {
		return 0
	}
	return settle - l.Lowered
}

// answer puts what is left to do into words.
func (m Move) answer(p Plan) string {
	var waits []string
	for _, s := range []string{
		m.explain("canary", m.Canary, p.Canary, p.Weight),
		m.explain("stable", m.Stable, p.Stable, 0),
	} {
		if s != "" {
			waits = append(waits, s)
		}
	}
	return strings.Join(waits, "; ")
}

func (m Move) explain(name string, l Label, step MoveStep, weight int32) string {
	names := fmt.Sprintf("%s subset still names %s, not %s", name, orNoHash(l.From), l.To)
	switch step {
	case LowerFirst:
		return fmt.Sprintf("%s: its weight of %d has to go down to %d first, as only %d replicas of %s are available",
			names, l.Weight, weight, max(0, l.ToPods.Available), l.To)
	case WaitSettle:
		return fmt.Sprintf("%s: the weight last written has another %s to reach the proxies", names, l.unsettled(m.Settle))
	case WaitPods:
		return fmt.Sprintf("%s: waiting for replicas of %s, %d of %d available",
			names, l.To, max(0, l.ToPods.Available), max(0, l.ToPods.Size))
	default:
		return ""
	}
}

func orNoHash(hash string) string {
	if hash == "" {
		return "no hash"
	}
	return hash
}
