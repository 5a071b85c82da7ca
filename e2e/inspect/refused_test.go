package inspect

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// abroad is a first deployment whose routes and subsets are in another namespace.
const abroad = `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: cart}
spec:
  replicas: 6
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: "cart:1"}]}
  strategy:
    canary:
      trafficRouting:
        plugins:
          argoproj-labs/istio:
            virtualService: {name: cart, namespace: %[1]s}
            destinationRule: {name: cart, namespace: %[1]s, canarySubsetName: canary, stableSubsetName: stable}
      steps: [{setWeight: 10}]
`

const routesAbroad = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec:
  hosts: [cart]
  http:
  - route:
    - {destination: {host: cart, subset: stable}, weight: 100}
    - {destination: {host: cart, subset: canary}, weight: 0}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart}
spec:
  host: cart
  subsets:
  - {name: stable, labels: {app: cart}}
  - {name: canary, labels: {app: cart}}
`

// TestWhatTheOperatorDoesNotAllowIsTold is about a refusal that the objects do not show: the
// running plugin has other flags than inspect.
func TestWhatTheOperatorDoesNotAllowIsTold(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	here, err := shared.Namespace(ctx, "refused")
	if err != nil {
		t.Fatal(err)
	}
	there, err := shared.Namespace(ctx, "edge")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Apply(ctx, there, []byte(routesAbroad)); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Apply(ctx, here, []byte(fmt.Sprintf(abroad, there))); err != nil {
		t.Fatal(err)
	}
	want := []string{"Waits for a correction, as the plugin refused its calls at ", "and nothing newer says otherwise: ", "--allow-cross-namespace=" + there, "\n  error    the plugin refused its calls at "}
	said := ""
	if err := lab.Until(ctx, "the refusal", func(ctx context.Context) (bool, error) {
		stdout, stderr, code := inspect(ctx, t, shared.AdminKubeconfig, here)
		said = fmt.Sprintf("exit code %d, %s%s", code, stdout, stderr)
		for _, part := range want {
			if !strings.Contains(stdout, part) {
				return false, nil
			}
		}
		return code == 1, nil
	}); err != nil {
		t.Errorf("%v; it last said: %s", err, said)
	}
}
