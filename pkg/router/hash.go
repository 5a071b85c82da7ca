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
// how long that goes on. Where only settle is waited for, the error comes when it is
// over.
func (r *Router) UpdateHash(ctx context.Context, ro *v1alpha1.Rollout, canaryHash, stableHash string, additional []v1alpha1.WeightDestination) error {
	want := hashes{canary: canaryHash, stable: stableHash}
	return r.outlast(ctx, r.updateHash(ctx, ro, want, additional), func(ctx context.Context) bool {
		return r.hasSettled(ctx, ro, want, additional)
	})
}

func (r *Router) updateHash(ctx context.Context, ro *v1alpha1.Rollout, want hashes, additional []v1alpha1.WeightDestination) error {
	s, m, release, err := r.beginWhole(ctx, ro, additional)
	if err != nil {
		return err
	}
	defer release()
	r.reportContract(s, m)
	if m.announced.canary != want.canary {
		// What was brought about for another revision is nothing to give back to this one,
		// whoever has taken it away.
		m.applied = reduced(m.applied, virtualservice.Target{Canary: s.written})
	}
	m.announced, m.labelled = want, hashes{}
	if !s.bySubsets() {
		return nil
	}
	if err := r.moveLabels(ctx, s, m, want); err != nil {
		return err
	}
	m.labelled = want
	return nil
}

// hasSettled tells whether no label waits for settle any more.
func (r *Router) hasSettled(ctx context.Context, ro *v1alpha1.Rollout, want hashes, additional []v1alpha1.WeightDestination) bool {
	s, m, release, err := r.beginWhole(ctx, ro, additional)
	if err != nil {
		return true
	}
	defer release()
	return !slices.ContainsFunc(s.named, func(h hashes) bool {
		return settling(guard.PlanMove(r.move(s, m, h, want)))
	})
}

// settling tells whether settle is all that a label waits for, which is over by itself.
func settling(plan guard.Plan) bool {
	return (plan.Canary == guard.WaitSettle || plan.Stable == guard.WaitSettle) &&
		plan.Canary != guard.WaitPods && plan.Stable != guard.WaitPods
}

// moveLabels carries out one step of the way to the labels. Of several
// DestinationRules each goes its own way: they may name different hashes.
func (r *Router) moveLabels(ctx context.Context, s *situation, m *memory, want hashes) error {
	named := s.named
	now := slices.Repeat([]hashes{want}, len(named))
	if s.config.Guard.Mode != config.Enforce {
		return r.writeLabels(ctx, s, m, now)
	}
	weight := s.facts.Max + 1
	var waits []string
	passes := true
	for i, h := range named {
		plan := guard.PlanMove(r.move(s, m, h, want))
		passes = passes && (plan.Err == "" || settling(plan))
		now[i] = want.movable(plan)
		if plan.Canary == guard.LowerFirst {
			weight = min(weight, plan.Weight)
		}
		if plan.Err != "" && !slices.Contains(waits, plan.Err) {
			waits = append(waits, plan.Err)
		}
	}
	if err := r.writeLabels(ctx, s, m, now); err != nil {
		return err
	}
	if weight <= s.facts.Max {
		target := r.target(s, weight)
		target.Lower = true
		if err := r.writeTarget(ctx, s, m, target); err != nil {
			return err
		}
	}
	if len(waits) > 0 && passes {
		return passing(strings.Join(waits, "; "))
	}
	return errorOrNil(strings.Join(waits, "; "))
}

// movable are the hashes without those whose label has to wait; one that is right
// already costs nothing.
func (h hashes) movable(plan guard.Plan) hashes {
	if plan.Canary != guard.MoveLabel && plan.Canary != guard.Nothing {
		h.canary = ""
	}
	if plan.Stable != guard.MoveLabel && plan.Stable != guard.Nothing {
		h.stable = ""
	}
	return h
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
	if s.fresh[want.canary] != "" {
		move.Canary.ToPods.Available = 0
	}
	move.Canary.Lowered, move.Canary.LoweredKnown = r.lowered(s, m)
	if s.config.Verify.Level == config.Mesh {
		move.Settle = max(move.Settle, 1) // istiod says when it is over, also where settle is 0s
	}
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

// writeLabels sets the labels that are not "", by DestinationRule, and the subsets of
// a running experiment, and drops those of an ended one, all in one patch for each.
// All patches can be computed before the first is sent.
func (r *Router) writeLabels(ctx context.Context, s *situation, m *memory, want []hashes) error {
	targets := r.ruleTargets(s, m, want)
	if err := r.checkLabels(ctx, s, targets); err != nil {
		return err
	}
	var written []string
	for i, rule := range s.rules {
		changed, err := r.writeRule(ctx, s, rule, targets[i])
		if err != nil {
			return partly(err, written, rulesNamed(s.rules[i+1:]))
		}
		if changed {
			written = append(written, rule.String())
		}
	}
	return nil
}

// ruleTargets are what the DestinationRules are to look like.
func (r *Router) ruleTargets(s *situation, m *memory, want []hashes) []destinationrule.Target {
	unused := r.unused(s, m)
	var targets []destinationrule.Target
	for i, rule := range s.rules {
		targets = append(targets, destinationrule.Target{
			Owner:        s.owner(),
			CanarySubset: rule.want.CanarySubsetName, CanaryHash: want[i].canary,
			StableSubset: rule.want.StableSubsetName, StableHash: want[i].stable,
			Experiments: s.subsets(rule), Drop: unused,
		})
	}
	return targets
}

// checkLabels computes all patches and throws them away. Before what another process
// of the plugin wrote is changed, it asks whether the call is of today.
func (r *Router) checkLabels(ctx context.Context, s *situation, targets []destinationrule.Target) error {
	var errs []error
	foreign := false
	for i, rule := range s.rules {
		patch, _, err := rule.Set(targets[i])
		errs = append(errs, err)
		foreign = foreign || len(patch) > 0 && r.labelledByAnother(rule)
	}
	if err := errors.Join(errs...); err != nil || !foreign {
		return err
	}
	return r.upToDate(ctx, s)
}

func (r *Router) writeRule(ctx context.Context, s *situation, x rule, target destinationrule.Target) (bool, error) {
	var changes []destinationrule.Change
	dr, changed, err := r.cluster.UpdateDestinationRule(ctx, x.want.Namespace, x.want.Name,
		func(dr *destinationrule.DestinationRule) (patch jsonpatch.Patch, err error) {
			patch, changes, err = dr.Set(target)
			return patch, err
		})
	if changed {
		r.own.note("DestinationRule", x.want.Namespace, x.want.Name, dr.ResourceVersion)
		r.reportLabels(s, x, changes)
	}
	return changed, err
}

// reportLabels tells of a written DestinationRule.
func (r *Router) reportLabels(s *situation, x rule, changes []destinationrule.Change) {
	var what []string
	for _, c := range changes {
		what = append(what, c.String())
	}
	if len(what) == 0 {
		what = []string{"the native router's annotation was removed"}
	}
	r.cluster.Event(s.ref, false, EventDestinationRuleUpdated, fmt.Sprintf("%s: %s", x, strings.Join(what, ", ")))
	r.logFor(s).Info("DestinationRule updated", "destinationRule", x.want.Namespace+"/"+x.want.Name, "changes", what)
}

func errorOrNil(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
