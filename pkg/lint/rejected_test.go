package lint_test

import (
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

func TestWhatTheControllerRejects(t *testing.T) {
	first := func(step string) string { return replaced(bySubsets, steps, step+steps) }
	selector := "  selector: {matchLabels: {app: web}}\n"
	assertCodes(t, map[string]expect{
		"an empty step":                            {first("      - {}\n"), "ARI0410"},
		"a step of nothing known":                  {first("      - setWaight: 5\n"), "ARI0007 ARI0410"},
		"two kinds in one step":                    {first("      - {setWeight: 5, pause: {}}\n"), "ARI0410"},
		"two kinds that the controller takes":      {first("      - {setWeight: 5, setCanaryScale: {replicas: 5}}\n"), ""},
		"a pause of seconds":                       {first("      - pause: {duration: 30}\n"), ""},
		"a pause of seconds, as a text":            {first("      - pause: {duration: \"30\"}\n"), ""},
		"a pause below 0":                          {first("      - pause: {duration: -1}\n"), "ARI0410"},
		"a pause of days":                          {first("      - pause: {duration: 1d}\n"), "ARI0410"},
		"a selector of other labels":               {replaced(bySubsets, selector, "  selector: {matchLabels: {app: webb}}\n"), "ARI0410"},
		"a selector by expressions":                {replaced(bySubsets, selector, "  selector: {matchExpressions: [{key: app, operator: In, values: [web, cart]}]}\n"), ""},
		"an expression that is none":               {replaced(bySubsets, selector, "  selector: {matchExpressions: [{key: app, operator: Is, values: [web]}]}\n"), "ARI0410"},
		"no selector":                              {replaced(bySubsets, selector, ""), "ARI0410"},
		"negative replicas":                        {replaced(bySubsets, "  replicas: 10\n", "  replicas: -1\n"), "ARI0410"},
		"both strategies":                          {replaced(bySubsets, strategy, strategy+"    blueGreen: {activeService: web}\n"), "ARI0410"},
		"fields of the wrong type hide the others": {replaced(first("      - {}\n"), "  replicas: 10\n", "  replicas: x\n"), "ARI0006"},
	})
}

// The Services of one canary, as rows change them.
const (
	twoServices = "      canaryService: web-canary\n      stableService: web-stable\n"
	canarySide  = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web-canary, namespace: shop}\nspec: {selector: {app: web}}\n"
	stableSide  = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web-stable, namespace: shop}\nspec: {selector: {app: web}}\n"
	bothSides   = canarySide + stableSide
	pluginBlock = "        plugins:\n          argoproj-labs/istio:\n            virtualService: {name: web}\n"
)

