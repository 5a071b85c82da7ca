package timeline

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestOvercommitment(t *testing.T) {
	type points struct{ Canary, Stable float64 }
	for sentence, c := range map[string]struct {
		script *script
		want   points
	}{
		"weight 100 with 2 of 20 pods is 90 points":              {healthy().hashes(oldHash, newHash).weight(100), points{90, 0}},
		"weight 10 with 2 of 20 pods is none":                    {healthy().hashes(oldHash, newHash).weight(10), points{0, 0}},
		"weight below the share does not count against it":       {healthy().hashes(oldHash, newHash).weight(5), points{0, 0}},
		"all traffic to no pod is 100 points":                    {healthy().hashes(oldHash, newHash).weight(100).pods(oldHash, 20, 0), points{100, 0}},
		"a stable that was scaled away":                          {healthy().hashes(oldHash, newHash).weight(10).pods(newHash, 6, 6), points{0, 60}},
		"a side without a hash is not judged":                    {healthy().hashes("", newHash).weight(100), points{0, 0}},
		"no pod on either side: no split is better":              {healthy().hashes(oldHash, newHash).weight(50).pods(oldHash, 2, 0).pods(newHash, 20, 0), points{0, 0}},
		"replicas 0: nobody asked for pods":                      {healthy().hashes(oldHash, newHash).weight(100).status(func(r *Rollout) { r.Replicas = 0 }), points{0, 0}},
		"both sides name one hash: both weights are on its pods": {healthy().weight(50).pods(newHash, 20, 10), points{0, 50}},
		"more available pods than replicas give no credit":       {healthy().hashes(oldHash, newHash).weight(100).pods(oldHash, 30, 30), points{0, 0}},
		"a weight beyond max counts as all traffic":              {healthy().hashes(oldHash, newHash).weights(200, 0), points{90, 0}},
	} {
		t.Run(sentence, func(t *testing.T) {
			canary, stable := last(c.script.timeline(10)).Overcommitment()
			if diff := cmp.Diff(c.want, points{canary, stable}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOvercommitmentIsScaledFromParts(t *testing.T) {
	s := healthy()
	s.subject.MaxWeight = 1000
	if canary, _ := last(s.hashes(oldHash, newHash).weight(350).timeline(1)).Overcommitment(); canary != 25 {
		t.Errorf("350 of 1000 with 2 of 20 pods: %v points, want 25", canary)
	}
}

func TestTheIncidentInNumbers(t *testing.T) {
	controller, plugin := "rollouts-controller", "rollouts-plugin-trafficrouter-istio"
	for sentence, c := range map[string]struct {
		timeline Timeline
		want     Measures
	}{
		"native: everything to two pods, for 2.7 s to none": {nativeIncident(), Measures{
			Canary:  Peak{Points: 100, At: ms(3200), Lasted: ms(13900)},
			Missing: Missing{Traffic: ms(2700), Wall: ms(2700)},
			Finish:  ms(44100), Finished: true,
			Writes: map[Kind]map[string]int{
				KindVirtualService: {controller: 2}, KindDestinationRule: {controller: 2},
				KindReplicaSet: {controller: 22}, KindRollout: {controller: 4},
			}}},
		"guarded: the weight follows the pods after 10 ms": {guardedIncident(), Measures{
			Canary:  Peak{Points: 5, At: ms(2990), Lasted: ms(20)},
			Missing: Missing{Traffic: ms(10) / 20, Wall: ms(10)},
			Finish:  ms(24100), Finished: true,
			Writes: map[Kind]map[string]int{
				KindVirtualService: {plugin: 23}, KindDestinationRule: {controller: 1, plugin: 1},
				KindReplicaSet: {plugin: 22}, KindRollout: {controller: 2, plugin: 2},
			}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.timeline.Measure()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTrafficToMissingPodsIsAnIntegral(t *testing.T) {
	for sentence, c := range map[string]struct {
		script *script
		want   Missing
	}{
		"2 s at 50 of 100 is 1 s of full traffic": {
			healthy().hashes(oldHash, newHash).weight(50).at(1000).pods(oldHash, 2, 0).at(3000).weight(0), Missing{ms(1000), ms(2000)}},
		"it counts to the end of the recording": {
			healthy().hashes(oldHash, newHash).weight(100).at(1000).pods(oldHash, 2, 0), Missing{ms(4000), ms(4000)}},
		"no weight, no missing traffic": {
			healthy().hashes(oldHash, newHash).weight(0).at(1000).pods(oldHash, 2, 0), Missing{}},
		"the other side has none either": {
			healthy().hashes(oldHash, newHash).weight(50).at(1000).pods(oldHash, 2, 0).pods(newHash, 20, 0).at(2000).weight(0), Missing{}},
		"the stable side counts too": {
			healthy().hashes(oldHash, newHash).weight(25).at(1000).pods(newHash, 20, 0).at(5000).pods(newHash, 20, 20), Missing{ms(3000), ms(4000)}},
		"a hash without any ReplicaSet has no pods": {
			healthy().weight(100).at(1000).hashes("deadbeef", newHash).at(2000).weight(0), Missing{ms(1000), ms(1000)}},
		"the other side names no hash and takes every pod": {
			healthy().weight(100).at(1000).hashes("deadbeef", "").at(2000).weight(0), Missing{ms(1000), ms(1000)}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.script.timeline(5000).Measure().Missing); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTimeUntilAPhase(t *testing.T) {
	for sentence, c := range map[string]struct {
		script      *script
		mark, phase string
		want        time.Duration
		ok          bool
	}{
		"from the mark to the phase": {
			healthy().at(100).mark("go").at(200).phase("Progressing", "").at(700).phase("Healthy", ""), "go", "Healthy", ms(600), true},
		"the phase of before does not count": {
			healthy().at(100).mark("go"), "go", "Healthy", 0, false},
		"a status that speaks of the old spec does not count": {
			healthy().at(100).mark("go").at(200).status(func(r *Rollout) { r.Current = false }).at(300).phase("Healthy", ""), "go", "Healthy", ms(200), true},
		"from the start without a mark": {
			healthy().at(200).phase("Progressing", "").at(700).phase("Degraded", "aborted"), "", "Degraded", ms(700), true},
		"a phase already left and reached before the mark does not count": {
			healthy().at(10).phase("Progressing", "").at(20).phase("Healthy", "").at(100).mark("go"), "go", "Healthy", 0, false},
		"a mark that was never set": {
			healthy().at(200).phase("Progressing", "").at(700).phase("Healthy", ""), "nowhere", "Healthy", 0, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, ok := c.script.timeline(1000).UntilPhase(c.mark, c.phase)
			if got != c.want || ok != c.ok {
				t.Errorf("UntilPhase = %s, %v; want %s, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestWritesLeaveOutWhatWasFoundAndDeleted(t *testing.T) {
	m := healthy().at(10).by("kubectl").weight(20).by("").weight(30).weight(40).deleted().event("E", "").mark("m").timeline(100).Measure()
	if diff := cmp.Diff(map[Kind]map[string]int{KindVirtualService: {"kubectl": 1, "": 1}}, m.Writes); diff != "" {
		t.Error(diff)
	}
	if n := m.WritesOf(KindVirtualService); n != 2 {
		t.Errorf("%d VirtualService writes", n)
	}
	if n := m.WritesOf(KindService); n != 0 {
		t.Errorf("%d Service writes", n)
	}
}

func TestTheRevisionIsWhereTheRunLeads(t *testing.T) {
	if got := nativeIncident().Revision(); got != oldHash {
		t.Errorf("after a rollback: %q", got)
	}
	if got := healthy().status(func(r *Rollout) { r.PodHash = oldHash; r.Abort = true }).timeline(1).Revision(); got != oldHash {
		t.Errorf("after an abort, when the routing names only the stable again: %q", got)
	}
	if got := newScript().hashes(oldHash, newHash).timeline(1).Revision(); got != oldHash {
		t.Errorf("without a Rollout: %q", got)
	}
}

func TestMeasuresStayInTheirRanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tl := New(subsetSubject(), time.Time{}, ms(6000), drawnEntries(rt))
		m := tl.Measure()
		for _, p := range []Peak{m.Canary, m.Stable} {
			if p.Points < 0 || p.Points > 100 || p.Lasted > tl.End || p.At > tl.End {
				rt.Fatalf("peak %+v of %s", p, tl.End)
			}
		}
		if m.Missing.Wall > tl.End || m.Missing.Traffic < 0 || m.Missing.Traffic > m.Missing.Wall || m.Finish > tl.End {
			rt.Fatalf("measures %+v of %s", m, tl.End)
		}
	})
}
