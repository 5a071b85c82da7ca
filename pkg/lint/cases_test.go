package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// byServices is a Rollout that splits by Services, without any finding.
const byServices = `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {}
  strategy:
    canary:
      canaryService: web-canary
      stableService: web-stable
      trafficRouting:
        plugins:
          argoproj-labs/istio:
            virtualService: {name: web}
      steps:
      - setWeight: 20
---
apiVersion: v1
kind: Service
metadata: {name: web-canary, namespace: shop}
spec: {selector: {app: web}}
---
apiVersion: v1
kind: Service
metadata: {name: web-stable, namespace: shop}
spec: {selector: {app: web}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web]
  http:
  - route:
    - {destination: {host: web-stable}, weight: 100}
    - {destination: {host: web-canary}, weight: 0}
`

// expect is a text and the codes that are found in it, each once.
type expect struct {
	text  string
	codes string
}

func replaced(text string, pairs ...string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if strings.Count(text, pairs[i]) != 1 {
			panic("not once in the base: " + pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

func assertCodes(t *testing.T, cases map[string]expect) {
	t.Helper()
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			var codes []string
			report := lintText(tc.text)
			for _, f := range report.Findings {
				if !slices.Contains(codes, f.Code) {
					codes = append(codes, f.Code)
				}
			}
			slices.Sort(codes)
			if got := strings.Join(codes, " "); got != tc.codes {
				t.Errorf("found %q, want %q: %+v", got, tc.codes, report.Findings)
			}
		})
	}
}

const (
	httpRoute = "  http:\n  - route:\n    - {destination: {host: web-stable}, weight: 100}\n    - {destination: {host: web-canary}, weight: 0}\n"
	ours      = "    - {destination: {host: web-stable}, weight: 100}\n    - {destination: {host: web-canary}, weight: 0}\n"
	entry     = "            virtualService: {name: web}\n"
)

