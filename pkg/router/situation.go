package router

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// situation is all that one call looks at, read once at its beginning. An object
// that is missing or does not fit is an error before anything is written; only what
// gives the canary less is written all the same, to the other objects.
type situation struct {
	subject
	split    virtualservice.Split
	services []*virtualservice.VirtualService // those that can be read and handled, in the order of the configuration
	wants    []config.VirtualService          // what the configuration says of each
	// broken is why others of them cannot; what gives the canary less goes on without
	// them.
	broken error
	rules  []rule // those that can be read; none in a split by Services
	sets   []cluster.ReplicaSet
	pods   map[types.UID][]cluster.PodGroup // by ReplicaSet
	// selects has one entry for each rule, or one for the two Services.
	selects []selectors
	// named are the hashes that each of these names.
	named []hashes
	// templates are those of a running experiment.
	templates []template

	// watching tells that this is a look of the watch, and no call.
	watching bool
	// fresh says of hashes why they cannot get their first request yet; see fresh.go.
	fresh map[string]string
	// missing is a hash with available pods of which verify.level sees none, for so long
	// that they count as none.
	missing string
	// stableFresh says why the traffic cannot go back to the stable yet, "" if it can.
	stableFresh string

	// written is the canary's part of max in the objects, of several routes the
	// highest; known is false when a route has no weights yet, uniform when all
	// routes agree.
	written        int32
	known, uniform bool
}

// look reads everything for one call of the controller.
func (r *Router) look(ro *v1alpha1.Rollout, subject subject, templates []template) (*situation, error) {
	s, err := r.lookAt(subject, templates)
	if err != nil {
		return nil, err
	}
	s.facts.Intended = guard.IntendedCanaryReplicas(ro, s.podsOf(canarySide, s.status.canary), s.podsOf(stableSide, s.status.stable))
	return s, nil
}

// lookAt reads the objects and ReplicaSets. Its error, as broken, joins all
// problems, so that a user repairs them in one go.
func (r *Router) lookAt(subject subject, templates []template) (*situation, error) {
	s := &situation{subject: subject}
	if err := r.lookAtSides(s); err != nil {
		return nil, err
	}
	r.lookAtServices(s)
	s.takeTemplates(templates)
	s.readWeights()
	if len(s.services) == 0 {
		return nil, s.broken
	}
	s.selects = r.selectorsOf(s)
	s.named = s.namedNow()
	return s, r.lookAtPods(s)
}

// lookAtPods reads the ReplicaSets and the labels of their pods.
func (r *Router) lookAtPods(s *situation) (err error) {
	if s.sets, err = r.cluster.ReplicaSets(s.ref.UID); err != nil {
		return fmt.Errorf("ReplicaSets of Rollout %s/%s: %w", s.ref.Namespace, s.ref.Name, err)
	}
	s.pods = make(map[types.UID][]cluster.PodGroup, len(s.sets))
	for _, set := range s.sets {
		s.pods[set.UID] = r.cluster.PodLabels(set.UID)
	}
	return nil
}

// setOf is the ReplicaSet of a hash, nil where there is none.
func (s *situation) setOf(hash string) *cluster.ReplicaSet {
	for i := range s.sets {
		if hash != "" && s.sets[i].Hash == hash {
			return &s.sets[i]
		}
	}
	return nil
}

// lookAtSides says which destinations are stable and canary: two Services, or
// two subsets of each host that a DestinationRule is for.
func (r *Router) lookAtSides(s *situation) error {
	domain := r.options.ClusterDomain
	s.split = virtualservice.Split{Max: s.facts.Max, ClusterDomain: domain}
	if !s.bySubsets() {
		s.split.Stable.Host = hostname.Canonical(s.config.StableService, s.ref.Namespace, domain)
		s.split.Canary.Host = hostname.Canonical(s.config.CanaryService, s.ref.Namespace, domain)
		return nil
	}
	if err := r.lookAtRules(s); err != nil {
		return err
	}
	pairs := s.pairs()
	s.split.Stable, s.split.Canary, s.split.More = pairs[0].Stable, pairs[0].Canary, pairs[1:]
	return nil
}

