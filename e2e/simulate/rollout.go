package simulate

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
)

const (
	// revisionLabel tells the pods of one revision from those of another, before the
	// controller has given it a hash. Another value of it is another revision.
	revisionLabel = "simulate.istio.argoproj-labs.io/revision"
	// hashLabel is written by the controller and the routers.
	hashLabel = v1alpha1.DefaultRolloutUniqueLabelKey
	// instanceLabel says which controller a Rollout is for; that of the lab is for those
	// without.
	instanceLabel = "argo-rollouts.argoproj.io/controller-instance-id"
	// nativeMark is the native router's annotation on what it has written.
	nativeMark = "argo-rollouts.argoproj.io/managed-by-rollouts"
	// standIn is how long a pause lasts that stands for a step that cannot be played.
	standIn = "1s"
	// deadlineMargin is what a deadline has beyond the time that all pods take.
	deadlineMargin = 30 * time.Second
)

// clean makes of the Rollout what can be played, without its router.
func (d *deriver) clean() error {
	d.content = runtime.DeepCopyJSON(d.source.Content())
	d.content["metadata"] = d.metadata(d.content)
	d.personal(d.source)
	delete(d.content, "status")
	spec := fields(d.content, "spec")
	for _, field := range []string{"paused", "restartAt"} {
		if spec[field] != nil && spec[field] != false {
			d.notes.leftOut("spec.%s", field)
		}
		delete(spec, field)
	}
	if routing := at(spec, "strategy", "canary", "trafficRouting"); routing != nil {
		if _, is := routing.(map[string]any); !is {
			return refuse(d.source, routingPath, "it is no object", "Write the block of the native router (istio) or of the plugin (plugins) below it.")
		}
	}
	if at(spec, "strategy", "canary") == nil {
		return refuse(d.source, "spec.strategy", "there is no canary strategy", "Traffic is split by spec.strategy.canary with trafficRouting; a blueGreen Rollout has no weights to play.")
	}
	if err := d.resolve(spec); err != nil {
		return err
	}
	d.template(fields(spec, "template"))
	if err := d.size(spec); err != nil {
		return err
	}
	if err := d.findRouters(); err != nil {
		return err
	}
	return d.strategy(spec)
}

// metadata keeps what a person writes.
func (d *deriver) metadata(content map[string]any) map[string]any {
	kept := map[string]any{"name": at(content, "metadata", "name")}
	for field, drop := range map[string]func(key string) bool{
		"labels":      func(key string) bool { return key == instanceLabel },
		"annotations": serverAnnotation,
	} {
		old, _ := at(content, "metadata", field).(map[string]any)
		values := map[string]any{}
		for key, value := range old {
			switch {
			case key == router.PinAnnotation:
				d.notes.leftOut("the annotation %s: it would hold the canary for good", key)
			case !drop(key):
				values[key] = value
			}
		}
		if len(values) > 0 {
			kept[field] = values
		}
	}
	return kept
}

// personal says what of a Rollout's metadata ties it to somebody who is not in the lab.
func (d *deriver) personal(s lint.Source) {
	labels, _ := at(s.Content(), "metadata", "labels").(map[string]any)
	if id := labels[instanceLabel]; id != nil {
		d.notes.leftOut("the label %s: %v, as the lab's controller is the one for Rollouts without it", instanceLabel, id)
	}
	for _, field := range []string{"finalizers", "ownerReferences"} {
		if len(list(at(s.Content(), "metadata", field))) > 0 {
			d.notes.leftOut("metadata.%s: who reads them is not in the lab", field)
		}
	}
}

// serverAnnotation tells what controllers and kubectl write for themselves.
func serverAnnotation(key string) bool {
	return key == nativeMark || key == "kubectl.kubernetes.io/last-applied-configuration" ||
		strings.HasPrefix(key, "rollout.argoproj.io/")
}

