package simulate

import (
	"errors"
	"strings"
	"testing"
)

func TestInputThatCannotBePlayedIsRefusedWithItsLine(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string // how the error begins
	}{
		"no YAML": {"a: [", "web.yaml:1: not valid YAML"},
		"a field of the wrong type": {strings.Replace(rolloutOf(nativeSubset, ""), "replicas: 10", "replicas: many", 1),
			"web.yaml:5: Rollout shop/web spec.replicas: "},
		"no Rollout": {"apiVersion: v1\nkind: Service\nmetadata: {name: web}\n", "there is no Rollout"},
		"two Rollouts": {rolloutOf(nativeSubset, "") + "\n---\n" + strings.Replace(rolloutOf(nativeSubset, ""), "name: web,", "name: other,", 1),
			"there are several Rollouts in the files, and one is played at a time: choose with one of\n    --rollout shop/web  (web.yaml:1)\n    --rollout shop/other  (web.yaml:16)"},
		"a version that there is not": {strings.Replace(rolloutOf(nativeSubset, ""), "v1alpha1", "v1beta1", 1),
			"web.yaml:1: Rollout shop/web apiVersion: there is no version argoproj.io/v1beta1 of this kind"},
		"a version of an object that is applied": {rolloutOf(nativeHost, hostServices) + "\n---\n" + strings.Replace(liveFiles, "istio.io/v1beta1", "istio.io/v1beta2", 1),
			"web.yaml:29: VirtualService shop/web apiVersion: there is no version networking.istio.io/v1beta2 of this kind"},
		"blueGreen": {strings.ReplaceAll(rolloutOf("{}", ""), "canary:", "blueGreen:"), "web.yaml:10: Rollout shop/web spec.strategy: there is no canary strategy"},
		"no trafficRouting": {strings.Replace(rolloutOf("{}", ""), "trafficRouting:", "stableMetadata:", 1),
			"web.yaml:11: Rollout shop/web spec.strategy.canary.trafficRouting: there is no trafficRouting"},
		"another router": {rolloutOf("nginx: {stableIngress: web}", hostServices), "web.yaml:12: Rollout shop/web spec.strategy.canary.trafficRouting: neither the native router's block"},
		"a faulty block": {rolloutOf(`plugins: {argoproj-labs/istio: {virtualService: {nam: web}}}`, hostServices),
			`web.yaml:13: Rollout shop/web spec.strategy.canary.trafficRouting.plugins["argoproj-labs/istio"].virtualService`},
		"a native block that no router can split by": {rolloutOf(nativeHost, ""), "web.yaml:11: Rollout shop/web spec.strategy.canary.canaryService: "},
		"a route that the VirtualService lacks": {rolloutOf(nativeSubset, "") + `
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web]
  http:
  - name: other
    route:
    - {destination: {host: web, subset: stable}, weight: 100}
    - {destination: {host: web, subset: canary}, weight: 0}
`, "web.yaml:13: Rollout shop/web spec.strategy.canary.trafficRouting.istio."},
		"a subset that the DestinationRule lacks": {rolloutOf(nativeSubset, "") + `
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec:
  host: web
  subsets: [{name: stable, labels: {app: web}}]
`, "web.yaml:13: Rollout shop/web spec.strategy.canary.trafficRouting.istio."},
		"a workloadRef to what is not there": {strings.Replace(rolloutOf(nativeSubset, ""), "  selector: {matchLabels: {app: web}}\n", "  workloadRef: {kind: Deployment, name: web}\n", 1),
			"web.yaml:6: Rollout shop/web spec.workloadRef.name: workloadRef names Deployment shop/web, which is not in the files"},
		"a workloadRef to another kind": {strings.Replace(rolloutOf(nativeSubset, ""), "  selector: {matchLabels: {app: web}}\n", "  workloadRef: {kind: StatefulSet, name: web}\n", 1),
			"web.yaml:6: Rollout shop/web spec.workloadRef.kind: workloadRef names a StatefulSet"},
		"no replicas":       {strings.Replace(rolloutOf(nativeSubset, ""), "replicas: 10", "replicas: 0", 1), "web.yaml:5: Rollout shop/web spec.replicas: 0 replicas are nothing to play"},
		"too many replicas": {strings.Replace(rolloutOf(nativeSubset, ""), "replicas: 10", "replicas: 900", 1), "web.yaml:5: Rollout shop/web spec.replicas: 900 replicas are more than the 200"},
		"a weight out of its range": {rolloutOf(nativeSubset, "      steps: [{setWeight: 120}]\n"),
			"web.yaml:14: Rollout shop/web spec.strategy.canary.steps[0].setWeight"},
		"two objects with one name": {rolloutOf(`istio: {virtualServices: [{name: web.a}, {name: web.b}]}`, hostServices),
			`web.yaml:12: Rollout shop/web spec.strategy.canary.trafficRouting: two namespaces have a VirtualService "web" each`},
		"a name with a dot": {rolloutOf(`plugins: {argoproj-labs/istio: {virtualService: {name: web.v1, namespace: shop}}}`, hostServices),
			`web.yaml:12: Rollout shop/web spec.strategy.canary.trafficRouting: the name of VirtualService "web.v1" has a dot`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Derive(inputOf(c.text), Defaults())
			if err == nil {
				t.Fatal("it was not refused")
			}
			if !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("it was refused with\n%s\nwant\n%s …", err, c.want)
			}
			var r *Refusal
			if errors.As(err, &r) && r.Problems[0].Line > 1 && r.Problems[0].Remedy == "" {
				t.Errorf("nothing says what to write instead: %s", err)
			}
		})
	}
}
