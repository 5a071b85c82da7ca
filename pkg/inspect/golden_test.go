package inspect

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scene is one situation: what it waits for, how bad that is, and all of what is shown in
// testdata.
type scene struct {
	make   func(w *world, o *Options)
	waits  string
	worst  lint.Severity
	golden bool
}

var scenes = map[string]scene{
	"running": {func(*world, *Options) {}, "Waits for a person to promote it: the pause of step 2 of 4 has no duration.", 0, true},
	"idle, and the stable subset names a revision that is gone": {func(w *world, _ *Options) {
		ro := going(rollout(""), 4)
		ro.Status.StableRS, ro.Status.Phase, ro.Status.Message = "new", v1alpha1.RolloutPhaseHealthy, ""
		ro.Status.Canary.Weights.Canary.Weight = 0
		w.store(ro)
		w.rule("new", "gone")
		w.routes(0)
		w.pods("old", 1, 0, 0)
		w.pods("new", 2, 20, 20)
	}, "Waits for the stable side to lead to revision new: ", lint.Error, false},
	"a spec that the controller refuses": {func(w *world, _ *Options) {
		ro := rollout("")
		ro.Status.Phase, ro.Status.Message = "Degraded", "InvalidSpec: no"
		ro.Status.Conditions = []v1alpha1.RolloutCondition{{Type: v1alpha1.InvalidSpec, Status: "True", Message: "no such thing"}}
		w.store(ro)
	}, "Waits for a correction, as the controller refuses the spec and does nothing: no such thing", lint.Error, false},
	"a pause that is over while the canary is held": {func(w *world, _ *Options) {
		ro := rollout("")
		step := int32(3)
		ro.Status.CurrentStepIndex, ro.Status.Canary.Weights.Canary.Weight = &step, 50
		ro.Status.PauseConditions[0].StartTime = metav1.NewTime(now.Add(-time.Hour))
		w.store(ro)
		w.routes(50)
		w.pods("new", 2, 2, 10)
	}, "Waits for the canary's pods: canary held at 10 of 50", lint.Warning, false},
	"pause with a duration": {func(w *world, _ *Options) {
		ro := rollout("")
		step := int32(3)
		ro.Status.CurrentStepIndex, ro.Status.Canary.Weights.Canary.Weight = &step, 50
		w.store(ro)
		w.routes(50)
		w.pods("new", 2, 10, 10)
	}, "Waits for the pause of step 4 of 4 of 10m0s to end, at 2026-03-04 15:25:17Z.", 0, false},
	"being scaled": {func(w *world, _ *Options) {
		w.store(going(rollout(""), 2))
		w.pods("new", 2, 4, 6)
	}, "Waits for the canary's pods, for step 3 of 4 (setWeight 50): 4 of 10 replicas available.", 0, true},
	"inconclusive": {func(w *world, _ *Options) {
		ro := rollout("")
		ro.Status.PauseConditions = append(ro.Status.PauseConditions, v1alpha1.PauseCondition{Reason: v1alpha1.PauseReasonInconclusiveAnalysis, StartTime: metav1.NewTime(now.Add(-30 * time.Second))})
		w.store(ro)
	}, "Waits for a person to promote or abort it: it is paused since 2026-03-04 15:15:47Z (InconclusiveAnalysisRun).", 0, false},
	"held": {func(w *world, _ *Options) {
		w.store(going(rollout(""), 2))
		w.pods("new", 2, 3, 10)
		w.event(9*time.Second, 1, "Warning", router.EventCanaryWeightCapped, "canary held at 15 of 20: 3 of 4 replicas available")
		w.routes(15)
	}, "Waits for the canary's pods: canary held at 15 of 20: 3 of 4 replicas available.", lint.Warning, false},
	"held in a pause": {func(w *world, _ *Options) { w.pods("new", 2, 2, 4); w.routes(10) },
		"Waits for a person to promote it: the pause of step 2 of 4 has no duration; meanwhile canary held at 10 of 20: 2 of 4 replicas available.", lint.Warning, false},
	"rollback": {rollback, "Waits for the pods of revision new, which is rolled back to within rollbackWindow: canary held at 10 of 100: 2 of 20 replicas available.", lint.Warning, true},
	"pinned": {func(w *world, _ *Options) {
		ro := rollout("")
		ro.Annotations[router.PinAnnotation] = "5"
		w.store(ro)
		w.routes(5)
		w.event(3*time.Second, 1, "Warning", router.EventCanaryWeightPinned, "canary pinned at 5 of 20 by the annotation "+router.PinAnnotation)
	}, "Waits for a person to remove the annotation istio.argoproj-labs.io/pin-canary-weight, which pins the canary at 5 where 20 of 100 are asked for.", lint.Warning, true},
	"pin that cannot be read": {func(w *world, _ *Options) {
		ro := rollout("")
		ro.Annotations[router.PinAnnotation] = "five"
		w.store(ro)
	}, `Waits for a correction: annotation istio.argoproj-labs.io/pin-canary-weight of Rollout shop/web is "five"`, lint.Error, false},
	"aborted": {func(w *world, _ *Options) {
		ro := going(rollout(""), 0)
		ro.Status.Abort, ro.Status.Phase, ro.Status.Message = true, v1alpha1.RolloutPhaseDegraded, "RolloutAborted: Rollout aborted update to revision 2"
		ro.Status.Canary.Weights.Canary.Weight = 0
		w.store(ro)
		w.routes(0)
		w.event(30*time.Second, 1, "Warning", "RolloutAborted", "Rollout aborted update to revision 2")
	}, "Waits for a person to retry it, or to set its template back: it is aborted, and all traffic is on the stable (RolloutAborted: Rollout aborted update to revision 2).", lint.Warning, true},
	"rolled back by the health gate": {func(w *world, _ *Options) {
		ro := going(rollout(gateBlock), 0)
		ro.Status.Abort = true
		ro.Annotations[gate.Annotation] = "new aborted: rolled back from 20: 5xx 4.2 % over 1 %"
		w.store(ro)
		w.routes(0)
	}, "it is aborted, and all traffic is on the stable (the health gate: rolled back from 20: 5xx 4.2 % over 1 %).", lint.Warning, true},
	"idle": {func(w *world, _ *Options) {
		ro := going(rollout(""), 4)
		ro.Status.StableRS, ro.Status.Phase, ro.Status.Message = "new", v1alpha1.RolloutPhaseHealthy, ""
		ro.Status.Canary.Weights.Canary.Weight = 0
		w.store(ro)
		w.rule("new", "new")
		w.routes(0)
		w.pods("old", 1, 0, 0)
		w.pods("new", 2, 20, 20)
	}, "Waits for nothing: revision new is stable, and has all traffic.", 0, true},
	"first deployment": {func(w *world, _ *Options) {
		ro := going(rollout(""), 0)
		ro.Status.StableRS, ro.Status.AvailableReplicas, ro.Status.Canary.Weights = "", 3, nil
		w.store(ro)
		w.routes(0)
	}, "Waits for the first revision to become stable: 3 of 20 replicas are available.", 0, false},
	"dynamicStableScale": {func(w *world, o *Options) {
		rollback(w, o)
		ro := atEnd()
		ro.Spec.Strategy.Canary.DynamicStableScale = true
		ro.Status.Canary.Weights.Canary.Weight, ro.Status.Canary.Weights.Stable.Weight = 0, 100
		w.store(ro)
		w.pods("new", 1, 2, 20)
	}, "canary held at 10 of 100: 2 of 20 replicas available", lint.Warning, true},
	"host level": {hostLevel, "Waits for a person to promote it: the pause of step 2 of 4 has no duration.", 0, true},
	"several VirtualServices": {func(w *world, _ *Options) {
		ro := rollout("")
		ro.Spec.Strategy.Canary.TrafficRouting.ManagedRoutes = []v1alpha1.MangedRoutes{{Name: "testers"}}
		ro.Spec.Strategy.Canary.Steps[0] = v1alpha1.CanaryStep{SetHeaderRoute: &v1alpha1.SetHeaderRoute{
			Name: "testers", Match: []v1alpha1.HeaderRoutingMatch{{HeaderName: "x-tester", HeaderValue: &v1alpha1.StringMatch{Exact: "yes"}}},
		}}
		ro.Spec.Strategy.Canary.TrafficRouting.Plugins[config.DefaultPluginName] = json.RawMessage(strings.Replace(subsetBlock,
			`"virtualService": {"name": "web"}`, `"virtualServices": [{"name": "web"}, {"name": "api"}]`, 1) + "}")
		ro.Status.Canary.Weights.Canary.Weight = 0
		w.store(ro)
		w.routes(0)
		w.apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: api}
spec:
  hosts: [api]
  http:
  - name: testers
    match: [{headers: {x-tester: {exact: "yes"}}}]
    route: [{destination: {host: web, subset: canary}, weight: 100}]
  - name: calls
    route:
    - {destination: {host: web, subset: stable}, weight: 90}
    - {destination: {host: web, subset: canary}, weight: 10}
`)
	}, "Waits for a person to promote it: the pause of step 2 of 4 has no duration.", lint.Warning, true},
	"mesh": {func(w *world, o *Options) {
		w.store(going(rollout(`, "verify": {"level": "Mesh"}`), 0))
		o.Router.Mesh = serving(0)
	}, "Waits for istiod to serve what is written: istiod still serves canary 0 where 20 is written (route primary of VirtualService shop/web, host web.shop.svc.cluster.local port 80).", lint.Warning, true},
	"mesh that nobody waits for": {func(_ *world, o *Options) { o.Router.Mesh = serving(0) },
		"Waits for a person to promote it: the pause of step 2 of 4 has no duration.", lint.Warning, false},
	"mesh that has it": {func(_ *world, o *Options) { o.Router.Mesh = serving(20) }, "Waits for a person to promote it", 0, false},
	"istiod is away": {func(w *world, o *Options) {
		w.store(going(rollout(`, "verify": {"level": "Mesh", "onUnavailable": "Hold"}`), 0))
		o.Router.Mesh = &istiod{err: mesh.ErrUnavailable}
	}, "Waits for istiod to serve what is written: istiod cannot be asked.", lint.Warning, true},
	"before the first request": {func(w *world, _ *Options) {
		ro := going(rollout(""), 0)
		ro.Status.Canary.Weights.Canary.Weight = 0
		w.store(ro)
		w.routes(0)
	}, "Waits for the plugin's next call, which writes 20 of 100 for the canary (it has 0).", lint.Warning, true},
	"tls and tcp": {func(w *world, _ *Options) {
		ro := rollout("")
		ro.Spec.Strategy.Canary.TrafficRouting.Plugins[config.DefaultPluginName] = json.RawMessage(strings.Replace(subsetBlock,
			`{"name": "web"}`, `{"name": "web", "tlsRoutes": [{"port": 443, "sniHosts": ["web.example.com"]}], "tcpRoutes": [{"port": 5432}]}`, 1) + "}")
		w.store(ro)
		w.apply(`
apiVersion: networking.istio.io/v1alpha3
kind: VirtualService
metadata: {name: web}
spec:
  hosts: [web]
  tls:
  - match: [{port: 443, sniHosts: [web.example.com]}]
    route:
    - {destination: {host: web, subset: stable}, weight: 80}
    - {destination: {host: web, subset: canary}, weight: 20}
  tcp:
  - match: [{port: 5432}]
    route:
    - {destination: {host: web, subset: stable}, weight: 85}
    - {destination: {host: web, subset: canary}, weight: 15}
`)
	}, "Waits for a person to promote it: the pause of step 2 of 4 has no duration.", lint.Warning, true},
	"experiment": {func(w *world, _ *Options) {
		ro := going(rollout(""), 1)
		ro.Spec.Strategy.Canary.Steps[1] = v1alpha1.CanaryStep{Experiment: &v1alpha1.RolloutExperimentStep{}}
		ro.Status.Canary.CurrentExperiment = "web-new-2-1"
		ro.Status.Canary.Weights.Additional = []v1alpha1.WeightDestination{{ServiceName: "exp-a", PodTemplateHash: "ha", Weight: 5}}
		ro.Status.Canary.Weights.Stable.Weight = 75
		w.store(ro)
		w.apply(`
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-new-2-1-a
  uid: rs-ha
  labels: {app: web, rollouts-pod-template-hash: ha}
  ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: Experiment, name: web-new-2-1, uid: uid-exp, controller: true}]
