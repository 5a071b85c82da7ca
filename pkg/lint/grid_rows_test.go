package lint_test

import "strings"

// header is a header step, mirror one that copies everything.
const (
	header = "      - setHeaderRoute:\n          name: testers\n          match:\n          - {headerName: x-tester, headerValue: {exact: \"yes\"}}\n"
	mirror = "      - setMirrorRoute:\n          name: shadow\n          match:\n          - {path: {prefix: /}}\n"
	getAll = "      - setMirrorRoute:\n          name: shadow\n          match:\n          - {method: {exact: GET}, path: {prefix: /}}\n"
)

// managing is the base with managed routes and these steps before its own.
func managing(names, first string, more ...string) variant {
	return edit(append([]string{routing, routing + "        managedRoutes: [" + names + "]\n", steps, first + steps}, more...)...)
}

// Objects that rows put behind the base.
const (
	secondService = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: other, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http:
  - route:
    - destination: {host: web, subset: stable}
`
	gatewayRoute = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge, namespace: shop}
spec:
  hosts: [shop.example]
  gateways: [public]
  http:
  - route:
    - destination: {host: web.shop.svc.cluster.local}
`
	rootRoute = `---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: edge, namespace: shop}
spec:
  hosts: [shop.example]
  gateways: [public]
  http:
  - route:
    - destination: {host: web.shop.svc.cluster.local}
`
	splitByGateway = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec:
  parentRefs: [{name: public}]
  rules:
  - backendRefs:
    - {name: web-stable, port: 80, weight: 90}
    - {name: web-canary, port: 80, weight: 10}
`
	secondRule = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: other, namespace: shop}
spec:
  host: web.shop.svc.cluster.local
  subsets:
  - name: canary
    labels: {app: web}
`
	autoscaler = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}
`
	application = `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: shop, namespace: argocd}
spec:
  destination: {namespace: shop}
  ignoreDifferences:
  - {group: networking.istio.io, kind: VirtualService, jqPathExpressions: [".spec.http[]?.route[]?.weight"]}
`
	argoRule = "  - {group: networking.istio.io, kind: DestinationRule, jqPathExpressions: ['.spec.subsets[]?.labels.\"rollouts-pod-template-hash\"']}\n"
	release  = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: shop}
spec:
  driftDetection:
    mode: enabled
    ignore:
    - {paths: [/spec/http/0/route/0/weight], target: {kind: VirtualService}}
`
	fluxRule  = "    - {paths: [/spec/subsets/0/labels], target: {kind: DestinationRule}}\n"
	ambientNS = `apiVersion: v1
kind: Namespace
metadata:
  name: shop
  labels:
    istio.io/dataplane-mode: ambient
`
	secondRollout = `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: xweb, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {}
  strategy:
    canary:
      steps: [{setWeight: 10}]
      trafficRouting:
        plugins:
          argoproj-labs/istio:
            virtualService: {name: web, routes: [`
	itsRule = `]}
            destinationRule: {name: web, stableSubsetName: stable2, canarySubsetName: canary2}
`
)

// twoPairs gives a second Rollout routes and subsets of its own.
var twoPairs = []string{
	subsets, subsets + "  - {name: canary2, labels: {app: web}}\n  - {name: stable2, labels: {app: web}}\n",
	"      weight: 100\n" + canary, "      weight: 100\n" + canary +
		"  - name: second\n    match: [{uri: {prefix: /second}}]\n    route:\n    - {destination: {host: web, subset: stable2}, weight: 100}\n    - {destination: {host: web, subset: canary2}, weight: 0}\n",
	"  - name: primary\n", "  - name: primary\n    match: [{uri: {prefix: /first}}]\n",
}

// bothRules names web and other.
var bothRules = []string{
	"            destinationRule:\n              name: web\n              canarySubsetName: canary\n              stableSubsetName: stable\n",
	"            destinationRules:\n            - {name: web, canarySubsetName: canary, stableSubsetName: stable}\n            - {name: other, canarySubsetName: canary, stableSubsetName: stable}\n",
}

