package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

func TestARolloutThatIsNotRoutedAsAFieldIsMisspeltSaysSo(t *testing.T) {
	assertCodes(t, map[string]expect{
		"trafficRouting":          {replaced(bySubsets, "trafficRouting:", "trafficRoutng:"), "ARI0007"},
		"canary":                  {replaced(bySubsets, "    canary:", "    canry:"), "ARI0007"},
		"plugins":                 {replaced(bySubsets, "        plugins:", "        plugin:"), "ARI0007"},
		"a list for an object":    {replaced(bySubsets, "trafficRouting:", "trafficRouting: []\n      was:"), "ARI0006"},
		"nothing, and no routing": {"apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec: {strategy: {canary: {}}}\n", ""},
	})
}

func TestAMatchOfAHeaderHasAValue(t *testing.T) {
	match := `headerValue: {exact: "yes"}`
	withHeader := replaced(bySubsets, steps, header+steps)
	withHeader = replaced(withHeader, "      trafficRouting:\n", "      trafficRouting:\n        managedRoutes: [{name: testers}]\n")
	for sentence, text := range map[string]string{
		"none":       replaced(withHeader, ", "+match, ""),
		"an empty":   replaced(withHeader, match, "headerValue: {}"),
		"a text: ''": replaced(withHeader, match, `headerValue: {exact: ""}`),
	} {
		t.Run(sentence, func(t *testing.T) {
			if !slices.ContainsFunc(lintText(text).Findings, func(f lint.Finding) bool {
				return f.Code == "ARI0104" && f.Field == "spec.strategy.canary.steps[0].setHeaderRoute.match[0].headerValue" && strings.Contains(f.Message, "set one of")
			}) {
				t.Errorf("found %+v", lintText(text).Findings)
			}
		})
	}
	if slices.ContainsFunc(lintText(withHeader).Findings, func(f lint.Finding) bool { return f.Code == "ARI0104" }) {
		t.Errorf("with one: %+v", lintText(withHeader).Findings)
	}
}

func TestEachStepIsJudgedByItself(t *testing.T) {
	broken := "      - setHeaderRoute: {name: nobody, match: [{headerName: x, headerValue: {exact: a}}]}\n"
	text := replaced(bySubsets, steps, broken+strings.Repeat("      - setWeight: 5\n", 1000)+broken)
	var fields []string
	for _, f := range lintText(text).Findings {
		if f.Code == "ARI0104" {
			fields = append(fields, f.Field)
		}
	}
	if len(fields) != 2 || !strings.Contains(fields[0], "steps[0]") || !strings.Contains(fields[1], "steps[1001]") {
		t.Errorf("found %q", fields)
	}
}
