package config

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"sigs.k8s.io/yaml"
)

func TestEveryFieldIsDocumentedUnderItsObject(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range regexp.MustCompile(`(?m)^##+ `).Split(string(text), -1) {
		title, body, _ := strings.Cut(section, "\n")
		sections[title] = body
	}
	tests := map[string][]string{
		"Fields":              blockFields,
		"A VirtualService":    virtualServiceFields,
		"The DestinationRule": destinationRuleFields,
		"The guard":           guardFields,
		"The verification":    verifyFields,
		"The health gate":     healthGateFields,
		"The provider":        prometheusFields,
	}
	for title, fields := range tests {
		rows := regexp.MustCompile("(?m)^\\| `([A-Za-z0-9]+)` ").FindAllStringSubmatch(sections[title], -1)
		var documented []string
		for _, row := range rows {
			documented = append(documented, row[1])
		}
		if strings.Join(documented, " ") != strings.Join(fields, " ") {
			t.Errorf("section %q documents %v, the fields are %v", title, documented, fields)
		}
	}
	for _, field := range append(append([]string{}, tlsRouteFields...), tcpRouteFields...) {
		if !strings.Contains(sections["A VirtualService"], "`"+field+"`") {
			t.Errorf("%s is not documented", field)
		}
	}
}

func TestTheReadmesBlockIsValid(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(block[1], "trafficRouting:") {
			continue
		}
		found++
		ro := withBlock(nil)
		ro.Spec = v1alpha1.RolloutSpec{}
		if err := yaml.UnmarshalStrict([]byte(block[1]), &ro.Spec); err != nil {
			t.Fatal(err)
		}
		if _, err := FromRollout(ro, Options{}); err != nil {
			t.Error(err)
		}
	}
	if found != 1 {
		t.Errorf("%d blocks for a Rollout in the README, want 1", found)
	}
}
