package lint

import "testing"

func TestSourcesAreWhatWasReadWithItsPlaces(t *testing.T) {
	var in Input
	in.Read("web.yaml", []byte("apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n---\n"+
		"apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: 3\n"))
	sources := in.Sources()
	if len(sources) != 2 || !sources[0].Is("", "Service") || !sources[1].Is("argoproj.io", "Rollout") || sources[1].Is("", "Rollout") {
		t.Fatalf("read %v", sources)
	}
	if s := sources[0]; s.Namespace() != "default" || s.Name() != "web" || s.String() != "Service default/web" {
		t.Errorf("the Service is %s, in namespace %q, with the name %q", s, s.Namespace(), s.Name())
	}
	for field, want := range map[string]int{"": 6, "spec.replicas": 10, "spec.strategy.canary": 9} {
		if file, line := sources[1].Place(field); file != "web.yaml" || line != want {
			t.Errorf("field %q stands in %s:%d, want web.yaml:%d", field, file, line, want)
		}
	}
	if replicas := at(sources[1].Content(), "spec", "replicas"); replicas != int64(3) {
		t.Errorf("spec.replicas is %v (%T), want 3", replicas, replicas)
	}
}
