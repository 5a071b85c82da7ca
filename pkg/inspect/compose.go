package inspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
)

// The ways of a Rollout.
const (
	wayFirst    = "first"
	wayIdle     = "idle"
	wayBack     = "back"
	wayFull     = "full"
	wayRollback = "rollback"
	wayCanary   = "canary"
)

// Compose makes the Report of what was seen. It is pure, and never fails: Rollout must not
// be nil, all else may be whatever it is.
func Compose(seen Seen) Report {
	c := &composer{Seen: seen, ro: seen.Rollout, e: seen.Explanation}
	r := Report{
		Namespace: c.ro.Namespace, Name: c.ro.Name, At: seen.At.UTC(),
		Rollout: c.rollout(), Events: seen.Events[:min(len(seen.Events), max(0, seen.Shown))], Notes: seen.Notes,
	}
	c.way, c.step = r.Rollout.Way, r.Rollout
	r.VirtualServices, r.Sides, r.Unread = servicesOf(c.part().Services), sidesOf(c.part().Sides), oneLine(textOf(c.Unread))
	if c.e != nil {
		r.Weights, r.Mesh, r.Pending = c.weights(), c.mesh(), c.pending()
	}
	r.Waiting, r.Findings = sentence("Waits "+c.waiting()), c.findings()
	return r
}

// composer makes the parts of one Report.
type composer struct {
	Seen
	ro   *v1alpha1.Rollout
	e    *router.Explanation // nil where the plugin refuses, or not all could be read
	way  string
	step Rollout
}

// part is all that is known of the objects.
func (c *composer) part() router.Explanation {
	if c.e != nil {
		return *c.e
	}
	return c.Part
}

// oneLine makes one sentence of an error that may have several lines.
func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.TrimRight(strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "; "), ". ")
}

// sentence makes one of a text, whatever the messages in it are.
func sentence(text string) string { return strings.ReplaceAll(oneLine(text), ". ", "; ") + "." }

func (c *composer) strategy() *v1alpha1.CanaryStrategy {
	if canary := c.ro.Spec.Strategy.Canary; canary != nil {
		return canary
	}
	return &v1alpha1.CanaryStrategy{}
}

func (c *composer) rollout() Rollout {
	status, steps := c.ro.Status, c.strategy().Steps
	one := Rollout{
		Phase: string(status.Phase), Message: oneLine(status.Message), Way: c.wayOf(), Aborted: status.Abort,
		Paused: c.ro.Spec.Paused || len(status.PauseConditions) > 0, Steps: len(steps),
		Canary: status.CurrentPodHash, Stable: status.StableRS, Replicas: 1,
	}
	if c.ro.Spec.Replicas != nil {
		one.Replicas = *c.ro.Spec.Replicas
	}
	if len(steps) == 0 {
		return one
	}
	index := 0
	if status.CurrentStepIndex != nil {
		index = max(0, min(int(*status.CurrentStepIndex), len(steps)))
	}
	one.Step, one.StepText = index+1, "all steps are done"
	if one.Way == wayRollback {
		one.StepText = "the steps are skipped"
	}
	if index < len(steps) {
		one.StepText = stepText(steps[index])
	}
	return one
}

func (c *composer) wayOf() string {
	status := c.ro.Status
	switch {
	case status.StableRS == "":
		return wayFirst
	case status.Abort:
		return wayBack
	case status.StableRS == status.CurrentPodHash && c.e != nil && c.e.Asked.Weight > 0:
		return wayBack
	case status.StableRS == status.CurrentPodHash:
		return wayIdle
	case status.PromoteFull:
		return wayFull
	case c.e != nil && c.e.SkippedSteps:
		return wayRollback
	}
	return wayCanary
}

// stepText says what a step does, by the names of its fields.
func stepText(step v1alpha1.CanaryStep) string {
	switch {
	case step.SetWeight != nil:
		return fmt.Sprintf("setWeight %d", *step.SetWeight)
	case step.Pause != nil && step.Pause.Duration != nil:
		return "pause " + durationText(*step.Pause)
	case step.Pause != nil:
		return "pause until somebody promotes it"
	case step.SetCanaryScale != nil:
		return "setCanaryScale " + scaleText(*step.SetCanaryScale)
	case step.SetHeaderRoute != nil:
		return "setHeaderRoute " + step.SetHeaderRoute.Name
	case step.SetMirrorRoute != nil:
		return "setMirrorRoute " + step.SetMirrorRoute.Name
	case step.Analysis != nil:
		return "analysis"
	case step.Experiment != nil:
		return "experiment"
	case step.Plugin != nil:
		return "plugin " + step.Plugin.Name
	}
	return "a step that says nothing"
}

