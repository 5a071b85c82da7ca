package router

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/podlabel"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// hashLabel is the label that tells revisions apart. It is the only one that
// the plugin and the controller move.
const hashLabel = v1alpha1.DefaultRolloutUniqueLabelKey

// side is one of the two ends of the split.
type side int

const (
	canarySide side = iota
	stableSide
)

// demand is a label that a pod has to carry, and which object asks for it.
type demand struct{ key, value, by string }

// selector is what a pod has to carry to get a side's requests, the hash
// included where one is named.
type selector struct {
	// demands are all of it, by key. A Service and a subset may ask for different
	// values of one label: then no pod is what both want.
	demands []demand
	// labels are the same; of two values of one key the subset's.
	labels map[string]string
}

// selectors are those of the two sides of a pair.
type selectors struct {
	pair           virtualservice.Pair
	canary, stable selector
}

// of returns a side's selector, and how people know the side.
func (x selectors) of(which side) (asks selector, name string, place virtualservice.Side) {
	if which == stableSide {
		return x.stable, "stable", x.pair.Stable
	}
	return x.canary, "canary", x.pair.Canary
}

// selectorsOf reads them: at host level a side is what its Service selects; at
// subset level what the host's Service selects and the subset's labels leave of it.
func (r *Router) selectorsOf(s *situation) []selectors {
	if !s.bySubsets() {
		return []selectors{{
			pair:   virtualservice.Pair{Stable: s.split.Stable, Canary: s.split.Canary},
			canary: r.selectorOf(s.ref.Namespace, s.config.CanaryService, nil),
			stable: r.selectorOf(s.ref.Namespace, s.config.StableService, nil),
		}}
	}
	var all []selectors
	for _, rule := range s.rules {
		pair := rule.pair(r.options.ClusterDomain)
		// A ServiceEntry's host has no Service, and so no selector of its own.
		namespace, name, _ := hostname.Service(pair.Canary.Host, r.options.ClusterDomain)
		all = append(all, selectors{
			pair:   pair,
			canary: r.selectorOf(namespace, name, rule.labels(pair.Canary.Subset)),
			stable: r.selectorOf(namespace, name, rule.labels(pair.Stable.Subset)),
		})
	}
	return all
}

// selectorOf joins a Service's selector and a subset's labels.
func (r *Router) selectorOf(namespace, name string, subset map[string]string) selector {
	x := selector{labels: map[string]string{}}
	if name != "" {
		x.add(r.cluster.ServiceSelector(namespace, name), fmt.Sprintf("the selector of Service %s/%s", namespace, name))
	}
	x.add(subset, "its subset")
	slices.SortStableFunc(x.demands, func(a, b demand) int { return cmp.Compare(a.key, b.key) })
	return x
}

func (x *selector) add(labels map[string]string, by string) {
	for key, value := range labels {
		x.demands = append(x.demands, demand{key, value, by})
		x.labels[key] = value
	}
}

// podsOf returns the pods of a hash that a side's requests can reach; a hash
// without a ReplicaSet has none.
//
// A canary whose pods lack a label has none either: its subset is empty, whatever
// its name promises, and so will the stable's be once it is promoted. The stable
// side is counted by its hash alone: its labels are what serves today, and to
// distrust them could only send traffic elsewhere or stop a reconcile for good.
func (s *situation) podsOf(which side, hash string) guard.Pods {
	var pods guard.Pods
	for _, set := range s.sets {
		if hash == "" || set.Hash != hash {
			continue
		}
		pods.Size += set.Size
		switch {
		case which == stableSide:
			pods.Available += set.Available
		case hash != s.missing:
			pods.Available += s.reachable(set)
		}
	}
	return pods
}

// reachable is how many of a ReplicaSet's available pods carry what both sides ask
// for. The pods themselves are counted: their labels may have been changed since
// they were made. Which of them are available is the ReplicaSet's to say, so those
// that cannot be reached are taken to be available: the count is the least that it
// can be. A pod that the watch has not brought yet is as its template made it.
func (s *situation) reachable(set cluster.ReplicaSet) int32 {
	var seen, unreachable int32
	for _, group := range s.pods[set.UID] {
		seen += group.Count
		if !s.matchesAll(group.Labels) {
			unreachable += group.Count
		}
	}
	if !s.matchesAll(set.Labels) {
		unreachable += max(0, set.Available-seen)
	}
	return max(0, set.Available-unreachable)
}

// matchesAll tells whether pods with these labels carry what all sides ask for.
func (s *situation) matchesAll(labels map[string]string) bool {
	return !slices.ContainsFunc(s.selects, func(x selectors) bool {
		return len(s.lacks(x.canary, labels)) > 0 || len(s.lacks(x.stable, labels)) > 0
	})
}

// lacks lists what is asked for and the pods do not carry, in a fixed order. The hash is
// left out, since it is what is being moved, and so is what the controller or the mesh
// puts on pods later.
func (s *situation) lacks(x selector, labels map[string]string) []demand {
	var lacking []demand
	for _, asked := range x.demands {
		have, there := labels[asked.key]
		if asked.key == hashLabel || s.ephemeral[asked.key] || there && have == asked.value || !there && podlabel.AddedLater(asked.key) {
			continue
		}
		lacking = append(lacking, asked)
	}
	return lacking
}

// mismatch says in words which side cannot reach the pods that it has, or is to
// get at the promotion; "" when all can.
func (s *situation) mismatch() string {
	var texts []string
	for _, set := range s.sets {
		if set.Size == 0 {
			continue
		}
		set := s.withPodLabels(set)
		canary := set.Hash == s.status.canary && s.status.canary != s.status.stable
		if canary {
			texts = append(texts, s.explainAll(canarySide, set, "gets no traffic")...)
			texts = append(texts, s.explainAll(stableSide, set, "would get none once promoted, so it gets none as canary")...)
		}
		if set.Hash == s.status.stable {
			texts = append(texts, s.explainAll(stableSide, set, "gets no traffic")...)
		}
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), "; ")
}

// withPodLabels is the ReplicaSet with the labels of pods of it that cannot be
// reached, where there are such pods though its template's labels are right.
func (s *situation) withPodLabels(set cluster.ReplicaSet) cluster.ReplicaSet {
	if !s.matchesAll(set.Labels) {
		return set
	}
	for _, group := range s.pods[set.UID] {
		if !s.matchesAll(group.Labels) {
			set.Labels = group.Labels
			return set
		}
	}
	return set
}

func (s *situation) explainAll(which side, set cluster.ReplicaSet, effect string) []string {
	var texts []string
	for _, x := range s.selects {
		asks, name, place := x.of(which)
		for _, lacking := range s.lacks(asks, set.Labels) {
			texts = append(texts, fmt.Sprintf("ReplicaSet %s %s: on the %s side (%s) %s asks for %s=%s, but %s",
				set.Name, effect, name, place, lacking.by, lacking.key, lacking.value, remedyFor(set, lacking.key)))
		}
	}
	return texts
}

// remedyFor says what to do about a label that pods do not carry as it is asked for.
func remedyFor(set cluster.ReplicaSet, key string) string {
	if have, there := set.Labels[key]; there {
		return fmt.Sprintf("the pods of ReplicaSet %s carry %s=%s: write that, or remove the label", set.Name, key, have)
	}
	return fmt.Sprintf("the pods of ReplicaSet %s have no label %s (they have %s): remove it, or add it to the pod template",
		set.Name, key, strings.Join(slices.Sorted(maps.Keys(set.Labels)), ", "))
}