func TestRoutesOfAllKinds(t *testing.T) {
	tls := "  tls:\n  - match: [{port: 443, sniHosts: [a.example, b.example]}]\n    route:\n" + ours
	tcp := "  tcp:\n  - match: [{port: 9000}]\n    route:\n" + ours
	assertCodes(t, map[string]expect{
		"a split by Services":                             {byServices, ""},
		"a tls route by port and hosts":                   {replaced(byServices, httpRoute, tls, entry, "            virtualService: {name: web, tlsRoutes: [{port: 443, sniHosts: [b.example, a.example]}]}\n"), ""},
		"a tls route by port":                             {replaced(byServices, httpRoute, tls, entry, "            virtualService: {name: web, tlsRoutes: [{port: 443}]}\n"), ""},
		"a tls route that is not listed":                  {replaced(byServices, httpRoute, tls), ""},
		"a tls route with other hosts":                    {replaced(byServices, httpRoute, tls, entry, "            virtualService: {name: web, tlsRoutes: [{port: 443, sniHosts: [a.example]}]}\n"), "ARI0202"},
		"a tls route with another port":                   {replaced(byServices, httpRoute, tls, entry, "            virtualService: {name: web, tlsRoutes: [{port: 8443}]}\n"), "ARI0202"},
		"a tls route without a canary":                    {replaced(byServices, httpRoute, replaced(tls, "    - {destination: {host: web-canary}, weight: 0}\n", ""), entry, "            virtualService: {name: web, tlsRoutes: [{port: 443}]}\n"), "ARI0204"},
		"a tcp route by port":                             {replaced(byServices, httpRoute, tcp, entry, "            virtualService: {name: web, tcpRoutes: [{port: 9000}]}\n"), ""},
		"a tcp route with another port":                   {replaced(byServices, httpRoute, tcp, entry, "            virtualService: {name: web, tcpRoutes: [{port: 9001}]}\n"), "ARI0202"},
		"a tcp route without weights":                     {replaced(byServices, httpRoute, replaced(tcp, "weight: 100", "weight: 0")), "ARI0209"},
		"two unnamed http routes and none listed":         {replaced(byServices, httpRoute, httpRoute+"  - match: [{uri: {prefix: /x}}]\n    route:\n"+ours), "ARI0203"},
		"two http routes, all that match":                 {replaced(byServices, httpRoute, "  http:\n  - match: [{uri: {prefix: /x}}]\n    route:\n"+ours+"  - route:\n"+ours, entry, "            virtualService: {name: web, allMatchingRoutes: true}\n"), ""},
		"all that match, and none does":                   {replaced(byServices, "    - {destination: {host: web-canary}, weight: 0}\n", "", entry, "            virtualService: {name: web, allMatchingRoutes: true}\n"), "ARI0203"},
		"no routes at all":                                {replaced(byServices, httpRoute, ""), "ARI0203"},
		"the canary twice":                                {replaced(byServices, ours, ours+"    - {destination: {host: web-canary.shop}, weight: 0}\n"), "ARI0204"},
		"hosts in all their forms":                        {replaced(byServices, "{host: web-stable}", "{host: Web-Stable}", "{host: web-canary}", "{host: web-canary.shop.svc.cluster.local}"), ""},
		"hosts that Istio does not complete":              {replaced(byServices, "{host: web-stable}", "{host: web-stable.shop.svc}", "{host: web-canary}", "{host: web-canary.shop}"), "ARI0210"},
		"a negative weight":                               {replaced(byServices, "{host: web-canary}, weight: 0", "{host: web-canary}, weight: -1"), "ARI0209"},
		"negative weights that add up to 0":               {replaced(byServices, "{host: web-canary}, weight: 0", "{host: web-canary}, weight: -100"), "ARI0209"},
		"the same names in another namespace":             {replaced(byServices, "{host: web-canary}", "{host: web-canary.other.svc.cluster.local}"), "ARI0204"},
		"a header route step with tcp routes only":        {replaced(byServices, httpRoute, tcp, "      - setWeight: 20\n", header+"      - setWeight: 20\n", "        plugins:\n", "        managedRoutes: [{name: testers}]\n        plugins:\n"), "ARI0230"},
		"both Services are one":                           {replaced(byServices, "canaryService: web-canary", "canaryService: web-stable"), "ARI0101"},
		"ping-pong in place of the two Services":          {replaced(byServices, "      canaryService: web-canary\n      stableService: web-stable\n", "      pingPong: {pingService: web-canary, pongService: web-stable}\n"), ""},
		"a destination with a port of a portless Service": {replaced(byServices, "{host: web-canary}", "{host: web-canary, port: {number: 80}}"), ""},
	})
}

func TestSeveralObjects(t *testing.T) {
	twoServices := replaced(byServices, entry, "            virtualServices: [{name: web}, {name: edge}]\n")
	edge := "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: edge, namespace: shop}\nspec:\n  hosts: [shop.example]\n  gateways: [public]\n  http:\n  - match: [{uri: {exact: /a}}]\n    route:\n" + ours
	mirrored := replaced(twoServices+edge, "      - setWeight: 20\n", "      - setMirrorRoute: {name: shadow, match: [{path: {exact: /b}}]}\n      - setWeight: 20\n", "        plugins:\n", "        managedRoutes: [{name: shadow}]\n        plugins:\n")
	rules := replaced(bySubsets, "            destinationRule:\n              name: web\n              canarySubsetName: canary\n              stableSubsetName: stable\n",
		"            destinationRules:\n            - {name: web, canarySubsetName: canary, stableSubsetName: stable}\n            - {name: api, canarySubsetName: canary, stableSubsetName: stable}\n")
	api := "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: api, namespace: shop}\nspec:\n  host: api\n  subsets:\n  - {name: stable, labels: {app: web}}\n  - {name: canary, labels: {app: web}}\n" +
		"---\napiVersion: v1\nkind: Service\nmetadata: {name: api, namespace: shop}\nspec: {selector: {app: web}}\n"
	assertCodes(t, map[string]expect{
		"two VirtualServices":                                {twoServices + edge, ""},
		"two VirtualServices, one is missing":                {twoServices, "ARI0201"},
		"two VirtualServices for one host in the mesh":       {twoServices + replaced(edge, "  gateways: [public]\n", "", "[shop.example]", "[web]"), "ARI0220"},
		"two VirtualServices, a managed route fits into one": {mirrored, ""},
		"two VirtualServices, a managed route fits nowhere":  {replaced(mirrored, "  hosts: [web]\n  http:\n  - route:", "  hosts: [web]\n  http:\n  - match: [{uri: {exact: /c}}]\n    route:"), "ARI0230"},
		"two DestinationRules":                               {rules + api, ""},
		"two DestinationRules, one is missing":               {rules, "ARI0301"},
		"two DestinationRules, wrong labels in the second":   {rules + replaced(api, "canary, labels: {app: web}", "canary, labels: {app: api}"), "ARI0303"},
		"two DestinationRules for one host":                  {rules + replaced(api, "host: api", "host: web"), "ARI0309"},
	})
}

