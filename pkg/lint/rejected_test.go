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
