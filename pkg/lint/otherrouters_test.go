package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

func TestHTTPRoutesOfTheSameTwoServices(t *testing.T) {
	route := func(pairs ...string) string { return "---\n" + replaced(splitByGateway, pairs...) }
	second := "    - {name: web-canary, port: 80, weight: 10}\n"
	assertCodes(t, map[string]expect{
		"both in one rule":                          {byServices + route(), "ARI0225"},
		"with all that is left out, written":        {byServices + route("name: web-stable,", "name: web-stable, kind: Service, group: \"\", namespace: shop,"), "ARI0225"},
		"of an older version":                       {byServices + route("networking.k8s.io/v1", "networking.k8s.io/v1beta1"), "ARI0225"},
		"the canary with weight 0":                  {byServices + route("weight: 10", "weight: 0"), "ARI0225"},
		"without weights":                           {byServices + route(", weight: 10", "", ", weight: 90", ""), "ARI0225"},
		"in another namespace, and named from it":   {byServices + route("namespace: shop", "namespace: edge", "name: web-stable", "name: web-stable, namespace: shop", "name: web-canary", "name: web-canary, namespace: shop"), "ARI0225"},
		"in another namespace, of its own names":    {byServices + route("namespace: shop", "namespace: edge"), ""},
		"of Services of another namespace":          {byServices + route("name: web-stable", "name: web-stable, namespace: edge", "name: web-canary", "name: web-canary, namespace: edge"), ""},
		"each in a rule of its own":                 {byServices + route(second, "  - backendRefs:\n"+second), ""},
		"the stable alone":                          {byServices + route(second, ""), ""},
		"the canary is of another kind":             {byServices + route("name: web-canary", "name: web-canary, kind: ServiceImport, group: multicluster.x-k8s.io"), ""},
		"the canary is of another group":            {byServices + route("name: web-canary", "name: web-canary, group: example.com"), ""},
		"a kind that is no text":                    {byServices + route("name: web-canary", "name: web-canary, kind: 5"), ""},
		"rules that are none":                       {byServices + "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: web, namespace: shop}\nspec: {rules: [5, {backendRefs: [x, {name: 5}]}, {backendRefs: {}}]}\n", ""},
		"a GRPCRoute, which is not looked at":       {byServices + route("kind: HTTPRoute", "kind: GRPCRoute"), ""},
		"a split by subsets":                        {bySubsets + route("web-stable", "web", "web-canary", "web"), ""},
		"a split by subsets, with the two Services": {replaced(bySubsets, routing, twoServices+routing) + bothSides + route(), "ARI0225"},
		"ping and pong":                             {replaced(byServices, twoServices, "      pingPong: {pingService: web-canary, pongService: web-stable}\n") + route(), "ARI0225"},
		"a Rollout of the native router":            {replaced(byServices, pluginBlock, "        istio: {virtualService: {name: web}}\n") + route(), ""},
	})
}

func TestAnotherPluginBesideOurs(t *testing.T) {
	beside := replaced(byServices, "        plugins:\n", "        plugins:\n          argoproj-labs/gatewayAPI: {httpRoute: web}\n")
	assertCodes(t, map[string]expect{
		"another plugin":                    {beside, "ARI0225"},
		"another plugin without ours":       {replaced(beside, "argoproj-labs/istio", "argoproj-labs/nginx"), ""},
		"the controller's own router":       {replaced(byServices, "        plugins:\n", "        smi: {}\n        plugins:\n"), "ARI0225"},
		"one of its routers that is null":   {replaced(byServices, "        plugins:\n", "        nginx: null\n        plugins:\n"), ""},
		"another plugin and a faulty block": {replaced(beside, entry, entry+"            gaurd: {}\n"), "ARI0101 ARI0225"},
	})
	for sentence, text := range map[string]string{"alone": beside, "with its HTTPRoute": beside + "---\n" + splitByGateway} {
		found := lintText(text).Findings
		if len(found) != 1 || found[0].Field != `spec.strategy.canary.trafficRouting.plugins["argoproj-labs/gatewayAPI"]` || found[0].Line != 15 || !strings.Contains(found[0].Message, `"argoproj-labs/gatewayAPI" routes the Rollout beside "argoproj-labs/istio"`) {
			t.Errorf("%s: %+v", sentence, found)
		}
	}
}

func TestEachRuleOfAnHTTPRouteIsToldUpToABound(t *testing.T) {
	rule := "  - backendRefs: [{name: web-stable}, {name: web-canary}, {name: web-stable}]\n"
	text := byServices + "---\n" + splitByGateway[:strings.Index(splitByGateway, "  - backendRefs")]
	for n, told := range map[int]int{2: 2, 20: 20, 21: 20} {
		report := lintText(text + strings.Repeat(rule, n))
		if len(report.Findings) != told || (len(report.Notes) > 0) != (n > told) {
			t.Errorf("%d rules: %d findings, notes %q", n, len(report.Findings), report.Notes)
		}
		for i, f := range report.Findings {
			if f.Field != fmt.Sprintf("spec.rules[%d].backendRefs", i) || f.Severity != lint.Warning {
				t.Errorf("%+v", f)
			}
		}
	}
}
