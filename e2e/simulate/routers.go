package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
)

const routingPath = "spec.strategy.canary.trafficRouting"

// routers is what stands under trafficRouting.
type routers struct {
	// native and plugin are the two blocks; one of them may be nil.
	native, plugin map[string]any
	managed        any
	maxWeight      int64 // 0 where it is not set
	// path is that of the block which the plugin's variant is made from.
	path string
}

// findRouters takes the blocks out of the Rollout.
func (d *deriver) findRouters() error {
	routing, _ := at(d.content, "spec", "strategy", "canary", "trafficRouting").(map[string]any)
	if routing == nil {
		return refuse(d.source, routingPath, "there is no trafficRouting", "Add the block of the native router (istio) or of the plugin (plugins): without one no weight is written.")
	}
	d.found.native, _ = routing["istio"].(map[string]any)
	d.found.plugin = d.ownBlock(routing)
	d.found.managed, d.found.maxWeight = routing["managedRoutes"], 0
	if top, ok := routing["maxTrafficWeight"].(int64); ok {
		d.found.maxWeight = top
	}
	for _, name := range slices.Sorted(maps.Keys(routing)) {
		if !slices.Contains([]string{"istio", "plugins", "managedRoutes", "maxTrafficWeight"}, name) {
			d.notes.leftOut("%s.%s: another router", routingPath, name)
		}
	}
	if d.found.native == nil && d.found.plugin == nil {
		return refuse(d.source, routingPath, "neither the native router's block (istio) nor the plugin's is there",
			fmt.Sprintf("Add one of the two; the plugin's stands under plugins[%q], or under the name given with --plugin-name.", d.pluginName()))
	}
	if d.found.native != nil && d.found.plugin != nil {
		d.notes.changed("%s has both routers: each variant has one of the two", routingPath)
	}
	return nil
}

func (d *deriver) pluginName() string {
	if d.settings.PluginName == "" {
		return config.DefaultPluginName
	}
	return d.settings.PluginName
}

// ownBlock is the plugin's block; the only one there is may have any name.
func (d *deriver) ownBlock(routing map[string]any) map[string]any {
	plugins, _ := routing["plugins"].(map[string]any)
	name := d.pluginName()
	if _, there := plugins[name]; !there && len(plugins) == 1 && routing["istio"] == nil {
		name = slices.Collect(maps.Keys(plugins))[0]
		d.notes.changed("%s.plugins[%q]: played as this plugin's block, as there is no other (--plugin-name)", routingPath, name)
	}
	for _, other := range slices.Sorted(maps.Keys(plugins)) {
		if other != name {
			d.notes.leftOut("%s.plugins[%q]: another plugin", routingPath, other)
		}
	}
	block, _ := plugins[name].(map[string]any)
	d.found.path = routingPath + ".istio"
	if block != nil {
		d.found.path = fmt.Sprintf("%s.plugins[%q]", routingPath, name)
	}
	return block
}

// route reads what the blocks say. A native block means the same as the plugin's.
func (d *deriver) route() error {
	block := d.found.plugin
	if block == nil {
		block = d.found.native
	}
	block = maps.Clone(block)
	for _, field := range []struct{ name, why string }{
		{"verify", "the lab has no mesh to ask, and its rights are those of the stock role"}, {"healthGate", "the lab has no metrics"},
	} {
		if block[field.name] != nil {
			d.notes.leftOut("%s: %s", field.name, field.why)
			delete(block, field.name)
		}
	}
	d.boundHold(block)
	ro := d.ro.DeepCopy()
	ro.Namespace = d.source.Namespace()
	raw, err := json.Marshal(block)
	if err != nil {
		return err
	}
	ro.Spec.Strategy.Canary.TrafficRouting = &v1alpha1.RolloutTrafficRouting{Plugins: map[string]json.RawMessage{lab.DefaultPluginName: raw}}
	if d.config, err = config.FromRollout(ro, config.Options{PluginName: lab.DefaultPluginName, CrossNamespace: everywhere()}); err != nil {
		return d.refuseBlock(err)
	}
	d.found.plugin = block
	return d.oneNamespace()
}

// refuseBlock names the fields as they stand in the files.
func (d *deriver) refuseBlock(err error) error {
	var faulty *config.Error
	if !errors.As(err, &faulty) {
		return err
	}
	var problems []Problem
	for _, p := range faulty.Problems {
		field := d.asWritten(p.Field)
		problems = append(problems, refuse(d.source, field, p.ErrorBody(), "See docs/configuration.md, and for a native block docs/migration.md.").Problems...)
	}
	return refusal(problems)
}

// boundHold keeps the guard from holding longer than the deadline that is played.
func (d *deriver) boundHold(block map[string]any) {
	guard, _ := block["guard"].(map[string]any)
	if guard["maxHold"] == nil {
		return
	}
	guard = maps.Clone(guard)
	d.notes.changed("guard.maxHold: %v, played as the progress deadline", guard["maxHold"])
	delete(guard, "maxHold")
	block["guard"] = guard
}

