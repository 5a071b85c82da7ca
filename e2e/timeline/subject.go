package timeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// defaultMaxWeight is Istio's usual total of a route, 100 parts.
const defaultMaxWeight = 100

// Subject says which objects of one namespace make up one canary. Name either
// the two subsets of a DestinationRule or two Services; with both, the subsets
// count, because the routing's destinations then tell the sides apart by subset.
type Subject struct {
	Namespace string
	Rollout   string
	// VirtualServices whose routes split the traffic. At least one.
	VirtualServices []string
	// Routes limits the judgement to routes of these names. When empty, every
	// route counts that names both sides; header and mirror routes, which name
	// the canary alone, do not.
	Routes []string
	// DestinationRule that holds the two subsets. Empty in a host-level split.
	DestinationRule            string
	CanarySubset, StableSubset string
	// CanaryService and StableService are the two hosts of a host-level split.
	CanaryService, StableService string
	// MaxWeight is the Rollout's maxTrafficWeight, the total of a route in
	// parts. 0 means 100.
	MaxWeight int32
	// IstioVersion of networking.istio.io to watch. Empty means v1.
	IstioVersion string
}

// Max is the total of a route, in parts.
func (s Subject) Max() int32 {
	if s.MaxWeight <= 0 {
		return defaultMaxWeight
	}
	return s.MaxWeight
}

// Validate reports everything that keeps the subject from being recorded.
func (s Subject) Validate() error {
	var errs []error
	need := func(ok bool, sentence string) {
		if !ok {
			errs = append(errs, errors.New(sentence))
		}
	}
	need(s.Namespace != "", "Namespace is empty: name the namespace to watch")
	need(s.Rollout != "", "Rollout is empty: name the Rollout to follow")
	need(len(s.VirtualServices) > 0, "VirtualServices is empty: name at least one")
	need(s.bySubset() || s.CanaryService != "" && s.StableService != "",
		"the two sides are not named: set DestinationRule, CanarySubset and StableSubset, or CanaryService and StableService")
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("timeline subject: %w", err)
	}
	return nil
}

func (s Subject) bySubset() bool {
	return s.DestinationRule != "" && s.CanarySubset != "" && s.StableSubset != ""
}

func (s Subject) counts(route string) bool {
	return len(s.Routes) == 0 || slices.Contains(s.Routes, route)
}

// isCanary and isStable tell whether a destination is that side. ruleHost is
// the DestinationRule's host: a subset of the same name on another host is a
// stranger.
func (s Subject) isCanary(d Destination, ruleHost string) bool {
	return s.isSide(d, ruleHost, s.CanarySubset, s.CanaryService)
}

func (s Subject) isStable(d Destination, ruleHost string) bool {
	return s.isSide(d, ruleHost, s.StableSubset, s.StableService)
}

func (s Subject) isSide(d Destination, ruleHost, subset, service string) bool {
	if !s.bySubset() {
		return s.sameHost(d.Host, service)
	}
	return d.Subset == subset && (ruleHost == "" || s.sameHost(d.Host, ruleHost))
}

func (s Subject) sameHost(a, b string) bool {
	return qualified(a, s.Namespace) == qualified(b, s.Namespace)
}

// qualified completes the short forms of a Service's host as Istio does:
// svc, svc.namespace and svc.namespace.svc.
func qualified(host, namespace string) string {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	switch {
	case len(labels) == 1:
		return host + "." + namespace + ".svc.cluster.local"
	case len(labels) == 2:
		return strings.Join(labels, ".") + ".svc.cluster.local"
	case len(labels) == 3 && labels[2] == "svc":
		return strings.Join(labels, ".") + ".cluster.local"
	default:
		return strings.Join(labels, ".")
	}
}
