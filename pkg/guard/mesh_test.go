package guard_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// mesh is a model of what PlanMove acts upon: the two labels, which every proxy follows at once, and the canary's
// weight, which a proxy may follow as late as settle after it was written.
type mesh struct {
	t              *rapid.T
	available      map[string]int32 // by hash; a hash that is not in it has no pods
	canary, stable string           // the labels
	weights        []written        // the canary's, oldest first
	now            time.Duration
	max            int32
}

type written struct {
	weight int32
	at     time.Duration
}

func anyMesh(t *rapid.T) *mesh {
	hashes := []string{"h1", "h2", "h3"}
	m := &mesh{
		t: t, max: 100, available: map[string]int32{"": 20},
		canary: rapid.SampledFrom(append(hashes, "")).Draw(t, "canary label"),
		stable: rapid.SampledFrom(append(hashes, "")).Draw(t, "stable label"),
	}
	for _, hash := range hashes {
		m.available[hash] = rapid.SampledFrom([]int32{0, 0, 1, 5, 19, 20, 25}).Draw(t, hash)
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "writes before") {
		at := time.Duration(i) * rapid.SampledFrom([]time.Duration{0, settle / 3, settle, 5 * settle}).Draw(t, "at")
		weight := rapid.SampledFrom([]int32{0, 10, 30, 70, 100}).Draw(t, "weight")
		m.now = max(m.now, at)
		m.weights = append(m.weights, written{weight: weight, at: m.now})
	}
	return m
}

func (m *mesh) weight() int32 { return m.weights[len(m.weights)-1].weight }

// inForce are the canary weights that some proxy may be following now.
func (m *mesh) inForce() []int32 {
	var weights []int32
	for i, w := range m.weights {
		if i+1 < len(m.weights) && m.weights[i+1].at+settle <= m.now {
			continue // Its successor has reached every proxy.
		}
		weights = append(weights, w.weight)
	}
	return weights
}

// label gathers what PlanMove is told about one side; part turns the canary's weight into that side's.
func (m *mesh) label(from, to string, part func(int32) int32) guard.Label {
	l := guard.Label{
		From: from, FromPods: pods(m.available[from], 20),
		To: to, ToPods: pods(m.available[to], 20),
		Weight: part(m.weight()),
	}
	for i := 1; i < len(m.weights); i++ {
		if part(m.weights[i].weight) < part(m.weights[i-1].weight) {
			l.Lowered, l.LoweredKnown = m.now-m.weights[i].at, true
		}
	}
	return l
}

func (m *mesh) ofCanary(weight int32) int32 { return weight }
func (m *mesh) ofStable(weight int32) int32 { return m.max - weight }

// relabel moves a label and checks that nobody is left without pods who had some.
func (m *mesh) relabel(name string, label *string, to string, part func(int32) int32) {
	for _, weight := range m.inForce() {
		if part(weight) > 0 && m.available[*label] > 0 && m.available[to] == 0 {
			m.t.Fatalf("the %s label goes from %q to %q, which has no pods, while proxies send %d of %d to it",
				name, *label, to, part(weight), m.max)
		}
	}
	*label = to
}

// lower writes a weight and checks that it goes down, onto a stable that has pods.
func (m *mesh) lower(weight int32) {
	if weight < 0 || weight >= m.weight() {
		m.t.Fatalf("the weight goes from %d to %d", m.weight(), weight)
	}
	if m.available[m.stable] == 0 {
		m.t.Fatalf("the weight goes down to %d onto a stable subset %q without pods", weight, m.stable)
	}
	m.weights = append(m.weights, written{weight: weight, at: m.now})
}

// follow carries out a plan in the order that Plan prescribes.
func (m *mesh) follow(p guard.Plan, canary, stable string) {
	if p.Stable == guard.MoveLabel {
		m.relabel("stable", &m.stable, stable, m.ofStable)
	}
	if p.Canary == guard.MoveLabel {
		m.relabel("canary", &m.canary, canary, m.ofCanary)
	}
	if p.Canary == guard.LowerFirst {
		m.lower(p.Weight)
	}
}

