package inspect

import (
	"fmt"
	"slices"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
)

// pending is what keeps, or may keep, the Rollout, as far as it can be told from outside.
func (c *composer) pending() []Pending {
	var all []Pending
	for _, one := range []Pending{
		{"hold", c.holdText()}, {"pin", c.pinText()}, {"labels", c.labelsText()}, {"first request", c.firstText()},
		{"verification", c.verificationText()}, {"health gate", c.gateText()},
	} {
		if one.Text != "" {
			one.Text = oneLine(one.Text)
			all = append(all, one)
		}
	}
	return all
}

// last is the newest Event with one of these reasons.
func (c *composer) last(reasons []string) (Event, bool) {
	for _, event := range c.Events {
		if slices.Contains(reasons, event.Reason) {
			return event, true
		}
	}
	return Event{}, false
}

func (c *composer) holdText() string {
	if !c.held() {
		return ""
	}
	since := "since when is " + outside
	if event, there := c.last(capReasons); there && event.Reason == router.EventCanaryWeightCapped {
		since = "since " + clockTime(event.Last) + " by its Event"
	}
	text := c.e.Decision.Message() + "; " + since
	switch {
	case c.e.Answers.SetWeightErr != "":
		return fmt.Sprintf("%s; until then, and at most for guard.maxHold (%s) without a further pod, SetWeight ends each reconcile, so that the stable keeps its pods", text, c.e.Config.Guard.MaxHold)
	case c.e.Answers.VerifyErr != "":
		return text + "; scaling, deadline and abort go on"
	}
	return text
}

func (c *composer) pinText() string {
	switch {
	case c.e.PinErr != nil:
		return c.e.PinErr.Error()
	case c.e.Pinned == nil:
		return ""
	case c.e.Pin == nil:
		return fmt.Sprintf("at %d of %d, which holds nothing at this moment: %d is asked for", *c.e.Pinned, c.e.Max, c.e.Asked.Weight)
	}
	return fmt.Sprintf("at %d of %d; no step completes until it is removed", *c.e.Pin, c.e.Max)
}

// labelsText is about subsets whose label has to move: settle, and pods.
func (c *composer) labelsText() string {
	for _, side := range c.e.Sides {
		if side.Subset == "" || side.Waits == "" {
			continue
		}
		text := side.Waits
		if !c.e.Lowered.IsZero() {
			text += "; the weights were last changed before " + clockTime(c.e.Lowered)
		}
		return fmt.Sprintf("%s; guard.settle is %s", text, c.e.Config.Guard.Settle)
	}
	return ""
}

// firstText is about pods that the mesh may not know yet.
func (c *composer) firstText() string {
	switch {
	case c.e.FirstRequest != "":
		return c.e.FirstRequest
	case !c.e.Enforced || c.e.Written > 0 || c.e.Next == 0 || c.e.Config.Verify.Level != config.Object:
		return ""
	}
	return "when the first pod came is " + outside + "; it waits for some seconds at most"
}

func (c *composer) verificationText() string {
	verify := c.e.Config.Verify
	if verify.Level == config.Object {
		return ""
	}
	said := "the status does not say whether the weight was verified"
	if w := c.ro.Status.Canary.Weights; w != nil && w.Verified != nil {
		said = fmt.Sprintf("the status says verified: %t for %d of %d", *w.Verified, w.Canary.Weight, c.e.Max)
	}
	switch {
	case !c.e.UnverifiedKnown:
		said += "; what istiod serves is seen with --istiod-address"
	case c.e.Unverified != "":
		said += "; " + c.e.Unverified
	}
	return fmt.Sprintf("verify.level %s, onUnavailable %s: %s", verify.Level, verify.OnUnavailable, said)
}

func (c *composer) gateText() string {
	g := c.e.Config.HealthGate
	if g == nil {
		return ""
	}
	text := fmt.Sprintf("windows of %s, onUnhealthy %s", g.Interval, g.OnUnhealthy)
	switch c.e.Mark.Phase {
	case gate.Aborting:
		text += "; the annotation says that a rollback has begun: " + markText(c.e.Mark)
	case gate.Aborted:
		text += "; the annotation says that this revision was rolled back: " + markText(c.e.Mark)
	}
	if !c.gated() {
		return text + "; no step waits for it at this moment"
	}
	return text + "; what it has measured is " + outside + c.lastSaid()
}

func (c *composer) lastSaid() string {
	if event, there := c.last(gateReasons); there {
		return fmt.Sprintf(", and it last said at %s: %s", clockTime(event.Last), event.Message)
	}
	return ""
}