func TestTheServicesThatTheControllerRejects(t *testing.T) {
	naming := func(fields string) string { return replaced(bySubsets, routing, fields+routing) }
	native := func(block, fields string) string {
		return replaced(byServices, pluginBlock, "        istio: {virtualService: {name: web}"+block+"}\n", twoServices, fields)
	}
	pair := "      pingPong: {pingService: web-canary, pongService: web-stable}\n"
	rule := ", destinationRule: {name: web, canarySubsetName: canary, stableSubsetName: stable}"
	assertCodes(t, map[string]expect{
		"two Services beside the subsets":                     {naming(twoServices) + bothSides, ""},
		"one Service for both sides, by subsets":              {naming("      canaryService: web\n      stableService: web\n"), "ARI0410"},
		"one Service for both sides, by Services":             {replaced(byServices, "canaryService: web-canary", "canaryService: web-stable"), "ARI0101"},
		"one Service for both sides, natively":                {native(rule, "      canaryService: web-stable\n      stableService: web-stable\n"), "ARI0410"},
		"one of the two Services alone, by subsets":           {naming("      canaryService: web-canary\n") + canarySide, ""},
		"one of the two Services alone, natively by subsets":  {native(rule, "      canaryService: web-canary\n"), ""},
		"one of the two Services alone, natively by Services": {native("", "      canaryService: web-canary\n"), "ARI0410"},
		"one of the two Services alone, by Services":          {replaced(byServices, "      stableService: web-stable\n", ""), "ARI0101"},
		"no Service natively, with ping and pong":             {native("", pair), ""},
		"no Service, and nginx routes as well":                {replaced(bySubsets, routing, routing+"        nginx: {stableIngress: web}\n"), "ARI0225 ARI0410"},
		"no Service, and an ALB routes ping and pong":         {replaced(naming(pair)+bothSides, routing, routing+"        alb: {ingress: web, servicePort: 80, rootService: web}\n"), "ARI0225"},
		"no Service, and an ALB routes":                       {replaced(bySubsets, routing, routing+"        alb: {ingress: web, servicePort: 80}\n"), "ARI0225 ARI0410"},
		"ping and pong beside the subsets":                    {naming(pair) + bothSides, ""},
		"ping without pong":                                   {naming("      pingPong: {pingService: web}\n"), "ARI0101"},
		"ping without pong, beside the two Services":          {naming(twoServices+"      pingPong: {pingService: web}\n") + bothSides, "ARI0410"},
		"ping without pong, natively":                         {native("", "      pingPong: {pingService: web-canary}\n"), "ARI0410"},
		"ping and pong are one":                               {naming("      pingPong: {pingService: web, pongService: web}\n"), "ARI0101"},
		"ping and pong are one, beside the two Services":      {naming(twoServices+"      pingPong: {pingService: web, pongService: web}\n") + bothSides, "ARI0410"},
		"ping and pong are one, natively":                     {native("", "      pingPong: {pingService: web-canary, pongService: web-canary}\n"), "ARI0410"},
		"a Service that does not exist, by subsets":           {naming(twoServices) + canarySide, "ARI0410"},
		"a Service that does not exist, by Services":          {replaced(byServices, "metadata: {name: web-stable,", "metadata: {name: web-stabel,"), "ARI0210"},
		"a Service that does not exist, natively":             {replaced(native("", twoServices), "metadata: {name: web-stable,", "metadata: {name: web-stabel,"), "ARI0410"},
		"a host of a ServiceEntry in place of a Service":      {replaced(byServices, "kind: Service\nmetadata: {name: web-stable,", "kind: Service\nmetadata: {name: web-stabel,") + "---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: e, namespace: shop}\nspec: {hosts: [web-stable.shop.svc.cluster.local]}\n", "ARI0410"},
		"a selector of other labels, by subsets":              {naming(twoServices) + canarySide + replaced(stableSide, "{app: web}", "{app: cart}"), "ARI0410"},
		"a selector of other labels, by Services":             {replaced(byServices, "name: web-stable, namespace: shop}\nspec: {selector: {app: web}}", "name: web-stable, namespace: shop}\nspec: {selector: {app: cart}}"), "ARI0304"},
		"a selector by a label that canaryMetadata adds":      {replaced(byServices, twoServices, twoServices+"      canaryMetadata: {labels: {role: canary}}\n", "name: web-canary, namespace: shop}\nspec: {selector: {app: web}}", "name: web-canary, namespace: shop}\nspec: {selector: {app: web, role: canary}}"), "ARI0410"},
		"a selector of other labels, of a template elsewhere": {replaced(naming(twoServices), "  selector: {matchLabels: {app: web}}\n  template:\n    metadata:\n      labels: {app: web, version: v2}\n    spec: {}\n", "  workloadRef: {apiVersion: v1, kind: PodTemplate, name: web}\n") + canarySide + replaced(stableSide, "{app: web}", "{app: cart}"), ""},
		"a selector by the hash, as the controller writes it": {naming(twoServices) + canarySide + replaced(stableSide, "namespace: shop", "namespace: shop, uid: 1-2", "{app: web}", "{app: web, rollouts-pod-template-hash: abc}"), ""},
		"a Service that another Rollout manages":              {naming(twoServices) + canarySide + replaced(stableSide, "namespace: shop", "namespace: shop, annotations: {argo-rollouts.argoproj.io/managed-by-rollouts: cart}"), "ARI0410"},
		"a Service that this Rollout manages":                 {naming(twoServices) + canarySide + replaced(stableSide, "namespace: shop", "namespace: shop, annotations: {argo-rollouts.argoproj.io/managed-by-rollouts: web}"), ""},
		"a Service of that name, of another namespace":        {naming(twoServices) + canarySide + replaced(stableSide, "namespace: shop", "namespace: other"), "ARI0410"},
	})
}

