package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
)

// outside is what is said of what leaves no trace.
const outside = "known to the running plugin only"

// waiting is what the Rollout waits for, behind "Waits ". The first that has something to
// say is right: what keeps all else from happening comes first.
func (c *composer) waiting() string {
	if c.Unread != nil {
		return c.waitingInPart()
	}
	for _, about := range []func() string{
		c.waitsForCorrection, c.waitsForRefused, c.waitsForObservation, c.waitsForValidSpec, c.waitsAfterAbort, c.waitsAtRest, c.waitsForStable,
		c.waitsForPerson, c.waitsForPods, c.waitsForRequests, c.waitsForWriting, c.waitsForMesh, c.waitsForStep, c.waitsForGate,
	} {
		if text := about(); text != "" {
			return text
		}
	}
	return "for the controller's next reconcile"
}

// waitingInPart is what the Rollout alone tells, where not all could be read.
func (c *composer) waitingInPart() string {
	hidden := "whether anything holds it beside that cannot be told: " + c.Unread.Error()
	for _, about := range []func() string{c.waitsForRefused, c.waitsForObservation, c.waitsForValidSpec} {
		if text := about(); text != "" {
			return text
		}
	}
	if c.ro.Status.Abort {
		return "for a person to retry it, or to set its template back: it is aborted; where its traffic is cannot be told: " + c.Unread.Error()
	}
	if text := c.paused(); text != "" {
		return text + "; " + hidden
	}
	return "for something that cannot be told: " + c.Unread.Error()
}

// waitsForCorrection is what only a person can change.
func (c *composer) waitsForCorrection() string {
	switch {
	case c.e == nil && c.Refused != nil:
		return "for a correction, as the plugin refuses every call: " + c.Refused.Error()
	case c.e == nil:
		return "for a correction, as the plugin refuses every call"
	case c.e.Broken != nil:
		return "for a correction, as the canary gets no more meanwhile: " + c.e.Broken.Error()
	case c.e.PinErr != nil:
		return "for a correction: " + c.e.PinErr.Error()
	case c.e.StepsErr != nil:
		return "for a correction, as no weight is verified meanwhile: " + c.e.StepsErr.Error()
	}
	return ""
}

func (c *composer) waitsForObservation() string {
	if c.observed() {
		return ""
	}
	knows := c.ro.Status.ObservedGeneration
	if knows == "" {
		knows = "none"
	}
	text := fmt.Sprintf("for the controller to take in the newest spec (generation %d; it knows %s)", c.ro.Generation, knows)
	if c.lasts(c.specWritten()) {
		text += c.unheard()
	}
	return text
}

// waitsForValidSpec is about a spec with which the controller does nothing at all.
func (c *composer) waitsForValidSpec() string {
	if text := c.refusedPause(); text != "" {
		return "for a correction, as the controller refuses the spec and does nothing: " + text
	}
	for _, condition := range c.ro.Status.Conditions {
		if condition.Type == v1alpha1.InvalidSpec {
			return "for a correction, as the controller refuses the spec and does nothing: " + condition.Message
		}
	}
	return ""
}

// refusedPause is a pause of any step whose duration the controller does not accept, "" if
// there is none. It reads one as -1 seconds, and its own message says that only.
func (c *composer) refusedPause() string {
	for i, step := range c.strategy().Steps {
		if step.Pause != nil && step.Pause.DurationSeconds() < 0 {
			return fmt.Sprintf("spec.strategy.canary.steps[%d].pause.duration is %q: write seconds, as 600, or a number with a unit, as 10m; not below 0", i, step.Pause.Duration.String())
		}
	}
	return ""
}

// wrongStable is a stable side that leads elsewhere, "" if there is none: its traffic is then
// not where the weights say.
func (c *composer) wrongStable() string {
	for _, side := range sidesOf(c.e.Sides) {
		if side.Role == "stable" && !side.Right {
			return "for the stable side to lead to revision " + side.Wanted + ": " + wrongSide(side)
		}
	}
	return ""
}

func (c *composer) waitsAfterAbort() string {
	switch {
	case c.e.Braked:
		return "for the abort that the health gate has begun: " + markText(c.e.Mark)
	case c.way != wayBack:
		return ""
	case c.e.Asked.Silent != "":
		return "for the stable's pods, to take the traffic back: " + c.e.Asked.Silent
	case c.e.Next < c.e.Written, c.e.Asked.Weight > 0:
		return fmt.Sprintf("for the traffic to be back on the stable: the canary still has %d of %d, and the controller asks for %d", c.e.Written, c.e.Max, c.e.Asked.Weight)
	}
	if wrong := c.wrongStable(); wrong != "" {
		return wrong
	}
	text := "for a person to retry it, or to set its template back: it is aborted, and all traffic is on the stable"
	if c.e.Mark.Text != "" {
		text += " (the health gate: " + c.e.Mark.Text + ")"
	} else if message := oneLine(c.ro.Status.Message); message != "" {
		text += " (" + message + ")"
	}
	return text
}

