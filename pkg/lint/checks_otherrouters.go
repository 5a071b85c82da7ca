package lint

import (
	"fmt"
	"maps"
	"slices"
)

// httpRule is one rule of an HTTPRoute of the Gateway API.
type httpRule struct {
	o     *object
	index int
}

// addBackends puts each rule under the Services that it names.
func (x *index) addBackends(o *object) {
	for i := range o.list("spec", "rules") {
		rule := httpRule{o, i}
		for _, service := range rule.services() {
			if known := x.backends[service]; len(known) == 0 || known[len(known)-1] != rule {
				x.backends[service] = append(known, rule)
			}
		}
	}
}

// services are those that the rule names. A backendRef without a group, kind or namespace
// is a Service of the route's own namespace.
func (r httpRule) services() []key {
	var all []key
	refs, _ := at(r.o.list("spec", "rules")[r.index], "backendRefs").([]any)
	for _, ref := range refs {
		text := func(name, otherwise string) string {
			if value := at(ref, name); value != nil {
				text, _ := value.(string)
				return text
			}
			return otherwise
		}
		if name := text("name", ""); name != "" && text("group", "") == "" && text("kind", serviceKind.kind) == serviceKind.kind {
			all = append(all, key{serviceKind, text("namespace", r.o.Namespace), name})
		}
	}
	return all
}

// otherRouters looks for what else moves, or splits, the traffic of the Rollout's Services.
// An HTTPRoute is taken for that of another plugin if there is one.
func otherRouters(s *subject, tell tell) {
	others, builtIn := s.otherPlugins(), s.builtInRouters()
	for _, name := range others {
		tell(s.o, fmt.Sprintf("%s.plugins[%q]", routingPath, name), "the plugin %q routes the Rollout beside %q", cut(name), cut(s.w.options.PluginName))
	}
	for _, name := range builtIn {
		tell(s.o, routingPath+"."+name, "the controller's own router %s routes the Rollout beside %q", name, cut(s.w.options.PluginName))
	}
	if len(others)+len(builtIn) > 0 {
		return
	}
	if s.cfg.StableService == "" || s.cfg.CanaryService == "" {
		return
	}
	stable, canary := key{serviceKind, s.o.Namespace, s.cfg.StableService}, key{serviceKind, s.o.Namespace, s.cfg.CanaryService}
	for _, rule := range s.w.index.backends[stable] {
		if !slices.Contains(rule.services(), canary) {
			continue
		}
		if !tell(rule.o, fmt.Sprintf("spec.rules[%d].backendRefs", rule.index), "the rule splits between the Services %s and %s of %s", stable.Name, canary.Name, s.o) {
			return
		}
	}
}

// otherPlugins are the names of those beside this one, in order.
func (s *subject) otherPlugins() []string {
	if s.canary().TrafficRouting == nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(s.canary().TrafficRouting.Plugins))
	return slices.DeleteFunc(names, func(name string) bool { return name == s.w.options.PluginName })
}

// builtInRouters are the controller's own that the Rollout names, in order. Istio's beside
// the plugin is ARI0103.
func (s *subject) builtInRouters() []string {
	var names []string
	for _, name := range []string{"alb", "ambassador", "apisix", "appMesh", "nginx", "smi", "traefik"} {
		if s.o.at("spec", "strategy", "canary", "trafficRouting", name) != nil {
			names = append(names, name)
		}
	}
	return names
}
