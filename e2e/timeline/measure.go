package timeline

import (
	"cmp"
	"time"
)

// Peak is the worst overcommitment of one side.
type Peak struct {
	// Points is the weight beyond the pods' share, in parts of max scaled to
	// 100: weight 100 of 100 with 2 of 20 pods available is 90 points.
	Points float64
	// At is when it was first reached, Lasted how long the side had any
	// overcommitment at all.
	At, Lasted time.Duration
}

// Missing is traffic sent to a side without an available pod while the other
// side had some.
type Missing struct {
	// Traffic is the integral of weight/max over time: 2 s at weight 50 of 100
	// is 1 s of full traffic.
	Traffic time.Duration
	// Wall is how long any weight at all went there.
	Wall time.Duration
}

// Measures sums a timeline up. Two runs compare best when both are cut with
// [Timeline.Since] at the same moment of the story.
type Measures struct {
	Canary, Stable Peak
	Missing        Missing
	// Finish is the time until the Rollout was Healthy, from the start of the
	// timeline; Finished is false when it never was.
	Finish   time.Duration
	Finished bool
	// Writes counts the new resourceVersions of each kind by field manager;
	// the manager is "" where managedFields do not tell.
	Writes map[Kind]map[string]int
}

// Measure computes all measures over the whole timeline.
func (t Timeline) Measure() Measures {
	m := Measures{Writes: map[Kind]map[string]int{}}
	t.eachState(func(s State, lasted time.Duration) {
		canary, stable := s.Overcommitment()
		m.Canary.add(s.At, canary, lasted)
		m.Stable.add(s.At, stable, lasted)
		m.Missing.add(s, lasted)
	})
	for _, e := range t.Entries {
		m.count(e)
	}
	m.Finish, m.Finished = t.until(0, "Healthy")
	return m
}

// eachState visits every state with the time it lasted.
func (t Timeline) eachState(visit func(s State, lasted time.Duration)) {
	states := t.States()
	for i, s := range states {
		next := t.End
		if i+1 < len(states) {
			next = states[i+1].At
		}
		visit(s, next-s.At)
	}
}

// rounding is what a floating-point difference of equal shares may leave.
const rounding = 1e-9

// add keeps the first of equal peaks: the cause stands there.
func (p *Peak) add(at time.Duration, points float64, lasted time.Duration) {
	if points <= rounding {
		return
	}
	p.Lasted += lasted
	if points > p.Points {
		p.Points, p.At = points, at
	}
}

// add weighs the time by the weight. At most one side can be missing, as the
// other has to have pods.
func (m *Missing) add(s State, lasted time.Duration) {
	for _, d := range s.sides() {
		if !s.missing(d) {
			continue
		}
		m.Wall += lasted
		m.Traffic += time.Duration(min(100, s.Percent(d.weight)) / 100 * float64(lasted))
	}
}

// count leaves out what nobody wrote while recording.
func (m *Measures) count(e Entry) {
	if e.Found || e.Deleted {
		return
	}
	switch kind := e.Fact.Kind(); kind {
	case KindMark, KindEvent:
	default:
		if m.Writes[kind] == nil {
			m.Writes[kind] = map[string]int{}
		}
		m.Writes[kind][e.Manager]++
	}
}

// WritesOf is the number of writes of one kind, whoever made them.
func (m Measures) WritesOf(kind Kind) int {
	sum := 0
	for _, n := range m.Writes[kind] {
		sum += n
	}
	return sum
}

// Overcommitment is how far the weight of each side goes beyond the share of
// traffic that its available pods can take, in points (percent of all traffic):
//
//	max(0, 100·weight/max − min(100, 100·available/spec.replicas))
//
// Weights are those of the worst route. It is 0 for a side whose hash is not
// named, when spec.replicas is 0, and when no side has a pod: then no split
// would be better. When both sides name one hash there is no canary; the sum
// of both weights is then held against the pods, and counted for the stable
// side.
func (s State) Overcommitment() (canary, stable float64) {
	if s.CanaryHash == s.StableHash {
		return 0, s.beyond(s.CanaryWeight+s.StableWeight, s.StableHash)
	}
	return s.beyond(s.CanaryWeight, s.CanaryHash), s.beyond(s.StableWeight, s.StableHash)
}

// beyond is the overcommitment of a weight on the pods of one hash.
func (s State) beyond(weight int32, hash string) float64 {
	if hash == "" || s.Pods[s.CanaryHash].Available+s.Pods[s.StableHash].Available == 0 {
		return 0
	}
	return max(0, min(100, s.Percent(weight))-s.Share(hash))
}

// side is one of the two sides of a state, seen from itself.
type side struct {
	name, other         string
	weight              int32
	hash, otherHash     string
	available, otherHas int32
}

// sides looks at the same state from both sides, so that every rule about one
// side is written once.
func (s State) sides() [2]side {
	canary := side{name: "canary", other: "stable", weight: s.CanaryWeight, hash: s.CanaryHash, otherHash: s.StableHash}
	stable := side{name: "stable", other: "canary", weight: s.StableWeight, hash: s.StableHash, otherHash: s.CanaryHash}
	canary.available, stable.available = s.available(s.CanaryHash), s.available(s.StableHash)
	canary.otherHas, stable.otherHas = stable.available, canary.available
	return [2]side{canary, stable}
}

// available counts the pods behind a side. A side that names no hash takes
// every pod of the Rollout.
func (s State) available(hash string) int32 {
	if hash != "" {
		return s.Pods[hash].Available
	}
	var sum int32
	for _, p := range s.Pods {
		sum += p.Available
	}
	return sum
}

// missing is whether traffic goes to a side without pods though the other side
// has some.
func (s State) missing(d side) bool {
	return d.weight > 0 && d.hash != "" && d.available == 0 && d.otherHas > 0
}

// UntilPhase is the time from a mark until the Rollout is in that phase with a
// current status. A Rollout that is in the phase already at the mark has to
// leave it first: the controller needs a moment to notice what was asked. An
// empty mark means the start of the timeline. ok is false when the phase was
// never reached or the mark was never set.
func (t Timeline) UntilPhase(mark, phase string) (d time.Duration, ok bool) {
	from, known := t.markIndex(mark)
	if !known {
		return 0, false
	}
	return t.until(from, phase)
}

// markIndex is the index of the state that the mark begins.
func (t Timeline) markIndex(mark string) (int, bool) {
	if mark == "" {
		return 0, true
	}
	for i, s := range t.States() {
		if _, isMark := s.Entry.Fact.(Mark); isMark && s.Entry.Name == mark {
			return i, true
		}
	}
	return 0, false
}

// until looks for the phase from a state on, once it has been left.
func (t Timeline) until(from int, phase string) (time.Duration, bool) {
	states := t.States()[from:]
	left := false
	for _, s := range states {
		if !s.Is(phase) {
			left = true
		} else if left {
			return s.At - states[0].At, true
		}
	}
	return 0, false
}

// Revision is the pod-template hash that the timeline leads to: what the
// Rollout last called its current one, or the canary's when no Rollout was
// seen.
func (t Timeline) Revision() string {
	states := t.States()
	last := states[len(states)-1]
	return cmp.Or(last.Rollout.PodHash, last.CanaryHash)
}