func TestOtherVirtualServices(t *testing.T) {
	second := func(pairs ...string) string { return bySubsets + "---\n" + replaced(secondService, pairs...) }
	assertCodes(t, map[string]expect{
		"the same host, exported to others only":    {second("spec:\n", "spec:\n  exportTo: [other]\n"), "ARI0220"},
		"both exported to different namespaces":     {replaced(second("spec:\n", "spec:\n  exportTo: [other]\n"), "spec:\n  hosts: [web]\n", "spec:\n  exportTo: [\".\"]\n  hosts: [web]\n"), ""},
		"the same host, for the mesh and a gateway": {second("spec:\n", "spec:\n  gateways: [public, mesh]\n"), "ARI0220"},
		"another host": {second("web.shop.svc.cluster.local", "cart"), ""},
		"the same short name in another namespace":    {second("namespace: shop", "namespace: other", "web.shop.svc.cluster.local", "web", "host: web, subset: stable", "host: web.shop.svc.cluster.local, subset: stable"), ""},
		"a gateway route with weight 0 and no subset": {bySubsets + "---\n" + replaced(gatewayRoute, "    - destination: {host: web.shop.svc.cluster.local}\n", "    - {destination: {host: web.shop.svc.cluster.local}, weight: 0}\n    - {destination: {host: web, subset: stable}, weight: 1}\n"), ""},
		"a gateway route to another Service":          {bySubsets + "---\n" + replaced(gatewayRoute, "host: web.shop", "host: cart.shop"), ""},
		"a route of ours before, with an empty match": {replaced(bySubsets, http, http+"  - {name: all, match: [{}], route: [{destination: {host: web, subset: stable}}]}\n"), "ARI0221"},
		"a route before, with any path":               {replaced(bySubsets, http, http+"  - {name: all, match: [{name: x, uri: {prefix: /}}], route: [{destination: {host: web, subset: stable}}]}\n"), "ARI0221"},
		"a route before, with any path by a regex":    {replaced(bySubsets, http, http+"  - {name: all, match: [{uri: {regex: ^/.*$}}], route: [{destination: {host: web, subset: stable}}]}\n"), "ARI0221"},
		"a route before, with a part of the paths":    {replaced(bySubsets, http, http+"  - {name: all, match: [{uri: {regex: ^/.*x$}}], route: [{destination: {host: web, subset: stable}}]}\n"), ""},
		"a mirror route of any path, by a regex":      {replaced(bySubsets, managing("{name: shadow}, {name: testers}", strings.Replace(mirror, "prefix: /", "regex: /.*", 1)+header).replace...), "ARI0231"},
		"a gateway route by subsets to the Service":   {bySubsets + "---\n" + gatewayRoute, "ARI0222"},
		"a gateway route to a side":                   {byServices + replaced(rootRoute, "host: web.shop", "host: web-stable.shop"), ""},
		"a gateway route to a Service that is not in": {byServices + "---\n" + gatewayRoute, ""},
		"a route before, any path of one gateway":     {replaced(bySubsets, http, http+"  - {name: all, match: [{uri: {prefix: /}, gateways: [x]}], route: [{destination: {host: web, subset: stable}}]}\n"), ""},
		"a route before, any path without a header":   {replaced(bySubsets, http, http+"  - {name: all, match: [{withoutHeaders: {x: {}}}], route: [{destination: {host: web, subset: stable}}]}\n"), ""},
		"a catch-all redirect before":                 {replaced(bySubsets, http, http+"  - {name: all, redirect: {uri: /x}}\n"), "ARI0221"},
		"a catch-all behind":                          {bySubsets + "  - {name: all, route: [{destination: {host: web, subset: stable}}]}\n", ""},
	})
}

