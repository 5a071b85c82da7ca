package simulate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said are the notes without what is said of every Rollout.
type said struct{ Changed, LeftOut, NoEffect []string }

// slots are the places of a Rollout for what a test is about, in flow style and each with
// a comma at its end.
type slots struct{ metadata, pod, container, canary, routing string }

// rolloutWith is a Rollout of which nothing is to be said but for what is in the slots.
func rolloutWith(s slots) string {
	return `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {` + s.metadata + ` name: web, namespace: shop}
spec:
  replicas: 10
  progressDeadlineSeconds: 20
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {` + s.pod + ` containers: [{` + s.container + ` name: web, image: "web:7"}]}
  strategy:
    canary:
      {` + s.canary + ` scaleDownDelaySeconds: 1, canaryService: web-canary, stableService: web-stable,
       trafficRouting: {` + s.routing + ` istio: {virtualService: {name: web}}}}
`
}

// serviceOf is a Service of the Rollout with more in its spec.
func serviceOf(spec string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: web-canary, namespace: shop}\nspec: {selector: {app: web}, ports: [{port: 80}], " + spec + "}\n"
}

func other(kind, version, name, spec string) string {
	return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: shop}\nspec: " + spec + "\n"
}

const (
	pod       = "spec.template.spec"
	container = pod + ".containers[0]"
	target    = "scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}"
)

