package lab

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
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

func TestDefinitionsAreThoseOfTheReleaseAndOfOneVersionOfIstio(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	for _, version := range []string{"v1", "v1beta1", "v1alpha3"} {
		crds, err := definitionsOf(ctx, Options{RolloutsVersion: "v1.8.5", IstioVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range crds {
			versions := crd.Spec.Versions
			switch {
			case crd.Spec.Group == istioGroup && (len(versions) != 1 || versions[0].Name != version || !versions[0].Served || !versions[0].Storage):
				t.Errorf("%s has the versions %v, want only %s", crd.Name, versions, version)
			case crd.Name == "rollouts.argoproj.io" && strings.Contains(asText(t, crd), "replicaProgressThreshold"):
				t.Errorf("%s is not of v1.8.5, which has no replicaProgressThreshold", crd.Name)
			}
		}
	}
	// What was read for another lab is not changed by that.
	crds, err := definitionsOf(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		if crd.Spec.Group == istioGroup && len(crd.Spec.Versions) != 3 {
			t.Errorf("%s has %d versions by default, want 3", crd.Name, len(crd.Spec.Versions))
		}
		if crd.Name == "rollouts.argoproj.io" && !strings.Contains(asText(t, crd), "replicaProgressThreshold") {
			t.Errorf("%s is not of %s", crd.Name, DefaultVersion)
		}
	}
}

func TestAVersionThatIstioDoesNotHaveIsAnError(t *testing.T) {
	t.Parallel()
	_, err := definitionsOf(within(t, time.Minute), Options{IstioVersion: "v2"})
	if err == nil || !strings.Contains(err.Error(), `has no version "v2"`) {
		t.Error(err)
	}
}

func asText(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