func TestLabels(t *testing.T) {
	referenced := replaced(bySubsets, "  selector: {matchLabels: {app: web}}\n  template:\n    metadata:\n      labels: {app: web, version: v2}\n    spec: {}\n", "  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n")
	deployment := "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {template: {metadata: {labels: {app: web}}}}\n"
	assertCodes(t, map[string]expect{
		"the template of a Deployment":                   {referenced + deployment, ""},
		"other labels than a Deployment's template":      {referenced + replaced(deployment, "{app: web}", "{app: cart}"), "ARI0303 ARI0304"},
		"a template that is of no Deployment":            {replaced(referenced, "kind: Deployment", "kind: PodTemplate"), ""},
		"a label that Kubernetes adds":                   {replaced(bySubsets, subsets, "  - {name: canary, labels: {app: web, topology.kubernetes.io/zone: a}}\n"), ""},
		"a version label that pods do not have at all":   {replaced(bySubsets, subsets, "  - {name: canary, labels: {app: web, revision: r1}}\n"), "ARI0303"},
		"a version label with a prefix":                  {replaced(bySubsets, subsets, "  - {name: canary, labels: {app: web, app.example/version: v1}}\n", "labels: {app: web, version: v2}", "labels: {app: web, app.example/version: v2}"), "ARI0305"},
		"a version label in the Service":                 {replaced(bySubsets, "  selector: {app: web}\n", "  selector: {app: web, version: v1}\n"), "ARI0305"},
		"the hash in the pod template":                   {replaced(bySubsets, "labels: {app: web, version: v2}", "labels: {app: web, rollouts-pod-template-hash: abc}"), "ARI0306"},
		"the hash in a Service":                          {replaced(byServices, "metadata: {name: web-canary, namespace: shop}\nspec: {selector: {app: web}}", "metadata: {name: web-canary, namespace: shop}\nspec: {selector: {app: web, rollouts-pod-template-hash: abc}}"), "ARI0306"},
		"a Service without a selector":                   {replaced(bySubsets, "  selector: {app: web}\n", ""), ""},
		"a Service that selects nothing, by Services":    {replaced(byServices, "metadata: {name: web-canary, namespace: shop}\nspec: {selector: {app: web}}", "metadata: {name: web-canary, namespace: shop}\nspec: {selector: {app: cart}}"), "ARI0304"},
		"a Service of another namespace than the rule's": {replaced(bySubsets, "kind: Service\nmetadata: {name: web, namespace: shop}", "kind: Service\nmetadata: {name: web, namespace: other}"), "ARI0210"},
		"subsets that stand twice":                       {replaced(bySubsets, subsets, subsets+subsets), "ARI0302"},
		"a rule without a host":                          {replaced(bySubsets, "  host: web\n", ""), "ARI0207"},
		"hosts that are no list":                         {replaced(bySubsets, "  hosts: [web]\n", "  hosts: web\n"), "ARI0207"},
		"gateways that are no texts":                     {replaced(bySubsets, "  hosts: [web]\n", "  hosts: [web]\n  gateways: [{name: mesh}]\n"), "ARI0207"},
		"exportTo that is no list":                       {replaced(bySubsets, "  hosts: [web]\n", "  hosts: [web]\n  exportTo: .\n"), "ARI0207"},
		"a match that is no list":                        {replaced(bySubsets, http, http+"  - {match: {uri: {prefix: /x}}, route: [{destination: {host: other.example}}]}\n"), "ARI0207"},
		"a match of a text":                              {replaced(bySubsets, http, http+"  - {match: [/x], route: [{destination: {host: other.example}}]}\n"), "ARI0207"},
		"a rule whose subsets are no list":               {replaced(bySubsets, "  - name: stable\n    labels: {app: web}\n"+subsets, "    stable: {app: web}\n"), "ARI0207"},
		"a route that is no object":                      {replaced(bySubsets, http, http+"  - 3\n"), ""},
		"routes that are no list":                        {replaced(bySubsets, "  http:\n  - name: primary\n    route:\n"+stable+canary, "  http: 3\n"), "ARI0207"},
	})
}

