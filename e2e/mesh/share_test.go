package mesh

import (
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/backend"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// split is a timeline in which the canary has a weight from 10 s to 20 s, and none
// before and after.
func split(t *testing.T, weight int32) timeline.Timeline {
	t.Helper()
	version := uint64(0)
	entry := func(at time.Duration, found bool, fact timeline.Fact) timeline.Entry {
		version++
		return timeline.Entry{At: at, ResourceVersion: version, Name: "cart", Found: found, Fact: fact}
	}
	routes := func(canary int32) timeline.VirtualService {
		return timeline.VirtualService{Routes: []timeline.Route{{Name: "primary", Destinations: []timeline.Destination{
			{Host: "cart", Subset: "stable", Weight: 100 - canary}, {Host: "cart", Subset: "canary", Weight: canary},
		}}}}
	}
	subject := timeline.Subject{Namespace: "shop", Rollout: "cart", VirtualServices: []string{"cart"}, DestinationRule: "cart", CanarySubset: "canary", StableSubset: "stable"}
	return timeline.New(subject, time.Unix(1000, 0), 30*time.Second, []timeline.Entry{
		entry(0, true, timeline.DestinationRule{Host: "cart", Hashes: map[string]string{"canary": "new", "stable": "old"}}),
		entry(0, true, routes(0)), entry(10*time.Second, false, routes(weight)), entry(20*time.Second, false, routes(0)),
	})
}

// answers are n answers a second from second to second, of which the canary gives
// so many in ten.
func answers(from, to, n, inTen int) []fleet.Request {
	var requests []fleet.Request
	for i := from * n; i < to*n; i++ {
		hash := "old"
		if i%10 < inTen {
			hash = "new"
		}
		at := time.Unix(1000, 0).Add(time.Duration(i) * time.Second / time.Duration(n))
		requests = append(requests, fleet.Request{At: at, Pod: backend.Pod{Hash: hash}})
	}
	return requests
}

func TestTheShareIsThatOfTheAnswersWithinTheTimeOfAWeight(t *testing.T) {
	requests := append(append(answers(0, 11, 100, 0), answers(11, 20, 100, 2)...), answers(20, 30, 100, 0)...)
	got := windows(split(t, 20), fleet.Record{Requests: requests, Ended: time.Unix(1030, 0)})
	if len(got) != 3 {
		t.Fatalf("%d windows: %v", len(got), got)
	}
	w := got[1]
	if w.Weight != 20 || w.Share != 20 || w.From != 10*time.Second+settling || w.To != 20*time.Second || w.Answers != 850 {
		t.Errorf("window %+v", w)
	}
	if w.Off() != 0 || got[0].Off() != 0 {
		t.Errorf("off by %.1f and %.1f", w.Off(), got[0].Off())
	}
}

func TestAWindowIsLongWhenChanceStaysWithinThreePoints(t *testing.T) {
	for _, c := range []struct {
		weight  float64
		answers int
		want    bool
	}{{50, 3024, false}, {50, 3026, true}, {10, 1088, false}, {10, 1090, true}, {0, 1, true}, {100, 1, true}} {
		if got := (Window{Weight: c.weight, Answers: c.answers}).Long(); got != c.want {
			t.Errorf("weight %.0f with %d answers: %t", c.weight, c.answers, got)
		}
	}
}

func TestWithOneSideThereIsNoShare(t *testing.T) {
	one := split(t, 20)
	for i, e := range one.Entries {
		if rule, ok := e.Fact.(timeline.DestinationRule); ok {
			rule.Hashes = map[string]string{"canary": "old", "stable": "old"}
			one.Entries[i].Fact = rule
		}
	}
	if got := windows(one, fleet.Record{Requests: answers(0, 30, 10, 0)}); len(got) != 0 {
		t.Errorf("windows %v", got)
	}
}
