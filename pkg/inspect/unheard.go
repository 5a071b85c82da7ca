package inspect

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
)

// patience is how long the controller and the plugin may take before it is worth a word: a
// controller that cannot call its plugin leaves no trace in the cluster but that nothing
// goes on.
const patience = 2 * time.Minute

// answered are the reasons of Events that there are only where the plugin has handled the
// Rollout: its own, and those that the controller has for what comes behind its calls.
var answered = []string{
	router.EventVirtualServiceUpdated, router.EventDestinationRuleUpdated, router.EventCanaryWeightCapped, router.EventCanaryWeightReleased,
	router.EventCanaryWeightPinned, router.EventCanaryWeightUnpinned, router.EventCanaryRolledBack, router.EventCanaryHeldByHealthGate,
	router.EventHealthGatePassed, router.EventWeightNotInEffect, router.EventCanaryPodsNotSeen,
	"TrafficWeightUpdated", "RolloutStepCompleted", "RolloutCompleted",
}

// toldRefusal is the Event by which the running plugin has refused its calls, if nothing
// newer says otherwise. Only the plugin knows what its operator allows and what other
// Rollouts have, and it tells each reason once: no further Event is no better news.
func (c *composer) toldRefusal() (Event, bool) {
	event, there := c.last([]string{router.EventConfigurationInvalid})
	if !there || c.waitsForValidSpec() != "" {
		return Event{}, false
	}
	if newer, there := c.last(answered); there && newer.Last.After(event.Last) {
		return Event{}, false
	}
	if !c.specWritten().After(event.Last) {
		return event, true
	}
	phase := c.ro.Status.Phase
	well := c.observed() && (phase == v1alpha1.RolloutPhaseHealthy || phase == v1alpha1.RolloutPhasePaused)
	return event, !well && c.lasts(c.specWritten())
}

func refusalText(event Event) string {
	return fmt.Sprintf("the plugin refused its calls at %s, and nothing newer says otherwise: %s", clockTime(event.Last), oneLine(event.Message))
}

func (c *composer) waitsForRefused() string {
	event, there := c.toldRefusal()
	if !there {
		return ""
	}
	return "for a correction, as " + refusalText(event)
}

// observed tells whether the controller has taken in the newest spec; one without a
// generation is no cluster's.
func (c *composer) observed() bool {
	return c.ro.Generation == 0 || c.ro.Status.ObservedGeneration == fmt.Sprint(c.ro.Generation)
}

// lasts tells whether a time is so long ago that the controller should have gone on since;
// so is one that is not known.
func (c *composer) lasts(since time.Time) bool { return c.At.Sub(since) >= patience }

// specWritten is when spec was last written, or something else by the same writer; zero
// where that is not known.
func (c *composer) specWritten() time.Time {
	written := time.Time{}
	if c.ro.Generation == 1 {
		written = c.ro.CreationTimestamp.Time
	}
	for _, entry := range c.ro.ManagedFields {
		var fields map[string]json.RawMessage
		if entry.Time == nil || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.Raw, &fields) != nil {
			continue
		}
		if _, there := fields["f:spec"]; there && entry.Time.After(written) {
			written = entry.Time.Time
		}
	}
	return written
}

// quietSince is the newest trace of anything that was done to the Rollout; zero where there
// is none.
func (c *composer) quietSince() time.Time {
	newest := c.ro.CreationTimestamp.Time
	note := func(t time.Time) {
		if t.After(newest) {
			newest = t
		}
	}
	for _, entry := range c.ro.ManagedFields {
		if entry.Time != nil {
			note(entry.Time.Time)
		}
	}
	for _, condition := range c.ro.Status.Conditions {
		note(condition.LastUpdateTime.Time)
	}
	for _, event := range c.Events {
		note(event.Last)
	}
	return newest
}

// unheard is what to look at where the plugin may not be called at all: the controller says
// so in its log only.
func (c *composer) unheard() string {
	routing := c.strategy().TrafficRouting
	if routing == nil || len(routing.Plugins) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(routing.Plugins))
	return fmt.Sprintf("; if that lasts, see the controller's log: it may not know the plugin %s (no such name under trafficRouterPlugins of ConfigMap argo-rollouts-config, or one that was written after the controller's start), or get no answer from it",
		strings.Join(names, " or "))
}

// nextCall is what the plugin's next call does. Where nothing was done to the Rollout for
// long it may never come.
func (c *composer) nextCall(does string) string {
	text := "for the plugin's next call, which " + does
	if c.lasts(c.quietSince()) {
		text += c.unheard()
	}
	return text
}