spec: {replicas: 1, template: {metadata: {labels: {app: web, rollouts-pod-template-hash: ha}}}}
status: {replicas: 1, availableReplicas: 1}
`)
		w.apply(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web}
spec:
  host: web
  subsets:
  - {name: stable, labels: {app: web, rollouts-pod-template-hash: old}}
  - {name: canary, labels: {app: web, rollouts-pod-template-hash: new}}
  - {name: exp-a, labels: {app: web, rollouts-pod-template-hash: ha}}
`)
		w.apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: web
  annotations: {istio.argoproj-labs.io/experiments: '{"shop/web": ["exp-a"]}'}
spec:
  hosts: [web]
  http:
  - name: primary
    route:
    - {destination: {host: web, subset: stable}, weight: 75}
    - {destination: {host: web, subset: canary}, weight: 20}
    - {destination: {host: web, subset: exp-a}, weight: 5}
`)
	}, "Waits for the Experiment of step 2 of 4 (experiment): web-new-2-1.", 0, true},
	"level Mesh without istiod": {func(w *world, _ *Options) { w.store(going(rollout(`, "verify": {"level": "Mesh"}`), 0)) },
		"Waits for VerifyWeight to be content with 20 of 100 (what it has found is known to the running plugin only).", 0, false},
	"health gate": {func(w *world, _ *Options) {
		w.store(going(rollout(gateBlock), 0))
		w.event(20*time.Second, 4, "Normal", router.EventCanaryHeldByHealthGate, "health gate: the first window at 20 of 100 is over 1m6s after 2026-03-04T15:15:17Z")
	}, "Waits for a healthy window of 1m0s of the health gate (last said at 2026-03-04 15:15:57Z: health gate: the first window", lint.Warning, true},
	"refused": {func(w *world, _ *Options) { w.store(rollout(`, "guard": {"mode": "Strict"}`)) },
		"Waits for a correction, as the plugin refuses every call: ", lint.Error, true},
	"no right to VirtualServices": {func(w *world, _ *Options) { w.refuse["virtualservices"] = forbidden("virtualservices") },
		"Waits for a person to promote it: the pause of step 2 of 4 has no duration; whether anything holds it beside that cannot be told: missing right: get virtualservices.networking.istio.io in namespace shop", lint.Error, true},
	"no right to DestinationRules": {func(w *world, _ *Options) {
		w.store(going(rollout(""), 0))
		w.refuse["destinationrules"] = forbidden("destinationrules")
	}, "Waits for something that cannot be told: missing right: get destinationrules.networking.istio.io in namespace shop", lint.Error, true},
	"no right to ReplicaSets": {func(w *world, _ *Options) {
		ro := going(rollout(""), 0)
		ro.Status.Abort = true
		w.store(ro)
		w.refuse["replicasets"] = forbidden("replicasets")
	}, "Waits for a person to retry it, or to set its template back: it is aborted; where its traffic is cannot be told: missing right: list replicasets.apps in namespace shop", lint.Error, true},
	"no right to the Services that are the sides": {func(w *world, o *Options) {
		hostLevel(w, o)
		w.refuse["services"] = forbidden("services")
	}, "cannot be told: missing right: get services in namespace shop", lint.Error, true},
	"no Istio": {func(w *world, _ *Options) {
		w.refuse["virtualservices"], w.refuse["destinationrules"] = unserved(), unserved()
	}, "cannot be told: the cluster does not serve destinationrules.networking.istio.io in v1, v1beta1, v1alpha3 (kubectl api-resources", lint.Error, true},
	"no VirtualService": {func(w *world, _ *Options) { w.objects = without(w.objects, "VirtualService") },
		"Waits for a correction, as the plugin refuses every call: VirtualService shop/web: ", lint.Error, true},
	"a canary with requests and without a pod": {func(w *world, _ *Options) {
		w.store(going(rollout(""), 0))
		w.pods("new", 2, 0, 4)
	}, "Waits for the plugin's next call, which writes 0 of 100 for the canary (it has 20).", lint.Error, false},
	"a label that waits": {func(w *world, _ *Options) {
		w.store(going(rollout(""), 0))
		w.rule("older", "old")
		w.pods("older", 2, 4, 4)
		w.pods("new", 3, 0, 4)
	}, "Waits for the label of subset canary: canary subset still names older, not new: its weight of 20 has to go down to 0 first, as only 0 replicas of new are available.", lint.Warning, true},
	"a label that moves": {func(w *world, _ *Options) {
		w.store(going(rollout(""), 0))
		w.rule("older", "old")
		w.pods("older", 2, 4, 4)
		w.routes(20)
	}, "Waits for the plugin's next call, which lets subset canary name new (it names older).", lint.Warning, true},
	"drift": {func(w *world, _ *Options) { w.routes(60); w.store(going(rollout(""), 0)) },
		"Waits for the plugin's next call, which writes 20 of 100 for the canary (it has 60).", lint.Warning, false},
	"a stable without its pods": {func(w *world, _ *Options) { w.store(going(rollout(""), 0)); w.pods("old", 1, 7, 20) },
		"Waits for the stable's pods: the controller waits until the stable has 16 available replicas (it has 7), and calls nobody before.", lint.Warning, false},
	"labels that match no pods": {func(w *world, _ *Options) {
		w.store(going(rollout(""), 0))
		w.apply("{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {tier: shop}}}")
	}, "Waits for a correction of labels: ReplicaSet web-new gets no traffic: on the canary side", lint.Error, false},
	"a controller that lags behind": {func(w *world, _ *Options) {
		ro := rollout("")
		ro.Generation = 8
		w.store(ro)
	}, "Waits for the controller to take in the newest spec (generation 8; it knows 7); if that lasts, see the controller's log", 0, false},
	"a refusal that the running plugin alone can tell": {func(w *world, _ *Options) {
		ro := going(rollout(""), 0)
		ro.Status.StableRS, ro.Status.AvailableReplicas, ro.Status.Canary.Weights = "", 0, nil
		w.store(ro)
		w.routes(0)
		w.event(30*time.Second, 1, "Warning", router.EventConfigurationInvalid, refusal)
	}, "Waits for a correction, as the plugin refused its calls at 2026-03-04 15:15:47Z, and nothing newer says otherwise: " + refusal + ".", lint.Error, true},
	"guard that observes": {func(w *world, _ *Options) {
		w.store(going(rollout(`, "guard": {"mode": "Observe"}`), 2))
		w.pods("new", 2, 2, 10)
	}, "Waits for the canary's pods, for step 3 of 4 (setWeight 50): 2 of 10 replicas available.", lint.Info, false},
}

const refusal = "spec.strategy.canary.trafficRouting.plugins[argoproj-labs/istio].virtualService.namespace: Forbidden: namespace edge is not allowed"

const gateBlock = `, "healthGate": {"provider": {"prometheus": {}}}`

// rollback is the incident that this project was made for.
func rollback(w *world, _ *Options) {
	w.store(atEnd())
	w.routes(10)
	w.pods("old", 2, 20, 20)
	w.pods("new", 1, 2, 20)
	w.event(8*time.Second, 1, "Normal", "SkipSteps", "Rollback to active ReplicaSets within RollbackWindow")
	w.event(5*time.Second, 2, "Warning", router.EventCanaryWeightCapped, "canary held at 10 of 100: 2 of 20 replicas available")
	w.event(2*time.Second, 3, "Warning", "WeightVerifyError", "Failed to verify weight: canary held at 10 of 100: 2 of 20 replicas available")
}

// hostLevel splits between two Services, beside a destination that is not the Rollout's.
func hostLevel(w *world, _ *Options) {
	ro := rollout("")
	ro.Spec.Strategy.Canary.CanaryService, ro.Spec.Strategy.Canary.StableService = "web-canary", "web-stable"
	ro.Spec.Strategy.Canary.TrafficRouting.Plugins[config.DefaultPluginName] = json.RawMessage(`{"virtualService": {"name": "web"}}`)
	w.store(ro)
	w.service("web-canary", "new")
	w.service("web-stable", "old")
	w.apply(`
