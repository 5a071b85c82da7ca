package timeline

import (
	"time"
)

const (
	oldHash = "6f4b8c9d7"
	newHash = "85c7d9f46"
)

// subsetSubject is a subset-level split of parts of 100.
func subsetSubject() Subject {
	return Subject{
		Namespace: "shop", Rollout: "web", VirtualServices: []string{"web"},
		DestinationRule: "web", CanarySubset: "canary", StableSubset: "stable",
	}
}

// script writes a timeline by hand: at sets the clock, the other methods write
// one version of one object.
type script struct {
	subject Subject
	now     time.Duration
	version uint64
	found   bool
	manager string
	entries []Entry
	rollout Rollout
}

func newScript() *script {
	return &script{
		subject: subsetSubject(), found: true,
		rollout: Rollout{Phase: "Healthy", StepIndex: 5, Steps: 5, PodHash: newHash, StableRS: newHash, Replicas: 20, Current: true},
	}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// at sets the time in milliseconds and ends the beginning.
func (s *script) at(millis int) *script {
	s.now, s.found = ms(millis), false
	return s
}

func (s *script) by(manager string) *script {
	s.manager = manager
	return s
}

func (s *script) add(name string, f Fact) *script {
	s.version += 3
	s.entries = append(s.entries, Entry{
		At: s.now, ResourceVersion: s.version, Name: name, Found: s.found, Manager: s.manager, Fact: f,
	})
	return s
}

func (s *script) weight(canary int32) *script { return s.weights(canary, s.subject.Max()-canary) }

func (s *script) weights(canary, stable int32) *script {
	return s.add("web", VirtualService{Routes: []Route{splitRoute("primary", canary, stable)}})
}

func splitRoute(name string, canary, stable int32) Route {
	return Route{Name: name, Destinations: []Destination{
		{Host: "web", Subset: "stable", Weight: stable},
		{Host: "web", Subset: "canary", Weight: canary},
	}}
}

func (s *script) hashes(canary, stable string) *script {
	return s.add("web", DestinationRule{Host: "web", Hashes: map[string]string{"canary": canary, "stable": stable}})
}

// pods sets size, and as many ready and available ones.
func (s *script) pods(hash string, size, available int32) *script {
	return s.add("web-"+hash, ReplicaSet{Hash: hash, Pods: Pods{Size: size, Ready: available, Available: available}})
}

func (s *script) status(change func(*Rollout)) *script {
	change(&s.rollout)
	return s.add("web", s.rollout)
}

func (s *script) phase(phase, message string) *script {
	return s.status(func(r *Rollout) { r.Phase, r.Message, r.Current = phase, message, true })
}

func (s *script) event(reason, message string) *script {
	return s.add("web."+reason, Event{Type: "Normal", Reason: reason, Message: message})
}

func (s *script) mark(name string) *script {
	s.entries = append(s.entries, Entry{At: s.now, Name: name, Fact: Mark{}})
	return s
}

func (s *script) timeline(endMillis int) Timeline {
	return New(s.subject, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), ms(endMillis), s.entries)
}

// healthy is a finished rollout at newHash with an old ReplicaSet of two pods.
func healthy() *script {
	return newScript().by("rollouts-controller").hashes(newHash, newHash).weight(0).
		pods(newHash, 20, 20).pods(oldHash, 2, 2).add("web", newScript().rollout)
}

// rollBack begins the incident at time 0: back to the old revision inside the
// rollback window, which sets the step index to the end.
func rollBack() *script {
	no := false
	return healthy().at(0).mark("rollback").at(20).
		status(func(r *Rollout) { r.Current = false }).at(60).
		hashes(oldHash, newHash).at(80).
		status(func(r *Rollout) {
			r.Phase, r.Message, r.Current = "Progressing", "more replicas need to be updated", true
			r.PodHash, r.DesiredWeight, r.Verified = oldHash, 100, &no
		})
}

// nativeIncident sends everything to two pods at once, and for a while to none.
func nativeIncident() Timeline {
	yes := true
	s := rollBack().at(100).weight(100).at(150).pods(oldHash, 20, 2)
	s.at(3000).pods(oldHash, 20, 1).at(3200).pods(oldHash, 20, 0).at(5900).pods(oldHash, 20, 2)
	for i := int32(3); i <= 20; i++ {
		s.at(9000+int(i)*250).pods(oldHash, 20, i)
	}
	return s.at(24000).status(func(r *Rollout) { r.Verified = &yes }).
		at(44000).hashes(oldHash, oldHash).at(44050).weight(0).
		at(44100).phase("Healthy", "").timeline(47000)
}

// guardedIncident lets the weight follow the pods.
func guardedIncident() Timeline {
	yes := true
	s := rollBack().by("rollouts-plugin-trafficrouter-istio").at(100).weight(10).
		event("CanaryWeightCapped", "canary held at 10 of 100: 2 of 20 replicas available").
		at(150).pods(oldHash, 20, 2)
	s.at(2990).pods(oldHash, 20, 1).at(3000).weight(5).at(3190).pods(oldHash, 20, 0).at(3200).weight(0).
		at(5900).pods(oldHash, 20, 2).at(5910).weight(10)
	for i := int32(3); i <= 20; i++ {
		s.at(9000+int(i)*250).pods(oldHash, 20, i)
		s.at(9000 + int(i)*250 + 10).weight(5 * i)
	}
	return s.event("CanaryWeightReleased", "canary at 100 of 100: 20 of 20 replicas available").
		at(14100).status(func(r *Rollout) { r.Verified = &yes }).
		at(24000).hashes(oldHash, oldHash).at(24050).weight(0).
		at(24100).phase("Healthy", "").timeline(47000)
}
