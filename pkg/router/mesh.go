package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/podlabel"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/verification"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// meshSettleMost is how long a label waits at most for istiod to serve a lower weight,
// as long as istiod answers. UpdateHash's errors stop scaling, deadline and abort.
const meshSettleMost = 30 * time.Second

// errNoIstiod is why level Mesh cannot be verified.
var errNoIstiod = errors.New("the plugin was started without --istiod-address, which verify.level Mesh needs")

// errNoProxies is why verify.proxies cannot be met.
var errNoProxies = errors.New("istiod names no proxy of these namespaces: there is none, or it does not tell whoever this token is of (verification.md of the plugin's documentation)")

// plan says what has to be seen beyond the objects; nil where nobody asks for it.
func (r *Router) plan(s *situation) *verification.Plan {
	if s.config.Verify.Level == config.Object {
		return nil
	}
	namespace := s.ref.Namespace
	if r.options.Mesh != nil {
		namespace = r.options.Mesh.Namespace(namespace)
	}
	return verification.NewPlan(verification.Facts{
		Namespace: namespace, ClusterDomain: r.options.ClusterDomain, VirtualServices: s.services,
		Pairs: s.meshPairs(), Max: s.facts.Max, Ports: r.cluster.ServicePorts,
	})
}

// meshPairs are the sides with what a pod has to carry to be one of them.
func (s *situation) meshPairs() []verification.Pair {
	var pairs []verification.Pair
	for _, x := range s.selects {
		pairs = append(pairs, verification.Pair{
			Canary: verification.Side{Side: x.pair.Canary, Labels: s.podLabels(x.canary)},
			Stable: verification.Side{Side: x.pair.Stable, Labels: s.podLabels(x.stable)},
		})
	}
	return pairs
}

// podLabels are those that pods carry as long as they live: neither what the mesh adds
// to endpoints nor what the controller moves at a promotion.
func (s *situation) podLabels(x selector) map[string]string {
	own := make(map[string]string, len(x.labels))
	for key, value := range x.labels {
		if key == hashLabel || !s.ephemeral[key] && !podlabel.AddedLater(key) {
			own[key] = value
		}
	}
	return own
}

// followMesh says what to watch, ahead of the questions: what istiod serves is known
// then when it counts.
func (r *Router) followMesh(s *situation) {
	plan := r.plan(s)
	if s.config.Verify.Level != config.Mesh && r.options.Mesh != nil {
		r.options.Mesh.Forget(s.ref.UID)
	}
	if plan == nil {
		return
	}
	_, _ = r.endpoints(plan) // begins the watch; what is wrong counts when it is asked for
	if s.config.Verify.Level == config.Mesh && r.options.Mesh != nil {
		r.options.Mesh.Follow(s.ref.UID, s.ref.Namespace, plan.Want())
	}
}

// endpoints are those of all Services that the plan needs.
func (r *Router) endpoints(plan *verification.Plan) (verification.Endpoints, error) {
	all := verification.Endpoints{}
	for _, service := range plan.Services() {
		endpoints, err := r.cluster.Endpoints(service.Namespace, service.Name)
		if err != nil {
			return nil, err
		}
		all[service] = endpoints
	}
	return all, nil
}

// verifyInMesh says whether a weight that the objects hold is in effect, as far as
// verify.level asks for it.
func (r *Router) verifyInMesh(ctx context.Context, s *situation, m *memory, v verdict) finding {
	plan := r.plan(s)
	if plan == nil {
		return finding{verified: !r.stillSpreading(s, m, v)}
	}
	counted := s.counted(v)
	waiting, err := r.waitsFor(ctx, s, plan, counted)
	r.reportUnavailable(s, m, err)
	switch {
	case err != nil && s.config.Verify.OnUnavailable == config.Proceed:
		m.unseenSince = time.Time{}
		return finding{verified: !r.stillSpreading(s, m, v)}
	case err != nil:
		waiting = err.Error()
	}
	r.reportUnseen(s, m, waiting)
	if waiting == "" {
		r.reportInvisible(s, m, plan)
		// Without istiod's word the proxies get the time that the clock gives them.
		return finding{verified: s.config.Verify.Level == config.Mesh || !r.stillSpreading(s, m, v)}
	}
	unseen := finding{every: verifyPoll, answers: guard.AnswerUnseen(v.facts, v.decision, waiting, r.clock.Now().Sub(m.unseenSince), s.config.Guard.MaxHold)}
	if s.config.Verify.Proxies {
		unseen.every = proxiesPoll
	}
	unseen.again = func() bool {
		waiting, err := r.waitsFor(ctx, s, plan, counted)
		return err == nil && waiting == ""
	}
	return unseen
}

// counted are the pods that the guard counted on. Those of a stable that names no hash
// are not the Rollout's to count.
func (s *situation) counted(v verdict) verification.Counts {
	counts := verification.Counts{Canary: v.decision.Canary.Available, Stable: v.decision.Stable.Available}
	if s.routed().stable == "" {
		counts.Stable = 0
	}
	return counts
}

