package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/golden"
)

// web is a Rollout that can be played.
const web = `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:7"}]}
  strategy:
    canary:
      canaryService: web-canary
      stableService: web-stable
      trafficRouting: {istio: {virtualService: {name: web}}}
`

// changed is the Rollout with one text in place of another.
func changed(old, text string) string { return strings.Replace(web, old, text, 1) }

// refusals are all that a person can get in place of a play.
var refusals = []struct{ about, args, stdin string }{
	{"no arguments", "", ""},
	{"a flag that there is not", "-f - --colour", web},
	{"a file without -f, and all faults at once", "web.yaml -o yaml --scenario chaos,rollback --pause 2h", ""},
	{"-o yaml", "-f - -o yaml", web},
	{"a scenario that there is not", "-f - --scenario chaos", web},
	{"no scenario", "-f - --scenario=", web},
	{"a duration that is none", "-f - --pause soon", web},
	{"durations out of their range", "-f - --pause 2h --startup -1s --spread 2m --timeout 1s", web},
	{"numbers out of their range", "-f - --replicas 500 --revisions 6 --scale-to 500", web},
	{"an amount that is none", "-f - --failing lots", web},
	{"a picture that has no place", "-f - --svg nowhere/web.svg", web},
	{"a file that is not there", "-f nowhere.yaml", ""},
	{"an empty stdin", "-f -", "  \n"},
	{"no YAML", "-f -", "kind: [Rollout\n"},
	{"a template that was not rendered", "-f -", "kind: Rollout\nmetadata:\n  name: {{ .Values.name }}\n"},
	{"no Rollout", "-f -", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"},
	{"a Rollout of another name", "-f - --rollout cart", web},
	{"two Rollouts", "-f -", web + "---\n" + changed("name: web,", "name: cart,")},
	{"two Rollouts of one name in two namespaces", "-f - --rollout web", web + "---\n" + changed("namespace: shop", "namespace: edge")},
	{"a version that there is not", "-f -", changed("v1alpha1", "v1beta1")},
	{"a version of Istio's kinds that there is not", "-f -", web + "---\napiVersion: networking.istio.io/v2\nkind: VirtualService\nmetadata: {name: web, namespace: shop}\nspec: {hosts: [web], http: [{route: [{destination: {host: web-stable}, weight: 100}, {destination: {host: web-canary}, weight: 0}]}]}\n"},
	{"a field of the wrong type", "-f -", changed("replicas: 10", "replicas: many")},
	{"no strategy", "-f -", changed("canary:\n", "{}\n---\nkind: Other\napiVersion: v1\nspec:\n")},
	{"blueGreen", "-f -", changed("canary:\n", "blueGreen:\n")},
	{"no traffic routing", "-f -", changed("trafficRouting: {istio: {virtualService: {name: web}}}", "maxSurge: 1")},
	{"another router", "-f -", changed("istio: {virtualService: {name: web}}", "nginx: {stableIngress: web}")},
	{"a block of the plugin with a wrong field", "-f -", changed("istio: {virtualService: {name: web}}", "plugins: {argoproj-labs/istio: {virtualService: {nam: web}}}")},
	{"no pods", "-f -", changed("replicas: 10", "replicas: 0")},
	{"a step that there is not", "-f - --scenario abort --at 99", changed("canaryService", "steps: [{setWeight: 20}, {pause: {}}]\n      canaryService")},
	{"a picture that is a folder", "-f - --svg testdata", web},
	{"too many pods", "-f -", changed("replicas: 10", "replicas: 900")},
	{"a template in a Deployment that is not in the files", "-f -", changed("selector: {matchLabels: {app: web}}", "workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}")},
}

func TestWhatCannotRunSaysWhyBeforeAnythingIsStarted(t *testing.T) {
	var all bytes.Buffer
	for _, r := range refusals {
		code, out, errOut := ran(t, r.stdin, strings.Fields(r.args)...)
		if code != exitFailed || out != "" {
			t.Errorf("%s: code %d, stdout %q", r.about, code, out)
		}
		fmt.Fprintf(&all, "# %s\n$ simulate %s\n%s\n", r.about, r.args, errOut)
	}
	golden.Compare(t, "refusals.txt", all.String())
}
