// Package examples holds no code; its test keeps the examples true.
package examples

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/yaml"
	yamlpkg "sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/managedroute"
)

// virtualService and destinationRule are the fields that the examples use, and no others; that Istio's own schema takes
// them is shown where they are applied to an API server.
type virtualService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Hosts []string    `json:"hosts"`
		HTTP  []httpRoute `json:"http"`
	} `json:"spec"`
}

type httpRoute struct {
	Name    string `json:"name"`
	Timeout string `json:"timeout"`
	Match   []any  `json:"match"`
	Route   []struct {
		Destination struct {
			Host   string `json:"host"`
			Subset string `json:"subset"`
		} `json:"destination"`
		Weight int32 `json:"weight"`
	} `json:"route"`
}

type destinationRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Host    string `json:"host"`
		Subsets []struct {
			Name          string            `json:"name"`
			Labels        map[string]string `json:"labels"`
			TrafficPolicy map[string]any    `json:"trafficPolicy"`
		} `json:"subsets"`
	} `json:"spec"`
}

// set is what one folder gives to a cluster.
type set struct {
	rollouts         map[string]*v1alpha1.Rollout
	services         map[string]*corev1.Service
	virtualServices  map[string]*virtualService
	destinationRules map[string]*destinationRule
}

// load reads the files strictly: an unknown field in an example is a fault in it.
func load(t *testing.T, files ...string) set {
	t.Helper()
	s := set{map[string]*v1alpha1.Rollout{}, map[string]*corev1.Service{}, map[string]*virtualService{}, map[string]*destinationRule{}}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		documents := yaml.NewDocumentDecoder(f)
		for raw := make([]byte, 64<<10); ; {
			n, err := documents.Read(raw)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			s.add(t, file, raw[:n])
		}
	}
	return s
}

func (s set) add(t *testing.T, file string, document []byte) {
	t.Helper()
	var head struct{ APIVersion, Kind string }
	if err := yamlpkg.Unmarshal(document, &head); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	switch head.APIVersion + " " + head.Kind {
	case "argoproj.io/v1alpha1 Rollout":
		keep(t, file, document, s.rollouts, &v1alpha1.Rollout{})
	case "v1 Service":
		keep(t, file, document, s.services, &corev1.Service{})
	case "networking.istio.io/v1 VirtualService":
		keep(t, file, document, s.virtualServices, &virtualService{})
	case "networking.istio.io/v1 DestinationRule":
		keep(t, file, document, s.destinationRules, &destinationRule{})
	default:
		t.Fatalf("%s: unexpected %s %s", file, head.APIVersion, head.Kind)
	}
}

func keep[T interface{ GetName() string }](t *testing.T, file string, document []byte, all map[string]T, object T) {
	t.Helper()
	if err := yamlpkg.UnmarshalStrict(document, object); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if _, twice := all[object.GetName()]; twice {
		t.Fatalf("%s: %s is there twice", file, object.GetName())
	}
	all[object.GetName()] = object
}

// only returns the single object of a folder.
func only[T any](t *testing.T, all map[string]T) T {
	t.Helper()
	if len(all) != 1 {
		t.Fatalf("%d objects, want one", len(all))
	}
	var one T
	for _, o := range all {
		one = o
	}
	return one
}

