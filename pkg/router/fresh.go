package router

import (
	"fmt"
	"strings"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/verification"
)

// A ReplicaSet says that its first pod is available before the mesh knows the pod: the
// endpoints go through two more controllers, and a proxy that has the weight and no
// endpoint answers 503. So it is when a Service's selector moves. What has just got its
// first pod gets its first request later, or, where verify.level says where to look,
// once the pod is seen there.

// freshFor is how many times settle that takes: Kubernetes' endpoints controller alone
// waits for a second when it finds what it has read to be old. returnFor is the same for
// the way back to the stable, where nothing presses: after an outage of the API server
// it took seconds.
const (
	freshFor  = 2
	returnFor = 5
)

// freshPoll is when to look again at what is awaited without a clock.
const freshPoll = 200 * time.Millisecond

// readiness is what this process has seen of the pods of a hash.
type readiness struct {
	// podless tells that there was none when it last looked.
	podless bool
	// since is when the first one came; zero if this process has not seen that, which
	// is long ago: it looks whenever pods change.
	since time.Time
	// seen tells that what verify.level looks at has had a pod of it, sought since when
	// it has been looked for there; zero if it has not.
	seen   bool
	sought time.Time
}

// observePods keeps when the revisions, and an experiment's templates, got their first
// pod.
func (r *Router) observePods(s *situation, m *memory, now time.Time) {
	if m.ready == nil || len(m.ready) > len(s.sets)+len(s.templates) {
		m.ready = s.keptReady(m.ready)
	}
	for _, set := range s.sets {
		m.ready[set.Hash] = m.ready[set.Hash].next(s.reachable(set) > 0, now)
	}
	for _, t := range s.templates {
		m.ready[t.key()] = m.ready[t.key()].next(r.cluster.ExperimentAvailable(s.ref.Namespace, t.hash) > 0, now)
	}
}

// keptReady is what is known of the revisions and templates that there still are.
func (s *situation) keptReady(known map[string]readiness) map[string]readiness {
	kept := make(map[string]readiness, len(s.sets)+len(s.templates))
	keep := func(hash string) {
		if x, there := known[hash]; there {
			kept[hash] = x
		}
	}
	for _, set := range s.sets {
		keep(set.Hash)
	}
	for _, t := range s.templates {
		keep(t.key())
	}
	return kept
}

func (x readiness) next(available bool, now time.Time) readiness {
	switch {
	case !available:
		return readiness{podless: true}
	case x.podless:
		return readiness{since: now}
	}
	return x
}

// selected is what the two Services were last seen to select, and since when; zero
// times are long ago.
type selected struct {
	known                 bool
	hashes                hashes
	canarySince, stableAt time.Time
}

// observeServices keeps when the controller moved the selectors of the two Services. A
// process that finds a promotion under way takes it for just begun: nothing presses.
func (s *situation) observeServices(m *memory, now time.Time) {
	if s.bySubsets() {
		return // istiod takes in a label and its endpoints in one push
	}
	is := s.named[0]
	switch {
	case !m.selected.known && is.same() && s.written > 0:
		m.selected.stableAt = now
	case m.selected.known && is.stable != m.selected.hashes.stable:
		m.selected.stableAt = now
	}
	if m.selected.known && is.canary != m.selected.hashes.canary {
		m.selected.canarySince = now
		if x, there := m.ready[is.canary]; there { // behind another Service, not behind this one
			m.ready[is.canary] = readiness{podless: x.podless, since: x.since}
		}
	}
	m.selected.known, m.selected.hashes = true, is
}

// observeFresh finds what has had pods for too short a time to get its first request.
func (r *Router) observeFresh(s *situation, m *memory) {
	now := r.clock.Now()
	r.observePods(s, m, now)
	s.observeServices(m, now)
	if s.config.Guard.Mode != config.Enforce {
		return
	}
	for hash, ready := range m.ready {
		// A pod is available minReadySeconds after it is ready, and known to the mesh as
		// soon as it is ready.
		s.setFresh(hash, s.young("its first pod has only just become available", ready.since, freshFor*s.config.Guard.Settle-s.minReady, now))
	}
	s.setFresh(m.selected.hashes.canary, s.young("its Service has only just selected it", m.selected.canarySince, freshFor*s.config.Guard.Settle, now))
	r.seekCanary(s, m, now)
	s.stableFresh = r.seekStable(s, m, now)
}