var grid = map[string]cell{
	"ARI0001": {
		finds: with("kind: {{ .Values.kind }}\n"), near: with("kind: ConfigMap\napiVersion: v1\ndata: {text: \"{{ .Values.kind }}\"}\n"),
		says: "render it first",
	},
	"ARI0002": {finds: with("replicas: 3\n"), near: with("# replicas: 3\n"), says: "no Kubernetes object"},
	"ARI0003": {
		finds: with("apiVersion: v1\nkind: Service\nmetadata: {generateName: web-}\n"), near: with("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: web-}\n"),
		field: "metadata.name", says: "no name",
	},
	"ARI0004": {
		finds: with("apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web}}\n"),
		near:  with("apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: other}\nspec: {selector: {app: web}}\n"),
		field: "metadata.name", says: "in web.yaml:29",
	},
	"ARI0005": {
		finds: edit("  replicas: 10\n", "  replicas: 5\n  replicas: 10\n"), near: edit("  replicas: 10\n", "  <<: {replicas: 5}\n  replicas: 10\n"),
		field: "replicas", says: "stands twice",
	},
	"ARI0006": {finds: edit("replicas: 10", "replicas: many"), near: edit("replicas: 10", "replicas: 0x0a"), field: "spec.replicas", says: "int32"},
	"ARI0007": {
		finds: edit(routing, "      trafficRoting: {}\n"+routing), near: edit("  name: web\n  namespace: shop\nspec:\n  replicas", "  name: web\n  namespace: shop\n  owner: me\nspec:\n  replicas"),
		field: "canary.trafficRoting", says: "no field",
	},
	"ARI0008": {
		finds: edit("argoproj.io/v1alpha1\nkind: Rollout", "argoproj.io/v1beta1\nkind: Rollout"), near: edit("networking.istio.io/v1\nkind: VirtualService", "networking.istio.io/v1alpha3\nkind: VirtualService"),
		field: "apiVersion", says: "there is no Rollout of argoproj.io/v1beta1, but of argoproj.io/v1alpha1",
	},
	"ARI0101": {
		finds: edit(block, block+"            guard: {mode: Offf}\n"), near: edit(block, block+"            guard: {mode: \"Off\"}\n"),
		field: "guard.mode", says: "did you mean Off?",
	},
	"ARI0102": {
		finds: with("apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web, namespace: edge}\nspec:\n  hosts: [shop.example]\n  gateways: [public]\n  http:\n  - name: primary\n    route:\n    - {destination: {host: web.shop.svc.cluster.local, subset: stable}, weight: 100}\n    - {destination: {host: web.shop.svc.cluster.local, subset: canary}}\n",
			"              name: web\n              routes", "              name: web.edge\n              routes"),
		near: variant{
			replace: []string{"              name: web\n              routes", "              name: web.edge\n              routes"},
			more:    "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web, namespace: edge}\nspec:\n  hosts: [shop.example]\n  gateways: [public]\n  http:\n  - name: primary\n    route:\n    - {destination: {host: web.shop.svc.cluster.local, subset: stable}, weight: 100}\n    - {destination: {host: web.shop.svc.cluster.local, subset: canary}}\n",
			options: allowing("edge").options,
		},
		field: "virtualService.name", says: "--allow-cross-namespace=edge",
	},
	"ARI0103": {
		finds: edit(routing, routing+"        istio: {virtualService: {name: web}}\n"), near: variant{},
		field: "trafficRouting.istio", says: "has istio and plugins",
	},
	"ARI0104": {
		finds: managing("{name: others}", header), near: managing("{name: testers}", header),
		field: "steps[0].setHeaderRoute.name", says: "add it there",
	},
	"ARI0201": {
		finds: edit("              name: web\n              routes", "              name: webb\n              routes"), near: edit("              name: web\n              routes", "              name: web.shop\n              routes"),
		field: "virtualService.name", says: "no VirtualService shop/webb",
	},
	"ARI0202": {
		finds: edit("routes: [primary]", "routes: [primaries]"), near: edit("routes: [primary]", "allMatchingRoutes: true"),
		field: "routes[0]", says: `no http route "primaries"`,
	},
	"ARI0203": {
		finds: edit("              routes: [primary]\n", "", http, http+"  - name: second\n    match: [{uri: {prefix: /x}}]\n    route: [{destination: {host: web, subset: stable}}]\n"),
		near:  edit("              routes: [primary]\n", ""),
		field: "virtualService", says: "several http routes and none listed",
	},
	"ARI0204": {
		finds: edit(canary, ""), near: edit(canary, "    - destination: {host: web.shop.svc.cluster.local, subset: canary}\n"),
		field: "http[0]", says: "no canary destination",
	},
	"ARI0205": {
		finds: edit("    route:\n"+stable+canary, "    delegate: {name: inner}\n"), near: edit(http, http+"  - {name: root, match: [{uri: {prefix: /x}}], delegate: {name: inner}}\n"),
		field: "http[0]", says: "delegates to VirtualService shop/inner",
	},
	"ARI0206": {
		finds: edit("    route:\n"+stable+canary, "    redirect: {uri: /x}\n"), near: edit(http, http+"  - {name: old, match: [{uri: {prefix: /x}}], redirect: {uri: /y}}\n"),
		field: "http[0]", says: "redirects",
	},
	"ARI0207": {
		finds: edit("      weight: 0\n", "      weight: none\n"), near: edit("      weight: 0\n", ""),
		field: "weight", says: "weight",
	},
	"ARI0208": {
		finds: edit(canary, canary+"    - {destination: {host: web, subset: old}, weight: 100}\n", subsets, subsets+"  - {name: old, labels: {app: web}}\n", "weight: 100\n    - destination: {host: web, subset: canary}", "weight: 0\n    - destination: {host: web, subset: canary}"),
		near:  edit("      weight: 100\n", "      weight: 7\n"),
		field: "http[0].route", says: "leaves nothing",
	},
	"ARI0209": {
		finds: edit("      weight: 100\n", ""), near: edit("      weight: 100\n", "      weight: 1\n"),
		field: "http[0].route", says: "no weight",
	},
	"ARI0210": {
		finds: edit("kind: Service\nmetadata: {name: web,", "kind: Service\nmetadata: {name: web1,"),
		near: with("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: web, namespace: shop}\nspec: {hosts: [web.shop.svc.cluster.local]}\n",
			"kind: Service\nmetadata: {name: web,", "kind: Service\nmetadata: {name: web1,"),
		field: "destination.host", says: "no Service for host web",
	},
	"ARI0211": {
		finds: edit("{host: web, subset: canary}", "{host: web, subset: canary, port: {number: 8080}}"), near: edit("{host: web, subset: canary}", "{host: web, subset: canary, port: {number: 80}}"),
		field: "port.number", says: "no port 8080, but [80]",
	},
	"ARI0212": {
		finds: edit("      weight: 100\n"+canary, "      weight: 80\n"+canary+"    - {destination: {host: web, subset: old}, weight: 20}\n"),
		near:  edit("      weight: 100\n"+canary, "      weight: 100\n"+canary+"    - {destination: {host: web, subset: old}, weight: 0}\n"),
		field: "route[2].weight", says: "keeps its weight of 20",
	},
	"ARI0220": {
		finds: with(secondService), near: with(secondService, "  hosts: [web]\n", "  hosts: [web]\n  gateways: [public]\n"),
		field: "spec.hosts[0]", says: "VirtualService shop/other is for host web too",
	},
	"ARI0221": {
		finds: edit(http, http+"  - {name: all, route: [{destination: {host: web, subset: stable}}]}\n"),
		near:  edit(http, http+"  - {name: all, match: [{uri: {prefix: /x}}], route: [{destination: {host: web, subset: stable}}]}\n"),
		field: "http[1]", says: "takes every request",
	},
	"ARI0222": {
		finds: with(gatewayRoute), near: with(gatewayRoute[:len(gatewayRoute)-2] + ", subset: stable}\n"),
		field: "route[0].destination", says: "without a subset",
	},
	"ARI0223": {
		finds: with(strings.ReplaceAll(secondRollout+"primary"+itsRule, "2", "")), near: with(secondRollout+"second"+itsRule, twoPairs...),
		says: "is handled by Rollout shop/web too",
	},
	"ARI0224": {
		finds: bare(byServices + rootRoute), near: bare(byServices + strings.Replace(rootRoute, "{app: web}", "{app: gateway}", 1)),
		field: "destination.host", says: "selects the pods of both sides of Rollout shop/web",
	},
	"ARI0225": {
		finds: bare(byServices + "---\n" + splitByGateway), near: bare(byServices + "---\n" + strings.Replace(splitByGateway, "web-canary", "web-next", 1)),
		field: "rules[0].backendRefs", says: "between the Services web-stable and web-canary of Rollout shop/web",
	},
	"ARI0230": {
		finds: managing("{name: shadow}", "      - setMirrorRoute: {name: shadow, match: [{path: {exact: /b}}]}\n", "  - name: primary\n", "  - name: primary\n    match: [{uri: {exact: /a}}]\n"),
		near:  managing("{name: shadow}", "      - setMirrorRoute: {name: shadow, match: [{path: {exact: /b}}]}\n", "  - name: primary\n", "  - name: primary\n    match: [{uri: {prefix: /b}}]\n"),
		field: "steps[0]", says: "no request can match both",
	},
	"ARI0231": {
		finds: managing("{name: shadow}, {name: testers}", mirror+header), near: managing("{name: shadow}, {name: testers}", getAll+header),
		field: "steps[1]", says: `"testers" behind it gets none`,
	},
	"ARI0232": {
		finds: managing("{name: testers}", header, http, http+"  - {name: testers, match: [{uri: {prefix: /x}}], route: [{destination: {host: web, subset: stable}}]}\n"),
		near:  managing("{name: testers}", header, http, http+"  - {name: tester, match: [{uri: {prefix: /x}}], route: [{destination: {host: web, subset: stable}}]}\n"),
		field: "http[0].name", says: "managedRoutes of Rollout shop/web",
	},
	"ARI0301": {
		finds: edit("              name: web\n              canary", "              name: webb\n              canary"), near: edit("              name: web\n              canary", "              namespace: shop\n              name: web\n              canary"),
		field: "destinationRule.name", says: "no DestinationRule shop/webb",
	},
	"ARI0302": {
		finds: edit("  - name: canary\n", "  - name: Canary\n"), near: edit("  - name: canary\n", "  - name: third\n    labels: {app: x}\n  - name: canary\n"),
		field: "canarySubsetName", says: `no subset "canary"`,
	},
	"ARI0303": {
		finds: edit(subsets, "  - name: canary\n    labels: {app: web, role: canary}\n"),
		near:  edit(subsets, "  - name: canary\n    labels: {app: web, role: canary}\n", routing, "      canaryMetadata: {labels: {role: canary}}\n"+routing),
		field: "labels.role", says: "have only app, version",
	},
	"ARI0304": {
		finds: edit("  selector: {app: web}\n", "  selector: {app: webb}\n"), near: edit("  selector: {app: web}\n", "  selector: {app: web, topology.istio.io/network: n1}\n"),
		field: "spec.selector.app", says: "have app=web",
	},
	"ARI0305": {
		finds: edit(subsets, "  - name: canary\n    labels: {app: web, version: v1}\n"), near: edit(subsets, "  - name: canary\n    labels: {app: web, version: v2}\n"),
		field: "labels.version", says: "have version=v2",
	},
	"ARI0306": {
		finds: edit(subsets, "  - name: canary\n    labels: {app: web, rollouts-pod-template-hash: abc}\n"),
		near:  edit(subsets, "  - name: canary\n    labels: {app: web, rollouts-pod-template-hash: abc}\n", "kind: DestinationRule\nmetadata:\n", "kind: DestinationRule\nmetadata:\n  uid: 1-2-3\n"),
		field: "rollouts-pod-template-hash", says: "names the hash abc",
	},
	"ARI0307": {
		finds: with(secondRule), near: with(strings.Replace(secondRule, "host: web.", "host: web2.", 1)),
		field: "subsets[0].name", says: "in DestinationRule shop/web too",
	},
	"ARI0308": {
		finds: edit("kind: DestinationRule\nmetadata:\n", "kind: DestinationRule\nmetadata:\n  annotations: {argo-rollouts.argoproj.io/managed-by-rollouts: web}\n"),
		near:  edit("kind: DestinationRule\nmetadata:\n", "kind: DestinationRule\nmetadata:\n  annotations: {argo-rollouts.argoproj.io/managed: web}\n"),
		field: `managed-by-rollouts"]`, says: "native router's",
	},
	"ARI0309": {
		finds: with(secondRule+"  - {name: stable, labels: {app: web}}\n", bothRules...), near: with(strings.Replace(secondRule, "host: web.", "host: cart.", 1)+"  - {name: stable, labels: {app: web}}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: cart, namespace: shop}\n", bothRules...),
		field: "destinationRules[1].name", says: "of DestinationRule shop/web",
	},
	"ARI0401": {
		finds: edit(strategy, "  rollbackWindow: {revisions: 3}\n"+strategy, block, block+"            guard: {mode: Observe}\n"), near: edit(strategy, "  rollbackWindow: {revisions: 3}\n"+strategy),
		field: "guard.mode", says: "asks for 20 at once",
	},
	"ARI0402": {
		finds: edit(strategy, "  revisionHistoryLimit: 3\n  rollbackWindow: {revisions: 5}\n"+strategy), near: edit(strategy, "  revisionHistoryLimit: 3\n  rollbackWindow: {revisions: 4}\n"+strategy),
		field: "revisions", says: "keeps 3",
	},
	"ARI0403": {
		finds: edit(steps, steps+"      - setWeight: 100\n"), near: edit(steps, "      - setWeight: 100\n"+steps),
		field: "steps[2].setWeight", says: "100 of 100",
	},
	"ARI0404": {
		finds: edit(steps, "      - setCanaryScale: {replicas: 1}\n"+steps), near: edit(steps, "      - setCanaryScale: {replicas: 2}\n"+steps),
		field: "steps[1].setWeight", says: "worth 2 of 10 pods",
	},
	"ARI0405": {
		finds: edit(routing, "      minPodsPerReplicaSet: 11\n"+routing), near: edit(routing, "      minPodsPerReplicaSet: 10\n"+routing),
		field: "minPodsPerReplicaSet", says: "11, and replicas 10",
	},
	"ARI0406": {
		finds: edit(routing, "      dynamicStableScale: true\n"+routing), near: edit(routing, "      dynamicStableScale: true\n"+routing, block, block+"            verify: {level: Mesh}\n"),
		field: "dynamicStableScale", says: "is Object",
	},
	"ARI0407": {
		finds: edit(steps, "      - experiment:\n          templates:\n            - {name: a, specRef: canary, weight: 5}\n"+steps),
		near:  edit(steps, "      - experiment:\n          templates:\n            - {name: a, specRef: canary, weight: 5, service: {name: web-a}}\n"+steps),
		field: "templates[0]", says: "no service.name",
	},
	"ARI0408": {
		finds: edit("setWeight: 20", "setWeight: 101"), near: edit("setWeight: 20", "setWeight: 101", routing, routing+"        maxTrafficWeight: 1000\n"),
		field: "steps[0].setWeight", says: "outside of 0 to 100",
	},
	"ARI0409": {
		finds: edit(routing, "      dynamicStableScale: true\n      scaleDownDelaySeconds: 5\n"+routing, block, block+"            verify: {level: Mesh}\n"),
		near:  edit(routing, "      dynamicStableScale: false\n      scaleDownDelaySeconds: 5\n"+routing),
		field: "scaleDownDelaySeconds", says: "is 5",
	},
	"ARI0410": {
		finds: edit("      - pause: {}\n", "      - pause: {duration: 5 minutes}\n"), near: edit("      - pause: {}\n", "      - pause: {duration: 5m}\n"),
		field: "steps[1].pause.duration", says: `"5 minutes" is no duration`,
	},
	"ARI0501": {
		finds: with(autoscaler), near: with(autoscaler, "  replicas: 10\n", ""),
		field: "spec.replicas", says: "HorizontalPodAutoscaler shop/web scales",
	},
	"ARI0502": {
		finds: with(application), near: with(application + argoRule),
		field: "ignoreDifferences", says: "no rule for DestinationRule",
	},
	"ARI0503": {
		finds: with(release), near: with(release + fluxRule),
		field: "ignore", says: "no rule for DestinationRule",
	},
	"ARI0504": {
		finds: with(ambientNS), near: with(ambientNS + "    istio.io/use-waypoint: waypoint\n"),
		field: "metadata.labels", says: "name a waypoint",
	},
}
