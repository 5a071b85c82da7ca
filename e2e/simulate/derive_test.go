package simulate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// rolloutOf is a Rollout as a person writes it: with a routing block, and more below
// canary if need be.
func rolloutOf(routing, canary string) string {
	return `apiVersion: argoproj.io/v1alpha1
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
      trafficRouting:
        ` + routing + `
` + canary
}

const (
	nativeSubset = `istio: {virtualService: {name: web, routes: [primary]}, destinationRule: {name: web, canarySubsetName: canary, stableSubsetName: stable}}`
	pluginSubset = `plugins: {argoproj-labs/istio: {virtualService: {name: web, routes: [primary]}, destinationRule: {name: web, canarySubsetName: canary, stableSubsetName: stable}}}`
	nativeHost   = `istio: {virtualService: {name: web}}`
	pluginHost   = `plugins: {argoproj-labs/istio: {virtualService: {name: web}}}`
	hostServices = "      canaryService: web-canary\n      stableService: web-stable\n"
	someSteps    = "      steps: [{setWeight: 20}, {pause: {}}]\n"
)

func inputOf(texts ...string) lint.Input {
	var in lint.Input
	in.Read("web.yaml", []byte(strings.Join(texts, "\n---\n")))
	return in
}

func derived(t *testing.T, s Settings, texts ...string) Plan {
	t.Helper()
	plan, err := Derive(inputOf(texts...), s)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// object finds what a variant applies; nil if it does not.
func (v Variant) object(kind, name string) map[string]any {
	for _, object := range v.Objects {
		if object["kind"] == kind && at(object, "metadata", "name") == name {
			return object
		}
	}
	return nil
}

// asJSON makes two ways to write a value comparable.
func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func canaryOf(v Variant) map[string]any {
	return fields(v.object("Rollout", "web"), "spec", "strategy", "canary")
}

func TestEachRouterGetsItsBlockWhicheverWasWritten(t *testing.T) {
	const subsets = `"destinationRule":{"canarySubsetName":"canary","name":"web","stableSubsetName":"stable"}`
	for name, c := range map[string]struct{ rollout, native, plugin string }{
		"native to plugin, subsets": {rolloutOf(nativeSubset, someSteps),
			`{"istio":{` + subsets + `,"virtualService":{"name":"web","routes":["primary"]}}}`,
			`{"plugins":{"argoproj-labs/istio":{` + subsets + `,"virtualService":{"name":"web","routes":["primary"]}}}}`},
		"plugin to native, subsets": {rolloutOf(pluginSubset, someSteps),
			`{"istio":{` + subsets + `,"virtualService":{"name":"web","routes":["primary"]}}}`,
			`{"plugins":{"argoproj-labs/istio":{` + subsets + `,"virtualService":{"name":"web","routes":["primary"]}}}}`},
		"native to plugin, Services": {rolloutOf(nativeHost, hostServices),
			`{"istio":{"virtualService":{"name":"web"}}}`, `{"plugins":{"argoproj-labs/istio":{"virtualService":{"name":"web"}}}}`},
		"plugin to native, Services": {rolloutOf(pluginHost, hostServices),
			`{"istio":{"virtualService":{"name":"web"}}}`, `{"plugins":{"argoproj-labs/istio":{"virtualService":{"name":"web"}}}}`},
		"the guard is the plugin's alone": {rolloutOf(`plugins: {argoproj-labs/istio: {virtualService: {name: web}, guard: {minRaise: 10}}}`, hostServices),
			`{"istio":{"virtualService":{"name":"web"}}}`,
			`{"plugins":{"argoproj-labs/istio":{"guard":{"minRaise":10},"virtualService":{"name":"web"}}}}`},
		"namespaces are left out": {rolloutOf(`plugins: {argoproj-labs/istio: {virtualService: {name: web, namespace: edge}}}`, hostServices),
			`{"istio":{"virtualService":{"name":"web"}}}`, `{"plugins":{"argoproj-labs/istio":{"virtualService":{"name":"web"}}}}`},
		"several VirtualServices, other protocols": {
			rolloutOf(`istio: {virtualServices: [{name: web, tlsRoutes: [{port: 443, sniHosts: [a.example]}]}, {name: raw.edge, tcpRoutes: [{port: 3306}]}]}`, hostServices),
			`{"istio":{"virtualServices":[{"name":"web","tlsRoutes":[{"port":443,"sniHosts":["a.example"]}]},{"name":"raw","tcpRoutes":[{"port":3306}]}]}}`,
			`{"plugins":{"argoproj-labs/istio":{"virtualServices":[{"name":"web","tlsRoutes":[{"port":443,"sniHosts":["a.example"]}]},{"name":"raw","tcpRoutes":[{"port":3306}]}]}}}`},
		"the plugin under another name, with another router": {
			rolloutOf(`{nginx: {stableIngress: web}, plugins: {acme/istio: {virtualService: {name: web}}}, managedRoutes: [{name: testers}]}`, hostServices),
			`{"istio":{"virtualService":{"name":"web"}},"managedRoutes":[{"name":"testers"}]}`,
			`{"managedRoutes":[{"name":"testers"}],"plugins":{"argoproj-labs/istio":{"virtualService":{"name":"web"}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			plan := derived(t, Defaults(), c.rollout)
			if diff := cmp.Diff(c.native, asJSON(t, canaryOf(plan.Native)["trafficRouting"])); diff != "" {
				t.Errorf("native:\n%s", diff)
			}
			if diff := cmp.Diff(c.plugin, asJSON(t, canaryOf(plan.Plugin)["trafficRouting"])); diff != "" {
				t.Errorf("plugin:\n%s", diff)
			}
		})
	}
}

func TestAllMatchingRoutesAreNamedToTheNativeRouter(t *testing.T) {
	plan := derived(t, Defaults(), rolloutOf(`plugins: {argoproj-labs/istio: {virtualService: {name: web, allMatchingRoutes: true}}}`, hostServices), `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web]
  http:
  - {name: a, route: [{destination: {host: web-stable.shop.svc.cluster.local}, weight: 100}, {destination: {host: web-canary}, weight: 0}]}
  - {name: b, route: [{destination: {host: web-stable}}]}
  - {name: c, route: [{destination: {host: web-canary}, weight: 0}, {destination: {host: web-stable}, weight: 100}]}
`)
	want := `{"istio":{"virtualService":{"name":"web","routes":["a","c"]}}}`
	if diff := cmp.Diff(want, asJSON(t, canaryOf(plan.Native)["trafficRouting"])); diff != "" {
		t.Error(diff)
	}
}

func TestAPinIsLeftOutAndSaid(t *testing.T) {
	plan := derived(t, Defaults(), strings.Replace(rolloutOf(pluginSubset, someSteps), "namespace: shop}",
		`namespace: shop, annotations: {kept: "yes", istio.argoproj-labs.io/pin-canary-weight: "5"}}`, 1))
	for name, v := range map[string]Variant{"native": plan.Native, "plugin": plan.Plugin} {
		annotations, _ := at(v.object("Rollout", "web"), "metadata", "annotations").(map[string]any)
		if annotations["kept"] != "yes" || annotations["istio.argoproj-labs.io/pin-canary-weight"] != nil {
			t.Errorf("%s: annotations %v", name, annotations)
		}
	}
	if text := fmt.Sprint(plan.Notes.LeftOut); !strings.Contains(text, "pin-canary-weight") {
		t.Errorf("left out: %s", text)
	}
}

func TestTheNativeRouterGetsTheSameSharesOfAHundred(t *testing.T) {
	plan := derived(t, Defaults(), rolloutOf("maxTrafficWeight: 1000\n        "+pluginSubset, "      steps: [{setCanaryScale: {weight: 200}}, {setWeight: 5}, {setWeight: 50}, {setWeight: 999}, {setWeight: 1000}]\n"))
	for name, c := range map[string]struct {
		variant Variant
		steps   string
		top     int32
	}{
		"native": {plan.Native, `[{"setCanaryScale":{"weight":20}},{"setWeight":1},{"setWeight":5},{"setWeight":99},{"setWeight":100}]`, 100},
		"plugin": {plan.Plugin, `[{"setCanaryScale":{"weight":200}},{"setWeight":5},{"setWeight":50},{"setWeight":999},{"setWeight":1000}]`, 1000},
	} {
		if diff := cmp.Diff(c.steps, asJSON(t, canaryOf(c.variant)["steps"])); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if got := c.variant.Subject.Max(); got != c.top {
			t.Errorf("%s: weights are of %d, want %d", name, got, c.top)
		}
	}
	if got := at(canaryOf(plan.Native), "trafficRouting", "maxTrafficWeight"); got != nil {
		t.Errorf("the native router got maxTrafficWeight %v, which the controller refuses", got)
	}
}

func TestWhatIsMissingIsMadeUpAndSaid(t *testing.T) {
	for name, c := range map[string]struct {
		texts   []string
		notes   []string
		objects map[string]string // "Kind name" to its spec
		subject timeline.Subject
	}{
		"subsets": {[]string{rolloutOf(nativeSubset, someSteps)},
			[]string{
				"DestinationRule web for the host web with the subsets stable and canary, as it is not in the files",
				`VirtualService web with the http route "primary", as it is not in the files`,
				"Service web, as it is not in the files",
			},
			map[string]string{
				"DestinationRule web": `{"host":"web","subsets":[{"labels":{"app":"web"},"name":"stable"},{"labels":{"app":"web"},"name":"canary"}]}`,
				"VirtualService web": `{"hosts":["web"],"http":[{"name":"primary","route":[{"destination":{"host":"web","subset":"stable"},"weight":100},` +
					`{"destination":{"host":"web","subset":"canary"},"weight":0}]}]}`,
				"Service web": `{"ports":[{"name":"http-80","port":80}],"selector":{"app":"web"}}`,
			},
			timeline.Subject{Rollout: "web", VirtualServices: []string{"web"}, Routes: []string{"primary"}, DestinationRule: "web", CanarySubset: "canary", StableSubset: "stable"}},
		"two Services, and the routes of other protocols": {
			[]string{rolloutOf(`istio: {virtualService: {name: web, tlsRoutes: [{port: 443}], tcpRoutes: [{port: 3306}]}}`, hostServices)},
			[]string{
				"VirtualService web with 2 tls and tcp routes, as it is not in the files",
				"Service web-canary, as it is not in the files", "Service web-stable, as it is not in the files",
			},
			map[string]string{
				"VirtualService web": `{"hosts":["web-stable"],` +
					`"tcp":[{"match":[{"port":3306}],"route":[{"destination":{"host":"web-stable"},"weight":100},{"destination":{"host":"web-canary"},"weight":0}]}],` +
					`"tls":[{"match":[{"port":443,"sniHosts":["*"]}],"route":[{"destination":{"host":"web-stable"},"weight":100},{"destination":{"host":"web-canary"},"weight":0}]}]}`,
			},
			timeline.Subject{Rollout: "web", VirtualServices: []string{"web"}, CanaryService: "web-canary", StableService: "web-stable"}},
		"the rule and the Service for the host and the port of the routes that are there": {[]string{rolloutOf(pluginSubset, someSteps), `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.example.com]
  http:
  - name: primary
    route:
    - {destination: {host: front.shop.svc.cluster.local, subset: stable, port: {number: 8080}}, weight: 100}
    - {destination: {host: front.shop.svc.cluster.local, subset: canary, port: {number: 8080}}, weight: 0}`},
			[]string{
				"DestinationRule web for the host front with the subsets stable and canary, as it is not in the files",
				"Service front, as it is not in the files",
			},
			map[string]string{"Service front": `{"ports":[{"name":"http-8080","port":8080}],"selector":{"app":"web"}}`},
			timeline.Subject{Rollout: "web", VirtualServices: []string{"web"}, Routes: []string{"primary"}, DestinationRule: "web", CanarySubset: "canary", StableSubset: "stable"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := derived(t, Defaults(), c.texts...)
			if diff := cmp.Diff(c.notes, plan.Notes.MadeUp); diff != "" {
				t.Errorf("said to be made up:\n%s", diff)
			}
			for router, v := range map[string]Variant{"native": plan.Native, "plugin": plan.Plugin} {
				for object, spec := range c.objects {
					kind, name, _ := strings.Cut(object, " ")
					if diff := cmp.Diff(spec, asJSON(t, v.object(kind, name)["spec"])); diff != "" {
						t.Errorf("%s: %s:\n%s", router, object, diff)
					}
				}
				if diff := cmp.Diff(c.subject, v.Subject); diff != "" {
					t.Errorf("%s: what is recorded:\n%s", router, diff)
				}
			}
		})
	}
}

// liveFiles are as a cluster gives them, in mid-canary.
const liveFiles = `
apiVersion: v1
kind: Service
metadata: {name: web-canary, namespace: shop, uid: x, resourceVersion: "7", annotations: {argo-rollouts.argoproj.io/managed-by-rollouts: web, team: a}}
spec:
  type: LoadBalancer
  clusterIP: 10.0.0.7
  selector: {app: web, rollouts-pod-template-hash: abc}
  ports: [{port: 80, nodePort: 30080}]
status: {loadBalancer: {}}
---
apiVersion: networking.istio.io/v1beta1
kind: VirtualService
metadata: {name: web, namespace: shop, generation: 3}
spec:
  hosts: [web]
  http:
  - route:
    - {destination: {host: web-stable.shop}, weight: 80}
    - {destination: {host: web-canary.shop.svc.cluster.local}, weight: 20}
    mirror: {host: mirror.example.com}
`

func TestWhatIsThereIsKeptWithoutWhatAClusterHasPutIntoIt(t *testing.T) {
	plan := derived(t, Defaults(), rolloutOf(nativeHost, hostServices), liveFiles)
	for object, want := range map[string]string{
		"Service web-canary": `{"apiVersion":"v1","kind":"Service","metadata":{"annotations":{"team":"a"},"name":"web-canary"},` +
			`"spec":{"ports":[{"port":80}],"selector":{"app":"web"}}}`,
		"VirtualService web": `{"apiVersion":"networking.istio.io/v1beta1","kind":"VirtualService","metadata":{"name":"web"},"spec":{"hosts":["web"],"http":[` +
			`{"mirror":{"host":"mirror.example.com"},"route":[{"destination":{"host":"web-stable"},"weight":80},{"destination":{"host":"web-canary"},"weight":20}]}]}}`,
	} {
		kind, name, _ := strings.Cut(object, " ")
		if diff := cmp.Diff(want, asJSON(t, plan.Plugin.object(kind, name))); diff != "" {
			t.Errorf("%s:\n%s", object, diff)
		}
	}
	if diff := cmp.Diff([]string{"Service web-stable, as it is not in the files"}, plan.Notes.MadeUp); diff != "" {
		t.Errorf("made up:\n%s", diff)
	}
	want := []string{
		"spec.strategy.canary.scaleDownDelaySeconds: 30 s, the default, played with 3 s",
		"spec.progressDeadlineSeconds: 600 s, the default, played with 40 s",
		"hosts of Services: by their plain names, as the namespace is another",
		"Service web-canary: type LoadBalancer, played as ClusterIP",
	}
	if diff := cmp.Diff(want, plan.Notes.Changed); diff != "" {
		t.Errorf("changed:\n%s", diff)
	}
}

func TestWhatLastsIsShortenedAndWhatCannotBePlayedLeftOutAndSaid(t *testing.T) {
	text := `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop}
