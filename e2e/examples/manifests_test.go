package examples

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
)

// remote is where the overlays have the manifests of Argo Rollouts from. The
// tests have the same files from the module of that release.
const remote = "https://github.com/argoproj/argo-rollouts//manifests/"

// manifests are what an overlay gives to `kubectl apply -k`.
type manifests []*unstructured.Unstructured

// render builds a folder of examples/install as `kubectl kustomize` does; with a
// namespace for that one in place of the overlay's own.
func render(ctx context.Context, overlay, namespace string) (manifests, error) {
	files := filesys.MakeFsInMemory()
	if err := copyInstall(files); err != nil {
		return nil, err
	}
	if err := copyUpstream(ctx, files); err != nil {
		return nil, err
	}
	folder := "/install/" + overlay
	if namespace != "" {
		text := "namespace: " + namespace + "\nresources: [../install/" + overlay + "]\n"
		if err := files.WriteFile("/lab/kustomization.yaml", []byte(text)); err != nil {
			return nil, err
		}
		folder = "/lab"
	}
	return build(files, folder)
}

// build runs kustomize with the limits that kubectl has.
func build(files filesys.FileSystem, folder string) (manifests, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, folder)
	if err != nil {
		return nil, fmt.Errorf("kustomize %s: %w", folder, err)
	}
	var out manifests
	for _, resource := range built.Resources() {
		// By way of JSON: kustomize's own numbers are not those of the API's machinery.
		text, err := resource.MarshalJSON()
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	return out, nil
}

// copyInstall lays examples/install at /install, with /upstream in place of the
// network.
func copyInstall(files filesys.FileSystem) error {
	root := file("install")
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		content = bytes.ReplaceAll(content, []byte("?ref="+lab.DefaultVersion+"\n"), []byte("\n"))
		content = bytes.ReplaceAll(content, []byte(remote), []byte("../../upstream/"))
		if bytes.Contains(content, []byte("?ref=v1")) {
			return fmt.Errorf("%s: the tests have the manifests of %s only", path, lab.DefaultVersion)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return files.WriteFile(filepath.Join("/install", name), content)
	})
}

// copyUpstream lays the manifests of Argo Rollouts at /upstream, without the
// definitions: the lab has them, and building them takes longer than all else.
func copyUpstream(ctx context.Context, files filesys.FileSystem) error {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/argoproj/argo-rollouts").Output()
	if err != nil {
		return fmt.Errorf("look for the module of Argo Rollouts: %w", err)
	}
	root := filepath.Join(strings.TrimSpace(string(dir)), "manifests")
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		content = bytes.ReplaceAll(content, []byte("- ../crds\n"), nil)
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return files.WriteFile(filepath.Join("/upstream", name), content)
	})
}

// find is the object of that kind and name; nil if there is none.
func (m manifests) find(kind, name string) *unstructured.Unstructured {
	for _, object := range m {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	return nil
}

// typed decodes the object of that kind and name, and takes no unknown field.
func typed[T any](m manifests, kind, name string) (*T, error) {
	object := m.find(kind, name)
	if object == nil {
		return nil, fmt.Errorf("the manifests have no %s %s", kind, name)
	}
	out := new(T)
	return out, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, out, true)
}

