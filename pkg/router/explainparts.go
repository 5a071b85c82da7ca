package router

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/verification"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// ExplainedService is one VirtualService with what is handled in it.
type ExplainedService struct {
	Namespace, Name string
	Routes          []ExplainedRoute
	// Managed are the managed routes by the names of managedRoutes; of a VirtualService
	// without http routes there are none.
	Managed []ExplainedManaged
}

// ExplainedRoute is one handled route.
type ExplainedRoute struct {
	// Route is what virtualservice.Route.String gives.
	Route        string
	Destinations []ExplainedDestination
}

// ExplainedDestination is one destination of a route. Role is canary, stable, experiment
// or foreign; the weight is as it is written.
type ExplainedDestination struct {
	Role, Host, Subset string
	Weight             int64
}

// ExplainedManaged is one managed route.
type ExplainedManaged struct {
	Name string
	// Wanted tells that the steps so far ask for it, and the canary can serve it.
	Wanted, Present bool
}

// ExplainedSide is one end of the split: a subset, or a Service.
type ExplainedSide struct {
	// Canary tells the two sides apart.
	Canary bool
	// Kind is DestinationRule or Service.
	Kind, Namespace, Name string
	// Subset is empty for a Service.
	Subset string
	// Hash is what it names, "" if it names none; Wanted what it should, "" for any.
	Hash, Wanted string
	// HashErr is why Hash is not known, nil if it is. Wanted stands in for it then.
	HashErr error
	// ReplicaSet is the one with the hash, "" if there is none; Available are those of
	// its pods that the side's requests can reach, Size is what it is scaled to. PodsErr
	// is why none of the three is known, nil if they are.
	ReplicaSet      string
	Available, Size int32
	PodsErr         error
	// Intended is the size that the controller is aiming for at this step, of which Size
	// falls short while it scales; nil where that cannot be told from outside.
	Intended *int32
	// Waits is why the label does not name Wanted yet, "" if nothing is known of it.
	Waits string
	// Ready are the endpoints of the hash behind the Service; EndpointsErr is why they
	// are not known, errNoService for a host that is none.
	Ready        int
	EndpointsErr error
}

// ExplainedMesh is what istiod serves.
type ExplainedMesh struct {
	Want   mesh.Want
	Served mesh.Served
	// Err is why it is not known.
	Err error
	// Waiting is what is served otherwise than it is written, "" if nothing is.
	Waiting string
	// Hidden says what cannot be seen.
	Hidden []string
	plan   *verification.Plan
}

// errNoService is why there are no endpoints to count.
var errNoService = fmt.Errorf("the host is no Service of the cluster")

// explainServices tells of the VirtualServices that can be handled.
func (r *Router) explainServices(s *situation, next int32) []ExplainedService {
	wanted := r.target(s, next).Managed
	var all []ExplainedService
	for i, vs := range s.services {
		one := ExplainedService{Namespace: vs.Namespace, Name: vs.Name}
		routes, _ := vs.Select(s.selection(s.wants[i]), s.split) // has been asked before
		for _, route := range routes {
			one.Routes = append(one.Routes, s.explainRoute(vs, route))
		}
		if anyHTTP(routes) {
			one.Managed = s.explainManaged(vs, wanted)
		}
		all = append(all, one)
	}
	return all
}

func (s *situation) explainManaged(vs *virtualservice.VirtualService, wanted []virtualservice.ManagedRoute) []ExplainedManaged {
	var all []ExplainedManaged
	for _, name := range s.managed {
		all = append(all, ExplainedManaged{
			Name:    name,
			Wanted:  slices.ContainsFunc(wanted, func(m virtualservice.ManagedRoute) bool { return m.Name == name }),
			Present: slices.ContainsFunc(vs.HTTP, func(route virtualservice.Route) bool { return route.Name == name }),
		})
	}
	return all
}

func (s *situation) explainRoute(vs *virtualservice.VirtualService, route virtualservice.Route) ExplainedRoute {
	one := ExplainedRoute{Route: route.String()}
	for _, d := range route.Destinations {
		one.Destinations = append(one.Destinations, ExplainedDestination{Role: s.roleOf(vs, route, d), Host: d.Host, Subset: d.Subset, Weight: d.Weight})
	}
	return one
}

// roleOf is whose a destination of a handled route is.
func (s *situation) roleOf(vs *virtualservice.VirtualService, route virtualservice.Route, d virtualservice.Destination) string {
	pairs := append([]virtualservice.Pair{{Stable: s.split.Stable, Canary: s.split.Canary}}, s.split.More...)
	for _, pair := range pairs {
		switch {
		case s.isOf(vs, route, d, pair.Canary):
			return "canary"
		case s.isOf(vs, route, d, pair.Stable):
			return "stable"
		}
	}
	for _, side := range s.split.Experiments {
		if side.Subset == d.Subset && (side.Host == "" || s.sameHost(vs, d.Host, side.Host)) {
			return "experiment"
		}
	}
	return "foreign"
}

// isOf lets the host alone decide for a Service of which there is no destination without a
// subset, as package virtualservice does.
func (s *situation) isOf(vs *virtualservice.VirtualService, route virtualservice.Route, d virtualservice.Destination, side virtualservice.Side) bool {
	if !s.sameHost(vs, d.Host, side.Host) {
		return false
	}
	return d.Subset == side.Subset || side.Subset == "" && !slices.ContainsFunc(route.Destinations, func(other virtualservice.Destination) bool {
		return other.Subset == "" && s.sameHost(vs, other.Host, side.Host)
	})
}

