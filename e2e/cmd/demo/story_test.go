package main

import (
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

const (
	stableHash = "7c9f8d6b45"
	canaryHash = "54d5b9b8d6"
)

// tape writes a timeline by hand, in the order of the calls.
type tape struct {
	now     time.Duration
	found   bool
	entries []timeline.Entry
}

// newTape begins with 20 stable pods, no canary pods, and all traffic on the
// stable side.
func newTape() *tape {
	t := &tape{found: true}
	t.add("cart", timeline.DestinationRule{Host: "cart", Hashes: map[string]string{"canary": canaryHash, "stable": stableHash}})
	t.add("cart", weights(0))
	t.pods(stableHash, 20)
	t.pods(canaryHash, 0)
	t.phase("Healthy")
	t.found = false
	return t
}

func (t *tape) add(name string, f timeline.Fact) {
	t.entries = append(t.entries, timeline.Entry{
		At: t.now, ResourceVersion: uint64(len(t.entries) + 1), Name: name, Found: t.found, Fact: f,
	})
}

func weights(canary int32) timeline.VirtualService {
	return timeline.VirtualService{Routes: []timeline.Route{{Name: "primary", Destinations: []timeline.Destination{
		{Host: "cart", Subset: "stable", Weight: 100 - canary}, {Host: "cart", Subset: "canary", Weight: canary},
	}}}}
}

// at sets the clock in seconds.
func (t *tape) at(seconds float64) *tape {
	t.now = time.Duration(seconds * float64(time.Second))
	return t
}

func (t *tape) weight(canary int32) *tape {
	t.add("cart", weights(canary))
	return t
}

func (t *tape) pods(hash string, available int32) *tape {
	t.add("cart-"+hash, timeline.ReplicaSet{Hash: hash, Pods: timeline.Pods{Size: 20, Ready: available, Available: available}})
	return t
}

func (t *tape) phase(phase string) *tape {
	t.add("cart", timeline.Rollout{Phase: phase, Steps: 5, StepIndex: 5, PodHash: canaryHash, StableRS: stableHash, Replicas: 20, Current: true})
	return t
}

func (t *tape) timeline(seconds float64) timeline.Timeline {
	subject := timeline.Subject{
		Namespace: "shop", Rollout: "cart", VirtualServices: []string{"cart"},
		DestinationRule: "cart", CanarySubset: "canary", StableSubset: "stable",
	}
	return timeline.New(subject, time.Time{}, time.Duration(seconds*float64(time.Second)), t.entries)
}

// nativeStory sends all traffic to 2 pods, and for a second to none.
func nativeStory() timeline.Timeline {
	t := newTape().at(0.5).phase("Progressing").at(2).pods(canaryHash, 2).weight(100)
	t.at(4).pods(canaryHash, 0).at(5).pods(canaryHash, 2)
	return t.at(8).pods(canaryHash, 20).at(30).phase("Healthy").timeline(31)
}

// pluginStory lets the weight follow the pods, and ends at a time.
func pluginStory(end float64) timeline.Timeline {
	t := newTape().at(0.5).phase("Progressing").at(2).pods(canaryHash, 2).weight(10)
	t.at(8).pods(canaryHash, 20).weight(100)
	return t.at(end).phase("Healthy").timeline(end + 1)
}

// endless never becomes Healthy.
func endless() timeline.Timeline {
	return newTape().at(0.5).phase("Progressing").timeline(9)
}

// halfway rests at half of the traffic with half of the pods.
func halfway() *tape {
	t := newTape()
	t.found = true
	t.weight(50).pods(canaryHash, 10)
	t.found = false
	return t
}

// nativeFlaps leaves the weight as it is, pod or no pod.
func nativeFlaps() timeline.Timeline {
	t := halfway()
	for second := 0.0; second < 4; second += 2 {
		t.at(second).pods(canaryHash, 9).at(second+1).pods(canaryHash, 10)
	}
	return t.timeline(4)
}

// pluginFlaps lets the weight follow the pod within 20 ms.
func pluginFlaps() timeline.Timeline {
	t := halfway()
	for second := 0.0; second < 4; second += 2 {
		t.at(second).pods(canaryHash, 9).at(second + 0.02).weight(45)
		t.at(second+1).pods(canaryHash, 10).at(second + 1.02).weight(50)
	}
	return t.timeline(4)
}