apiVersion: networking.istio.io/v1beta1
kind: VirtualService
metadata: {name: web}
spec:
  hosts: [web.example.com]
  gateways: [edge/public]
  http:
  - route:
    - {destination: {host: web-stable}, weight: 72}
    - {destination: {host: web-canary}, weight: 18}
    - {destination: {host: web-legacy}, weight: 10}
`)
}

func atEnd() *v1alpha1.Rollout {
	ro := going(rollout(""), 4)
	ro.Spec.RollbackWindow = &v1alpha1.RollbackWindowSpec{Revisions: 3}
	minPods := int32(2)
	ro.Spec.Strategy.Canary.MinPodsPerReplicaSet = &minPods
	hundred := int32(100)
	ro.Spec.Strategy.Canary.Steps[3] = v1alpha1.CanaryStep{SetWeight: &hundred}
	ro.Status.Canary.Weights.Canary.Weight, ro.Status.AvailableReplicas = 100, 22
	return ro
}

func TestWhatItWaitsFor(t *testing.T) {
	for name, sc := range scenes {
		t.Run(name, func(t *testing.T) {
			w, o := running(t), options()
			sc.make(w, &o)
			seen, err := Look(t.Context(), w, o, "shop", "web")
			if err != nil {
				t.Fatal(err)
			}
			r := Compose(seen)
			if !strings.Contains(r.Waiting, sc.waits) || r.Worst() != sc.worst {
				t.Errorf("%s\nand should: %s\nfindings: %v, want the worst to be %s", r.Waiting, sc.waits, r.Findings, sc.worst)
			}
			if sc.golden {
				assertGolden(t, strings.ReplaceAll(name, " ", "-"), r)
			}
		})
	}
}

// assertGolden holds all three forms of a Report against testdata.
func assertGolden(t *testing.T, name string, r Report) {
	t.Helper()
	var text bytes.Buffer
	r.Table(&text, Plain)
	for _, line := range strings.Split(text.String(), "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("blanks at the end of %q", line)
		}
	}
	asJSON, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.JSONToYAML(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	for ending, got := range map[string]string{".txt": text.String(), ".json": string(asJSON) + "\n", ".yaml": string(asYAML)} {
		path := filepath.Join("testdata", name+ending)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (go test ./pkg/inspect -update writes it):\n%s", path, diff)
		}
	}
}