func markText(mark gate.Mark) string {
	if mark.Text == "" {
		return "rolled back"
	}
	return mark.Text
}

// waitsAtRest is about a Rollout without a canary.
func (c *composer) waitsAtRest() string {
	if c.way == wayFirst {
		return "for the first revision to become stable: " + c.replicas() + c.withoutPods(c.ro.Status.Replicas, c.ro.Status.HPAReplicas, c.ro.Status.AvailableReplicas)
	}
	if c.way != wayIdle {
		return ""
	}
	switch {
	case c.e.Asked.Silent != "":
		return "for the stable's pods: " + c.e.Asked.Silent
	case !c.e.AsDecided || c.e.FirstRequest != "":
		return "" // the traffic is on its way back after a promotion
	case c.wrongStable() != "":
		return c.wrongStable()
	case c.ro.Status.Phase == v1alpha1.RolloutPhaseHealthy || c.ro.Status.Phase == "":
		return "for nothing: revision " + c.ro.Status.StableRS + " is stable, and has all traffic"
	}
	return fmt.Sprintf("for no weight: revision %s is stable, and has all traffic; the Rollout is %s (%s)", c.ro.Status.StableRS, c.ro.Status.Phase, c.replicas())
}

// withoutPods is about a revision that gets no pods at all, by all that counts them: the
// controller calls the plugin before it makes any.
func (c *composer) withoutPods(counts ...int32) string {
	if slices.Max(counts) > 0 || c.step.Replicas == 0 || !c.lasts(c.quietSince()) {
		return ""
	}
	return c.unheard()
}

func (c *composer) replicas() string {
	return fmt.Sprintf("%d of %d replicas are available", c.ro.Status.AvailableReplicas, c.step.Replicas)
}

// waitsForStable is about a controller that does not call.
func (c *composer) waitsForStable() string {
	if c.e.Asked.Silent == "" {
		return ""
	}
	return "for the stable's pods: " + c.e.Asked.Silent
}

// waitsForPerson is about a brake, and about pauses. What is held meanwhile is said, too.
func (c *composer) waitsForPerson() string {
	if c.e.Pin != nil {
		return fmt.Sprintf("for a person to remove the annotation %s, which pins the canary at %d where %d of %d are asked for", router.PinAnnotation, *c.e.Pin, c.e.Asked.Weight, c.e.Max)
	}
	text := c.paused()
	if text != "" && c.held() {
		text += "; meanwhile " + c.e.Decision.Message()
	}
	return text
}

func (c *composer) paused() string {
	if c.ro.Spec.Paused {
		return "for a person to set spec.paused to false"
	}
	conditions := c.ro.Status.PauseConditions
	for _, pause := range conditions {
		if pause.Reason != v1alpha1.PauseReasonCanaryPauseStep {
			return fmt.Sprintf("for a person to promote or abort it: it is paused since %s (%s)", clockTime(pause.StartTime.Time), pause.Reason)
		}
	}
	if len(conditions) == 0 {
		return ""
	}
	step := c.current()
	if step == nil || step.Pause == nil || step.Pause.Duration == nil {
		return fmt.Sprintf("for a person to promote it: %s has no duration", c.at())
	}
	long := time.Duration(step.Pause.DurationSeconds()) * time.Second
	end := conditions[0].StartTime.Add(long)
	if !c.At.Before(end) {
		return "" // it is over: what keeps the controller from going on comes next
	}
	return fmt.Sprintf("for %s of %s to end, at %s", c.at(), long, clockTime(end))
}

// at names the current step.
func (c *composer) at() string {
	if c.step.Step == 0 || c.step.Step > c.step.Steps {
		return "the pause"
	}
	return fmt.Sprintf("the pause of step %d of %d", c.step.Step, c.step.Steps)
}

// current is the current step, nil if there is none.
func (c *composer) current() *v1alpha1.CanaryStep {
	if c.step.Step < 1 || c.step.Step > c.step.Steps {
		return nil
	}
	return &c.strategy().Steps[c.step.Step-1]
}

// clockTime is a time that does not change from look to look.
func clockTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// held tells that the guard keeps weight from the canary.
func (c *composer) held() bool { return c.e.Enforced && c.e.Decision.Capped() }

func (c *composer) waitsForPods() string {
	switch {
	case !c.held():
		return ""
	case c.e.Mismatch != "":
		return "for a correction of labels: " + c.e.Mismatch
	case c.way == wayRollback:
		return "for the pods of revision " + c.ro.Status.CurrentPodHash + ", which is rolled back to within rollbackWindow: " + c.e.Decision.Message()
	}
	return "for the canary's pods: " + c.e.Decision.Message()
}