// configured checks the Rollout's block as the plugin does; the examples are applied to any namespace.
func configured(t *testing.T, ro *v1alpha1.Rollout) config.Config {
	t.Helper()
	ro = ro.DeepCopy()
	ro.Namespace = "any"
	cfg, err := config.FromRollout(ro, config.Options{PluginName: config.DefaultPluginName})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// destinations returns the weights of the route that the configuration names, keyed by host and subset.
func destinations(t *testing.T, s set, cfg config.Config) map[string]int32 {
	t.Helper()
	want := cfg.VirtualServices[0]
	vs := s.virtualServices[want.Name]
	if vs == nil {
		t.Fatalf("the set has no VirtualService %s", want.Name)
	}
	at := slices.IndexFunc(vs.Spec.HTTP, func(r httpRoute) bool { return r.Name == want.Routes[0] })
	if at < 0 {
		t.Fatalf("VirtualService %s has no route %s", want.Name, want.Routes[0])
	}
	weights := map[string]int32{}
	for _, d := range vs.Spec.HTTP[at].Route {
		weights[strings.TrimSuffix(d.Destination.Host+"/"+d.Destination.Subset, "/")] = d.Weight
	}
	return weights
}

// selects reports a Service or subset whose labels the Rollout's pods do not carry.
func selects(t *testing.T, what string, labels map[string]string, ro *v1alpha1.Rollout) {
	t.Helper()
	if len(labels) == 0 {
		t.Errorf("%s selects everything", what)
	}
	for k, v := range labels {
		if ro.Spec.Template.Labels[k] != v {
			t.Errorf("%s wants %s=%s, the pods have %q", what, k, v, ro.Spec.Template.Labels[k])
		}
	}
}

func TestHostLevelSetFitsTogether(t *testing.T) {
	s := load(t, "host-level/rollout.yaml", "host-level/services.yaml", "host-level/virtual-service.yaml")
	ro := only(t, s.rollouts)
	cfg := configured(t, ro)
	if len(cfg.DestinationRules) > 0 {
		t.Error("the host-level example is subset-level")
	}
	want := map[string]int32{cfg.StableService: 100, cfg.CanaryService: 0}
	if diff := cmp.Diff(want, destinations(t, s, cfg)); diff != "" {
		t.Errorf("destinations of the route (-want +got):\n%s", diff)
	}
	for _, name := range []string{cfg.CanaryService, cfg.StableService, s.virtualServices[cfg.VirtualServices[0].Name].Spec.Hosts[0]} {
		service := s.services[name]
		if service == nil {
			t.Fatalf("the set has no Service %s", name)
		}
		selects(t, "Service "+name, service.Spec.Selector, ro)
	}
	showsTheIncident(t, ro)
}

func TestSubsetLevelSetFitsTogether(t *testing.T) {
	s := load(t, "subset-level/rollout.yaml", "subset-level/service.yaml", "subset-level/virtual-service.yaml", "subset-level/destination-rule.yaml")
	ro := only(t, s.rollouts)
	checkSubsets(t, s, configured(t, ro), ro)
	showsTheIncident(t, ro)
}

func TestHeaderRouteSetFitsTogether(t *testing.T) {
	s := load(t, "header-route/rollout.yaml", "header-route/routing.yaml")
	ro := only(t, s.rollouts)
	checkSubsets(t, s, configured(t, ro), ro)
	names := managedroute.Names(ro)
	steps := ro.Spec.Strategy.Canary.Steps
	ro.Status.StableRS, ro.Status.CurrentPodHash = "old", "new"
	most := 0
	for i := range steps {
		index := int32(i)
		ro.Status.CurrentStepIndex = &index
		set, err := managedroute.FromRollout(ro)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(set.Routes()))
	}
	if len(names) != 2 || most != 2 {
		t.Errorf("managed routes %v, %d of them at once; want both to be shown", names, most)
	}
}

// The guard in the example claims to be the default, which is easily forgotten when a default changes.
func TestSubsetLevelExampleShowsTheDefaultsOfTheGuard(t *testing.T) {
	ro := only(t, load(t, "subset-level/rollout.yaml").rollouts)
	shown := configured(t, ro)
	plugins := ro.Spec.Strategy.Canary.TrafficRouting.Plugins
	var block map[string]json.RawMessage
	if err := json.Unmarshal(plugins[config.DefaultPluginName], &block); err != nil {
		t.Fatal(err)
	}
	if _, ok := block["guard"]; !ok {
		t.Fatal("the example shows no guard")
	}
	delete(block, "guard")
	raw, err := json.Marshal(block)
	if err != nil {
		t.Fatal(err)
	}
	plugins[config.DefaultPluginName] = raw
	if diff := cmp.Diff(configured(t, ro), shown); diff != "" {
		t.Errorf("guard (-default +shown):\n%s", diff)
	}
}

func checkSubsets(t *testing.T, s set, cfg config.Config, ro *v1alpha1.Rollout) {
	t.Helper()
	dr := s.destinationRules[cfg.DestinationRules[0].Name]
	if dr == nil {
		t.Fatalf("the set has no DestinationRule %s", cfg.DestinationRules[0].Name)
	}
	host := dr.Spec.Host
	want := map[string]int32{host + "/" + cfg.DestinationRules[0].StableSubsetName: 100, host + "/" + cfg.DestinationRules[0].CanarySubsetName: 0}
	if diff := cmp.Diff(want, destinations(t, s, cfg)); diff != "" {
		t.Errorf("destinations of the route (-want +got):\n%s", diff)
	}
	if s.services[host] == nil {
		t.Fatalf("the set has no Service %s", host)
	}
	selects(t, "Service "+host, s.services[host].Spec.Selector, ro)
	subsets := map[string]bool{}
	for _, subset := range dr.Spec.Subsets {
		subsets[subset.Name] = true
		selects(t, "subset "+subset.Name, subset.Labels, ro)
	}
	for _, name := range []string{cfg.DestinationRules[0].CanarySubsetName, cfg.DestinationRules[0].StableSubsetName} {
		if !subsets[name] {
			t.Errorf("DestinationRule %s has no subset %s", dr.Name, name)
		}
	}
}

// showsTheIncident holds the examples to the two settings with which a rollback gets ahead of its pods.
func showsTheIncident(t *testing.T, ro *v1alpha1.Rollout) {
	t.Helper()
	if ro.Spec.RollbackWindow == nil || ro.Spec.RollbackWindow.Revisions < 1 || ro.Spec.Strategy.Canary.MinPodsPerReplicaSet == nil {
		t.Error("the example shows no rollbackWindow or no minPodsPerReplicaSet")
	}
}

