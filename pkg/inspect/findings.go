package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
)

// findings are what is held or wrong, the worst first.
func (c *composer) findings() []Finding {
	all := []Finding{}
	add := func(severity lint.Severity, text string) {
		if text = oneLine(text); text != "" {
			all = append(all, Finding{severity, text})
		}
	}
	c.phaseFindings(add)
	add(lint.Error, c.refusedPause())
	if event, there := c.toldRefusal(); there && (c.Unread != nil || c.waitsForCorrection() == "") {
		add(lint.Error, refusalText(event))
	}
	switch {
	case c.Unread != nil:
		add(lint.Error, "not all can be told: "+textOf(c.Unread))
		return all
	case c.e == nil:
		add(lint.Error, "the plugin refuses every call: "+textOf(c.Refused))
		return all
	}
	c.faults(add)
	c.holds(add)
	c.deviations(add)
	slices.SortStableFunc(all, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return all
}

type adding func(severity lint.Severity, text string)

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (c *composer) phaseFindings(add adding) {
	status := c.ro.Status
	switch {
	case status.Abort:
		add(lint.Warning, "the Rollout is aborted: "+c.step.Message)
	case status.Phase == v1alpha1.RolloutPhaseDegraded:
		add(lint.Error, "the Rollout is Degraded: "+c.step.Message)
	}
}

// faults are for somebody to correct.
func (c *composer) faults(add adding) {
	e := c.e
	for _, err := range []error{e.Broken, e.PinErr, e.StepsErr} {
		add(lint.Error, textOf(err))
	}
	add(lint.Error, e.Mismatch)
	add(lint.Warning, e.Unpinned)
	if e.Known && e.Written > 0 && !c.canaryReached() && e.Decision.Stable.Available > 0 && c.way != wayIdle {
		add(lint.Error, fmt.Sprintf("the canary has %d of %d of the requests and no available pod", e.Written, e.Max))
	}
	for _, side := range sidesOf(c.e.Sides) {
		if e.Known && e.Written < e.Max && side.Role == "stable" && !side.Right && side.Hash != "" && side.Available <= 0 {
			add(lint.Error, fmt.Sprintf("the stable has %d of %d of the requests and no available pod", e.Max-e.Written, e.Max))
		}
	}
}

// canaryReached tells whether requests for the canary get to a pod: the guard judges by the
// revision that is to come, and meanwhile they go to the one that is still named.
func (c *composer) canaryReached() bool {
	return c.e.Decision.Canary.Available > 0 || slices.ContainsFunc(c.e.Sides, func(side router.ExplainedSide) bool {
		return side.Canary && side.Available > 0
	})
}

// holds are what keeps the canary from its weight, or the controller from going on.
func (c *composer) holds(add adding) {
	e := c.e
	switch {
	case c.held():
		add(lint.Warning, e.Decision.Message())
	case e.Decision.Capped() && e.Config.Guard.Mode == config.Observe:
		add(lint.Info, e.Decision.Message()+" (guard.mode is Observe: it gets all that is asked for)")
	}
	if e.Pin != nil {
		add(lint.Warning, fmt.Sprintf("canary pinned at %d of %d by the annotation %s", *e.Pin, e.Asked.Weight, router.PinAnnotation))
	}
	if e.Braked {
		add(lint.Warning, "the health gate has begun to roll back: "+markText(e.Mark))
	} else if e.Mark.Phase == gate.Aborted && c.ro.Status.Abort {
		add(lint.Warning, "the health gate has rolled this revision back: "+markText(e.Mark))
	}
	if c.way != wayFirst {
		add(lint.Warning, e.Asked.Silent)
	}
	if e.FirstRequest != "" {
		add(lint.Warning, "no first request yet: "+e.FirstRequest)
	}
	if c.gated() && c.holdsByEvent() {
		event, _ := c.last(gateReasons)
		add(lint.Warning, fmt.Sprintf("held by the health gate, as it last said at %s: %s", clockTime(event.Last), event.Message))
	}
}

// holdsByEvent tells that the gate's newest Event is no good news.
func (c *composer) holdsByEvent() bool {
	event, there := c.last(gateReasons)
	return there && event.Reason == router.EventCanaryHeldByHealthGate
}

// deviations are where the world is not what it should be.
func (c *composer) deviations(add adding) {
	e := c.e
	for _, side := range sidesOf(c.e.Sides) {
		if !side.Right {
			add(lint.Warning, wrongSide(side))
		}
	}
	if !e.AsDecided && e.Broken == nil && e.Asked.Silent == "" {
		add(lint.Warning, fmt.Sprintf("the VirtualServices are not as the plugin would write them now (canary %d of %d)", e.Next, e.Max))
	}
	if e.Unverified != "" {
		add(lint.Warning, "not in effect yet: "+e.Unverified)
	}
	if e.Mesh == nil {
		return
	}
	if e.Mesh.Err != nil {
		add(lint.Warning, "what the mesh has is not known: "+e.Mesh.Err.Error())
	} else if e.Mesh.Waiting != e.Unverified {
		add(lint.Warning, "the mesh has not what is written: "+e.Mesh.Waiting)
	}
}

func wrongSide(side Side) string {
	place := side.Object
	if side.Subset != "" {
		place += ", subset " + side.Subset
	}
	is := side.Hash
	if is == "" {
		is = "no revision"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s names %s where %s is wanted: %s", place, is, side.Wanted, side.Waits), ": ")
}