// durationText is how long a pause is for the controller, which counts whole seconds; a
// number without a unit is seconds.
func durationText(pause v1alpha1.RolloutPause) string {
	written, counted := pause.Duration.String(), time.Duration(pause.DurationSeconds())*time.Second
	if counted < 0 {
		return fmt.Sprintf("%q, which the controller does not accept", written)
	}
	if _, err := strconv.Atoi(written); err == nil {
		written += "s"
	}
	if long, err := time.ParseDuration(written); err != nil || long != counted {
		return fmt.Sprintf("%s (%s for the controller)", written, counted)
	}
	return written
}

func scaleText(scale v1alpha1.SetCanaryScale) string {
	switch {
	case scale.Replicas != nil:
		return fmt.Sprintf("to %d replicas", *scale.Replicas)
	case scale.Weight != nil:
		return fmt.Sprintf("to what weight %d is worth", *scale.Weight)
	}
	return "to what the weight is worth"
}

func (c *composer) weights() *Weights {
	e := c.e
	w := &Weights{
		Max: e.Max, Asked: e.Asked.Weight, Silent: e.Asked.Silent, Uniform: e.Uniform,
		Allowed: e.Decision.Weight, Reason: string(e.Decision.Reason), Why: e.Decision.Message(), Guard: string(e.Config.Guard.Mode), Next: e.Next,
	}
	if e.Known {
		w.Applied = &e.Written
	}
	if recorded := c.ro.Status.Canary.Weights; recorded != nil {
		w.Recorded, w.Verified = &recorded.Canary.Weight, recorded.Verified
	}
	return w
}

func servicesOf(from []router.ExplainedService) []VirtualService {
	var all []VirtualService
	for _, from := range from {
		one := VirtualService{Namespace: from.Namespace, Name: from.Name, Routes: []Route{}}
		for _, route := range from.Routes {
			r := Route{Route: route.Route, Destinations: []Destination{}}
			for _, d := range route.Destinations {
				r.Destinations = append(r.Destinations, Destination(d))
			}
			one.Routes = append(one.Routes, r)
		}
		for _, managed := range from.Managed {
			one.Managed = append(one.Managed, ManagedRoute(managed))
		}
		all = append(all, one)
	}
	return all
}

func sidesOf(from []router.ExplainedSide) []Side {
	var all []Side
	for _, from := range from {
		one := Side{
			Role: "stable", Object: fmt.Sprintf("%s %s/%s", from.Kind, from.Namespace, from.Name), Subset: from.Subset,
			Hash: from.Hash, Wanted: from.Wanted, Right: from.HashErr == nil && (from.Wanted == "" || from.Hash == from.Wanted), Waits: oneLine(from.Waits),
			ReplicaSet: from.ReplicaSet, Available: from.Available, Size: from.Size, Intended: from.Intended,
			HashUnknown: oneLine(textOf(from.HashErr)), PodsUnknown: oneLine(textOf(from.PodsErr)),
		}
		if from.Canary {
			one.Role = "canary"
		}
		if from.EndpointsErr == nil {
			one.Endpoints = &from.Ready
		}
		all = append(all, one)
	}
	return all
}

func (c *composer) mesh() *Mesh {
	from := c.e.Mesh
	if from == nil {
		return nil
	}
	out := &Mesh{Waiting: oneLine(from.Waiting), Hidden: from.Hidden}
	if from.Err != nil {
		out.Error = oneLine(from.Err.Error())
		return out
	}
	for _, host := range from.Want.Routes {
		for _, route := range from.Served.Routes[host] {
			out.Routes = append(out.Routes, meshRoute(host, route))
		}
	}
	for _, name := range from.Want.Clusters {
		is := from.Served.Clusters[name]
		one := MeshCluster{Name: name, Exists: is.Exists, Endpoints: len(is.Endpoints)}
		for _, endpoint := range is.Endpoints {
			if endpoint.Healthy {
				one.Healthy++
			}
		}
		out.Clusters = append(out.Clusters, one)
	}
	return out
}

func meshRoute(host mesh.Host, route mesh.Route) MeshRoute {
	one := MeshRoute{Host: host.Name, Port: host.Port, Route: route.Name}
	for _, c := range route.Clusters {
		one.Clusters = append(one.Clusters, MeshWeights(c))
	}
	return one
}
