package apiserver

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

const (
	virtualServiceDefinition  = "virtualservices.networking.istio.io"
	destinationRuleDefinition = "destinationrules.networking.istio.io"
)

// It is not parallel: while it runs nobody else can use Istio's definitions.
func TestIstioDefinitionsThatComeLateAndInOlderVersionsOnly(t *testing.T) {
	a := newAccount(t)
	a.grant(t, stockRole(t).Rules)
	whole := map[string]*unstructured.Unstructured{}
	for _, name := range []string{virtualServiceDefinition, destinationRuleDefinition} {
		whole[name] = takeDefinition(t, name)
	}
	c := newCluster(t, a.config(t, nil), cluster.Options{})

	// No kind is served, then one of them.
	notReady(t, c, "VirtualService", "DestinationRule", "install Istio's CRDs")
	define(t, served(whole[destinationRuleDefinition], "v1beta1"))
	notReady(t, c, "VirtualService", "install Istio's CRDs")

	// Each kind in its newest version, which are different ones.
	define(t, served(whole[virtualServiceDefinition], "v1alpha3"))
	makeReady(t, c, time.Minute)
	readAndWriteOldVersions(t, c, a.namespace)

	// A process that starts once newer ones are served takes the newest.
	define(t, served(whole[virtualServiceDefinition], "v1alpha3", "v1beta1"))
	awaitServed(t, "v1beta1", "virtualservices")
	newer := newCluster(t, a.config(t, nil), cluster.Options{})
	makeReady(t, newer, time.Minute)
	if got := versionRead(t, newer, a.namespace); got != "networking.istio.io/v1beta1" {
		t.Errorf("with v1alpha3 and v1beta1 served it reads %s", got)
	}

	restoreDefinitions(t, whole)
	current := newCluster(t, a.config(t, nil), cluster.Options{})
	makeReady(t, current, time.Minute)
	if got := versionRead(t, current, a.namespace); got != "networking.istio.io/v1" {
		t.Errorf("with all versions served it reads %s", got)
	}
}

func notReady(t *testing.T, c *cluster.Cluster, texts ...string) {
	t.Helper()
	// A failed start is remembered for a second.
	time.Sleep(1100 * time.Millisecond)
	err := c.Ready(within(t, 10*time.Second))
	if err == nil {
		t.Fatalf("ready, want an error with %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("Ready says %q, which lacks %q", err, text)
		}
	}
	if len(texts) == 2 && strings.Contains(err.Error(), "DestinationRule") {
		t.Errorf("Ready names a kind that is there: %v", err)
	}
}

// readAndWriteOldVersions does the whole of the plugin's work through them.
func readAndWriteOldVersions(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	old := strings.Replace(manifests, "networking.istio.io/v1\nkind: VirtualService", "networking.istio.io/v1alpha3\nkind: VirtualService", 1)
	old = strings.Replace(old, "networking.istio.io/v1\nkind: DestinationRule", "networking.istio.io/v1beta1\nkind: DestinationRule", 1)
	eventually(t, time.Minute, "the objects to be stored", func() bool {
		_, err := shared.Apply(t.Context(), namespace, []byte(old))
		return err == nil
	})
	eventually(t, time.Minute, "the objects in the caches", func() bool {
		_, vsErr := c.VirtualService(namespace, name)
		_, drErr := c.DestinationRule(namespace, name)
		return vsErr == nil && drErr == nil
	})
	ctx := within(t, 10*time.Second)
	vs, changed, err := c.UpdateVirtualService(ctx, namespace, name, setWeight("first", 20))
	if err != nil || !changed || vs.APIVersion != "networking.istio.io/v1alpha3" || canaryWeight(c, namespace, "first") != 20 {
		t.Errorf("VirtualService: changed %t, %v, version %s", changed, err, vs.APIVersion)
	}
	dr, changed, err := c.UpdateDestinationRule(ctx, namespace, name, setHashes("new", "old"))
	if err != nil || !changed || dr.APIVersion != "networking.istio.io/v1beta1" {
		t.Errorf("DestinationRule: changed %t, %v, version %s", changed, err, dr.APIVersion)
	}
}

func versionRead(t *testing.T, c *cluster.Cluster, namespace string) string {
	t.Helper()
	vs, err := c.VirtualService(namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return vs.APIVersion
}

// borrowDefinition returns a definition, and puts it back at the end of the test.
func borrowDefinition(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	resource := shared.Dynamic.Resource(definitions)
	taken, err := resource.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	whole := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": taken.GetAPIVersion(), "kind": taken.GetKind(),
		"metadata": map[string]any{"name": name}, "spec": taken.Object["spec"],
	}}
	t.Cleanup(func() { restoreDefinitions(t, map[string]*unstructured.Unstructured{name: whole}) })
	return whole
}

// takeDefinition deletes a definition and gives it back at the end of the test.
func takeDefinition(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	resource := shared.Dynamic.Resource(definitions)
	whole := borrowDefinition(t, name)
	if err := resource.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	plural, _, _ := strings.Cut(name, ".")
	eventually(t, time.Minute, name+" to be gone", func() bool {
		_, err := resource.Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) && !isServed("v1", plural)
	})
	return whole
}

// served is a definition that serves only some of its versions.
func served(whole *unstructured.Unstructured, versions ...string) *unstructured.Unstructured {
	partial := whole.DeepCopy()
	list, _, _ := unstructured.NestedSlice(partial.Object, "spec", "versions")
	for _, v := range list {
		version := v.(map[string]any)
		version["served"] = slices.Contains(versions, version["name"].(string))
	}
	_ = unstructured.SetNestedSlice(partial.Object, list, "spec", "versions")
	return partial
}

func define(t *testing.T, definition *unstructured.Unstructured) {
	t.Helper()
	// Not the test's context: it is called at the test's end, too.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := shared.Dynamic.Resource(definitions).Apply(ctx, definition.GetName(), definition,
		metav1.ApplyOptions{FieldManager: "test", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	list, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	plural, _, _ := strings.Cut(definition.GetName(), ".")
	for _, v := range list {
		if version := v.(map[string]any); version["served"] == true {
			awaitServed(t, version["name"].(string), plural)
		}
	}
}

func restoreDefinitions(t *testing.T, whole map[string]*unstructured.Unstructured) {
	t.Helper()
	for _, definition := range whole {
		define(t, definition)
	}
}

func awaitServed(t *testing.T, version, plural string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := lab.Until(ctx, plural+" "+version, func(context.Context) (bool, error) { return isServed(version, plural), nil })
	if err != nil {
		t.Fatal(err)
	}
}

func isServed(version, plural string) bool {
	list, err := shared.Client.Discovery().ServerResourcesForGroupVersion("networking.istio.io/" + version)
	return err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == plural })
}
