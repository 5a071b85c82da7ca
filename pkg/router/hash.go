package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// UpdateHash points the two subsets at the pods of the two hashes, as soon as
// that is safe. At host level the controller moves the Services' selectors
// itself, and nothing is left to do.
//
// Success means that both labels are in place. An error that says what is waited
// for makes the controller call again within milliseconds; guard.PlanMove bounds
// how long that goes on.
func (r *Router) UpdateHash(ctx context.Context, ro *v1alpha1.Rollout, canaryHash, stableHash string, additional []v1alpha1.WeightDestination) error {
	s, m, release, err := r.beginWhole(ctx, ro, additional)
	if err != nil {
		return err
	}
	defer release()
	r.reportContract(s, m)
	m.announced, m.labelled = hashes{canary: canaryHash, stable: stableHash}, hashes{}
	if s.rule == nil {
		return nil
	}
	if err := r.moveLabels(ctx, s, m, m.announced); err != nil {
		return err
	}
	m.labelled = m.announced
	return nil
}

// moveLabels carries out one step of the way to the labels.
func (r *Router) moveLabels(ctx context.Context, s *situation, m *memory, want hashes) error {
	routed, err := s.routed()
	if err != nil {
		return err
	}
	if s.config.Guard.Mode != config.Enforce {
		return r.writeLabels(ctx, s, m, want)
	}
	plan := guard.PlanMove(r.move(s, m, routed, want))
	// A label that has to wait is left out; one that is right already costs nothing.
	now := want
	if plan.Canary != guard.MoveLabel && plan.Canary != guard.Nothing {
		now.canary = ""
	}
	if plan.Stable != guard.MoveLabel && plan.Stable != guard.Nothing {
		now.stable = ""
	}
	if err := r.writeLabels(ctx, s, m, now); err != nil {
		return err
	}
	if plan.Canary == guard.LowerFirst {
		if err := r.writeRoutes(ctx, s, m, plan.Weight); err != nil {
			return err
		}
	}
	return errorOrNil(plan.Err)
}

// move gathers what the order of a hash change rests on.
func (r *Router) move(s *situation, m *memory, routed, want hashes) guard.Move {
	move := guard.Move{
		Canary: guard.Label{From: routed.canary, To: want.canary, FromPods: s.podsOf(canarySide, routed.canary), ToPods: s.podsOf(canarySide, want.canary)},
		Stable: guard.Label{From: routed.stable, To: want.stable, FromPods: s.podsOf(stableSide, routed.stable), ToPods: s.podsOf(stableSide, want.stable)},
		Max:    s.facts.Max, Replicas: s.facts.Replicas, Intended: s.facts.Intended, Threshold: s.facts.Threshold,
		Settle: s.config.Guard.Settle,
	}
	move.Canary.Weight, move.Stable.Weight = s.sideWeights()
	move.Canary.Lowered, move.Canary.LoweredKnown = r.since(m.loweredAt)
	move.Stable.Lowered, move.Stable.LoweredKnown = r.since(m.raisedAt)
	return move
}

// sideWeights are the highest weights of the two sides, in parts of max. Where
// the routes do not agree, or say nothing, each side may have everything. A
// managed route sends requests to the canary even at weight 0.
func (s *situation) sideWeights() (canary, stable int32) {
	canary, stable = s.written, s.facts.Max-s.written
	switch {
	case !s.known:
		canary, stable = s.facts.Max, s.facts.Max
	case !s.uniform:
		stable = s.facts.Max
	}
	if s.hasManaged() {
		canary = max(canary, 1)
	}
	return canary, stable
}

// hasManaged tells whether a managed route is in place.
func (s *situation) hasManaged() bool {
	return slices.ContainsFunc(s.services, func(vs *virtualservice.VirtualService) bool {
		return slices.ContainsFunc(vs.HTTP, func(route virtualservice.Route) bool {
			return route.Name != "" && slices.Contains(s.managed, route.Name)
		})
	})
}

// since is how long ago something was; false if it is not known.
func (r *Router) since(at time.Time) (time.Duration, bool) {
	return r.clock.Now().Sub(at), !at.IsZero()
}

// writeLabels sets the labels that are not "" and the subsets of a running
// experiment, and drops those of an ended one, all in one patch.
func (r *Router) writeLabels(ctx context.Context, s *situation, m *memory, want hashes) error {
	var changes []destinationrule.Change
	rule := s.config.DestinationRule
	target := destinationrule.Target{
		Owner:        s.owner(),
		CanarySubset: rule.CanarySubsetName, CanaryHash: want.canary,
		StableSubset: rule.StableSubsetName, StableHash: want.stable,
		Experiments: s.subsets(), Drop: r.unused(s, m),
	}
	if patch, _, err := s.rule.Set(target); err == nil && len(patch) > 0 && r.anotherLabelled(s) {
		if err := r.upToDate(ctx, s); err != nil {
			return err
		}
	}
	dr, changed, err := r.cluster.UpdateDestinationRule(ctx, rule.Namespace, rule.Name,
		func(dr *destinationrule.DestinationRule) (patch jsonpatch.Patch, err error) {
			patch, changes, err = dr.Set(target)
			return patch, err
		})
	if changed {
		r.own.note("DestinationRule", rule.Namespace, rule.Name, dr.ResourceVersion)
		r.reportLabels(s, changes)
	}
	return err
}

// reportLabels tells of a written DestinationRule.
func (r *Router) reportLabels(s *situation, changes []destinationrule.Change) {
	name := s.config.DestinationRule.Namespace + "/" + s.config.DestinationRule.Name
	var what []string
	for _, c := range changes {
		what = append(what, c.String())
	}
	if len(what) == 0 {
		what = []string{"the native router's annotation was removed"}
	}
	r.cluster.Event(s.ref, false, EventDestinationRuleUpdated, fmt.Sprintf("DestinationRule %s: %s", name, strings.Join(what, ", ")))
	r.logFor(s).Info("DestinationRule updated", "destinationRule", name, "changes", what)
}

func errorOrNil(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
