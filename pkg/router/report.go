package router

import (
	"fmt"
	"strings"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// The reasons of the Events on a Rollout.
const (
	// EventVirtualServiceUpdated: weights of a VirtualService were written.
	EventVirtualServiceUpdated = "VirtualServiceUpdated"
	// EventDestinationRuleUpdated: subset labels of a DestinationRule were written.
	EventDestinationRuleUpdated = "DestinationRuleUpdated"
	// EventCanaryWeightCapped: the canary gets less than the controller asked
	// for, since too few of its pods are available.
	EventCanaryWeightCapped = "CanaryWeightCapped"
	// EventCanaryWeightReleased: the canary gets what the controller asks for again.
	EventCanaryWeightReleased = "CanaryWeightReleased"
	// EventCanaryWeightPinned: an operator's annotation holds the weight down.
	EventCanaryWeightPinned = "CanaryWeightPinned"
	// EventCanaryWeightUnpinned: it does not any more.
	EventCanaryWeightUnpinned = "CanaryWeightUnpinned"
	// EventSubsetMatchesNoPods: a subset's label or a Service's selector cannot
	// match the pods of a revision, so its requests would find nobody.
	EventSubsetMatchesNoPods = "SubsetMatchesNoPods"
	// EventDriftCorrected: the watch put back what somebody else had changed.
	EventDriftCorrected = "DriftCorrected"
	// EventDriftContested: somebody else changes it again and again, and the
	// corrections are slowed down.
	EventDriftContested = "DriftContested"
	// EventExperimentWithoutService: a template has a weight and no Service to send
	// it to.
	EventExperimentWithoutService = "ExperimentWithoutService"
	// EventConfigurationInvalid: the Rollout cannot be handled until it, or another
	// one that wants the same routes, is changed.
	EventConfigurationInvalid = "ConfigurationInvalid"
	// EventStableServiceNotPinned: the stable Service selects the canary's pods too.
	EventStableServiceNotPinned = "StableServiceNotPinned"
	// EventVerificationUnavailable: what verify.level asks for cannot be read, and by
	// verify.onUnavailable the Rollout goes on, or waits.
	EventVerificationUnavailable = "VerificationUnavailable"
	// EventVerificationPartial: a part of the routing cannot be seen by this level.
	EventVerificationPartial = "VerificationPartial"
	// EventWeightNotInEffect: a weight is written, and what verify.level looks at has not
	// got it after the time that a push takes; or a share of an experiment waits for a pod.
	EventWeightNotInEffect = "WeightNotInEffect"
	// EventCanaryPodsNotSeen: the canary's pods are available, and what verify.level looks
	// at has none of them: they count as not available.
	EventCanaryPodsNotSeen = "CanaryPodsNotSeen"
	// EventCanaryRolledBack: the health gate found the canary sick, took all weight from
	// it and aborted the Rollout.
	EventCanaryRolledBack = "CanaryRolledBack"
	// EventCanaryHeldByHealthGate: a step waits for a healthy window.
	EventCanaryHeldByHealthGate = "CanaryHeldByHealthGate"
	// EventHealthGatePassed: a window was healthy, and the step goes on.
	EventHealthGatePassed = "HealthGatePassed"
	// EventAbortedStillRouted: an aborted Rollout keeps a share of the traffic.
	EventAbortedStillRouted = "AbortedRolloutStillRouted"
)

// abortedPatience is how long an aborted Rollout may keep a weight, with all of
// the stable's pods there, before it is worth a word (argo-rollouts#4841).
const abortedPatience = 2 * time.Minute

// reportRoutes tells of one written VirtualService: weights first, then what came
// and went.
func (r *Router) reportRoutes(s subject, namespace, name string, changes []virtualservice.Change) {
	var weights, others, routes []string
	for _, c := range changes {
		routes = append(routes, c.String())
		if c.Did == "" {
			weights = append(weights, c.String())
		} else {
			others = append(others, c.String())
		}
	}
	var parts []string
	if len(weights) > 0 {
		parts = append(parts, "stable/canary of "+strings.Join(weights, ", "))
	}
	message := fmt.Sprintf("VirtualService %s/%s: %s", namespace, name, strings.Join(append(parts, others...), "; "))
	r.cluster.Event(s.ref, false, EventVirtualServiceUpdated, message)
	r.log.Info("VirtualService updated", "namespace", s.ref.Namespace, "rollout", s.ref.Name, "virtualService", namespace+"/"+name, "routes", routes)
}

// reportAborted tells of an aborted Rollout for which the controller goes on to
// ask for a share. The plugin obeys: it has no rollout policy of its own.
func (r *Router) reportAborted(s *situation, m *memory, v verdict) {
	whole := s.podsOf(stableSide, s.status.stable).Available >= s.facts.Replicas
	if !s.aborted || v.next <= 0 || !whole {
		m.abortedSince, m.abortedTold = time.Time{}, false
		return
	}
	now := r.clock.Now()
	if m.abortedSince.IsZero() {
		m.abortedSince = now
	}
	if m.abortedTold || now.Sub(m.abortedSince) < abortedPatience {
		return
	}
	m.abortedTold = true
	r.cluster.Event(s.ref, true, EventAbortedStillRouted, fmt.Sprintf(
		"the Rollout is aborted and all %d stable replicas are available, but the controller has asked for %d of %d on the canary for %s: pin it with the annotation %s, or set the template back",
		s.facts.Replicas, v.next, s.facts.Max, now.Sub(m.abortedSince).Round(time.Second), PinAnnotation))
}

// reportMetrics passes on the weights.
func (r *Router) reportMetrics(s *situation, v verdict) {
	reason := ""
	switch {
	case v.pin != nil:
		reason = "Pinned"
	case v.decision.Capped():
		reason = string(v.decision.Reason)
	}
	r.options.Recorder.Weights(s.ref.Namespace, s.ref.Name, v.decision.Desired, v.next, reason)
}

// reportCap tells when a cap begins, changes its reason, or ends.
func (r *Router) reportCap(s *situation, m *memory, v verdict) {
	if !v.observed {
		return
	}
	first := !m.settled
	m.settled = true
	reason := v.decision.Reason
	if !v.decision.Capped() {
		reason = ""
	}
	if reason == m.reported {
		return
	}
	before := m.reported
	m.reported = reason
	if first && reason != "" && v.enforced && s.written > 0 && s.written == v.next {
		// A new process finds the cap already in the objects: the process before
		// it has reported it.
		return
	}
	r.tellCap(s, v, before != "" && reason == "")
}

func (r *Router) tellCap(s *situation, v verdict, released bool) {
	log := r.logFor(s).With("desired", v.decision.Desired, "weight", v.next, "reason", v.decision.Reason)
	if released {
		message := "canary released: " + v.decision.Message()
		r.cluster.Event(s.ref, false, EventCanaryWeightReleased, message)
		log.Info("canary weight released")
		return
	}
	message := v.decision.Message()
	if !v.enforced {
		message += " (guard.mode is Observe: nothing was changed)"
	}
	r.cluster.Event(s.ref, true, EventCanaryWeightCapped, message)
	log.Info("canary weight capped", "why", v.decision.Message())
}

// reportPin tells when an operator's brake begins to hold, changes, or ends.
func (r *Router) reportPin(s *situation, m *memory, v verdict) {
	before := m.pinned
	m.pinned = v.pin
	switch {
	case v.pin != nil && (before == nil || *before != *v.pin):
		r.cluster.Event(s.ref, true, EventCanaryWeightPinned, pinMessage(v.decision.Desired, *v.pin))
		r.logFor(s).Info("canary weight pinned", "pin", *v.pin, "desired", v.decision.Desired)
	case v.pin == nil && before != nil:
		r.cluster.Event(s.ref, false, EventCanaryWeightUnpinned, fmt.Sprintf("canary no longer pinned at %d: %s", *before, v.decision.Message()))
		r.logFor(s).Info("canary weight no longer pinned", "pin", *before)
	}
}

// reportContract tells when a side's labels do not match the pods it is for.
func (r *Router) reportContract(s *situation, m *memory) {
	mismatch := s.mismatch()
	if mismatch != m.mismatch && mismatch != "" {
		r.cluster.Event(s.ref, true, EventSubsetMatchesNoPods, mismatch)
		r.logFor(s).Warn("labels match no pods", "why", mismatch)
	}
	m.mismatch = mismatch
	unpinned := s.unpinnedStable()
	if unpinned != m.unpinnedStable && unpinned != "" {
		r.cluster.Event(s.ref, true, EventStableServiceNotPinned, unpinned)
		r.logFor(s).Warn("the stable Service is not pinned", "why", unpinned)
	}
	m.unpinnedStable = unpinned
}

// unpinnedStable says that the stable Service has no hash in its selector while
// two revisions have pods: it then sends a share of the stable's requests to the
// canary. The controller leaves it so on the first rollout with ping-pong
// (argo-rollouts#5006).
func (s *situation) unpinnedStable() string {
	selects := s.selects[0].stable.labels
	if s.bySubsets() || len(selects) == 0 || selects[hashLabel] != "" || s.status.stable == "" || s.status.stable == s.status.canary {
		return ""
	}
	canary := s.podsOf(canarySide, s.status.canary)
	if canary.Available == 0 {
		return ""
	}
	return fmt.Sprintf("Service %s/%s selects pods of every revision, so %d canary replicas get a share of the stable's requests: add %s: %s to its selector",
		s.ref.Namespace, s.config.StableService, canary.Available, hashLabel, s.status.stable)
}

// reportMissing tells once of a canary whose pods verify.level cannot see; waiting says
// what is missing.
func (r *Router) reportMissing(s *situation, m *memory, waiting string) {
	if m.missing == s.missing {
		return
	}
	m.missing = s.missing
	r.cluster.Event(s.ref, true, EventCanaryPodsNotSeen, fmt.Sprintf(
		"canary %s gets no request: its pods are available, and for %s verify.level %s has seen none of them: %s",
		s.missing, meshSettleMost, s.config.Verify.Level, waiting))
}