// resolve puts the template of a workloadRef into the Rollout.
func (d *deriver) resolve(spec map[string]any) error {
	ref, there := spec["workloadRef"].(map[string]any)
	if !there {
		return nil
	}
	kind, name := fmt.Sprint(ref["kind"]), fmt.Sprint(ref["name"])
	if kind != "Deployment" {
		return refuse(d.source, "spec.workloadRef.kind", fmt.Sprintf("workloadRef names a %s, and only a Deployment's template can be read from the files", kind),
			"Write the template into the Rollout for this play.")
	}
	deployment, there := d.find("apps", "Deployment", d.source.Namespace(), name)
	if !there {
		return refuse(d.source, "spec.workloadRef.name", fmt.Sprintf("workloadRef names Deployment %s/%s, which is not in the files", d.source.Namespace(), name),
			"Give the file that has it with another -f: its pod template is needed.")
	}
	template, _ := at(deployment.Content(), "spec", "template").(map[string]any)
	selector, _ := at(deployment.Content(), "spec", "selector").(map[string]any)
	if template == nil || selector == nil {
		return refuse(deployment, "spec", "the Deployment has no template or no selector", "Write both: they are the Rollout's own.")
	}
	spec["template"], spec["selector"] = runtime.DeepCopyJSON(template), runtime.DeepCopyJSON(selector)
	delete(spec, "workloadRef")
	if how := ref["scaleDown"]; how != nil && how != "never" {
		d.notes.leftOut("spec.workloadRef.scaleDown: the Deployment and its pods are not in the lab")
	}
	d.notes.changed("spec.workloadRef: the template and the selector of %s stand in the Rollout", deployment)
	return nil
}

// size refuses what is too little or too much to be played.
func (d *deriver) size(spec map[string]any) error {
	if n := d.settings.Replicas; n > 0 {
		d.notes.changed("spec.replicas: %s, as --replicas says: %d", shown(spec["replicas"], "not set"), n)
		spec["replicas"] = int64(n)
	}
	if spec["replicas"] == nil {
		d.notes.changed("spec.replicas: not set, which is 1; an autoscaler's number has to be given with --replicas")
	}
	var ro v1alpha1.Rollout
	if err := read(d.content, &ro); err != nil {
		return refuse(d.source, "spec", err.Error(), "Correct the field's type.")
	}
	switch n := replicasOf(&ro); {
	case n < 1:
		return refuse(d.source, "spec.replicas", fmt.Sprintf("%d replicas are nothing to play", n), "Give a number with --replicas.")
	case n > MaxReplicas:
		return refuse(d.source, "spec.replicas", fmt.Sprintf("%d replicas are more than the %d that are played", n, MaxReplicas),
			"Play it smaller with --replicas: weights are shares, and behave alike.")
	}
	return d.within(&ro)
}

// within refuses a step to interfere at that the Rollout does not have: the play would
// wait for it until its end.
func (d *deriver) within(ro *v1alpha1.Rollout) error {
	if ro.Spec.Strategy.Canary == nil {
		return nil
	}
	steps := len(ro.Spec.Strategy.Canary.Steps)
	for _, flag := range []struct {
		name string
		step int
	}{{"--at", d.settings.At}, {"--scale-at", d.settings.ScaleAt}} {
		if flag.step >= max(1, steps) {
			return refuse(d.source, "spec.strategy.canary.steps", fmt.Sprintf("there are %d, and %s says step %d", steps, flag.name, flag.step), "Count them from 0.")
		}
	}
	return nil
}

func shown(value any, none string) string {
	if value == nil {
		return none
	}
	return fmt.Sprint(value)
}

// strategy shortens what lasts, and leaves out what the lab has nobody for.
func (d *deriver) strategy(spec map[string]any) error {
	canary := fields(spec, "strategy", "canary")
	delete(canary, "trafficRouting")
	if canary["analysis"] != nil {
		d.notes.leftOut("spec.strategy.canary.analysis: the lab has no metrics")
		delete(canary, "analysis")
	}
	d.unheeded(present(canary, []string{"antiAffinity"}), "spec.strategy.canary", "nothing is scheduled, all pods are on one node")
	if err := read(d.content, &d.ro); err != nil {
		return refuse(d.source, "spec", err.Error(), "Correct the field's type.")
	}
	d.steps(canary)
	most := int64(d.settings.Pause / time.Second)
	d.shorten(spec, "spec", "minReadySeconds", 0, most)
	if !d.ro.Spec.Strategy.Canary.DynamicStableScale { // the controller takes no delay beside it
		d.shorten(canary, "spec.strategy.canary", "scaleDownDelaySeconds", 30, most)
	}
	d.shorten(spec, "spec", "progressDeadlineSeconds", 600, d.deadline())
	return read(d.content, &d.ro)
}

