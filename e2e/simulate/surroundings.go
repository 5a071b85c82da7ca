package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

const istioGroup = "networking.istio.io"

// surroundings are the objects that the Rollout names.
type surroundings struct {
	objects []map[string]any
	subject timeline.Subject
	// bothSides are the named http routes that hold both sides, by VirtualService.
	bothSides map[string][]string
}

// copies are for a caller who may change them.
func (a surroundings) copies() []map[string]any {
	all := make([]map[string]any, len(a.objects))
	for i, object := range a.objects {
		all[i] = runtime.DeepCopyJSON(object)
	}
	return all
}

// side is where one side's requests go.
type side struct{ host, subset string }

// around takes what the Rollout names from the files, and makes up the rest.
func (d *deriver) around() surroundings {
	a := surroundings{bothSides: map[string][]string{}}
	var rules, services []map[string]any
	hosts := d.serviceNames()
	for _, rule := range d.config.DestinationRules {
		object := d.destinationRule(rule)
		rules = append(rules, object)
		host, _ := at(object, "spec", "host").(string)
		hosts = append(hosts, host)
	}
	stable, canary := d.sides(rules)
	var virtualServices []map[string]any
	for _, vs := range d.config.VirtualServices {
		object := d.virtualService(vs, stable, canary)
		virtualServices = append(virtualServices, object)
		a.bothSides[vs.Name] = bothSides(object, stable, canary)
	}
	slices.Sort(hosts)
	for _, host := range slices.Compact(hosts) {
		// A name with dots is no Service of this namespace.
		if host != "" && !strings.Contains(host, ".") {
			services = append(services, d.service(host, virtualServices))
		}
	}
	a.objects = slices.Concat(services, rules, virtualServices)
	a.subject = d.subject()
	return a
}

// subject says what is recorded.
func (d *deriver) subject() timeline.Subject {
	s := timeline.Subject{Rollout: d.source.Name(), MaxWeight: int32(min(d.found.maxWeight, 1<<30))}
	listed := true
	for _, vs := range d.config.VirtualServices {
		s.VirtualServices = append(s.VirtualServices, vs.Name)
		s.Routes = append(s.Routes, vs.Routes...)
		// Other protocols have no names to limit the judgement to.
		listed = listed && len(vs.Routes) > 0 && len(vs.TLSRoutes)+len(vs.TCPRoutes) == 0
	}
	if !listed {
		s.Routes = nil
	}
	if rules := d.config.DestinationRules; len(rules) > 0 {
		s.DestinationRule, s.CanarySubset, s.StableSubset = rules[0].Name, rules[0].CanarySubsetName, rules[0].StableSubsetName
		return s
	}
	s.CanaryService, s.StableService = d.config.CanaryService, d.config.StableService
	return s
}

