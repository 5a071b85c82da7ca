package examples

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	yamlpkg "sigs.k8s.io/yaml"
)

// chartValues are the keys of the chart argo/argo-rollouts that the examples set, as its values.yaml has them. The chart
// itself cannot be had from a module proxy, so nothing here renders it.
type chartValues struct {
	ClusterInstall              bool  `json:"clusterInstall"`
	InstallCRDs                 *bool `json:"installCRDs"`
	CreateClusterAggregateRoles *bool `json:"createClusterAggregateRoles"`
	Controller                  struct {
		TrafficRouterPlugins []registration       `json:"trafficRouterPlugins"`
		InitContainers       []corev1.Container   `json:"initContainers"`
		Volumes              []corev1.Volume      `json:"volumes"`
		VolumeMounts         []corev1.VolumeMount `json:"volumeMounts"`
	} `json:"controller"`
	ProviderRBAC struct {
		Enabled         bool                `json:"enabled"`
		Providers       map[string]bool     `json:"providers"`
		AdditionalRules []rbacv1.PolicyRule `json:"additionalRules"`
	} `json:"providerRBAC"`
}

// registration is an entry of trafficRouterPlugins.
type registration struct {
	Name     string   `json:"name"`
	Location string   `json:"location"`
	Args     []string `json:"args"`
}

// read decodes a file of install strictly, or its first document.
func read[T any](t *testing.T, name string) T {
	t.Helper()
	raw, err := os.ReadFile("install/" + name)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(raw), "\n---\n")
	var out T
	if err := yamlpkg.UnmarshalStrict([]byte(first), &out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// registered is what a ConfigMap of install registers.
func registered(t *testing.T, name string) []registration {
	t.Helper()
	var out []registration
	if err := yamlpkg.UnmarshalStrict([]byte(read[corev1.ConfigMap](t, name).Data["trafficRouterPlugins"]), &out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

func TestHelmValuesInstallTheSameAsTheOverlays(t *testing.T) {
	base := read[appsv1.Deployment](t, "base/controller-patch.yaml").Spec.Template.Spec
	istiod := read[appsv1.Deployment](t, "features/istiod/controller-patch.yaml").Spec.Template.Spec
	for name, tc := range map[string]struct {
		clusterWide bool
		config      string
		pods        []corev1.PodSpec
		rules       []rbacv1.PolicyRule
	}{
		"cluster-wide": {clusterWide: true, config: "base/argo-rollouts-config-file.yaml", pods: []corev1.PodSpec{base}},
		"namespaced":   {config: "namespaced/argo-rollouts-config.yaml", pods: []corev1.PodSpec{base}},
		"complete": {
			clusterWide: true, config: "complete/argo-rollouts-config.yaml", pods: []corev1.PodSpec{base, istiod},
			rules: read[rbacv1.ClusterRole](t, "features/endpoints/cluster-wide/rights.yaml").Rules,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := read[chartValues](t, "helm/"+name+".yaml")
			want := got
			want.ClusterInstall = tc.clusterWide
			want.Controller.TrafficRouterPlugins = registered(t, tc.config)
			want.Controller.InitContainers, want.Controller.Volumes, want.Controller.VolumeMounts = nil, nil, nil
			for _, pod := range tc.pods {
				want.Controller.InitContainers = append(want.Controller.InitContainers, pod.InitContainers...)
				want.Controller.Volumes = append(want.Controller.Volumes, pod.Volumes...)
				want.Controller.VolumeMounts = append(want.Controller.VolumeMounts, pod.Containers[0].VolumeMounts...)
			}
			want.ProviderRBAC.Enabled, want.ProviderRBAC.Providers = true, map[string]bool{"istio": true}
			want.ProviderRBAC.AdditionalRules = tc.rules
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("values (-overlay +values):\n%s", diff)
			}
			// Both need rights in the whole cluster, which an installation in one namespace is to do without.
			for key, set := range map[string]*bool{"installCRDs": got.InstallCRDs, "createClusterAggregateRoles": got.CreateClusterAggregateRoles} {
				if off := set != nil && !*set; off == tc.clusterWide {
					t.Errorf("%s is off: %t", key, off)
				}
			}
		})
	}
}

// The release is named in three places of each kind, all to be filled in by the reader in the same way.
func TestOverlaysNameTheReleaseAsTheBaseDoes(t *testing.T) {
	want := read[appsv1.Deployment](t, "base/controller-patch.yaml").Spec.Template.Spec.InitContainers[0]
	for _, overlay := range []string{"cluster-wide", "namespaced"} {
		got := read[appsv1.Deployment](t, overlay+"/release.yaml").Spec.Template.Spec.InitContainers[0]
		if diff := cmp.Diff(want.Env, got.Env); diff != "" || got.Name != want.Name {
			t.Errorf("%s/release.yaml is for %s, want %s; variables (-base +overlay):\n%s", overlay, got.Name, want.Name, diff)
		}
	}
}