spec:
  replicas: 4
  minReadySeconds: 20
  progressDeadlineSeconds: 25
  paused: true
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {priorityClassName: high, containers: [{name: web, image: "web:7"}]}
  strategy:
    canary:
      scaleDownDelaySeconds: 2
      analysis: {templates: [{templateName: success}]}
      trafficRouting:
        plugins:
          argoproj-labs/istio:
            virtualService: {name: web, routes: [primary]}
            destinationRule: {name: web, canarySubsetName: canary, stableSubsetName: stable}
            guard: {maxHold: 1h}
            verify: {level: Mesh}
            healthGate: {provider: {prometheus: {address: "http://prometheus:9090"}}}
      steps:
      - setWeight: 10
      - pause: {}
      - analysis: {templates: [{templateName: success}]}
      - pause: {duration: 1h}
      - pause: {duration: 2}
      - experiment: {templates: [{name: a, specRef: canary}]}
      - plugin: {name: acme/step}
      - setCanaryScale: {replicas: 1}
`
	plan := derived(t, Defaults(), text)
	want := Notes{
		MadeUp: plan.Notes.MadeUp,
		Changed: []string{
			"spec.strategy.canary.steps[1].pause: without an end, goes on by itself after 3s",
			"spec.strategy.canary.steps[3].pause: 1h0m0s, played with 3s",
			"spec.minReadySeconds: 20 s, played with 3 s",
			"guard.maxHold: 1h, played as the progress deadline",
		},
		LeftOut: []string{
			"spec.paused",
			"spec.template.spec.priorityClassName: the lab has no classes",
			"spec.strategy.canary.analysis: the lab has no metrics",
			"spec.strategy.canary.steps[2].analysis: the lab has no metrics; a pause of 1s stands in its place",
			"spec.strategy.canary.steps[5].experiment: experiments are not played; a pause of 1s stands in its place",
			"spec.strategy.canary.steps[6].plugin: the lab has no step plugins; a pause of 1s stands in its place",
			"verify: the lab has no mesh to ask, and its rights are those of the stock role",
			"healthGate: the lab has no metrics",
		},
		Lint: plan.Notes.Lint,
	}
	if diff := cmp.Diff(want, plan.Notes); diff != "" {
		t.Error(diff)
	}
	steps := `[{"setWeight":10},{"pause":{"duration":"3s"}},{"pause":{"duration":"1s"}},{"pause":{"duration":"3s"}},{"pause":{"duration":2}},` +
		`{"pause":{"duration":"1s"}},{"pause":{"duration":"1s"}},{"setCanaryScale":{"replicas":1}}]`
	for router, v := range map[string]Variant{"native": plan.Native, "plugin": plan.Plugin} {
		spec := fields(v.object("Rollout", "web"), "spec")
		if diff := cmp.Diff(steps, asJSON(t, canaryOf(v)["steps"])); diff != "" {
			t.Errorf("%s: steps:\n%s", router, diff)
		}
		got := []any{spec["minReadySeconds"], spec["progressDeadlineSeconds"], canaryOf(v)["scaleDownDelaySeconds"], spec["paused"], canaryOf(v)["analysis"]}
		if diff := cmp.Diff([]any{int64(3), int64(25), int64(2), nil, nil}, got); diff != "" {
			t.Errorf("%s: times:\n%s", router, diff)
		}
	}
}

func TestPodsAreKeptButForWhoPlaysThem(t *testing.T) {
	plan := derived(t, Defaults(), rolloutOf(nativeSubset, someSteps))
	want := `{"metadata":{"annotations":{"lab/gate":"true"},"labels":{"app":"web","simulate.istio.argoproj-labs.io/revision":"1"}},` +
		`"spec":{"containers":[{"image":"web:7","name":"web"}],"nodeName":"lab-node"}}`
	if diff := cmp.Diff(want, asJSON(t, at(plan.Native.object("Rollout", "web"), "spec", "template"))); diff != "" {
		t.Error(diff)
	}
}

func TestTheTemplateOfAWorkloadRefComesFromTheFiles(t *testing.T) {
	ro := strings.Replace(rolloutOf(nativeSubset, someSteps), `  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:7"}]}