// oneNamespace refuses names that cannot live in one namespace, where the lab puts all
// objects.
func (d *deriver) oneNamespace() error {
	seen := map[string]bool{}
	check := func(kind, name string) error {
		switch {
		case strings.Contains(name, "."):
			return refuse(d.source, routingPath, fmt.Sprintf("the name of %s %q has a dot, which the native router takes for a namespace", kind, name), "Play it with a name without dots.")
		case seen[kind+"/"+name]:
			return refuse(d.source, routingPath, fmt.Sprintf("two namespaces have a %s %q each, and all objects are played in one", kind, name), "Play it with two names.")
		}
		seen[kind+"/"+name] = true
		return nil
	}
	for _, vs := range d.config.VirtualServices {
		if err := check("VirtualService", vs.Name); err != nil {
			return err
		}
	}
	for _, rule := range d.config.DestinationRules {
		if err := check("DestinationRule", rule.Name); err != nil {
			return err
		}
	}
	return nil
}

// pluginRouting is the plugin's block with plain names.
func (d *deriver) pluginRouting() map[string]any {
	block := runtime.DeepCopyJSON(d.found.plugin)
	delete(block, "virtualServices")
	delete(block, "destinationRules")
	delete(block, "destinationRule")
	var services, rules []any
	for _, vs := range d.config.VirtualServices {
		services = append(services, virtualServiceEntry(vs))
	}
	for _, rule := range d.config.DestinationRules {
		rules = append(rules, destinationRuleEntry(rule))
	}
	oneOrMore(block, "virtualService", services)
	oneOrMore(block, "destinationRule", rules)
	routing := d.common()
	if d.found.maxWeight > 0 {
		routing["maxTrafficWeight"] = d.found.maxWeight
	}
	routing["plugins"] = map[string]any{lab.DefaultPluginName: block}
	return routing
}

// nativeRouting says the same to the native router, as far as it has words for it.
func (d *deriver) nativeRouting(around surroundings) map[string]any {
	block := map[string]any{}
	var services []any
	for _, vs := range d.config.VirtualServices {
		if vs.AllMatchingRoutes {
			vs.AllMatchingRoutes, vs.Routes = false, around.bothSides[vs.Name]
			d.notes.changed("allMatchingRoutes: the native router has no such thing, and gets the names of the routes")
		}
		services = append(services, virtualServiceEntry(vs))
	}
	oneOrMore(block, "virtualService", services)
	if rules := d.config.DestinationRules; len(rules) > 0 {
		block["destinationRule"] = destinationRuleEntry(rules[0])
		if len(rules) > 1 {
			d.notes.leftOut("the native router takes one DestinationRule, and gets %s; only that one is measured", rules[0].Name)
		}
	}
	routing := d.common()
	routing["istio"] = block
	return routing
}

// common is what both routers read.
func (d *deriver) common() map[string]any {
	if d.found.managed == nil {
		return map[string]any{}
	}
	return map[string]any{"managedRoutes": runtime.DeepCopyJSONValue(d.found.managed)}
}

func oneOrMore(block map[string]any, name string, entries []any) {
	switch len(entries) {
	case 0:
	case 1:
		block[name] = entries[0]
	default:
		delete(block, name)
		block[name+"s"] = entries
	}
}

func virtualServiceEntry(vs config.VirtualService) map[string]any {
	entry := map[string]any{"name": vs.Name}
	if vs.AllMatchingRoutes {
		entry["allMatchingRoutes"] = true
	}
	if len(vs.Routes) > 0 {
		entry["routes"] = anys(vs.Routes)
	}
	var tls, tcp []any
	for _, route := range vs.TLSRoutes {
		one := map[string]any{}
		if route.Port > 0 {
			one["port"] = route.Port
		}
		if len(route.SNIHosts) > 0 {
			one["sniHosts"] = anys(route.SNIHosts)
		}
		tls = append(tls, one)
	}
	for _, route := range vs.TCPRoutes {
		tcp = append(tcp, map[string]any{"port": route.Port})
	}
	if tls != nil {
		entry["tlsRoutes"] = tls
	}
	if tcp != nil {
		entry["tcpRoutes"] = tcp
	}
	return entry
}

func destinationRuleEntry(rule config.DestinationRule) map[string]any {
	entry := map[string]any{"name": rule.Name, "canarySubsetName": rule.CanarySubsetName, "stableSubsetName": rule.StableSubsetName}
	if len(rule.AdditionalSubsetNames) > 0 {
		entry["additionalSubsetNames"] = anys(rule.AdditionalSubsetNames)
	}
	return entry
}

func anys(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}