func TestMigrationMovesTheBlockAndNothingElse(t *testing.T) {
	s := load(t, "migrate-from-native/after.yaml", "migrate-from-native/routing.yaml")
	before := only(t, load(t, "migrate-from-native/before.yaml").rollouts)
	after := only(t, s.rollouts)
	checkSubsets(t, s, configured(t, after), after)

	moved, err := json.Marshal(before.Spec.Strategy.Canary.TrafficRouting.Istio)
	if err != nil {
		t.Fatal(err)
	}
	want := before.DeepCopy()
	want.Spec.Strategy.Canary.TrafficRouting.Istio = nil
	want.Spec.Strategy.Canary.TrafficRouting.Plugins = map[string]json.RawMessage{config.DefaultPluginName: moved}
	if diff := cmp.Diff(asMap(t, want), asMap(t, after)); diff != "" {
		t.Errorf("after.yaml (-before with the block moved +after):\n%s", diff)
	}
}

func asMap(t *testing.T, object any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// controller is the stock Deployment of the Argo Rollouts release that the plugin is built against.
func controller(t *testing.T) []byte {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/argoproj/argo-rollouts").Output()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "manifests", "base", "argo-rollouts-deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func toJSON(t *testing.T, document []byte) []byte {
	t.Helper()
	raw, err := yamlpkg.YAMLToJSONStrict(document)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// patched is the controller's Deployment after controller-patch.yaml.
func patched(t *testing.T) (before, after appsv1.Deployment) {
	t.Helper()
	stock := toJSON(t, controller(t))
	patch, err := os.ReadFile("install/base/controller-patch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	result, err := strategicpatch.StrategicMergePatch(stock, toJSON(t, patch), appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(stock, &before); err != nil {
		t.Fatal(err)
	}
	if err := yamlpkg.UnmarshalStrict(result, &after); err != nil {
		t.Fatal(err)
	}
	return before, after
}

func TestPatchedControllerKeepsEverythingThatItHad(t *testing.T) {
	before, after := patched(t)
	stock, now := before.Spec.Template.Spec, after.Spec.Template.Spec
	if len(now.Containers) != 1 {
		t.Fatalf("%d containers, want the controller's own", len(now.Containers))
	}
	for _, mount := range stock.Containers[0].VolumeMounts {
		if !slices.Contains(now.Containers[0].VolumeMounts, mount) {
			t.Errorf("the mount %s is lost", mount.MountPath)
		}
	}
	now.Containers[0].VolumeMounts = stock.Containers[0].VolumeMounts
	if diff := cmp.Diff(stock.Containers, now.Containers); diff != "" {
		t.Errorf("controller container (-stock +patched):\n%s", diff)
	}
	if diff := cmp.Diff(stock.SecurityContext, now.SecurityContext); diff != "" {
		t.Errorf("pod security (-stock +patched):\n%s", diff)
	}
}

func TestPatchPutsThePluginWhereTheConfigMapLooksForIt(t *testing.T) {
	var configMap corev1.ConfigMap
	raw, err := os.ReadFile("install/base/argo-rollouts-config-file.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yamlpkg.UnmarshalStrict(raw, &configMap); err != nil {
		t.Fatal(err)
	}
	var plugins []struct{ Name, Location string }
	if err := yamlpkg.UnmarshalStrict([]byte(configMap.Data["trafficRouterPlugins"]), &plugins); err != nil {
		t.Fatal(err)
	}
	path, ok := strings.CutPrefix(plugins[0].Location, "file://")
	if !ok || plugins[0].Name != config.DefaultPluginName || len(plugins) != 1 {
		t.Fatalf("registered: %+v", plugins)
	}

	_, after := patched(t)
	pod := after.Spec.Template.Spec
	fetch := pod.InitContainers[0]
	for _, mounts := range [][]corev1.VolumeMount{fetch.VolumeMounts, pod.Containers[0].VolumeMounts} {
		at := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == filepath.Dir(path) })
		if at < 0 {
			t.Fatalf("no mount at %s among %v", filepath.Dir(path), mounts)
		}
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mounts[at].Name && mounts[at].Name == "istio-plugin" }) {
			t.Errorf("the volume %s of %s is not among %v", mounts[at].Name, mounts[at].MountPath, pod.Volumes)
		}
	}
	script := fetch.Command[len(fetch.Command)-1]
	if !strings.Contains(script, "cd "+filepath.Dir(path)+"\n") || !strings.HasSuffix(strings.TrimSpace(script), "mv plugin "+filepath.Base(path)) {
		t.Errorf("the script does not end at %s:\n%s", path, script)
	}
	if !strings.Contains(script, "sha256sum -c") {
		t.Errorf("nothing checks the sum:\n%s", script)
	}
	if s := fetch.SecurityContext; !*s.ReadOnlyRootFilesystem || !*s.RunAsNonRoot || *s.AllowPrivilegeEscalation || *s.RunAsUser == 0 {
		t.Errorf("the init container may too much: %+v", *s)
	}
}
