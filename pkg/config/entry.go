package config

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// entry finds our block among the plugins of the Rollout. The RPC does not say
// under which name the plugin was called, so the name is taken from the flag, else
// from the place where the controller installed the binary, else from there being
// no choice: the controller called us, so a single entry is ours whatever its
// name.
func (c *checker) entry(plugins map[string]json.RawMessage, o Options, at *field.Path) (string, []byte, bool) {
	expected := o.PluginName
	if expected == "" {
		expected = installedName(o.ExecutablePath)
	}
	if raw, ok := plugins[expected]; ok && expected != "" {
		return expected, raw, true
	}
	if len(plugins) == 1 && o.PluginName == "" {
		for name, raw := range plugins {
			return name, raw, true
		}
	}
	if expected == "" {
		expected = DefaultPluginName
	}
	c.add(field.Required(entryPath(at, expected), missingEntry(plugins, o.PluginName != "")))
	return "", nil, false
}

// missingEntry says what is there instead of our entry.
func missingEntry(plugins map[string]json.RawMessage, named bool) string {
	remedy := "put the plugin's configuration under this key"
	if named {
		remedy += ", or start the plugin with another --plugin-name"
	} else {
		remedy += ", or name the right one with the plugin's flag --plugin-name"
	}
	if len(plugins) == 0 {
		return remedy + "; there is no entry at all"
	}
	names := slices.Sorted(maps.Keys(plugins))
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return remedy + "; present: " + show(strings.Join(names, ", "))
}

// installedName is the registered name that the path of an installed plugin tells,
// such as argoproj-labs/istio for plugin-bin/argoproj-labs/istio. The controller
// insists on exactly two elements.
func installedName(path string) string {
	elements := strings.Split(filepath.ToSlash(path), "/")
	if len(elements) < 2 {
		return ""
	}
	return strings.Join(elements[len(elements)-2:], "/")
}

// entryPath quotes the key, as its dots and slashes would otherwise read as part
// of the path.
func entryPath(plugins *field.Path, name string) *field.Path {
	return plugins.Key(strconv.Quote(show(name)))
}
