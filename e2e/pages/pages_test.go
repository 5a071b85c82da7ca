package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/docs/markdown"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// root is the repository.
const root = "../.."

// cluster is an API server with the definitions; there is no controller.
type cluster struct {
	lab    *lab.Lab
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func start(t *testing.T) cluster {
	t.Helper()
	l, err := lab.Start(t.Context(), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster{l, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(l.Client.Discovery()))}
}

func TestAnAPIServerTakesEveryRunnableBlockOfThePages(t *testing.T) {
	c := start(t)
	pages, err := markdown.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	applied := 0
	for _, page := range pages {
		fences, err := page.Fences()
		if err != nil {
			t.Error(err)
		}
		for _, f := range fences {
			if f.Kind != markdown.Runnable || f.Language != "yaml" {
				continue
			}
			applied++
			if err := c.take(t.Context(), f); err != nil {
				t.Errorf("%s: %v", f.At, err)
			}
		}
	}
	if applied < 5 {
		t.Errorf("only %d blocks were applied", applied)
	}
	c.refuses(t)
}

// refuses checks that the API server does not take anything.
func (c cluster) refuses(t *testing.T) {
	t.Helper()
	const rollout = "<!-- runnable in examples/subset-level/rollout.yaml at spec -->\n"
	for name, tc := range map[string]struct{ text, want string }{
		"a field that is misspelt":    {rollout + "```yaml\nreplica: 3\n```", "replica"},
		"a value of the wrong type":   {rollout + "```yaml\nreplicas: many\n```", "replicas"},
		"a kind that is not there":    {"<!-- runnable -->\n```yaml\napiVersion: networking.istio.io/v1\nkind: VirtualServices\nmetadata: {name: web}\n```", "VirtualServices"},
		"a part that is no object":    {"<!-- runnable -->\n```yaml\nspec: {replicas: 3}\n```", "kind"},
		"nothing":                     {"<!-- runnable -->\n```yaml\n# later\n```", "no object"},
		"a VirtualService's bad text": {"<!-- runnable -->\n```yaml\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web}\nspec: {hosts: web}\n```", "hosts"},
	} {
		fences, err := markdown.Parse("p.md", tc.text).Fences()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.take(t.Context(), fences[0]); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s is taken, or refused for another reason than %q: %v", name, tc.want, err)
		}
	}
}

// take applies a block's objects, as `kubectl apply --server-side` does with strict
// validation, without storing them: blocks of different pages may have one name.
func (c cluster) take(ctx context.Context, f markdown.Fence) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	manifest, err := f.Manifest(root)
	if err != nil {
		return err
	}
	taken := 0
	for document := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			return err
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := c.apply(ctx, object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		taken++
	}
	if taken == 0 {
		return fmt.Errorf("it has no object")
	}
	return nil
}

func (c cluster) apply(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	if kind.Kind == "" || kind.Version == "" {
		return fmt.Errorf("it names no apiVersion and kind")
	}
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	resource := c.lab.Dynamic.Resource(mapping.Resource)
	body, err := json.Marshal(object.Object)
	if err != nil {
		return err
	}
	force := true
	options := metav1.PatchOptions{FieldManager: "reader", Force: &force, FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
	if mapping.Scope.Name() != "namespace" {
		_, err = resource.Patch(ctx, object.GetName(), types.ApplyPatchType, body, options)
		return err
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	if err := c.makeNamespace(ctx, namespace); err != nil {
		return err
	}
	_, err = resource.Namespace(namespace).Patch(ctx, object.GetName(), types.ApplyPatchType, body, options)
	return err
}

func (c cluster) makeNamespace(ctx context.Context, name string) error {
	_, err := c.lab.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func TestMain(m *testing.M) {
	// Compilers are no part of a test.
	if err := lab.Build(context.Background(), os.Stderr, lab.ControlPlane()...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