// serviceNames are those that the Rollout itself names.
func (d *deriver) serviceNames() []string {
	canary := d.ro.Spec.Strategy.Canary
	names := []string{canary.CanaryService, canary.StableService}
	if canary.PingPong != nil {
		names = append(names, canary.PingPong.PingService, canary.PingPong.PongService)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// sides are where a route that is made up sends its requests.
func (d *deriver) sides(rules []map[string]any) (stable, canary side) {
	if len(rules) == 0 {
		return side{host: d.config.StableService}, side{host: d.config.CanaryService}
	}
	host, _ := at(rules[0], "spec", "host").(string)
	rule := d.config.DestinationRules[0]
	return side{host, rule.StableSubsetName}, side{host, rule.CanarySubsetName}
}

// find looks an object of the files up.
func (d *deriver) find(group, kind, namespace, name string) (lint.Source, bool) {
	i := slices.IndexFunc(d.sources, func(s lint.Source) bool {
		return s.Is(group, kind) && s.Namespace() == namespace && s.Name() == name
	})
	if i < 0 {
		return lint.Source{}, false
	}
	return d.sources[i], true
}

// take copies an object of the files without what a server has put into it.
func (d *deriver) take(s lint.Source) map[string]any {
	d.applied = append(d.applied, s)
	object := runtime.DeepCopyJSON(s.Content())
	object["metadata"] = d.metadata(object)
	delete(object, "status")
	return object
}

func (d *deriver) virtualService(vs config.VirtualService, stable, canary side) map[string]any {
	source, there := d.find(istioGroup, "VirtualService", vs.Namespace, vs.Name)
	if !there {
		return d.madeUpVirtualService(vs, stable, canary)
	}
	object := d.take(source)
	for _, destination := range destinations(object) {
		destination["host"] = d.short(source, destination["host"])
	}
	return object
}

// madeUpVirtualService has the routes that the Rollout lists, else one.
func (d *deriver) madeUpVirtualService(vs config.VirtualService, stable, canary side) map[string]any {
	spec := map[string]any{"hosts": []any{cmp.Or(stable.host, d.source.Name())}}
	route := func(protocol string, what map[string]any) {
		what["route"] = []any{
			map[string]any{"destination": stable.destination(), "weight": int64(100)},
			map[string]any{"destination": canary.destination(), "weight": int64(0)},
		}
		put(spec, protocol, what)
	}
	names := vs.Routes
	if len(names)+len(vs.TLSRoutes)+len(vs.TCPRoutes) == 0 {
		names = []string{"primary"}
	}
	for _, name := range names {
		route("http", map[string]any{"name": name})
	}
	for _, tls := range vs.TLSRoutes {
		match := map[string]any{"sniHosts": anys(tls.SNIHosts)}
		if len(tls.SNIHosts) == 0 {
			match["sniHosts"] = []any{"*"} // Istio takes none without
		}
		if tls.Port > 0 {
			match["port"] = tls.Port
		}
		route("tls", map[string]any{"match": []any{match}})
	}
	for _, tcp := range vs.TCPRoutes {
		route("tcp", map[string]any{"match": []any{map[string]any{"port": tcp.Port}}})
	}
	d.notes.madeUp("VirtualService %s with %s, as it is not in the files", vs.Name, strings.Join(routeWords(names, vs), ", "))
	return map[string]any{
		"apiVersion": istioGroup + "/v1", "kind": "VirtualService", "metadata": map[string]any{"name": vs.Name}, "spec": spec,
	}
}

// put adds to a list.
func put(spec map[string]any, field string, item any) {
	list, _ := spec[field].([]any)
	spec[field] = append(list, item)
}

func routeWords(names []string, vs config.VirtualService) []string {
	var words []string
	for _, name := range names {
		words = append(words, fmt.Sprintf("the http route %q", name))
	}
	if n := len(vs.TLSRoutes) + len(vs.TCPRoutes); n > 0 {
		words = append(words, fmt.Sprintf("%d tls and tcp routes", n))
	}
	return words
}

func (s side) destination() map[string]any {
	destination := map[string]any{"host": s.host}
	if s.subset != "" {
		destination["subset"] = s.subset
	}
	return destination
}

// destinations are those of all routes, with the mirrors.
func destinations(virtualService map[string]any) []map[string]any {
	var all []map[string]any
	take := func(value any) {
		if destination, ok := value.(map[string]any); ok && destination["host"] != nil {
			all = append(all, destination)
		}
	}
	for _, protocol := range []string{"http", "tls", "tcp"} {
		for _, route := range list(at(virtualService, "spec", protocol)) {
			take(at(route, "mirror"))
			for _, weighted := range slices.Concat(list(at(route, "route")), list(at(route, "mirrors"))) {
				take(at(weighted, "destination"))
			}
		}
	}
	return all
}

func list(value any) []any {
	items, _ := value.([]any)
	return items
}

// bothSides are the names of http routes that send to both.
func bothSides(virtualService map[string]any, stable, canary side) []string {
	var names []string
	for _, route := range list(at(virtualService, "spec", "http")) {
		name, _ := at(route, "name").(string)
		var hasStable, hasCanary bool
		for _, weighted := range list(at(route, "route")) {
			switch destination := at(weighted, "destination"); {
			case stable.is(destination):
				hasStable = true
			case canary.is(destination):
				hasCanary = true
			}
		}
		if name != "" && hasStable && hasCanary {
			names = append(names, name)
		}
	}
	return names
}

func (s side) is(destination any) bool {
	subset, _ := at(destination, "subset").(string)
	return at(destination, "host") == s.host && subset == s.subset
}

func (d *deriver) destinationRule(rule config.DestinationRule) map[string]any {
	if source, there := d.find(istioGroup, "DestinationRule", rule.Namespace, rule.Name); there {
		object := d.take(source)
		spec := fields(object, "spec")
		spec["host"] = d.short(source, spec["host"])
		for _, subset := range list(spec["subsets"]) {
			// What routers have written belongs to pods that are not here.
			if labels, ok := at(subset, "labels").(map[string]any); ok {
				delete(labels, hashLabel)
			}
		}
		return object
	}
	host := d.hostOf(rule)
	labels := d.selector()
	d.notes.madeUp("DestinationRule %s for the host %s with the subsets %s and %s, as it is not in the files",
		rule.Name, host, rule.StableSubsetName, rule.CanarySubsetName)
	return map[string]any{
		"apiVersion": istioGroup + "/v1", "kind": "DestinationRule", "metadata": map[string]any{"name": rule.Name},
		"spec": map[string]any{"host": host, "subsets": []any{
			map[string]any{"name": rule.StableSubsetName, "labels": labels},
			map[string]any{"name": rule.CanarySubsetName, "labels": runtime.DeepCopyJSON(labels)},
		}},
	}
}

// hostOf is the host that the routes of the files have for the canary's subset, else the
// Rollout's name.
func (d *deriver) hostOf(rule config.DestinationRule) string {
	for _, vs := range d.config.VirtualServices {
		source, there := d.find(istioGroup, "VirtualService", vs.Namespace, vs.Name)
		if !there {
			continue
		}
		for _, destination := range destinations(source.Content()) {
			if destination["subset"] == rule.CanarySubsetName {
				if host, ok := d.short(source, destination["host"]).(string); ok {
					return host
				}
			}
		}
	}
	return d.source.Name()
}

// selector are the labels that all pods of the Rollout have.
func (d *deriver) selector() map[string]any {
	labels := map[string]any{}
	if d.ro.Spec.Selector != nil {
		for key, value := range d.ro.Spec.Selector.MatchLabels {
			labels[key] = value
		}
	}
	if len(labels) > 0 {
		return labels
	}
	for key, value := range d.ro.Spec.Template.Labels {
		if key != revisionLabel {
			labels[key] = value
		}
	}
	return labels
}

// short is the plain name of a Service whose full name has a namespace of the files, as
// the lab's namespace is another. Other hosts stay what they are.
func (d *deriver) short(holder lint.Source, host any) any {
	text, ok := host.(string)
	if !ok {
		return host
	}
	name, rest, dotted := strings.Cut(hostname.Canonical(text, holder.Namespace(), ""), ".")
	if !dotted {
		return host
	}
	namespace, domain, _ := strings.Cut(rest, ".")
	if domain != "svc."+hostname.DefaultClusterDomain || namespace != d.source.Namespace() && namespace != holder.Namespace() {
		return host
	}
	if text != name {
		d.notes.changed("hosts of Services: by their plain names, as the namespace is another")
	}
	return name
}
