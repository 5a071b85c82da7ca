package simulate

import (
	"fmt"
	"maps"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// templatePath is where the pods stand in a Rollout.
const templatePath = "spec.template.spec"

// removedOfPods are fields of a pod that the API server would refuse here.
var removedOfPods = []struct {
	why    string
	fields []string
}{
	{"the lab has no classes", []string{"priorityClassName", "priority", "preemptionPolicy", "runtimeClassName", "overhead"}},
	{"nobody opens them", []string{"schedulingGates"}},
	{"the lab has one node", []string{"nodeName"}},
}

// unheededOfPods are fields of a pod that stay and that nobody asks for.
var unheededOfPods = []struct {
	why    string
	fields []string
}{
	{"nothing is scheduled, all pods are on one node", []string{"nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "schedulerName"}},
	{"nothing is mounted; a Secret, ConfigMap or claim need not be there", []string{"volumes"}},
	{"no container runs", []string{"initContainers", "imagePullSecrets", "serviceAccountName"}},
	{"only the Ready condition counts", []string{"readinessGates"}},
	{"pods end at once", []string{"terminationGracePeriodSeconds"}},
}

// podDefaults are what an API server writes into the pods of a Deployment by itself: no
// wish of anybody.
var podDefaults = map[string]any{"schedulerName": "default-scheduler", "serviceAccountName": "default", "terminationGracePeriodSeconds": int64(30)}

// unheededOfContainers are what unheededOfPods are, of containers.
var unheededOfContainers = []struct {
	why    string
	fields []string
}{
	{"no probe is asked; a pod is ready as --startup, --spread, --failing and --broken say", []string{"readinessProbe", "startupProbe", "livenessProbe"}},
	{"no container runs, and pods end at once", []string{"lifecycle"}},
	{"no container runs; a Secret or ConfigMap need not be there", []string{"envFrom"}},
}

// template fits the pods to the lab, where kwok plays them.
func (d *deriver) template(template map[string]any) {
	fields(template, "metadata", "annotations")[lab.Gated] = "true"
	fields(template, "metadata", "labels")[revisionLabel] = "1"
	pod := fields(template, "spec")
	for _, r := range removedOfPods {
		for _, field := range r.fields {
			if pod[field] != nil && pod[field] != "" {
				d.notes.leftOut("%s.%s: %s", templatePath, field, r.why)
			}
			delete(pod, field)
		}
	}
	wishes := maps.Clone(pod)
	maps.DeleteFunc(wishes, func(field string, value any) bool {
		byDefault, known := podDefaults[field]
		return known && value == byDefault
	})
	for _, u := range unheededOfPods {
		d.unheeded(present(wishes, u.fields), templatePath, u.why)
	}
	for i, container := range list(pod["containers"]) {
		content, _ := container.(map[string]any)
		for _, u := range unheededOfContainers {
			d.unheeded(present(content, u.fields), fmt.Sprintf("%s.containers[%d]", templatePath, i), u.why)
		}
	}
	pod["nodeName"] = lab.NodeName
}

func (d *deriver) unheeded(names []string, path, why string) {
	if len(names) > 0 {
		d.notes.noEffect("%s: %s: %s", path, strings.Join(names, ", "), why)
	}
}

// present are the fields that say something.
func present(in map[string]any, names []string) []string {
	var found []string
	for _, name := range names {
		switch value := in[name].(type) {
		case nil:
		case string:
			if value != "" {
				found = append(found, name)
			}
		case []any:
			if len(value) > 0 {
				found = append(found, name)
			}
		case map[string]any:
			if len(value) > 0 {
				found = append(found, name)
			}
		default:
			found = append(found, name)
		}
	}
	return found
}