func TestScales(t *testing.T) {
	scaled := func(text string) string { return replaced(bySubsets, steps, text) }
	window := func(history string, revisions string) string {
		return replaced(bySubsets, strategy, history+"  rollbackWindow: {revisions: "+revisions+"}\n"+strategy)
	}
	assertCodes(t, map[string]expect{
		"a scale below the weight that came before": {scaled("      - setWeight: 50\n      - setCanaryScale: {replicas: 1}\n"), "ARI0404"},
		"a scale by weight below the weight":        {scaled("      - setCanaryScale: {weight: 10}\n      - setWeight: 50\n"), "ARI0404"},
		"a scale by weight above the weight":        {scaled("      - setCanaryScale: {weight: 60}\n      - setWeight: 50\n"), ""},
		"a scale that ends before the weight":       {scaled("      - setCanaryScale: {replicas: 1}\n      - setCanaryScale: {matchTrafficWeight: true}\n      - setWeight: 50\n"), ""},
		"a scale without replicas":                  {replaced(scaled("      - setCanaryScale: {replicas: 1}\n      - setWeight: 50\n"), "  replicas: 10\n", ""), ""},
		"one pod and a weight that rounds up to it": {scaled("      - setCanaryScale: {replicas: 1}\n      - setWeight: 5\n"), ""},
		"a scale that minPodsPerReplicaSet lifts":   {replaced(scaled("      - setCanaryScale: {weight: 10}\n      - setWeight: 50\n"), routing, "      minPodsPerReplicaSet: 5\n"+routing), ""},
		"tenths of a percent":                       {replaced(scaled("      - setCanaryScale: {replicas: 1}\n      - setWeight: 100\n"), routing, routing+"        maxTrafficWeight: 1000\n"), ""},
		"a last weight of all tenths":               {replaced(scaled("      - setWeight: 1000\n"), routing, routing+"        maxTrafficWeight: 1000\n"), "ARI0403"},
		"a window and the default history":          {window("", "11"), ""},
		"a window beyond the default history":       {window("", "12"), "ARI0402"},
		"a window and no history":                   {window("  revisionHistoryLimit: 0\n", "1"), ""},
		"a window without a guard, no weights":      {replaced(window("", "3"), steps, "      - pause: {}\n", block, block+"            guard: {mode: Observe}\n"), ""},
		"a window of nothing without a guard":       {replaced(window("", "0"), block, block+"            guard: {mode: Observe}\n"), ""},
		"an autoscaler of KEDA":                     {bySubsets + "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: web, namespace: shop}\nspec: {scaleTargetRef: {kind: Rollout, name: web}}\n", "ARI0501"},
		"an autoscaler of another Rollout":          {bySubsets + "---\n" + replaced(autoscaler, "kind: Rollout, name: web", "kind: Rollout, name: cart"), ""},
		"an autoscaler of another namespace":        {bySubsets + "---\n" + replaced(autoscaler, "namespace: shop", "namespace: other"), ""},
		"an autoscaler of a Deployment":             {bySubsets + "---\n" + replaced(autoscaler, "kind: Rollout", "kind: Deployment"), ""},
		"an autoscaler and a Rollout of a cluster":  {replaced(bySubsets, "kind: Rollout\nmetadata:\n", "kind: Rollout\nmetadata:\n  uid: 1-2\n") + "---\n" + autoscaler, ""},
	})
}

