package examples

import (
	"bytes"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-rollouts/utils/config"
	"github.com/argoproj/argo-rollouts/utils/defaults"
	"github.com/argoproj/argo-rollouts/utils/plugin/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// registered reads an example as the controller does when it starts. It is not
// for parallel tests: the controller keeps its configuration in a global.
func registered(t *testing.T, name string) types.PluginItem {
	t.Helper()
	content, err := os.ReadFile(file(name))
	if err != nil {
		t.Fatal(err)
	}
	configMap := &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(content, configMap); err != nil {
		t.Fatal(err)
	}
	created := configMap.DeepCopy()
	created.Name += "-valid"
	if _, err := shared.Client.CoreV1().ConfigMaps(controllerNamespace).
		Create(t.Context(), created, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Errorf("the API server refuses it: %v", err)
	}
	t.Cleanup(config.UnInitializeConfig)
	read, err := config.InitializeConfig(fake.NewClientset(configMap), defaults.DefaultRolloutsConfigMapName)
	if err != nil {
		t.Fatal(err)
	}
	plugins := read.GetAllPlugins()
	if len(plugins) != 1 {
		t.Fatalf("the controller reads %d plugins: %+v", len(plugins), plugins)
	}
	return plugins[0]
}

func TestTheControllerReadsTheConfigMapsOfTheExamples(t *testing.T) {
	for name, prefix := range map[string]string{
		"install/argo-rollouts-config.yaml":           "https://",
		"install/base/argo-rollouts-config-file.yaml": "file://" + installedPath,
	} {
		t.Run(name, func(t *testing.T) {
			got := registered(t, name)
			if got.Name != lab.DefaultPluginName || got.Type != types.PluginTypeTrafficRouter || !strings.HasPrefix(got.Location, prefix) || got.Disabled {
				t.Errorf("the controller reads %+v", got)
			}
			if needed := prefix == "https://"; needed != (got.Sha256 != "") {
				t.Errorf("sha256 is %q", got.Sha256)
			}
		})
	}
}

// As the pages do it, with a merge patch, which kubectl sends as it is. What kubectl apply
// sends is another matter: it takes out what it has applied before.
func TestRegisteringLeavesPluginsOfOtherKindsAlone(t *testing.T) {
	ctx := t.Context()
	for _, name := range []string{"install/argo-rollouts-config.yaml", "install/base/argo-rollouts-config-file.yaml"} {
		for sentence, there := range map[string]map[string]string{
			"beside plugins for metrics":               {"metricProviderPlugins": "- {name: acme/metrics, location: file:///metrics}"},
			"over the ConfigMap of the stock manifest": nil,
			"over an older release":                    {"trafficRouterPlugins": "- {name: " + lab.DefaultPluginName + ", location: file:///older}"},
		} {
			t.Run(name+" "+sentence, func(t *testing.T) {
				namespace, err := shared.Namespace(ctx, "registered")
				if err != nil {
					t.Fatal(err)
				}
				maps := shared.Client.CoreV1().ConfigMaps(namespace)
				stock := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "argo-rollouts-config", Labels: map[string]string{"app": "rollouts"}}, Data: there}
				if _, err := maps.Create(ctx, stock, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				content, err := os.ReadFile(file(name))
				if err != nil {
					t.Fatal(err)
				}
				content = bytes.Replace(content, []byte("namespace: "+controllerNamespace), []byte("namespace: "+namespace), 1)
				patch, err := yaml.YAMLToJSON(content)
				if err != nil {
					t.Fatal(err)
				}
				got, err := maps.Patch(ctx, stock.Name, apitypes.MergePatchType, patch, metav1.PatchOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got.Labels["app"] == "" || got.Data["metricProviderPlugins"] != there["metricProviderPlugins"] {
					t.Errorf("labels %v, data %v", got.Labels, got.Data)
				}
				if list := got.Data["trafficRouterPlugins"]; strings.Count(list, lab.DefaultPluginName) != 1 || strings.Contains(list, "older") {
					t.Errorf("registered is %q", list)
				}
			})
		}
	}
}