// young says that something has been so for too short a time, "" if it has not. The text
// is the same each time: the controller makes an Event of it, which is then counted and
// not repeated.
func (s *situation) young(what string, since time.Time, needs time.Duration, now time.Time) string {
	if !since.IsZero() && now.Sub(since) < needs {
		return fmt.Sprintf("%s, the proxies get %s to learn of it", what, needs)
	}
	return ""
}

// seekCanary replaces the clock's word about the canary by what can be seen, as long as
// no request goes there. Once a pod was seen, that is known for good.
//
// What is missing for longer than a push can take is missing: those pods count as not
// available then, and the guard's answers, unlike this wait, let scaling, deadline and
// abort go on.
func (r *Router) seekCanary(s *situation, m *memory, now time.Time) {
	hash := s.judged(s.routed(), s.announced(m)).canary
	canary, _ := s.sideWeights()
	ready, there := m.ready[hash]
	if !there || ready.podless || ready.seen || canary > 0 {
		return
	}
	// One pod is enough: how much the canary gets is by those that are available.
	waiting, known := r.seek(s, verification.Counts{Canary: 1}, (*verification.Plan).JudgeCanary)
	if !known {
		return
	}
	delete(s.fresh, hash)
	if ready.sought.IsZero() {
		ready.sought = now
	}
	switch {
	case waiting == "":
		ready, m.selected.canarySince, m.missing = readiness{seen: true}, time.Time{}, ""
	case now.Sub(ready.sought) < meshSettleMost:
		s.setFresh(hash, waiting)
	default:
		s.missing = hash
		r.reportMissing(s, m, waiting)
	}
	m.ready[hash] = ready
}

// setFresh says why a hash cannot get its first request; "" says nothing.
func (s *situation) setFresh(hash, why string) {
	if why == "" {
		return
	}
	if s.fresh == nil {
		s.fresh = map[string]string{}
	}
	s.fresh[hash] = why
}

// seekStable says why the traffic cannot go back to the stable Service yet after a
// promotion: its selector has moved, and the pods may not be behind it. The canary
// Service has the same pods meanwhile, so all of them may be waited for, and after a time
// still for one: a controller that lost the API server for seconds was seen to look for
// half a minute late. A new revision does not wait for that: the controller would let the
// canary Service select it.
func (r *Router) seekStable(s *situation, m *memory, now time.Time) string {
	since, is := m.selected.stableAt, m.selected.hashes
	if s.bySubsets() || since.IsZero() || !is.same() || s.status.canary != s.status.stable {
		return ""
	}
	pods := s.podsOf(stableSide, is.stable).Available
	if now.Sub(since) >= meshSettleMost {
		pods = min(pods, 1)
	}
	if waiting, known := r.seek(s, verification.Counts{Stable: pods}, (*verification.Plan).JudgeStable); known {
		return waiting
	}
	return s.young("the stable Service has only just selected it", since, returnFor*s.config.Guard.Settle, now)
}

// seek looks where verify.level says; known is false where that says nothing.
func (r *Router) seek(s *situation, counts verification.Counts,
	judge func(*verification.Plan, *mesh.Served, verification.Endpoints, verification.Counts) (bool, string),
) (waiting string, known bool) {
	plan := r.plan(s)
	if plan == nil {
		return "", false
	}
	endpoints, err := r.endpoints(plan)
	if err != nil {
		return "", false
	}
	if s.config.Verify.Level == config.Endpoints {
		_, waiting = judge(plan, nil, endpoints, counts)
		return waiting, true
	}
	served, err := r.served(s)
	if err != nil {
		return "", false
	}
	_, waiting = judge(plan, &served, endpoints, counts)
	return waiting, true
}

// firstRequests says what this weight, a managed route or a template's share would
// send the first requests to that is not ready for them; "" if there is nothing.
func (s *situation) firstRequests(m *memory, weight int32) string {
	var waits []string
	routes := len(s.routes) > 0 && (s.pin == nil || *s.pin > 0)
	if why := s.canaryWaits(m); why != "" && (weight > 0 || routes) {
		waits = append(waits, why)
	}
	for _, t := range s.templates {
		if why := s.fresh[t.key()]; why != "" && !s.routedTo(s.templateSide(t.service)) {
			waits = append(waits, "template "+t.service+": "+why)
		}
	}
	return strings.Join(waits, "; ")
}

// canaryWaits says why a canary that gets no request now cannot get one yet.
func (s *situation) canaryWaits(m *memory) string {
	hash := s.judged(s.routed(), s.announced(m)).canary
	if canary, _ := s.sideWeights(); canary > 0 || s.fresh[hash] == "" {
		return ""
	}
	return "canary " + hash + ": " + s.fresh[hash]
}