// waitsFor says what is missing in the mesh, "" if nothing is. The error says that it
// cannot be known.
func (r *Router) waitsFor(ctx context.Context, s *situation, plan *verification.Plan, counted verification.Counts) (string, error) {
	endpoints, err := r.endpoints(plan)
	if err != nil {
		return "", err
	}
	if s.config.Verify.Level == config.Endpoints {
		_, waiting := plan.JudgeEndpoints(endpoints, counted)
		return waiting, nil
	}
	served, err := r.served(s)
	if err != nil {
		return "", err
	}
	if _, waiting := plan.JudgeEndpoints(endpoints, counted); waiting != "" {
		return waiting, nil
	}
	if ok, waiting := plan.Judge(served, endpoints, counted); !ok || !s.config.Verify.Proxies {
		return waiting, nil
	}
	proxies, err := r.options.Mesh.Proxies(ctx)
	if err != nil {
		return "", err
	}
	_, known, waiting := verification.JudgeProxies(proxies, plan.Namespaces())
	if !known {
		return "", errNoProxies
	}
	return waiting, nil
}

func (r *Router) served(s *situation) (mesh.Served, error) {
	if r.options.Mesh == nil {
		return mesh.Served{}, errNoIstiod
	}
	return r.options.Mesh.Served(s.ref.UID)
}

// lowered is how long ago the canary's weight went down, as far as the mesh is
// concerned: at level Mesh not the clock says when settle is over but istiod, once it
// serves no more than is written.
func (r *Router) lowered(s *situation, m *memory) (time.Duration, bool) {
	elapsed, known := r.since(r.loweredAt(s, m))
	if s.config.Verify.Level != config.Mesh {
		return elapsed, known
	}
	served, err := r.served(s)
	if err != nil {
		return elapsed, known
	}
	most, _ := s.sideWeights()
	weight, visible := r.plan(s).CanaryWeight(served)
	switch {
	case !visible:
		return elapsed, known
	case weight <= most:
		return meshSettleMost, true
	case known && elapsed >= meshSettleMost:
		return elapsed, true
	}
	return 0, true
}

// loweredAt is when the canary's weight is known to have gone down. Between the calls it
// may have been lowered by a process that this one has not heard of: what somebody else
// wrote last counts as lowered then. That waits for nothing but a label that would lead
// nowhere.
func (r *Router) loweredAt(s *situation, m *memory) time.Time {
	foreign := slices.ContainsFunc(s.services, func(vs *virtualservice.VirtualService) bool {
		return !r.own.wrote("VirtualService", vs.Namespace, vs.Name, vs.ResourceVersion)
	})
	if last := s.lastChange(); s.watching && foreign && last.After(m.loweredAt) && !last.After(r.clock.Now().Add(time.Second)) {
		return last
	}
	return m.loweredAt
}

// reportUnavailable tells once that the mesh cannot be asked, and once that it can. A right
// that is missing is told even then: it comes out after the first request for it only, and
// it is what somebody has to do something about.
func (r *Router) reportUnavailable(s *situation, m *memory, err error) {
	now := unavailability(err)
	if now == m.unavailable || now == away && m.unavailable == forbidden {
		return
	}
	m.unavailable = now
	if err == nil {
		r.logFor(s).Info("weights are verified again", "level", s.config.Verify.Level)
		return
	}
	effect := "the Rollout goes on with what the objects say"
	if s.config.Verify.OnUnavailable == config.Hold {
		effect = "no weight is verified until it can"
	}
	r.cluster.Event(s.ref, true, EventVerificationUnavailable, fmt.Sprintf(
		"verify.level %s cannot be met: %v; %s (verify.onUnavailable: %s)", s.config.Verify.Level, err, effect, s.config.Verify.OnUnavailable))
	r.logFor(s).Warn("weights cannot be verified", "level", s.config.Verify.Level, "error", err)
}

// unavailable is how the mesh cannot be asked; the zero value is that it can.
type unavailable string

const (
	away      unavailable = "away"
	forbidden unavailable = "forbidden"
)

func unavailability(err error) unavailable {
	switch {
	case err == nil:
		return ""
	case apierrors.IsForbidden(err):
		return forbidden
	}
	return away
}

// reportUnseen keeps since when something has been missing, and says in the log what.
func (r *Router) reportUnseen(s *situation, m *memory, waiting string) {
	switch {
	case waiting == "":
		m.unseenSince, m.unseenTold = time.Time{}, false
	case m.unseenSince.IsZero():
		m.unseenSince = r.clock.Now()
	}
	if waiting != m.unseen && waiting != "" {
		r.logFor(s).Info("the weight is written and not in effect yet", "waitingFor", waiting)
	}
	m.unseen = waiting
}

// reportLate tells, once for each weight that is late, what is missing: at the full
// weight the controller keeps the answer to its log. A call without a seat has not waited.
func (r *Router) reportLate(s *situation, m *memory, v verdict) {
	if m.unseenTold || r.clock.Now().Sub(m.unseenSince) < verifyPatience {
		return
	}
	m.unseenTold = true
	r.cluster.Event(s.ref, true, EventWeightNotInEffect, fmt.Sprintf("weight %d is written and not in effect yet: %s", v.decision.Weight, m.unseen))
}

// reportShareWaits tells, once for each text, which share of an experiment is missing.
func (r *Router) reportShareWaits(s *situation, m *memory, waiting string) {
	if waiting != m.shareWaits {
		r.cluster.Event(s.ref, false, EventWeightNotInEffect, waiting)
	}
	m.shareWaits = waiting
}

// reportInvisible tells, once for each text, what level Mesh says nothing about.
func (r *Router) reportInvisible(s *situation, m *memory, plan *verification.Plan) {
	if s.config.Verify.Level != config.Mesh {
		return
	}
	text := strings.Join(plan.Hidden(), "; ")
	if text != m.invisible && text != "" {
		r.cluster.Event(s.ref, false, EventVerificationPartial, "verify.level Mesh says nothing about a part of the routing: "+text)
	}
	m.invisible = text
}