func (c *composer) waitsForRequests() string {
	if c.e.FirstRequest == "" {
		return ""
	}
	return "for the mesh to learn of pods before their first request: " + c.e.FirstRequest
}

// waitsForWriting is about objects that are not what they are to be.
func (c *composer) waitsForWriting() string {
	for _, side := range c.e.Sides {
		switch {
		case side.Subset == "" || side.Wanted == "" || side.Hash == side.Wanted:
		case side.Waits != "":
			return fmt.Sprintf("for the label of subset %s: %s", side.Subset, side.Waits)
		default:
			return c.nextCall(fmt.Sprintf("lets subset %s name %s (it names %s)", side.Subset, side.Wanted, orNone(side.Hash)))
		}
	}
	switch {
	case c.e.AsDecided:
		return ""
	case c.e.Known && c.e.Written == c.e.Next:
		return c.nextCall("writes what is missing in the VirtualServices beside the weights")
	}
	return c.nextCall(fmt.Sprintf("writes %d of %d for the canary (it has %d)", c.e.Next, c.e.Max, c.e.Written))
}

func (c *composer) waitsForMesh() string {
	switch {
	case c.e.Unverified == "":
		return ""
	case c.e.Config.Verify.Level == config.Mesh:
		return "for istiod to serve what is written: " + c.e.Unverified
	}
	return "for what is written to be in effect: " + c.e.Unverified
}

// waitsForStep is about the step itself.
func (c *composer) waitsForStep() string {
	step, available := c.current(), c.e.Decision.Canary.Available
	missing := ""
	if available < c.e.Intended {
		missing = fmt.Sprintf("%d of %d replicas available", available, c.e.Intended) + c.withoutPods(available, c.ro.Status.UpdatedReplicas)
	}
	status := c.ro.Status.Canary
	switch {
	case step == nil && missing != "":
		return "for the canary's pods, to be promoted: " + missing
	case step == nil:
		return ""
	case step.Analysis != nil && status.CurrentStepAnalysisRunStatus != nil:
		run := status.CurrentStepAnalysisRunStatus
		return strings.TrimSuffix(fmt.Sprintf("for AnalysisRun %s (%s): %s", run.Name, run.Status, run.Message), ": ")
	case step.Analysis != nil:
		return "for the AnalysisRun of " + c.stepName()
	case step.Experiment != nil:
		return strings.TrimSuffix("for the Experiment of "+c.stepName()+": "+status.CurrentExperiment, ": ")
	case step.Plugin != nil:
		return "for the step plugin of " + c.stepName()
	case missing != "":
		return "for the canary's pods, for " + c.stepName() + ": " + missing
	}
	return ""
}

func (c *composer) stepName() string {
	return fmt.Sprintf("step %d of %d (%s)", c.step.Step, c.step.Steps, c.step.StepText)
}

// waitsForGate is about what only VerifyWeight of the running plugin knows.
func (c *composer) waitsForGate() string {
	verified := c.ro.Status.Canary.Weights
	if verified != nil && verified.Verified != nil && *verified.Verified && verified.Canary.Weight == c.e.Asked.Weight {
		if c.current() == nil {
			return "for the controller to promote it: all is verified"
		}
		return ""
	}
	if c.gated() {
		return fmt.Sprintf("for a healthy window of %s of the health gate%s", c.e.Config.HealthGate.Interval, c.lastWord(gateReasons))
	}
	if step := c.current(); step != nil && step.SetWeight != nil || step == nil {
		return "for VerifyWeight to be content with " + c.what() + c.lastWord(verifyReasons)
	}
	return ""
}

func (c *composer) what() string { return fmt.Sprintf("%d of %d", c.e.Asked.Weight, c.e.Max) }

// gated tells that a step, or the promotion, waits for the health gate.
func (c *composer) gated() bool {
	return c.e.Config.HealthGate != nil && c.e.Place != gate.Between && c.e.Asked.Weight > 0 && c.way != wayIdle && c.way != wayBack && c.way != wayFull
}

// The reasons of Events that tell what the running plugin thinks.
var (
	gateReasons   = []string{router.EventCanaryHeldByHealthGate, router.EventHealthGatePassed, router.EventCanaryRolledBack}
	verifyReasons = []string{"WeightVerifyError", "TrafficRoutingError"}
	capReasons    = []string{router.EventCanaryWeightCapped, router.EventCanaryWeightReleased}
)

// lastWord is what the newest Event of these reasons says, in brackets.
func (c *composer) lastWord(reasons []string) string {
	event, there := c.last(reasons)
	if !there {
		return " (what it has found is " + outside + ")"
	}
	return fmt.Sprintf(" (last said at %s: %s)", clockTime(event.Last), oneLine(event.Message))
}
