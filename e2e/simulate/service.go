package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// service is the one of the files, else one that is made up.
func (d *deriver) service(name string, virtualServices []map[string]any) map[string]any {
	source, there := d.find("", "Service", d.source.Namespace(), name)
	if !there {
		d.notes.madeUp("Service %s, as it is not in the files", name)
		return map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"selector": d.selector(), "ports": ports(name, virtualServices)},
		}
	}
	object := d.take(source)
	object["spec"] = d.serviceSpec(name, fields(object, "spec"))
	return object
}

// ports are those that the routes name for a host, else 80.
func ports(host string, virtualServices []map[string]any) []any {
	var numbers []int64
	for _, vs := range virtualServices {
		for _, destination := range destinations(vs) {
			if number, ok := at(destination, "port", "number").(int64); ok && destination["host"] == host {
				numbers = append(numbers, number)
			}
		}
	}
	if len(numbers) == 0 {
		numbers = []int64{80}
	}
	slices.Sort(numbers)
	var out []any
	for _, number := range slices.Compact(numbers) {
		out = append(out, map[string]any{"name": fmt.Sprintf("http-%d", number), "port": number})
	}
	return out
}

// serviceDefaults are what an API server writes into a Service by itself. A field with
// another value is somebody's wish.
var serviceDefaults = map[string]any{
	"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster",
	"ipFamilyPolicy": "SingleStack", "publishNotReadyAddresses": false, "allocateLoadBalancerNodePorts": true,
}

// serverGiven are the fields of a Service that only a server fills, beside a clusterIP or
// a type that says the same.
var serverGiven = []string{"clusterIPs", "ipFamilies", "healthCheckNodePort"}

// serviceSpec leaves out what a cluster has once, as both variants have the Service, and
// what needs more than an API server.
func (d *deriver) serviceSpec(name string, spec map[string]any) map[string]any {
	kept := map[string]any{"ports": []any{}}
	nodePort := false
	for _, port := range list(spec["ports"]) {
		if fields, ok := port.(map[string]any); ok {
			nodePort = nodePort || fields["nodePort"] != nil
			delete(fields, "nodePort")
			put(kept, "ports", fields)
		}
	}
	if selector, ok := spec["selector"].(map[string]any); ok {
		delete(selector, hashLabel)
		kept["selector"] = selector
	}
	if spec["clusterIP"] == "None" {
		kept["clusterIP"] = "None"
	}
	if kind := spec["type"]; kind != nil && kind != "ClusterIP" {
		d.notes.changed("Service %s: type %v, played as ClusterIP", name, kind)
	}
	if out := lost(spec, kept); nodePort || len(out) > 0 {
		if nodePort {
			out = append(out, "nodePort of its ports")
		}
		d.notes.leftOut("Service %s: %s", name, strings.Join(out, ", "))
	}
	return kept
}

// lost are the fields of a Service's spec that say something and are not kept, in order.
func lost(spec, kept map[string]any) []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(spec)), func(name string) bool {
		byDefault, known := serviceDefaults[name]
		return kept[name] != nil || name == "type" || slices.Contains(serverGiven, name) || known && spec[name] == byDefault
	})
	return present(spec, names)
}
