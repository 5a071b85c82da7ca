package timeline

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// proportional is a small stand-in for the guard: at most what is asked for,
// and at most the pods' share of it.
func proportional(s State) int32 {
	if s.CanaryHash == s.StableHash {
		return s.Rollout.DesiredWeight
	}
	return min(s.Rollout.DesiredWeight, s.Max*s.Pods[s.CanaryHash].Available/s.Rollout.Replicas)
}

// asked is a canary of two pods for which the controller asks for a weight.
func asked(weight int32) *script {
	return healthy().hashes(oldHash, newHash).status(func(r *Rollout) { r.DesiredWeight = weight })
}

func TestTheCanaryWeightIsHeldAgainstTheRule(t *testing.T) {
	two := func(a, b int32) VirtualService {
		return VirtualService{Routes: []Route{splitRoute("a", a, 100-a), splitRoute("b", b, 100-b)}}
	}
	for sentence, c := range map[string]struct {
		script *script
		want   string // empty: no violation
	}{
		"a weight within the rule": {asked(100).at(1000).weight(10), ""},
		"a weight beyond it": {asked(100).at(1000).weight(11),
			"at 1.000s the canary weight of VirtualService shop/web route primary was set from 0 to 11 of 100, but at most 10 was allowed:" +
				" canary 6f4b8c9d7 had 2 of 20 pods available (pods of the last 500ms considered)"},
		"decided on pods that were gone 0.4 s before the write": {
			asked(100).at(1000).pods(oldHash, 20, 10).at(2000).pods(oldHash, 20, 2).at(2400).weight(50), ""},
		"decided on pods that were gone for longer than the lag": {
			asked(100).at(1000).pods(oldHash, 20, 10).at(2000).pods(oldHash, 20, 2).at(2600).weight(50), "at most 10 was allowed"},
		"pods that came back long ago are in force at the window's beginning": {
			asked(100).at(1000).pods(oldHash, 20, 10).at(9000).weight(50), ""},
		"pods that come after the write do not count": {
			asked(100).at(1000).weight(50).at(1001).pods(oldHash, 20, 20), "at most 10 was allowed"},
		"the status tells only afterwards what was asked for": {
			asked(0).at(1000).weight(10).at(1010).status(func(r *Rollout) { r.DesiredWeight = 100 }), ""},
		"a Rollout write in between that asks for nothing new is looked through": {
			asked(0).at(1000).weight(10).at(1005).phase("Progressing", "").at(1010).status(func(r *Rollout) { r.DesiredWeight = 100 }), ""},
		"the label moved just before the write: the hash of now counts, not that of the window's beginning": {
			healthy().status(func(r *Rollout) { r.DesiredWeight = 100 }).at(990).hashes(oldHash, newHash).at(1000).weight(100), "at most 10 was allowed"},
		"spec.replicas changed 0.4 s before the write": {
			asked(100).at(600).status(func(r *Rollout) { r.Replicas = 40 }).at(1000).weight(10), ""},
		"nobody ever asked for that weight": {asked(5).at(1000).weight(10), "at most 5 was allowed"},
		"lowering to a weight that is still too high": {
			asked(100).weight(100).at(5000).weight(50), "was set from 100 to 50 of 100, but at most 10"},
		"what was found at the start is nobody's write": {asked(100).weight(100), ""},
		"the worst route of the written VirtualService counts": {
			asked(100).at(1000).add("web", two(10, 40)), "route b was set from 0 to 40"},
		"another VirtualService that is still to be lowered does not": {
			asked(100).add("other", two(100, 100)).at(1000).weight(10), ""},
		"a deletion is no write of a weight": {asked(100).weight(100).at(1000).weight(100).deleted(), ""},
		"a VirtualService without our routes has no weight": {
			asked(100).at(1000).add("web", VirtualService{}), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			expect(t, CanaryWithinRule(c.script.timeline(10000), proportional, DefaultLag), c.want)
		})
	}
}

// expect wants one sentence that contains the text, or none at all.
func expect(t *testing.T, got []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("violations that are none: %q", got)
	case want != "" && len(got) != 1:
		t.Errorf("%d violations, want one with %q: %q", len(got), want, got)
	case want != "" && !strings.Contains(got[0], want):
		t.Errorf("violation\n%s\nwithout\n%s", got[0], want)
	}
}

func TestNoTrafficGoesToMissingPods(t *testing.T) {
	for sentence, c := range map[string]struct {
		script *script
		want   string
	}{
		"pods die and the weight follows within the grace": {
			asked(100).weight(10).at(1000).pods(oldHash, 2, 0).at(2000).weight(0), ""},
		"it stays longer": {
			asked(100).weight(10).at(1000).pods(oldHash, 2, 0).at(2001).weight(0),
			"from 1.000s to 2.001s the canary side had weight 10 of 100 though its hash 6f4b8c9d7 had no available pod" +
				" and the stable side's 85c7d9f46 had 20; that is 1.001s, and 1.000s are allowed"},
		"to the end of the recording": {
			asked(100).weight(10).at(1000).pods(oldHash, 2, 0), "from 1.000s to 10.000s the canary side"},
		"a weight that only changes does not end the period; the worst is told": {
			asked(100).weight(10).at(1000).pods(oldHash, 2, 0).at(1900).weight(40).at(2800).weight(20).at(3700).weight(0),
			"from 1.000s to 3.700s the canary side had weight 40 of 100"},
		"two short periods are not one long": {
			asked(100).weight(10).at(1000).pods(oldHash, 2, 0).at(1900).weight(0).at(2000).weight(10).at(2900).weight(0), ""},
		"the stable side": {
			asked(100).weight(10).at(1000).pods(newHash, 20, 0), "the stable side had weight 90 of 100"},
		"nobody has pods": {
			asked(100).weight(10).at(1000).pods(oldHash, 2, 0).pods(newHash, 20, 0), ""},
		"a label that moves to a hash without pods": {
			asked(100).weight(10).at(1000).hashes("deadbeef", newHash), "its hash deadbeef had no available pod"},
	} {
		t.Run(sentence, func(t *testing.T) {
			expect(t, NoTrafficToMissingPods(c.script.timeline(10000), DefaultGrace), c.want)
		})
	}
}