func TestWhatIsNotPlayedAsItWasWrittenIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		slots slots
		more  string // other documents
		want  said
	}{
		"nothing to say": {},
		"a node of its own": {slots{pod: "nodeName: n1,"}, "",
			said{LeftOut: []string{pod + ".nodeName: the lab has one node"}}},
		"where pods may run": {slots{pod: `nodeSelector: {a: b}, affinity: {nodeAffinity: {}}, tolerations: [{operator: Exists}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}], schedulerName: mine,`}, "",
			said{NoEffect: []string{pod + ": nodeSelector, affinity, tolerations, topologySpreadConstraints, schedulerName: nothing is scheduled, all pods are on one node"}}},
		"fields without content":      {slots{pod: `nodeSelector: {}, tolerations: [], volumes: [], schedulerName: "", priorityClassName: "",`}, "", said{}},
		"what a server has filled in": {slots{pod: `schedulerName: default-scheduler, serviceAccountName: default, terminationGracePeriodSeconds: 30,`}, "", said{}},
		"classes, and a gate that nobody opens": {slots{pod: `priorityClassName: high, runtimeClassName: gvisor, schedulingGates: [{name: quota}],`}, "",
			said{LeftOut: []string{pod + ".priorityClassName: the lab has no classes", pod + ".runtimeClassName: the lab has no classes", pod + ".schedulingGates: nobody opens them"}}},
		"anti-affinity of the controller": {slots{canary: `antiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}},`}, "",
			said{NoEffect: []string{"spec.strategy.canary: antiAffinity: nothing is scheduled, all pods are on one node"}}},
		"volumes of Secrets and claims": {slots{pod: `volumes: [{name: a, secret: {secretName: a}}, {name: b, persistentVolumeClaim: {claimName: b}}],`}, "",
			said{NoEffect: []string{pod + ": volumes: nothing is mounted; a Secret, ConfigMap or claim need not be there"}}},
		"what containers need": {slots{container: `envFrom: [{secretRef: {name: a}}], readinessProbe: {initialDelaySeconds: 20}, livenessProbe: {}, startupProbe: {httpGet: {port: 80}}, lifecycle: {preStop: {sleep: {seconds: 5}}},`}, "",
			said{NoEffect: []string{
				container + ": readinessProbe, startupProbe: no probe is asked; a pod is ready as --startup, --spread, --failing and --broken say",
				container + ": lifecycle: no container runs, and pods end at once",
				container + ": envFrom: no container runs; a Secret or ConfigMap need not be there",
			}}},
		"the rest of a pod": {slots{pod: `initContainers: [{name: i, image: i}], serviceAccountName: web, imagePullSecrets: [{name: p}], readinessGates: [{conditionType: a/b}], terminationGracePeriodSeconds: 60,`}, "",
			said{NoEffect: []string{
				pod + ": initContainers, imagePullSecrets, serviceAccountName: no container runs",
				pod + ": readinessGates: only the Ready condition counts",
				pod + ": terminationGracePeriodSeconds: pods end at once",
			}}},
		"who the Rollout belongs to": {slots{metadata: `labels: {team: a, argo-rollouts.argoproj.io/controller-instance-id: blue}, finalizers: [x/y], ownerReferences: [{kind: App, name: a, uid: u, apiVersion: v1}],`}, "",
			said{LeftOut: []string{
				"the label argo-rollouts.argoproj.io/controller-instance-id: blue, as the lab's controller is the one for Rollouts without it",
				"metadata.finalizers: who reads them is not in the lab", "metadata.ownerReferences: who reads them is not in the lab",
			}}},
		"a Service for the outside": {slots{}, serviceOf("type: LoadBalancer, externalTrafficPolicy: Local, clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], loadBalancerClass: lb, internalTrafficPolicy: Cluster, sessionAffinity: None, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack"),
			said{Changed: []string{"Service web-canary: type LoadBalancer, played as ClusterIP"},
				LeftOut: []string{"Service web-canary: clusterIP, externalTrafficPolicy, loadBalancerClass"}}},
		"a Service on a port of the nodes": {slots{}, strings.Replace(serviceOf("type: NodePort"), "{port: 80}", "{port: 80, nodePort: 30080}", 1),
			said{Changed: []string{"Service web-canary: type NodePort, played as ClusterIP"}, LeftOut: []string{"Service web-canary: nodePort of its ports"}}},
		"a Service with wishes": {slots{}, serviceOf("publishNotReadyAddresses: true, sessionAffinity: ClientIP, clusterIP: None, trafficDistribution: PreferClose"),
			said{LeftOut: []string{"Service web-canary: publishNotReadyAddresses, sessionAffinity, trafficDistribution"}}},
		"an autoscaler": {slots{}, other("HorizontalPodAutoscaler", "autoscaling/v2", "web", "{minReplicas: 4, maxReplicas: 40, "+target+"}"),
			said{LeftOut: []string{"HorizontalPodAutoscaler web (from 4 up to 40): autoscalers are not played; what counts is spec.replicas, here 10, and --scenario scale plays a change of it"}}},
		"an autoscaler of KEDA": {slots{}, other("ScaledObject", "keda.sh/v1alpha1", "queue", "{maxReplicaCount: 20, "+target+"}"),
			said{LeftOut: []string{"ScaledObject queue (up to 20): autoscalers are not played; what counts is spec.replicas, here 10, and --scenario scale plays a change of it"}}},
		"an autoscaler of something else": {slots{}, other("HorizontalPodAutoscaler", "autoscaling/v2", "web", "{maxReplicas: 40, scaleTargetRef: {kind: Deployment, name: web}}"), said{}},
		"objects that the Rollout does not name": {slots{}, other("VirtualService", "networking.istio.io/v1", "other", "{hosts: [other], http: [{route: [{destination: {host: other}}]}]}") + "---\n" +
			other("Service", "v1", "other", "{ports: [{port: 80}]}"),
			said{LeftOut: []string{"VirtualService other, Service other: the Rollout does not lead there"}}},
		"analysis, an experiment, a step of a plugin": {slots{canary: `analysis: {templates: [{templateName: a}]}, steps: [{analysis: {templates: [{templateName: a}]}}, {experiment: {templates: [{name: a, specRef: canary}]}}, {plugin: {name: a/b}}],`}, "",
			said{LeftOut: []string{
				"spec.strategy.canary.analysis: the lab has no metrics",
				"spec.strategy.canary.steps[0].analysis: the lab has no metrics; a pause of 1s stands in its place",
				"spec.strategy.canary.steps[1].experiment: experiments are not played; a pause of 1s stands in its place",
				"spec.strategy.canary.steps[2].plugin: the lab has no step plugins; a pause of 1s stands in its place",
			}}},
		"steps for some requests only": {slots{canary: `steps: [{setWeight: 5}, {setHeaderRoute: {name: testers, match: [{headerName: a, headerValue: {exact: b}}]}}, {setMirrorRoute: {name: mirror, percentage: 5, match: [{method: {exact: GET}}]}}],`, routing: "managedRoutes: [{name: testers}, {name: mirror}],"}, "",
			said{NoEffect: []string{
				"spec.strategy.canary.steps[1].setHeaderRoute: the route is written, and its requests are in no figure",
				"spec.strategy.canary.steps[2].setMirrorRoute: the route is written, and its requests are in no figure",
			}}},
	} {
		t.Run(name, func(t *testing.T) {
			notes := derived(t, Defaults(), rolloutWith(c.slots), c.more).Notes
			if diff := cmp.Diff(c.want, said{notes.Changed, notes.LeftOut, notes.NoEffect}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABlockOfAnotherNameIsNotPlayedWithoutAWord(t *testing.T) {
	text := strings.Replace(rolloutWith(slots{}), "istio: {virtualService: {name: web}}", "plugins: {acme/mesh: {virtualService: {name: web}}}", 1)
	notes := derived(t, Defaults(), text).Notes
	if want := `plugins["acme/mesh"]: played as this plugin's block`; !strings.Contains(strings.Join(notes.Changed, "\n"), want) {
		t.Errorf("said %q, want %q", notes.Changed, want)
	}
}
