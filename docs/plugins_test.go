package docs

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
)

// pluginFaults are the names of plugins in an object or a part of one that are not this
// plugin's, and that the reason of a fragment does not name: a controller that has no
// plugin of that name does nothing with such a Rollout but say so.
func pluginFaults(object any, why string) []string {
	var faults []string
	for _, name := range pluginNames(object, "") {
		if name != config.DefaultPluginName && !strings.Contains(why, name) {
			faults = append(faults, fmt.Sprintf("the plugin is named %s, and this one is %s. "+
				"If another is meant, name it in <!-- fragment: why --> above the fence", name, config.DefaultPluginName))
		}
	}
	return faults
}

// pluginNames are the names of plugins for traffic: the keys in a Rollout, and what a
// controller is told to load.
func pluginNames(value any, path string) []string {
	var names []string
	switch value := value.(type) {
	case map[string]any:
		if path == ".plugins" || strings.HasSuffix(path, ".trafficRouting.plugins") {
			return slices.Sorted(maps.Keys(value))
		}
		if name, ok := value["name"].(string); ok && value["location"] != nil {
			names = append(names, name)
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			names = append(names, pluginNames(value[key], path+"."+key)...)
		}
	case []any:
		for _, entry := range value {
			names = append(names, pluginNames(entry, path)...)
		}
	case string:
		var entries any
		if strings.HasSuffix(path, ".trafficRouterPlugins") && yaml.Unmarshal([]byte(value), &entries) == nil {
			names = pluginNames(entries, path+".")
		}
	}
	return names
}

func TestEveryExampleNamesThePlugin(t *testing.T) {
	files, err := filesBelow("../examples", ".yaml", ".yml")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for path, body := range files {
		for document := range bytes.SplitSeq([]byte(body), []byte("\n---\n")) {
			var object any
			if err := yaml.Unmarshal(document, &object); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			named += len(pluginNames(object, ""))
			for _, fault := range pluginFaults(object, "") {
				t.Errorf("%s: %s", path, fault)
			}
		}
	}
	if named < 8 {
		t.Errorf("only %d names were found", named)
	}
}

func TestAPluginOfAnotherNameIsFoundWhereverItStands(t *testing.T) {
	for name, tc := range map[string]struct {
		text, why string
		bad       bool
	}{
		"in a Rollout":                   {"spec: {strategy: {canary: {trafficRouting: {plugins: {argoproj-labs/itsio: {}}}}}}", "", true},
		"beside this one":                {"trafficRouting: {plugins: {argoproj-labs/istio: {}, argoproj-labs/Istio: {}}}", "", true},
		"in a part":                      {"plugins: {istio: {}}", "", true},
		"in a list":                      {"- trafficRouting: {plugins: {itsio: {}}}", "", true},
		"in the values of a chart":       {"controller: {trafficRouterPlugins: [{name: argoproj-labs/itsio, location: x}]}", "", true},
		"in the text of a ConfigMap":     {"data: {trafficRouterPlugins: '[{name: argoproj-labs/itsio, location: x}]'}", "", true},
		"in an entry of it":              {"- {name: argoproj-labs/itsio, location: x}", "", true},
		"in a fragment, for a reason":    {"trafficRouting: {plugins: {argoproj-labs/itsio: {}}}", "a part", true},
		"in a fragment that is about it": {"trafficRouting: {plugins: {argoproj-labs/nginx: {}}}", "of argoproj-labs/nginx", false},
		"this one, everywhere":           {"data: {trafficRouterPlugins: '[{name: argoproj-labs/istio, location: x}]'}\ntrafficRouting: {plugins: {argoproj-labs/istio: {}}}", "", false},
		"what is no plugin for traffic":  {"plugin: {other/x: {}}\nspec: {plugins: {a: b}}\nports: [{name: http}]", "", false},
	} {
		var object any
		if err := yaml.UnmarshalStrict([]byte(tc.text), &object); err != nil {
			t.Fatal(err)
		}
		if faults := pluginFaults(object, tc.why); (len(faults) > 0) != tc.bad {
			t.Errorf("%s: faults are %q", name, faults)
		}
	}
}

// ofOrganization are names that begin as this plugin's does.
var ofOrganization = regexp.MustCompile(`\bargoproj-labs/([\w-]+)`)

// inTheOrganization are the plugin, this repository, and those of others that pages name.
var inTheOrganization = []string{"istio", program, "rollouts-plugin-trafficrouter-gatewayapi"}

func TestEveryNameInTheOrganizationIsOneThatIsKnown(t *testing.T) {
	for _, w := range allWritten(t) {
		for i, line := range w.lines {
			for _, fault := range nameFaults(line) {
				t.Errorf("%s: %s", w.at(i), fault)
			}
		}
	}
	wantFaults(t, "a typing error", nameFaults("under `plugins[\"argoproj-labs/itsio\"]`"), "argoproj-labs/itsio")
	wantFaults(t, "in an address", nameFaults("https://github.com/argoproj-labs/rollouts-plugin-istio"), "rollouts-plugin-istio")
	wantFaults(t, "as it is", nameFaults("argoproj-labs/istio.guard, https://github.com/"+repository+"/releases"), "")
}

func nameFaults(line string) []string {
	var faults []string
	for _, found := range ofOrganization.FindAllStringSubmatch(line, -1) {
		if !slices.Contains(inTheOrganization, found[1]) {
			faults = append(faults, found[0]+" is not known here; is it a typing error? Else add it to the list inTheOrganization in docs/plugins_test.go")
		}
	}
	return faults
}