func TestTheRolloutReachesItsPhaseInTime(t *testing.T) {
	for sentence, c := range map[string]struct {
		script      *script
		mark, phase string
		want        string
	}{
		"in time":                {asked(1).at(100).mark("go").phase("Progressing", "").at(3000).phase("Healthy", ""), "go", "Healthy", ""},
		"exactly at the limit":   {asked(1).at(100).mark("go").phase("Progressing", "").at(5100).phase("Healthy", ""), "go", "Healthy", ""},
		"too late":               {asked(1).at(100).mark("go").phase("Progressing", "").at(5101).phase("Healthy", ""), "go", "Healthy", `the Rollout was Healthy only 5.001s after "go", 5.000s were allowed`},
		"Degraded when expected": {asked(1).at(100).phase("Degraded", "aborted"), "", "Degraded", ""},
		"never": {asked(1).at(100).mark("go").phase("Progressing", "waiting"), "go", "Healthy",
			`the Rollout was never Healthy after "go" (5.000s were allowed, the recording ends at 10.000s): it is Progressing, "waiting"`},
		"never, from the start, without a phase": {newScript().status(func(r *Rollout) { r.Phase = "" }), "", "Healthy", `never Healthy after the start (5.000s were allowed, the recording ends at 10.000s): it is without a phase`},
		"no such mark":                           {asked(1), "nowhere", "Healthy", `the mark "nowhere" was never set`},
	} {
		t.Run(sentence, func(t *testing.T) {
			expect(t, Reached(c.script.timeline(10000), c.mark, c.phase, 5*time.Second), c.want)
		})
	}
}

func TestTheWeightsOfEachRouteSumToMax(t *testing.T) {
	for sentence, c := range map[string]struct {
		script *script
		want   string
	}{
		"they do":                              {healthy().at(1000).weight(30), ""},
		"they do not":                          {healthy().at(1000).weights(30, 60), "at 1.000s VirtualService shop/web route primary had weights that sum to 90, not 100 (canary 30, stable 60)"},
		"a negative one":                       {healthy().at(1000).weights(-40, 140), "route primary had a destination of weight -40"},
		"what was found so is nobody's write":  {healthy().weights(30, 60), ""},
		"a later write of something else too":  {healthy().weights(30, 60).at(1000).pods(oldHash, 2, 1), ""},
		"another VirtualService was not meant": {healthy().weights(30, 60).at(1000).add("other", VirtualService{}), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			expect(t, WeightsSumToMax(c.script.timeline(10000)), c.want)
		})
	}
}

func TestAllInvariantsTogether(t *testing.T) {
	bad := nativeIncident()
	bad.Gaps = []string{"a gap"}
	for sentence, c := range map[string]struct {
		timeline Timeline
		limits   Limits
		want     []string
	}{
		"the guarded run breaks none": {guardedIncident(), Limits{Rule: proportional, Mark: "rollback", Deadline: 30 * time.Second}, nil},
		"the native run breaks the rule, the grace and the deadline, and the gap is told": {bad,
			Limits{Rule: proportional, Mark: "rollback", Deadline: 30 * time.Second},
			[]string{"a gap", "at most 10 was allowed", "that is 2.700s, and 1.000s are allowed", "only 44.100s after"}},
		"a longer grace, no rule and no deadline": {nativeIncident(), Limits{Grace: 3 * time.Second}, nil},
		"the other phase is asked for":            {guardedIncident(), Limits{Phase: "Degraded", Deadline: time.Hour}, []string{"never Degraded after the start"}},
		"no lag at all":                           {asked(100).at(1000).pods(oldHash, 20, 20).at(1900).pods(oldHash, 20, 2).at(2000).weight(100).timeline(3000), Limits{Rule: proportional, Lag: 1}, []string{"at most 10 was allowed"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := Violations(c.timeline, c.limits)
			if len(got) != len(c.want) {
				t.Fatalf("violations:\n%s\nwant %q", strings.Join(got, "\n"), c.want)
			}
			for i, part := range c.want {
				if !strings.Contains(got[i], part) {
					t.Errorf("violation %d: %q without %q", i, got[i], part)
				}
			}
		})
	}
}

func TestTheRuleSeesTheStateAndDoesNotChangeIt(t *testing.T) {
	tl := asked(0).at(1000).weight(10).at(2000).status(func(r *Rollout) { r.DesiredWeight = 70 }).timeline(3000)
	var seen []int32
	CanaryWithinRule(tl, func(s State) int32 {
		seen = append(seen, s.Rollout.DesiredWeight)
		return 100
	}, 0)
	// The moment before the write, as it was and with the weight that the
	// status shows next.
	if diff := cmp.Diff([]int32{0, 70}, seen); diff != "" {
		t.Error(diff)
	}
	if d := tl.States()[1].Rollout.DesiredWeight; d != 0 {
		t.Errorf("the timeline now says %d", d)
	}
}
