package examples

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