func (s *situation) sameHost(vs *virtualservice.VirtualService, written, canonical string) bool {
	domain := s.split.ClusterDomain
	return hostname.Same(hostname.Canonical(written, vs.Namespace, domain), canonical, domain)
}

// explainSides tells of each subset, or of the two Services.
func (r *Router) explainSides(ro *v1alpha1.Rollout, s *situation, m *memory) []ExplainedSide {
	var all []ExplainedSide
	for i, named := range s.named {
		waits := r.labelWaits(s, m, named)
		for _, which := range []side{canarySide, stableSide} {
			one := s.explainSide(i, which, s.wantedHash(m, which))
			if one.Hash != one.Wanted && one.Wanted != "" {
				one.Waits = waits
			}
			one.Intended = s.intendedSize(ro, one.Hash)
			one.Ready, one.EndpointsErr = r.readyBehind(s, i, which, one.Hash)
			all = append(all, one)
		}
	}
	return all
}

// wantedHash is what a side should name. After an abort the controller lets the canary's
// Service select the stable's pods.
func (s *situation) wantedHash(m *memory, which side) string {
	if which == stableSide || !s.bySubsets() && s.aborted && m.desired == 0 {
		return m.announced.stable
	}
	return m.announced.canary
}

func (s *situation) explainSide(i int, which side, wanted string) ExplainedSide {
	one := ExplainedSide{
		Canary: which == canarySide, Kind: "Service", Namespace: s.ref.Namespace, Name: s.config.CanaryService,
		Hash: s.named[i].canary, Wanted: wanted,
	}
	if which == stableSide {
		one.Name, one.Hash = s.config.StableService, s.named[i].stable
	}
	if s.bySubsets() {
		one.subset(s.rules[i].want)
	}
	s.countPods(&one, one.Hash)
	return one
}

// subset names a side that is one of a DestinationRule.
func (x *ExplainedSide) subset(want config.DestinationRule) {
	x.Kind, x.Namespace, x.Name, x.Subset = "DestinationRule", want.Namespace, want.Name, want.StableSubsetName
	if x.Canary {
		x.Subset = want.CanarySubsetName
	}
}

// countPods fills in the ReplicaSet of a hash.
func (s *situation) countPods(x *ExplainedSide, hash string) {
	which := stableSide
	if x.Canary {
		which = canarySide
	}
	if set := s.setOf(hash); set != nil {
		pods := s.podsOf(which, hash)
		x.ReplicaSet, x.Available, x.Size = set.Name, pods.Available, pods.Size
	}
}

// labelWaits is why UpdateHash would not move a label at once.
func (r *Router) labelWaits(s *situation, m *memory, named hashes) string {
	switch {
	case !s.bySubsets():
		return "the controller moves its selector, for a canary once it has an available pod"
	case s.config.Guard.Mode != config.Enforce:
		return ""
	}
	return guard.PlanMove(r.move(s, m, named, m.announced)).Err
}

// readyBehind counts the endpoints of a side.
func (r *Router) readyBehind(s *situation, i int, which side, hash string) (int, error) {
	place := s.selects[min(i, len(s.selects)-1)].pair.Canary
	if which == stableSide {
		place = s.selects[min(i, len(s.selects)-1)].pair.Stable
	}
	namespace, name, isService := hostname.Service(place.Host, r.options.ClusterDomain)
	if !isService {
		return 0, errNoService
	}
	endpoints, err := r.cluster.Endpoints(namespace, name)
	if err != nil {
		return 0, err
	}
	return len(slices.DeleteFunc(slices.Clone(endpoints), func(e cluster.Endpoint) bool {
		return !e.Ready || hash != "" && e.Labels[hashLabel] != hash
	})), nil
}

// meshPoll is how often to look whether istiod has answered.
const meshPoll = 20 * time.Millisecond

// askMesh asks istiod for what the objects stand for, whatever verify.level is, and waits
// for the answers. It is nil where nobody has said where istiod is.
func (r *Router) askMesh(ctx context.Context, s *situation) *ExplainedMesh {
	if r.options.Mesh == nil {
		return nil
	}
	asked := *s
	asked.config.Verify.Level = config.Mesh
	x := &ExplainedMesh{plan: r.plan(&asked)}
	x.Want, x.Hidden = x.plan.Want(), x.plan.Hidden()
	r.options.Mesh.Follow(s.ref.UID, s.ref.Namespace, x.Want)
	if err := wait.PollUntilContextCancel(ctx, meshPoll, true, func(context.Context) (bool, error) {
		x.Served, x.Err = r.options.Mesh.Served(s.ref.UID)
		return x.Err != nil || x.Served.Answered(x.Want), nil
	}); err != nil {
		x.Err = fmt.Errorf("istiod has not answered yet: %w", err)
	}
	return x
}

// judgeMesh says what istiod serves otherwise than the objects say.
func (r *Router) judgeMesh(s *situation, v verdict, x *ExplainedMesh) {
	if x.Err != nil {
		return
	}
	counted := s.counted(v)
	endpoints, err := r.endpoints(x.plan)
	if err != nil {
		endpoints, counted = verification.Endpoints{}, verification.Counts{} // judged by the routes alone
	}
	_, x.Waiting = x.plan.Judge(x.Served, endpoints, counted)
}
