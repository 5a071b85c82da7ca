package router

import (
	"fmt"
	"strings"

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
)

// reportWeight tells of one written VirtualService.
func (r *Router) reportWeight(s *situation, namespace, name string, changes []virtualservice.Change) {
	var routes []string
	for _, c := range changes {
		routes = append(routes, c.String())
	}
	message := fmt.Sprintf("VirtualService %s/%s: stable/canary of %s", namespace, name, strings.Join(routes, ", "))
	r.cluster.Event(s.ref, false, EventVirtualServiceUpdated, message)
	r.logFor(s).Info("VirtualService updated", "virtualService", namespace+"/"+name, "routes", routes)
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
	if mismatch == m.mismatch {
		return
	}
	m.mismatch = mismatch
	if mismatch != "" {
		r.cluster.Event(s.ref, true, EventSubsetMatchesNoPods, mismatch)
		r.logFor(s).Warn("labels match no pods", "why", mismatch)
	}
}
