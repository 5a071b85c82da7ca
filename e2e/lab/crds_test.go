package lab

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// withoutDescriptions removes the texts from a decoded schema. A property that
// has the name "description" is an object and stays.
func withoutDescriptions(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if _, text := v["description"].(string); text {
			delete(v, "description")
		}
		for _, child := range v {
			withoutDescriptions(child)
		}
	case []any:
		for _, child := range v {
			withoutDescriptions(child)
		}
	}
	return value
}

func generic(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestDefinitionsOfRolloutsAndIstioLoseTextsAndNothingElse(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	folder, err := requiredFolder(ctx, istioModule)
	if err != nil {
		t.Fatal(err)
	}
	originals, err := readDefinitions(filepath.Join(folder, "kubernetes", "customresourcedefinitions.gen.yaml"), istioKinds)
	if err != nil {
		t.Fatal(err)
	}
	if folder, err = requiredFolder(ctx, rolloutsModule); err != nil {
		t.Fatal(err)
	}
	rollouts, err := readDefinitions(filepath.Join(folder, "manifests", "crds", "rollout-crd.yaml"), []string{"rollouts.argoproj.io"})
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range append(originals, rollouts...) {
		want := generic(t, crd.Spec.Versions)
		for _, version := range want.([]any) {
			withoutDescriptions(version.(map[string]any)["schema"])
		}
		lighten(crd)
		// A diff of these takes long, even when there is none.
		if got := generic(t, crd.Spec.Versions); !reflect.DeepEqual(want, got) {
			t.Errorf("%s (-original +installed):\n%s", crd.Name, cmp.Diff(want, got))
		}
	}
}

func TestAnAnalysisTemplateIsStoredWithAllItsFields(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	namespace := scenario(t, ctx)
	stored, err := shared.Apply(ctx, namespace, []byte(`
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: errors}
spec: {metrics: [{name: rate, interval: 5s, successCondition: "true", provider: {job: {spec: {}}}}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	templates := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "analysistemplates"}
	read, err := shared.Dynamic.Resource(templates).Namespace(namespace).Get(ctx, "errors", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	metrics, _, _ := unstructured.NestedSlice(read.Object, "spec", "metrics")
	if len(stored) != 1 || len(metrics) != 1 || metrics[0].(map[string]any)["interval"] != "5s" {
		t.Errorf("stored: %v", read.Object["spec"])
	}
}
