package lint

import (
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

var stepChecks = []*Check{
	{
		Code: "ARI0401", Severity: Warning, Title: "rollbackWindow without a guard", judge: unguardedWindow, native: true,
		Happens: "A rollback within the window skips the steps: the controller looks for the last setWeight and asks for it at once, whatever the number of pods. With few pods left of that revision they get all of that traffic.",
		Instead: "Remove guard.mode, or set it to Enforce; with the native router, move to the plugin (docs/migration.md) or remove rollbackWindow.",
		Not:     "Not for a Rollout without a setWeight step, which asks for nothing on the way back.",
	},
	{
		Code: "ARI0402", Severity: Warning, Title: "rollbackWindow beyond the history", judge: windowBeyondHistory, native: true,
		Happens: "The older revisions of the window are deleted by then: a rollback to one of them is a new canary, with all of its steps.",
		Instead: "Raise revisionHistoryLimit, or lower rollbackWindow.revisions to at most one more than it.",
		Not:     "revisionHistoryLimit (10 by default) counts the ReplicaSets beside the stable and the desired one. With 3 kept, up to 3 can lie between those two, which a window of 4 reaches.",
	},
	{
		Code: "ARI0403", Severity: Info, Title: "A last setWeight step of everything", judge: lastSetWeight,
		Happens: "Before the promotion the canary is scaled to its full size and gets all of the traffic, which the step has to verify. In a rollback within rollbackWindow it is this weight that the controller asks for first; the guard gives it as pods become available.",
		Instead: "Nothing, if that is meant. Without the step the promotion itself does the same.",
	},
	{
		Code: "ARI0404", Severity: Warning, Title: "setCanaryScale below the weight", judge: scaleBelowWeight,
		Happens: "The canary's pods get more traffic each than those of the stable. The guard lets it, since the Rollout asks for these pods.",
		Instead: "End the fixed scale with setCanaryScale: {matchTrafficWeight: true} before the weight rises.",
		Not:     "Not without spec.replicas, where an autoscaler decides, and not where rounding up a pod makes the difference.",
	},
	{
		Code: "ARI0405", Severity: Info, Title: "minPodsPerReplicaSet above replicas", judge: minPodsAboveReplicas,
		Happens: "The controller never makes more pods than spec.replicas: every canary has its full size from the first step on.",
		Instead: "Lower minPodsPerReplicaSet, or remove spec.replicas if an autoscaler owns it.",
		Not:     "Not without spec.replicas, and not for equal numbers.",
	},
	{
		Code: "ARI0406", Severity: Warning, Title: "dynamicStableScale without verification in the mesh", judge: unverifiedStableScale,
		Happens: "The controller takes stable pods away once a weight is verified. By the API's word alone the proxies may not have that weight yet, and go on sending to pods that leave: short 503s at each step.",
		Instead: "Set verify.level: Mesh in the plugin's block (docs/verification.md), or leave dynamicStableScale out.",
	},
	{
		Code: "ARI0407", Severity: Warning, Title: "An experiment's template with a weight and no Service name", judge: namelessTemplates,
		Happens: "The controller may lose the generated name and asks for a share without a Service: the template then gets no traffic.",
		Instead: "Set service.name in the template, and give its pods a container port.",
		Not:     "A template without a weight needs no Service.",
	},
	{
		Code: "ARI0408", Severity: Error, Title: "A weight outside of its range", judge: weightsOutOfRange, native: true,
		Happens: "The controller rejects the Rollout as invalid and does nothing for it.",
		Instead: "Write a weight from 0 to maxTrafficWeight, which is 100 unless it is set.",
	},
	{
		Code: "ARI0409", Severity: Error, Title: "dynamicStableScale and scaleDownDelaySeconds", judge: scaledTwice, native: true,
		Happens: "The controller rejects the Rollout as invalid and does nothing for it.",
		Instead: "Remove one of the two: with dynamicStableScale the stable is scaled with the weight, and no delay applies.",
	},
	{
		Code: "ARI0410", Severity: Error, Title: "A Rollout that the controller rejects", judge: rejected, native: true,
		Happens: "The controller rejects the Rollout as invalid and does nothing for it.",
		Instead: "Correct what the message names; a step has exactly one of setWeight, pause, setCanaryScale, experiment, analysis, setHeaderRoute, setMirrorRoute and plugin; each Service that the Rollout names exists, is named for one side only, and selects by labels that the pod template itself has.",
		Not:     "These are not all of the controller's rules; of a pod template only the labels are judged. What ARI0101, ARI0210, ARI0304 or ARI0305 says of a Service is not said again.",
	},
}

func unguardedWindow(s *subject, tell tell) {
	window := s.ro.Spec.RollbackWindow
	if window == nil || window.Revisions <= 0 || s.lastWeight() <= 0 {
		return
	}
	switch {
	case s.native:
		tell(s.o, "spec.rollbackWindow", "the native router has no guard: a rollback asks for %d at once", s.lastWeight())
	case len(s.problems) == 0 && s.cfg.Guard.Mode != config.Enforce:
		tell(s.o, s.block+".guard.mode", "guard.mode is %s: a rollback asks for %d at once", s.cfg.Guard.Mode, s.lastWeight())
	}
}

// lastWeight is that of the last setWeight step, 0 without one.
func (s *subject) lastWeight() int32 {
	i := s.lastWeightStep()
	if i < 0 {
		return 0
	}
	return *s.canary().Steps[i].SetWeight
}

func (s *subject) lastWeightStep() int {
	last := -1
	for i, step := range s.canary().Steps {
		if step.SetWeight != nil {
			last = i
		}
	}
	return last
}

// defaultHistory is the controller's default of revisionHistoryLimit.
const defaultHistory = 10

func windowBeyondHistory(s *subject, tell tell) {
	window, kept := s.ro.Spec.RollbackWindow, int32(defaultHistory)
	if s.ro.Spec.RevisionHistoryLimit != nil {
		kept = *s.ro.Spec.RevisionHistoryLimit
	}
	// The controller counts the ReplicaSets between the desired and the stable one, and
	// asks for fewer than revisions; it keeps this many beside the two.
	if window != nil && window.Revisions-1 > max(kept, 0) {
		tell(s.o, "spec.rollbackWindow.revisions", "the window has %d revisions, and revisionHistoryLimit keeps %d beside the stable and the desired one", window.Revisions, kept)
	}
}

func lastSetWeight(s *subject, tell tell) {
	if i := s.lastWeightStep(); i >= 0 && s.lastWeight() == s.max() {
		tell(s.o, stepPath(i, ".setWeight"), "the last setWeight is %d of %d", s.lastWeight(), s.max())
	}
}

func scaleBelowWeight(s *subject, tell tell) {
	if s.ro.Spec.Replicas == nil {
		return
	}
	weight := int64(0)
	for i, step := range s.canary().Steps {
		field := ".setCanaryScale"
		switch {
		case step.SetWeight != nil:
			weight, field = int64(min(max(*step.SetWeight, 0), s.max())), ".setWeight"
		case step.SetCanaryScale == nil:
			continue
		}
		most, replicas := int64(s.max()), int64(*s.ro.Spec.Replicas)
		needed := (weight*replicas + most - 1) / most
		if intended := int64(guard.IntendedCanaryReplicas(s.atStep(i), guard.Pods{}, guard.Pods{})); intended < needed {
			tell(s.o, stepPath(i, field), "a weight of %d of %d is worth %d of %d pods, and setCanaryScale keeps the canary at %d", weight, most, needed, replicas, intended)
		}
	}
}

func minPodsAboveReplicas(s *subject, tell tell) {
	least, replicas := s.canary().MinPodsPerReplicaSet, s.ro.Spec.Replicas
	if least != nil && replicas != nil && *replicas > 0 && *least > *replicas {
		tell(s.o, canaryPath+".minPodsPerReplicaSet", "minPodsPerReplicaSet is %d, and replicas %d", *least, *replicas)
	}
}

func unverifiedStableScale(s *subject, tell tell) {
	if s.canary().DynamicStableScale && len(s.problems) == 0 && s.cfg.Verify.Level != config.Mesh {
		tell(s.o, canaryPath+".dynamicStableScale", "dynamicStableScale is on, and verify.level is %s", s.cfg.Verify.Level)
	}
}

func namelessTemplates(s *subject, tell tell) {
	for i, step := range s.canary().Steps {
		if step.Experiment == nil {
			continue
		}
		for t, template := range step.Experiment.Templates {
			if template.Weight != nil && (template.Service == nil || template.Service.Name == "") {
				tell(s.o, templatePath(i, t), "template %q has a weight of %d and no service.name", template.Name, *template.Weight)
			}
		}
	}
}

func weightsOutOfRange(s *subject, tell tell) {
	for i, step := range s.canary().Steps {
		if step.SetWeight != nil && (*step.SetWeight < 0 || *step.SetWeight > s.max()) {
			tell(s.o, stepPath(i, ".setWeight"), "setWeight is %d, outside of 0 to %d", *step.SetWeight, s.max())
		}
	}
}

func scaledTwice(s *subject, tell tell) {
	if s.canary().DynamicStableScale && s.canary().ScaleDownDelaySeconds != nil {
		tell(s.o, canaryPath+".scaleDownDelaySeconds", "scaleDownDelaySeconds is %d, and dynamicStableScale is on", *s.canary().ScaleDownDelaySeconds)
	}
}