func mustTyped[T any](t *testing.T, m manifests, kind, name string) *T {
	t.Helper()
	out, err := typed[T](m, kind, name)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustRender(t *testing.T, overlay string) manifests {
	t.Helper()
	m, err := render(t.Context(), overlay, "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// names are kind, namespace and name of all objects.
func (m manifests) names() map[string]bool {
	out := map[string]bool{}
	for _, object := range m {
		out[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = true
	}
	return out
}

func TestTheOverlaysAddToTheStockInstallationWhatTheySay(t *testing.T) {
	t.Parallel()
	for overlay, tc := range map[string]struct {
		stock          string
		added, removed []string
	}{
		"cluster-wide": {stock: "cluster-install"},
		"namespaced": {stock: "namespace-install", removed: []string{
			"ClusterRole /argo-rollouts-aggregate-to-admin", "ClusterRole /argo-rollouts-aggregate-to-edit",
			"ClusterRole /argo-rollouts-aggregate-to-view",
		}},
		"complete": {stock: "cluster-install", added: []string{
			"ClusterRole /argo-rollouts-endpointslices", "ClusterRoleBinding /argo-rollouts-endpointslices",
		}},
	} {
		t.Run(overlay, func(t *testing.T) {
			t.Parallel()
			built := mustRender(t, overlay)
			namespace := map[string]string{"namespaced": "shop"}[overlay]
			want := stockManifests(t, tc.stock, namespace).names()
			for _, name := range tc.added {
				want[name] = true
			}
			for _, name := range tc.removed {
				if !want[name] {
					t.Errorf("the stock installation has no %s", name)
				}
				delete(want, name)
			}
			if diff := cmp.Diff(want, built.names()); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			deployment := mustTyped[appsv1.Deployment](t, built, "Deployment", "argo-rollouts")
			if got, want := deployment.Spec.Template.Spec.Containers[0].Image, "quay.io/argoproj/argo-rollouts:"+lab.DefaultVersion; got != want {
				t.Errorf("the controller is %s, want %s", got, want)
			}
		})
	}
}

// stockManifests are those of Argo Rollouts alone, "" in the namespace that its
// documentation has.
func stockManifests(t *testing.T, install, namespace string) manifests {
	t.Helper()
	files := filesys.MakeFsInMemory()
	if err := copyUpstream(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	if namespace == "" {
		namespace = controllerNamespace
	}
	text := "namespace: " + namespace + "\nresources: [../upstream/" + install + "]\n"
	if err := files.WriteFile("/stock/kustomization.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	out, err := build(files, "/stock")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheOverlaysChangeNoRuleOfTheStockRole(t *testing.T) {
	t.Parallel()
	for overlay, tc := range map[string]struct{ stock, namespace, kind string }{
		"cluster-wide": {"cluster-install", "", "ClusterRole"},
		"namespaced":   {"namespace-install", "shop", "Role"},
		"complete":     {"cluster-install", "", "ClusterRole"},
	} {
		stock := mustTyped[rbacv1.ClusterRole](t, stockManifests(t, tc.stock, tc.namespace), tc.kind, "argo-rollouts")
		built := mustTyped[rbacv1.ClusterRole](t, mustRender(t, overlay), tc.kind, "argo-rollouts")
		if diff := cmp.Diff(stock.Rules, built.Rules); diff != "" {
			t.Errorf("%s: rules (-stock +built):\n%s", overlay, diff)
		}
	}
}

func TestTheAPIServerTakesTheDeploymentsOfTheOverlays(t *testing.T) {
	t.Parallel()
	for _, overlay := range []string{"cluster-wide", "namespaced", "complete"} {
		t.Run(overlay, func(t *testing.T) {
			t.Parallel()
			built := mustRender(t, overlay)
			deployment := mustTyped[appsv1.Deployment](t, built, "Deployment", "argo-rollouts")
			deployment.Namespace, deployment.Name = controllerNamespace, "trial-"+overlay
			_, err := shared.Client.AppsV1().Deployments(controllerNamespace).
				Create(t.Context(), deployment, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Errorf("the API server refuses it: %v", err)
			}
		})
	}
}

// The release is set in one place of an overlay, and has to reach the init container.
func TestTheReleaseOfAnOverlayReachesTheInitContainerOnceEach(t *testing.T) {
	t.Parallel()
	for _, overlay := range []string{"cluster-wide", "namespaced", "complete"} {
		deployment := mustTyped[appsv1.Deployment](t, mustRender(t, overlay), "Deployment", "argo-rollouts")
		inits := deployment.Spec.Template.Spec.InitContainers
		if len(inits) != 1 || inits[0].Image == "" {
			t.Fatalf("%s: init containers %+v, want the one of the base", overlay, inits)
		}
		var names []string
		for _, variable := range inits[0].Env {
			names = append(names, variable.Name)
		}
		if diff := cmp.Diff([]string{"VERSION", "SHA256", "FILE", "RELEASES"}, names); diff != "" {
			t.Errorf("%s: variables (-want +got):\n%s", overlay, diff)
		}
	}
}

func TestTheTokenAndRootOfIstiodLieWhereThePluginLooksForThem(t *testing.T) {
	t.Parallel()
	pod := mustTyped[appsv1.Deployment](t, mustRender(t, "complete"), "Deployment", "argo-rollouts").Spec.Template.Spec
	sources := map[string]corev1.Volume{}
	for _, volume := range pod.Volumes {
		sources[volume.Name] = volume
	}
	found := map[string]string{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		volume := sources[mount.Name]
		switch {
		case volume.Projected != nil:
			token := volume.Projected.Sources[0].ServiceAccountToken
			found[filepath.Join(mount.MountPath, token.Path)] = "token for " + token.Audience
		case volume.ConfigMap != nil:
			// Istio's own name for the key in that ConfigMap.
			found[filepath.Join(mount.MountPath, "root-cert.pem")] = "certificates of " + volume.ConfigMap.Name
		}
	}
	want := map[string]string{mesh.DefaultTokenFile: "token for istio-ca", mesh.DefaultRootCertFile: "certificates of istio-ca-root-cert"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
