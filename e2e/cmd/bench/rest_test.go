package main

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// at is one version at a second; versions count up.
type tape struct {
	entries []timeline.Entry
	second  float64
}

func (p *tape) add(name string, fact timeline.Fact) {
	p.entries = append(p.entries, timeline.Entry{
		At: time.Duration(p.second * float64(time.Second)), ResourceVersion: uint64(len(p.entries) + 1), Name: name, Fact: fact,
	})
}

func (p *tape) at(second float64) *tape { p.second = second; return p }

func (p *tape) rollout(phase string, step, desired int32, verified *bool) *tape {
	steps := []any{map[string]any{"setWeight": int64(50)}, map[string]any{"pause": map[string]any{}}}
	p.add("cart", timeline.Rollout{
		Phase: phase, PodHash: "new", StableRS: "old", DesiredWeight: desired, Verified: verified, Replicas: 10, StepIndex: step, Steps: 2, Current: true,
		Object: &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"strategy": map[string]any{"canary": map[string]any{"steps": steps}}}}},
	})
	return p
}

func (p *tape) pods(size, available int32) *tape {
	p.add("cart-new", timeline.ReplicaSet{Hash: "new", Pods: timeline.Pods{Size: size, Available: available}})
	return p
}

func (p *tape) weight(canary int32) *tape {
	p.add("cart", timeline.VirtualService{Routes: []timeline.Route{{Name: "primary", Destinations: []timeline.Destination{
		{Host: "cart", Subset: "stable", Weight: 100 - canary}, {Host: "cart", Subset: "canary", Weight: canary},
	}}}})
	return p
}

func (p *tape) timeline() timeline.Timeline {
	return timeline.New(timeline.Subject{Namespace: "shop", Rollout: "cart", VirtualServices: []string{"cart"}, DestinationRule: "cart", CanarySubset: "canary", StableSubset: "stable"},
		time.Time{}, time.Minute, p.entries)
}

func TestEveryMomentOfACanaryCountsForOnePart(t *testing.T) {
	no, yes := false, true
	p := (&tape{}).at(0).weight(0).rollout("Progressing", 0, 0, nil)
	p.at(0.5).pods(2, 2)                          // rest until here
	p.at(1).pods(5, 0)                            // rest: the step needs 5
	p.at(3).pods(5, 5)                            // pods
	p.at(6).weight(50)                            // the router waits
	p.at(6.5).rollout("Progressing", 0, 50, &no)  // rest
	p.at(10).rollout("Progressing", 1, 50, &yes)  // the controller does not look
	p.at(10.5).rollout("Paused", 1, 50, &yes)     // rest
	p.at(12.5).rollout("Progressing", 2, 50, nil) // a pause
	p.at(13).rollout("Healthy", 2, 50, nil)       // rest
	got, err := partsOf(p.timeline())
	if err != nil {
		t.Fatal(err)
	}
	second := time.Second
	want := parts{pauses: 2 * second, pods: 2 * second, weight: 3 * second, unaware: 3500 * time.Millisecond, rest: 2500 * time.Millisecond}
	if got != want {
		t.Errorf("parts %+v, want %+v", got, want)
	}
	if got.whole() != 13*second || got.limit() != 4*second {
		t.Errorf("whole %s, limit %s", got.whole(), got.limit())
	}
}

func TestACanaryThatNeverEndsHasNoParts(t *testing.T) {
	if _, err := partsOf((&tape{}).at(0).weight(0).rollout("Progressing", 0, 0, nil).timeline()); err == nil {
		t.Error("it has")
	}
}