`, "  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n", 1)
	deployment := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:8"}]}
`
	plan := derived(t, Defaults(), ro, deployment)
	spec := fields(plan.Plugin.object("Rollout", "web"), "spec")
	if spec["workloadRef"] != nil || asJSON(t, spec["selector"]) != `{"matchLabels":{"app":"web"}}` || !strings.Contains(asJSON(t, spec["template"]), "web:8") {
		t.Errorf("the Rollout is %s", asJSON(t, spec))
	}
	if said := "spec.workloadRef: the template and the selector of Deployment shop/web stand in the Rollout"; !strings.Contains(strings.Join(plan.Notes.Changed, "\n"), said) {
		t.Errorf("%q is not said in %q", said, plan.Notes.Changed)
	}
}

func TestTheRolloutToPlayIsChosenByName(t *testing.T) {
	other := strings.Replace(rolloutOf(nativeSubset, ""), "name: web,", "name: other,", 1)
	edge := strings.Replace(rolloutOf(nativeSubset, ""), "namespace: shop}", "namespace: edge}", 1)
	three := strings.Join([]string{rolloutOf(nativeSubset, ""), other, edge}, "\n---\n")
	for wanted, want := range map[string]string{
		"other": "Rollout shop/other", "shop/other": "Rollout shop/other", "edge/web": "Rollout edge/web", "shop/web": "Rollout shop/web",
	} {
		s := Defaults()
		s.Rollout = wanted
		if plan := derived(t, s, three); plan.Rollout != want {
			t.Errorf("--rollout %s: chosen was %s in line %d", wanted, plan.Rollout, plan.Line)
		}
	}
	for wanted, want := range map[string]string{
		"third":      `there is no Rollout "third" in the files; they have` + "\n    --rollout shop/web  (web.yaml:1)\n    --rollout shop/other  (web.yaml:16)\n    --rollout edge/web  (web.yaml:31)",
		"edge/other": `there is no Rollout "edge/other" in the files`,
		"web":        `there are Rollouts "web" in several namespaces in the files, and one is played at a time: choose with one of` + "\n    --rollout shop/web  (web.yaml:1)\n    --rollout edge/web  (web.yaml:31)",
		"":           "there are several Rollouts in the files",
	} {
		s := Defaults()
		s.Rollout = wanted
		if _, err := Derive(inputOf(three), s); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("--rollout %q: it said\n%v\nwant\n%s", wanted, err, want)
		}
	}
}

