package inspect

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

const rolloutWithPlugin = `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: cart}
spec:
  replicas: 0
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: "cart:1"}]}
  strategy:
    canary:
      trafficRouting:
        plugins:
          argoproj-labs/istio: {virtualService: {name: cart}, destinationRule: {name: cart, canarySubsetName: canary, stableSubsetName: stable}}
      steps: [{setWeight: 10}]
`

// TestWhatTheClusterDoesNotServeIsNamed is the last test, in the last file and with no
// parallel one beside it: it takes kinds from the cluster.
func TestWhatTheClusterDoesNotServeIsNamed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	namespace, err := shared.Namespace(ctx, "unserved")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Apply(ctx, namespace, []byte(rolloutWithPlugin)); err != nil {
		t.Fatal(err)
	}
	definitions := shared.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if err := definitions.Delete(ctx, "virtualservices.networking.istio.io", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitWords(ctx, t, namespace, "the cluster does not serve virtualservices.networking.istio.io in v1, v1beta1, v1alpha3")
	unserve := []byte(`[{"op": "replace", "path": "/spec/versions/0/served", "value": false}]`)
	if _, err := definitions.Patch(ctx, "rollouts.argoproj.io", types.JSONPatchType, unserve, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitWords(ctx, t, namespace, "Rollout "+namespace+"/cart: the cluster does not serve rollouts.argoproj.io in v1alpha1")
}

// awaitWords waits until inspect ends with the exit code 2 and says this.
func awaitWords(ctx context.Context, t *testing.T, namespace, want string) {
	t.Helper()
	var last string
	if err := lab.Until(ctx, want, func(ctx context.Context) (bool, error) {
		_, stderr, code := inspect(ctx, t, shared.AdminKubeconfig, namespace)
		last = fmt.Sprintf("exit code %d, %s", code, stderr)
		return code == 2 && strings.Contains(stderr, want), nil
	}); err != nil {
		t.Fatalf("%v; it last said: %s", err, last)
	}
}