// leastMeshes is how many meshes are tried. The states in which an order matters are rare among all that can be drawn.
const leastMeshes = 5000

// Whatever the pods, the labels and the last writes were, the plans lead to the labels asked for without leaving anyone
// without pods, and within two settles: one for the stable's label, one for the canary's.
func TestPlansReachTheirEndWithoutHarm(t *testing.T) {
	ends := map[string]int{}
	for tried := 0; tried < leastMeshes && !t.Failed(); {
		rapid.Check(t, func(t *rapid.T) {
			tried++
			ends[anyMesh(t).changeHashes()]++
		})
	}
	for _, end := range []string{"at once", "after waiting", "without pods"} {
		if ends[end] == 0 {
			t.Errorf("no mesh ended %s: %v", end, ends)
		}
	}
}

// changeHashes asks for new labels until they are in place, and says how it ended.
func (m *mesh) changeHashes() string {
	const pace = settle / 10
	canary := rapid.SampledFrom([]string{"h1", "h2", "h3", ""}).Draw(m.t, "new canary")
	stable := rapid.SampledFrom([]string{"h1", "h2", "h3", ""}).Draw(m.t, "new stable")
	intended := rapid.SampledFrom([]int32{0, 1, 2, 10, 20}).Draw(m.t, "intended")
	for start := m.now; m.now-start <= 2*settle+2*pace; m.now += pace {
		p := guard.PlanMove(guard.Move{
			Canary: m.label(m.canary, canary, m.ofCanary), Stable: m.label(m.stable, stable, m.ofStable),
			Max: m.max, Replicas: 20, Intended: intended, Settle: settle,
		})
		m.follow(p, canary, stable)
		inPlace := (canary == "" || canary == m.canary) && (stable == "" || stable == m.stable)
		switch {
		case (p.Err == "") != inPlace:
			m.t.Fatalf("answer %q with the labels %q and %q", p.Err, m.canary, m.stable)
		case inPlace && m.now == start:
			return "at once"
		case inPlace:
			return "after waiting"
		case p.Canary == guard.WaitPods, p.Stable == guard.WaitPods && p.Canary <= guard.MoveLabel:
			return "without pods"
		}
	}
	m.t.Fatalf("the labels are still %q and %q", m.canary, m.stable)
	return ""
}

// FuzzPlanMove looks for a panic, and for an answer that leaves an old label in place with success.
func FuzzPlanMove(f *testing.F) {
	f.Add("c2", "c3", "s1", "s1", int32(6), int32(0), int32(20), int32(20), int32(30), int32(70), int32(100), int32(20), int64(0))
	f.Add("", "h1", "", "h1", int32(-1), int32(-1), int32(0), int32(1<<31-1), int32(-140), int32(200), int32(0), int32(-5), int64(-1<<63))
	f.Fuzz(func(t *testing.T, cf, ct, sf, st string, cfp, ctp, sfp, stp, cw, sw, weight, replicas int32, ago int64) {
		p := guard.PlanMove(guard.Move{
			Canary: lowered(goes(cf, cfp, ct, ctp, cw), time.Duration(ago)),
			Stable: lowered(goes(sf, sfp, st, stp, sw), time.Duration(ago)),
			Max:    weight, Replicas: replicas, Intended: replicas, Settle: settle,
		})
		old := func(from, to string, step guard.MoveStep) bool {
			return to != "" && to != from && step != guard.MoveLabel
		}
		if late := old(cf, ct, p.Canary) || old(sf, st, p.Stable); late != (p.Err != "") {
			t.Fatalf("%+v: the answer does not fit the labels", p)
		}
		if p.Weight < 0 || p.Weight > 0 && p.Weight >= cw || p.Remaining < 0 || p.Remaining > 2*settle {
			t.Fatalf("%+v: out of range", p)
		}
	})
}