func TestOtherWriters(t *testing.T) {
	set := "---\napiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: shop, namespace: argocd}\nspec:\n  template:\n    spec:\n      destination: {namespace: shop}\n"
	tracked := func(name string) string {
		return replaced(bySubsets, "kind: VirtualService\nmetadata:\n", "kind: VirtualService\nmetadata:\n  uid: 1-2\n  annotations: {\"argocd.argoproj.io/tracking-id\": \""+name+":networking.istio.io/VirtualService:shop/web\"}\n")
	}
	plain := func(name string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + ", namespace: argocd}\nspec:\n  destination: {namespace: shop}\n"
	}
	kustomized := func(more string) string {
		return replaced(bySubsets, "kind: VirtualService\nmetadata:\n", "kind: VirtualService\nmetadata:\n  labels: {kustomize.toolkit.fluxcd.io/name: apps}\n"+more)
	}
	assertCodes(t, map[string]expect{
		"an ApplicationSet without rules":                {bySubsets + set, "ARI0502"},
		"an Application with rules among others":         {bySubsets + "---\n" + plain("redis") + "---\n" + application + argoRule + "---\n" + plain("apps"), ""},
		"Applications, all without rules":                {bySubsets + "---\n" + plain("redis") + "---\n" + plain("apps"), "ARI0502"},
		"a HelmRelease with rules among others":          {bySubsets + "---\n" + strings.ReplaceAll(replaced(release, "kind: VirtualService", "kind: Deployment"), "name: shop", "name: redis") + "---\n" + release + fluxRule, ""},
		"an Application for another namespace":           {bySubsets + "---\n" + replaced(application, "{namespace: shop}", "{namespace: other}"), ""},
		"an Application, and a split by Services":        {byServices + "---\n" + application, ""},
		"the Application that tracks an object":          {tracked("shop") + "---\n" + application, "ARI0502"},
		"the Application of another namespace that does": {tracked("argocd_shop") + "---\n" + application, "ARI0502"},
		"an Application, and another one tracks it":      {tracked("cart") + "---\n" + application, ""},
		"a HelmRelease without drift detection":          {bySubsets + "---\n" + replaced(release, "mode: enabled", "mode: warn"), ""},
		"a HelmRelease for another namespace":            {bySubsets + "---\n" + replaced(release, "spec:\n", "spec:\n  targetNamespace: other\n"), ""},
		"a HelmRelease that ignores all kinds":           {bySubsets + "---\n" + release + "    - {paths: [/spec]}\n", ""},
		"a Kustomization":                                {kustomized(""), "ARI0503"},
		"a Kustomization that keeps off":                 {kustomized("  annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}\n"), ""},
		"a Kustomization that does not reconcile":        {kustomized("  annotations: {kustomize.toolkit.fluxcd.io/reconcile: disabled}\n"), ""},
	})
}

