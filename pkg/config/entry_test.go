package config

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// entries gives each name a block whose VirtualService tells which one was read.
func entries(names ...string) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for i, name := range names {
		all[name] = json.RawMessage(`{"virtualService":{"name":"entry-` + string(rune('0'+i)) + `"}}`)
	}
	return all
}

func TestWhichEntryIsOurs(t *testing.T) {
	tests := map[string]struct {
		options Options
		entries []string
		want    int
	}{
		"the only one, whatever its name":                              {Options{}, []string{"acme/router"}, 0},
		"the only one, although the binary is installed elsewhere":     {Options{ExecutablePath: "bin/plugin"}, []string{"acme/router"}, 0},
		"the one that the flag names":                                  {Options{PluginName: "b/b"}, []string{"a/a", "b/b"}, 1},
		"the one that the flag names, against the path":                {Options{PluginName: "b/b", ExecutablePath: "plugin-bin/a/a"}, []string{"a/a", "b/b"}, 1},
		"the one that the installed path names":                        {Options{ExecutablePath: "/home/argo-rollouts/plugin-bin/b/b"}, []string{"a/a", "b/b"}, 1},
		"the one that a relative path names":                           {Options{ExecutablePath: "plugin-bin/argoproj-labs/istio"}, []string{"a/a", "argoproj-labs/istio"}, 1},
		"the one that a bare registered name as path names":            {Options{ExecutablePath: "argoproj-labs/istio"}, []string{"a/a", "argoproj-labs/istio"}, 1},
		"not one whose name only ends like the path":                   {Options{ExecutablePath: "plugin-bin/b/istio"}, []string{"a/istio", "b/istio"}, 1},
		"the only one, when the path is that of another, removed name": {Options{ExecutablePath: "plugin-bin/old/name"}, []string{"new/name"}, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ro := withBlock(nil)
			ro.Spec.Strategy.Canary.TrafficRouting.Plugins = entries(tc.entries...)
			got, err := FromRollout(ro, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if got.PluginName != tc.entries[tc.want] || got.VirtualServices[0].Name != "entry-"+string(rune('0'+tc.want)) {
				t.Errorf("read entry %q with VirtualService %q, want entry %q", got.PluginName, got.VirtualServices[0].Name, tc.entries[tc.want])
			}
		})
	}
}

func TestNoEntryIsOurs(t *testing.T) {
	const put = `Required value: put the plugin's configuration under this key, or `
	tests := map[string]struct {
		options Options
		entries []string
		want    string
	}{
		"several, and nothing tells which": {
			Options{}, []string{"b/b", "a/a"},
			`spec.strategy.canary.trafficRouting.plugins["argoproj-labs/istio"]: ` + put +
				`name the right one with the plugin's flag --plugin-name; present: "a/a", "b/b"`,
		},
		"several, none with the installed name": {
			Options{ExecutablePath: "plugin-bin/acme/istio"}, []string{"a/a", "b/b"},
			`spec.strategy.canary.trafficRouting.plugins["acme/istio"]: ` + put +
				`name the right one with the plugin's flag --plugin-name; present: "a/a", "b/b"`,
		},
		"the flag names another than the only one": {
			Options{PluginName: "acme/istio"}, []string{"a/a"},
			`spec.strategy.canary.trafficRouting.plugins["acme/istio"]: ` + put +
				`start the plugin with another --plugin-name; present: "a/a"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ro := withBlock(nil)
			ro.Spec.Strategy.Canary.TrafficRouting.Plugins = entries(tc.entries...)
			_, err := FromRollout(ro, tc.options)
			var e *Error
			if e, _ = err.(*Error); e == nil {
				t.Fatalf("want an *Error, got %v", err)
			}
			if diff := cmp.Diff(tc.want, e.Problems[0].Error()); diff != "" || len(e.Problems) != 1 {
				t.Errorf("%d problems, first (-want +got):\n%s", len(e.Problems), diff)
			}
		})
	}
}