func TestFaultsOfARolloutOfTheSameNameElsewhereAreNotThisOnes(t *testing.T) {
	faulty := strings.Replace(rolloutOf(nativeSubset, "      steps: [{setWeight: 120}]\n"), "namespace: shop}", "namespace: edge}", 1)
	both := []string{rolloutOf(nativeSubset, someSteps), faulty}
	s := Defaults()
	s.Rollout = "shop/web"
	if plan := derived(t, s, both...); plan.Rollout != "Rollout shop/web" {
		t.Errorf("chosen was %s", plan.Rollout)
	}
	s.Rollout = "edge/web"
	if _, err := Derive(inputOf(both...), s); err == nil || !strings.Contains(err.Error(), "steps[0].setWeight") {
		t.Errorf("the faulty one: %v", err)
	}
}

func TestARefusalNamesSomeOfManyRollouts(t *testing.T) {
	var texts []string
	for i := range listed + 3 {
		texts = append(texts, strings.Replace(rolloutOf(nativeSubset, ""), "name: web,", fmt.Sprintf("name: web-%d,", i), 1))
	}
	_, err := Derive(inputOf(texts...), Defaults())
	if err == nil || strings.Count(err.Error(), "--rollout") != listed || !strings.HasSuffix(err.Error(), "\n    and 3 more") {
		t.Errorf("it said %v", err)
	}
}

func TestReplicasAreThoseOfTheFlag(t *testing.T) {
	s := Defaults()
	s.Replicas = 7
	plan := derived(t, s, rolloutOf(nativeSubset, ""))
	if got := at(plan.Native.object("Rollout", "web"), "spec", "replicas"); got != int64(7) || plan.replicas != 7 {
		t.Errorf("replicas are %v, the plan's %d", got, plan.replicas)
	}
	if want := "spec.replicas: 10, as --replicas says: 7"; plan.Notes.Changed[0] != want {
		t.Errorf("said was %q, want %q", plan.Notes.Changed[0], want)
	}
}

func TestDerivationChangesNothingOfTheInput(t *testing.T) {
	in := inputOf(rolloutOf(pluginHost, hostServices), liveFiles)
	before := fmt.Sprint(contents(in))
	if _, err := Derive(in, Defaults()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, fmt.Sprint(contents(in))); diff != "" {
		t.Error(diff)
	}
}

func contents(in lint.Input) []map[string]any {
	var all []map[string]any
	for _, s := range in.Sources() {
		all = append(all, s.Content())
	}
	return all
}