func TestAmbient(t *testing.T) {
	ambient := func(pairs ...string) string { return replaced(bySubsets, pairs...) + "---\n" + ambientNS }
	assertCodes(t, map[string]expect{
		"a namespace without a mode":     {bySubsets + "---\n" + replaced(ambientNS, "ambient", "none"), ""},
		"a waypoint that is none":        {ambient() + "    istio.io/use-waypoint: none\n", "ARI0504"},
		"a Service with a waypoint":      {ambient("kind: Service\nmetadata: {name: web, namespace: shop}", "kind: Service\nmetadata: {name: web, namespace: shop, labels: {istio.io/use-waypoint: w}}"), ""},
		"a Service that wants none":      {ambient("kind: Service\nmetadata: {name: web, namespace: shop}", "kind: Service\nmetadata: {name: web, namespace: shop, labels: {istio.io/use-waypoint: none}}") + "    istio.io/use-waypoint: w\n", "ARI0504"},
		"routes of a gateway only":       {ambient("  hosts: [web]\n", "  hosts: [shop.example]\n  gateways: [public]\n"), ""},
		"pods that opt out":              {ambient("{app: web, version: v2}", "{app: web, istio.io/dataplane-mode: none}"), ""},
		"pods with a sidecar":            {ambient("{app: web, version: v2}", "{app: web, sidecar.istio.io/inject: \"true\"}"), ""},
		"another namespace":              {bySubsets + "---\n" + replaced(ambientNS, "  name: shop\n", "  name: other\n"), ""},
		"pods that opt in by themselves": {replaced(bySubsets, "{app: web, version: v2}", "{app: web, istio.io/dataplane-mode: ambient}") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n", "ARI0504"},
	})
}

func TestExternalHosts(t *testing.T) {
	entryOf := func(host string) string {
		return "---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: cart, namespace: shop}\nspec: {hosts: [" + host + "]}\n"
	}
	external := func(host string) string {
		return replaced(bySubsets, canary, canary+"    - {destination: {host: "+host+"}, weight: 1}\n", "weight: 100", "weight: 99")
	}
	assertCodes(t, map[string]expect{
		"a host outside of the cluster":             {external("api.example.com"), "ARI0212"},
		"a host that looks like service.namespace":  {external("example.com"), "ARI0212"},
		"a Service of a namespace that is known":    {external("cart.shop"), "ARI0210 ARI0212"},
		"a ServiceEntry has the host":               {external("cart.shop") + entryOf("cart.shop"), "ARI0212"},
		"a ServiceEntry has hosts like it":          {external("cart.shop") + entryOf("\"*.shop\""), "ARI0212"},
		"a ServiceEntry has another host":           {external("cart.shop") + entryOf("cart.shop.svc.cluster.local"), "ARI0210 ARI0212"},
		"a rule for a host that is not completed":   {replaced(bySubsets, "  host: web\n", "  host: web.shop\n"), "ARI0210"},
		"a Service of another namespace, by domain": {external("cart.other.svc.cluster.local"), "ARI0210 ARI0212"},
	})
}

func TestTheBothRoutersAreJudgedByThePluginsBlock(t *testing.T) {
	text := replaced(bySubsets, routing, routing+"        istio: {virtualService: {name: web}}\n", "routes: [primary]", "routes: [primaries]")
	assertCodes(t, map[string]expect{"both": {text, "ARI0103 ARI0202"}})
}

func TestABlockFullOfFaultsIsReportedToItsEnd(t *testing.T) {
	fields := ""
	for i := range 60 {
		fields += fmt.Sprintf("            x%d: 1\n", i)
	}
	report := lintText(replaced(bySubsets, block, block+fields))
	if n := len(report.Findings); n != 51 || !strings.Contains(report.Findings[0].Message, "10 more problems") {
		t.Errorf("%d findings, the first %+v", n, report.Findings[0])
	}
}

func TestAFaultyBlockHidesNothingElseOfTheRollout(t *testing.T) {
	text := replaced(bySubsets, block, block+"            gaurd: {}\n", steps, header+steps)
	report := lintText(text)
	var codes []string
	for _, f := range report.Findings {
		codes = append(codes, f.Code)
	}
	if strings.Join(codes, " ") != "ARI0101 ARI0104" {
		t.Errorf("found %+v", report.Findings)
	}
	if got := report.Findings[0]; got.Severity != lint.Error || !strings.Contains(got.Message, "did you mean guard?") {
		t.Errorf("%+v", got)
	}
}