// deadline is the longest progress deadline that is played, in seconds. A good run makes
// progress long before.
func (d *deriver) deadline() int64 {
	return int64((d.settings.ready() + d.settings.Pause + deadlineMargin) / time.Second)
}

// shorten lowers a number of seconds. Without one the controller takes its default.
func (d *deriver) shorten(in map[string]any, path, field string, byDefault, most int64) {
	now, given := in[field].(int64)
	if !given {
		now = byDefault
	}
	if now <= most {
		return
	}
	note := ""
	if !given {
		note = ", the default"
	}
	d.notes.changed("%s.%s: %d s%s, played with %d s", path, field, now, note, most)
	in[field] = most
}

// steps are those of the Rollout, with the same numbers.
func (d *deriver) steps(canary map[string]any) {
	list, _ := canary["steps"].([]any)
	steps := make([]any, len(list))
	for i, step := range list {
		content, _ := step.(map[string]any)
		steps[i] = d.step(i, content)
	}
	if list != nil {
		canary["steps"] = steps
	}
}

func (d *deriver) step(i int, step map[string]any) map[string]any {
	for _, kind := range []struct{ name, why string }{
		{"analysis", "the lab has no metrics"}, {"experiment", "experiments are not played"}, {"plugin", "the lab has no step plugins"},
	} {
		if _, there := step[kind.name]; there {
			d.notes.leftOut("spec.strategy.canary.steps[%d].%s: %s; a pause of %s stands in its place", i, kind.name, kind.why, standIn)
			return map[string]any{"pause": map[string]any{"duration": standIn}}
		}
	}
	for _, kind := range []string{"setHeaderRoute", "setMirrorRoute"} {
		if step[kind] != nil {
			d.notes.noEffect("spec.strategy.canary.steps[%d].%s: the route is written, and its requests are in no figure", i, kind)
		}
	}
	typed := d.ro.Spec.Strategy.Canary.Steps[i]
	if typed.Pause == nil {
		return step
	}
	asked, most := time.Duration(typed.Pause.DurationSeconds())*time.Second, d.settings.Pause
	switch {
	case typed.Pause.Duration == nil:
		d.notes.changed("spec.strategy.canary.steps[%d].pause: without an end, goes on by itself after %s", i, most)
	case asked > most:
		d.notes.changed("spec.strategy.canary.steps[%d].pause: %s, played with %s", i, asked, most)
	default:
		return step
	}
	return map[string]any{"pause": map[string]any{"duration": most.String()}}
}

// nativeSteps have weights of 100, as the native router knows no other; nil where the
// Rollout's own will do.
func (d *deriver) nativeSteps() []any {
	top := d.found.maxWeight
	if top == 0 || top == 100 {
		return nil
	}
	canary := fields(runtime.DeepCopyJSON(d.content), "spec", "strategy", "canary")
	steps, _ := canary["steps"].([]any)
	for _, step := range steps {
		content, _ := step.(map[string]any)
		if weight, ok := content["setWeight"].(int64); ok {
			content["setWeight"] = inHundred(weight, top)
		}
		scale, _ := content["setCanaryScale"].(map[string]any)
		if weight, ok := scale["weight"].(int64); ok {
			scale["weight"] = inHundred(weight, top)
		}
	}
	d.notes.changed("trafficRouting.maxTrafficWeight: the native router knows only 100, and gets the same shares of that, in whole parts")
	return steps
}

// inHundred is the nearest weight of 100, and none of 0 or 100 for what is neither.
func inHundred(weight, top int64) int64 {
	part := (weight*100 + top/2) / top
	if weight > 0 && weight < top {
		part = max(1, min(part, 99))
	}
	return part
}
