// Package tape writes timelines by hand, for tests of what measures, judges and shows
// them: the story that the test needs, the same on each run.
//
//	t := tape.New("web").At(0.5).Phase("Progressing").At(2).Pods(tape.Canary, 2).Weight(100)
//	native := t.At(30).Phase("Healthy").Timeline(31)
//
// It holds one Rollout that splits one route between two subsets. Other forms are for
// the tests of package timeline itself.
package tape

import (
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// The pod-template hashes of the two revisions.
const (
	Stable = "7c9f8d6b45"
	Canary = "54d5b9b8d6"
)

// Tape is a timeline being written, in the order of the calls.
type Tape struct {
	name     string
	now      time.Duration
	found    bool
	replicas int32
	entries  []timeline.Entry
}

// New begins with 20 stable pods, no canary pods, and all traffic on the stable side.
// The Rollout and the objects of its routing have the name.
func New(name string) *Tape {
	t := &Tape{name: name, found: true, replicas: 20}
	return t.began(0, 20, 0)
}

// Halfway begins in the middle of a canary that rests: half of the traffic on 10 pods of
// it, beside 20 stable ones.
func Halfway(name string) *Tape {
	t := &Tape{name: name, found: true, replicas: 20}
	return t.began(50, 20, 10)
}

func (t *Tape) began(weight, stable, canary int32) *Tape {
	t.add(t.name, timeline.DestinationRule{Host: t.name, Hashes: map[string]string{"canary": Canary, "stable": Stable}})
	t.Weight(weight).Pods(Stable, stable).Pods(Canary, canary).Phase("Healthy")
	t.found = false
	return t
}

func (t *Tape) add(name string, f timeline.Fact) {
	t.entries = append(t.entries, timeline.Entry{
		At: t.now, ResourceVersion: uint64(len(t.entries) + 1), Name: name, Found: t.found, Fact: f,
	})
}

// At sets the clock, in seconds from the beginning.
func (t *Tape) At(seconds float64) *Tape {
	t.now = time.Duration(seconds * float64(time.Second))
	return t
}

// Weight writes the VirtualService with a weight of the canary, 0 to 100.
func (t *Tape) Weight(canary int32) *Tape {
	t.add(t.name, timeline.VirtualService{Routes: []timeline.Route{{Name: "primary", Destinations: []timeline.Destination{
		{Host: t.name, Subset: "stable", Weight: 100 - canary}, {Host: t.name, Subset: "canary", Weight: canary},
	}}}})
	return t
}

// Pods is how many pods of a revision are available.
func (t *Tape) Pods(hash string, available int32) *Tape {
	t.add(t.name+"-"+hash, timeline.ReplicaSet{Hash: hash, Pods: timeline.Pods{Size: t.replicas, Ready: available, Available: available}})
	return t
}

// Scale changes spec.replicas from the next entry on.
func (t *Tape) Scale(replicas int32) *Tape {
	t.replicas = replicas
	return t
}

// Phase writes the Rollout's status, which leads to the canary.
func (t *Tape) Phase(phase string) *Tape {
	t.add(t.name, timeline.Rollout{Phase: phase, Steps: 5, StepIndex: 5, PodHash: Canary, StableRS: Stable, Replicas: t.replicas, Current: true})
	return t
}

// Timeline is what has been written, that many seconds long.
func (t *Tape) Timeline(seconds float64) timeline.Timeline {
	subject := timeline.Subject{
		Namespace: "shop", Rollout: t.name, VirtualServices: []string{t.name},
		DestinationRule: t.name, CanarySubset: "canary", StableSubset: "stable",
	}
	return timeline.New(subject, time.Time{}, time.Duration(seconds*float64(time.Second)), t.entries)
}
