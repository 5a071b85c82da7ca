package podlabel_test

import (
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/podlabel"
)

func TestWhichLabelsComeLater(t *testing.T) {
	for key, want := range map[string]bool{
		"security.istio.io/tlsMode":              true,
		"service.istio.io/canonical-revision":    true,
		"topology.istio.io/network":              true,
		"istio.io/rev":                           true,
		"topology.kubernetes.io/zone":            true,
		"kubernetes.io/hostname":                 true,
		"failure-domain.beta.kubernetes.io/zone": true,
		"app.kubernetes.io/name":                 false,
		"app.kubernetes.io/instance":             false,
		"helm.sh/chart":                          false,
		"myistio.io/track":                       false,
		"example.k8s.io/track":                   false,
		"rollouts-pod-template-hash":             false,
		"istio.io":                               false,
		"":                                       false,
	} {
		if got := podlabel.AddedLater(key); got != want {
			t.Errorf("%q: %t", key, got)
		}
	}
}