// lookAtServices reads the VirtualServices.
func (r *Router) lookAtServices(s *situation) {
	for _, want := range s.config.VirtualServices {
		vs, err := r.cluster.VirtualService(want.Namespace, want.Name)
		if err != nil {
			s.broken = errors.Join(s.broken, fmt.Errorf("VirtualService %s/%s: %w", want.Namespace, want.Name, err))
			continue
		}
		s.services, s.wants = append(s.services, vs), append(s.wants, want)
	}
}

// readWeights reads what the VirtualServices give the canary now, and leaves out
// those that cannot be handled.
func (s *situation) readWeights() {
	services, wants := s.services, s.wants
	s.services, s.wants = nil, nil
	s.known, s.uniform = true, true
	for i, vs := range services {
		weight, known, uniform, err := s.readWeight(vs, wants[i])
		if err != nil {
			s.broken = errors.Join(s.broken, err)
			continue
		}
		s.uniform = s.uniform && uniform && (len(s.services) == 0 || weight == s.written)
		s.known = s.known && known
		s.written = max(s.written, weight)
		s.services, s.wants = append(s.services, vs), append(s.wants, wants[i])
	}
}

func (s *situation) readWeight(vs *virtualservice.VirtualService, want config.VirtualService) (weight int32, known, uniform bool, err error) {
	routes, err := vs.Select(s.selection(want), s.split)
	if err != nil {
		return 0, false, false, err
	}
	return vs.CanaryWeight(routes, s.split)
}

// selection says which routes of a VirtualService are ours.
func (s *situation) selection(want config.VirtualService) virtualservice.Selection {
	selection := virtualservice.Selection{HTTP: want.Routes, AllMatching: want.AllMatchingRoutes, Managed: s.managed}
	for _, tls := range want.TLSRoutes {
		selection.TLS = append(selection.TLS, virtualservice.TLSRoute{Port: tls.Port, SNIHosts: tls.SNIHosts})
	}
	for _, tcp := range want.TCPRoutes {
		selection.TCP = append(selection.TCP, virtualservice.TCPRoute{Port: tcp.Port})
	}
	return selection
}

// announced are the hashes that the controller last gave to UpdateHash, or, in
// a new process, those of the Rollout's status.
func (s *situation) announced(m *memory) hashes {
	if m.announced != (hashes{}) {
		return m.announced
	}
	return s.status
}

// judged are the hashes whose pods count. What the routing names counts, as that
// is where requests go. Where the controller has announced another canary, the
// one with fewer pods counts: at host level the controller moves the Service's
// selector itself, in the same reconcile, and our view of it may be a moment
// old. A weight fit for both cannot be wrong for either.
func (s *situation) judged(routed, announced hashes) hashes {
	h := hashes{canary: routed.canary, stable: routed.stable}
	if h.stable == "" {
		h.stable = announced.stable
	}
	if h.canary == "" || announced.canary != "" &&
		s.podsOf(canarySide, announced.canary).Available < s.podsOf(canarySide, h.canary).Available {
		h.canary = announced.canary
	}
	return h
}

// gather brings together what the guard decides on.
func (s *situation) gather(h hashes, desired int32) guard.Facts {
	f := s.subject.facts
	f.Desired = desired
	f.Canary, f.Stable = s.podsOf(canarySide, h.canary), s.podsOf(stableSide, h.stable)
	f.SameHash = h.canary != "" && h.canary == h.stable
	f.Written, f.WrittenKnown = s.written, s.known
	if h.stable == "" {
		// A side without a hash selects every pod of the app: those of a Deployment
		// that is being taken over, or all of a first deployment. They are not the
		// Rollout's to count, so the stable side is taken to be whole.
		f.Stable = guard.Pods{Available: f.Replicas, Size: f.Replicas}
	}
	return f
}
