package router

import (
	"errors"
	"fmt"
	"slices"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// rule is a DestinationRule as it was read, with what the configuration says of it.
type rule struct {
	*destinationrule.DestinationRule
	want config.DestinationRule
	// names are the hashes that its two subsets name.
	names hashes
}

// ruleOf refuses one that cannot be handled.
func ruleOf(dr *destinationrule.DestinationRule, want config.DestinationRule) (rule, error) {
	canary, err := dr.Hash(want.CanarySubsetName)
	if err != nil {
		return rule{}, err
	}
	stable, err := dr.Hash(want.StableSubsetName)
	return rule{dr, want, hashes{canary: canary, stable: stable}}, err
}

// String names the object.
func (x rule) String() string {
	return fmt.Sprintf("DestinationRule %s/%s", x.want.Namespace, x.want.Name)
}

func rulesNamed(rules []rule) []string {
	var names []string
	for _, rule := range rules {
		names = append(names, rule.String())
	}
	return names
}

// pair are the two subsets of the host that the rule is for.
func (x rule) pair(domain string) virtualservice.Pair {
	host := hostname.Canonical(x.Host, x.Namespace, domain)
	return virtualservice.Pair{
		Stable: virtualservice.Side{Host: host, Subset: x.want.StableSubsetName},
		Canary: virtualservice.Side{Host: host, Subset: x.want.CanarySubsetName},
	}
}

// labels are those of a subset.
func (x rule) labels(subset string) map[string]string {
	for _, s := range x.Subsets {
		if s.Name == subset {
			return s.Labels
		}
	}
	return nil
}

// lookAtRules reads the DestinationRules. Those that cannot be read or handled are
// left out: what gives the canary less goes on without them, where others are there.
func (r *Router) lookAtRules(s *situation) error {
	for _, want := range s.config.DestinationRules {
		x, err := r.readRule(want)
		if err != nil {
			s.broken = errors.Join(s.broken, err)
			continue
		}
		s.rules = append(s.rules, x)
	}
	if len(s.rules) == 0 {
		return s.broken
	}
	return nil
}

func (r *Router) readRule(want config.DestinationRule) (rule, error) {
	dr, err := r.cluster.DestinationRule(want.Namespace, want.Name)
	if err != nil {
		return rule{}, fmt.Errorf("DestinationRule %s/%s: %w", want.Namespace, want.Name, err)
	}
	return ruleOf(dr, want)
}

// pairs are the different pairs of subsets. Two DestinationRules may have the same
// one: Istio takes the DestinationRule of a client's namespace before that of the
// host's.
func (s *situation) pairs() []virtualservice.Pair {
	var all []virtualservice.Pair
	for _, rule := range s.rules {
		if pair := rule.pair(s.split.ClusterDomain); !slices.Contains(all, pair) {
			all = append(all, pair)
		}
	}
	return all
}

// bySubsets tells a split between subsets from one between Services.
func (s *situation) bySubsets() bool { return len(s.config.DestinationRules) > 0 }

// namedNow are the hashes that each DestinationRule names at this moment, or the two
// Services; "" where nothing is named, as before the first deployment.
func (s *situation) namedNow() []hashes {
	if !s.bySubsets() {
		selects := s.selects[0]
		return []hashes{{canary: selects.canary.labels[hashLabel], stable: selects.stable.labels[hashLabel]}}
	}
	all := make([]hashes, len(s.rules))
	for i, rule := range s.rules {
		all[i] = rule.names
	}
	return all
}

// routed are the hashes that the routing names. Where several DestinationRules do not
// agree, as between two writes, it is the canary with the fewest pods and the stable
// with the most: that gives the canary the least.
func (s *situation) routed() hashes {
	all := s.named
	routed := all[0]
	for _, h := range all[1:] {
		if s.podsOf(canarySide, h.canary).Available < s.podsOf(canarySide, routed.canary).Available {
			routed.canary = h.canary
		}
		if s.podsOf(stableSide, h.stable).Available > s.podsOf(stableSide, routed.stable).Available {
			routed.stable = h.stable
		}
	}
	return routed
}

// labelledAs tells whether everything that names hashes names these; "" is any.
func (s *situation) labelledAs(want hashes) bool {
	return !slices.ContainsFunc(s.named, func(h hashes) bool { return !h.fit(want) })
}

// same tells whether both sides name one revision, as after a promotion.
func (h hashes) same() bool { return h.canary != "" && h.canary == h.stable }

// fit tells whether these are the wanted hashes; "" is any.
func (h hashes) fit(want hashes) bool {
	return (want.canary == "" || h.canary == want.canary) && (want.stable == "" || h.stable == want.stable)
}

// mislabelled names the DestinationRules that do not name these hashes, or lack a
// subset of an experiment.
func (s *situation) mislabelled(want hashes) []string {
	var texts []string
	for _, rule := range s.rules {
		if !rule.names.fit(want) || !rule.hasAll(s.templates) {
			texts = append(texts, fmt.Sprintf("%s/%s: subset labels", rule.want.Namespace, rule.want.Name))
		}
	}
	return texts
}