func TestAFaultOfAServiceIsToldOnceAndInItsPlace(t *testing.T) {
	for sentence, tc := range map[string]struct{ text, object, field, says string }{
		"one for both sides": {replaced(bySubsets, routing, "      canaryService: web\n      stableService: web\n"+routing), "Rollout shop/web", "spec.strategy.canary.stableService", "Service web is named for both sides"},
		"none is named":      {replaced(byServices, pluginBlock, "        istio: {virtualService: {name: web}}\n", "      stableService: web-stable\n", ""), "Rollout shop/web", "spec.strategy.canary.stableService", "the controller needs both"},
		"pong is ping":       {replaced(byServices, twoServices, twoServices+"      pingPong: {pingService: web-canary, pongService: web-canary}\n"), "Rollout shop/web", "spec.strategy.canary.pingPong.pongService", "named for both sides"},
		"it does not exist":  {replaced(bySubsets, routing, "      canaryService: cart\n"+routing), "Rollout shop/web", "spec.strategy.canary.canaryService", "Service shop/cart does not exist"},
		"its selector":       {replaced(bySubsets, routing, "      canaryService: web-canary\n"+routing) + replaced(canarySide, "{app: web}", "{tier: x, app: web}"), "Service shop/web-canary", "spec.selector.tier", "which the pod template of Rollout shop/web does not have"},
	} {
		t.Run(sentence, func(t *testing.T) {
			found := lintText(tc.text).Findings
			if len(found) != 1 || found[0].Object != tc.object || found[0].Field != tc.field || !strings.Contains(found[0].Message, tc.says) {
				t.Errorf("found %+v", found)
			}
		})
	}
}

func TestAFieldOfTheWrongTypeIsNamedAsItIsWritten(t *testing.T) {
	first := func(step string) string { return replaced(bySubsets, steps, steps+step) }
	for sentence, tc := range map[string]struct{ text, field, says string }{
		"a number":               {replaced(bySubsets, "  replicas: 10\n", "  replicas: 1.5\n"), "spec.replicas", "a whole number (int32) is wanted"},
		"a step":                 {first("      - setWeight: a\n"), "spec.strategy.canary.steps[2].setWeight", "a text stands here"},
		"an embedded field":      {first("      - analysis: {templates: {templateName: x}}\n"), "spec.strategy.canary.steps[2].analysis.templates", "an object stands here, and a list is wanted"},
		"an entry of a list":     {first("      - analysis: {templates: [x]}\n"), "spec.strategy.canary.steps[2].analysis.templates[0]", "a text stands here, and an object is wanted"},
		"a name with dots":       {replaced(bySubsets, "{app: web, version: v2}", "{app: web, a.b/c: [1]}"), `spec.template.metadata.labels["a.b/c"]`, "a list stands here, and a text is wanted"},
		"the whole of spec":      {"apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web, generation: x}\n" + bySubsets[strings.Index(bySubsets, "spec:"):], "metadata.generation", "a whole number"},
		"two of the same kind":   {first("      - setWeight: a\n      - setWeight: b\n"), "spec.strategy.canary.steps[2].setWeight", "a text stands here"},
		"a number or a text":     {first("      - pause: {duration: [1]}\n"), "spec.strategy.canary.steps[2].pause.duration", ""},
		"more than fits into it": {replaced(bySubsets, "  replicas: 10\n", "  replicas: 99999999999\n"), "spec.replicas", "number 99999999999 stands here"},
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, f := range lintText(tc.text).Findings {
				if f.Code != "ARI0006" {
					continue
				}
				if f.Field != tc.field || !strings.Contains(f.Message, tc.says) || strings.Contains(f.Message, "v1alpha1") {
					t.Errorf("%s: %s, want %s: %s", f.Field, f.Message, tc.field, tc.says)
				}
				return
			}
			t.Error("not found")
		})
	}
}

// gated is the base with a health gate and a verification, of the fields given.
func gated(fields string) string {
	return replaced(bySubsets, block, block+"            verify: {level: Mesh}\n            healthGate: {provider: {prometheus: {"+fields+"}}}\n")
}

func TestAHealthGateIsJudgedByTheOperatorsFlagsIfTheyAreKnown(t *testing.T) {
	own := "http://prometheus.monitoring:9090"
	for sentence, tc := range map[string]struct {
		text    string
		allowed *config.PrometheusAddresses
		says    string
	}{
		"the operator's server":               {gated(""), nil, ""},
		"a server of its own":                 {gated("address: " + own), nil, ""},
		"the operator's, which has one":       {gated(""), &config.PrometheusAddresses{Default: own}, ""},
		"the operator's, which has none":      {gated(""), &config.PrometheusAddresses{Allowed: []string{own}}, "ARI0102"},
		"one of its own, which is allowed":    {gated("address: " + own), &config.PrometheusAddresses{Allowed: []string{own}}, ""},
		"one of its own, which is not":        {gated("address: http://other:9090"), &config.PrometheusAddresses{Default: own}, "ARI0102"},
		"an address that is none, in any way": {gated("address: other"), nil, "ARI0101"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var codes []string
			report := judge(lint.Options{Prometheus: tc.allowed}, tc.text)
			for _, f := range report.Findings {
				codes = append(codes, f.Code)
			}
			if strings.Join(codes, " ") != tc.says || report.Rollouts != 1 {
				t.Errorf("found %+v", report.Findings)
			}
		})
	}
}
