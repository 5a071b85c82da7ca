package virtualservice_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// manager is the field manager of the tests.
const manager = "our-plugin"

// fields is one object in the notation of the tests.
type fields = map[string]any

// virtualService is shop/web, version 7, with this spec.
func virtualService(spec any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: fields{
		"apiVersion": "networking.istio.io/v1",
		"kind":       "VirtualService",
		"metadata": fields{
			"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "generation": int64(3),
		},
		"spec": spec,
	}}
}

func parse(spec any) *virtualservice.VirtualService {
	return virtualservice.Parse(virtualService(spec), manager)
}

// fromYAML decodes as a client does: whole numbers become int64.
func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	document, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(document); err != nil {
		t.Fatal(err)
	}
	return u
}

// byHosts splits between the Services stable and canary of namespace shop.
func byHosts() virtualservice.Split {
	return virtualservice.Split{
		Stable: virtualservice.Side{Host: "stable.shop.svc.cluster.local"},
		Canary: virtualservice.Side{Host: "canary.shop.svc.cluster.local"},
		Max:    100,
	}
}

// bySubsets splits between two subsets of the Service web of namespace shop.
func bySubsets() virtualservice.Split {
	return virtualservice.Split{
		Stable: virtualservice.Side{Host: "web.shop.svc.cluster.local", Subset: "stable"},
		Canary: virtualservice.Side{Host: "web.shop.svc.cluster.local", Subset: "canary"},
		Max:    100,
	}
}

func outOf(most int32, split virtualservice.Split) virtualservice.Split {
	split.Max = most
	return split
}

// to is a destination; "web/canary" is subset canary of host web.
func to(host string, weight ...any) any {
	host, subset, _ := strings.Cut(host, "/")
	destination := fields{"host": host}
	if subset != "" {
		destination["subset"] = subset
	}
	entry := fields{"destination": destination}
	if len(weight) > 0 {
		entry["weight"] = weight[0]
	}
	return entry
}

// weighs is an int64, as a client decodes a whole number.
func weighs(weight int64) any { return weight }

// ours is a route list of stable and canary.
func ours(stable, canary int64) []any {
	return []any{to("stable", stable), to("canary", canary)}
}

// http is an http route; an empty name is left out.
func http(name string, destinations ...any) any {
	route := fields{"route": destinations}
	if name != "" {
		route["name"] = name
	}
	return route
}

// tls is a tls route whose match blocks are given as "port sni sni".
func tls(matches []string, destinations ...any) any {
	var blocks []any
	for _, match := range matches {
		words := strings.Fields(match)
		var hosts []any
		for _, host := range words[1:] {
			hosts = append(hosts, host)
		}
		block := fields{"sniHosts": hosts}
		if words[0] != "-" {
			block["port"] = json.Number(words[0])
		}
		blocks = append(blocks, block)
	}
	return numbers(fields{"match": blocks, "route": destinations})
}

// tcp is a tcp route with one match block for each port; port 0 names none.
func tcp(ports []int64, destinations ...any) any {
	var blocks []any
	for _, port := range ports {
		block := fields{}
		if port != 0 {
			block["port"] = port
		}
		blocks = append(blocks, block)
	}
	return fields{"match": blocks, "route": destinations}
}

// numbers turns json.Number into int64, which is all that the notation needs.
func numbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		whole, _ := v.Int64()
		return whole
	case fields:
		for key := range v {
			v[key] = numbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	}
	return value
}

// fataler is what *testing.T and *rapid.T have in common here.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// apply does to the object what the API server would, guard included, and decodes
// the result as a client would.
func apply(t fataler, u *unstructured.Unstructured, patch jsonpatch.Patch) *unstructured.Unstructured {
	t.Helper()
	document, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	body, err := patch.Guarded(u.GetResourceVersion()).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := evanphx.DecodePatch(body)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := decoded.Apply(document)
	if err != nil {
		t.Fatal(fmt.Sprintf("%v: patch %s", err, body))
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(patched); err != nil {
		t.Fatal(err)
	}
	return out
}

// weights shows all weights of an object: "http 70 30 | 100 - ; tcp 1 99", where "-"
// is a weight that is not there.
func weights(u *unstructured.Unstructured) string {
	var lists []string
	for _, protocol := range []string{"http", "tls", "tcp"} {
		routes, _, _ := unstructured.NestedSlice(u.Object, "spec", protocol)
		var shown []string
		for _, route := range routes {
			shown = append(shown, routeWeights(route))
		}
		if len(shown) > 0 {
			lists = append(lists, protocol+" "+strings.Join(shown, " | "))
		}
	}
	return strings.Join(lists, "; ")
}

func routeWeights(route any) string {
	content, _ := route.(fields)
	destinations, _ := content["route"].([]any)
	var shown []string
	for _, destination := range destinations {
		entry, _ := destination.(fields)
		text := "-"
		if weight, found := entry["weight"]; found {
			text = fmt.Sprint(weight)
		}
		shown = append(shown, text)
	}
	return strings.Join(shown, " ")
}

// set is what a caller does with one object: parse, select, set.
func set(u *unstructured.Unstructured, selection virtualservice.Selection, split virtualservice.Split, canary int32) (jsonpatch.Patch, []virtualservice.Change, error) {
	return setTarget(u, selection, split, virtualservice.Target{Canary: canary})
}

func setTarget(u *unstructured.Unstructured, selection virtualservice.Selection, split virtualservice.Split, target virtualservice.Target) (jsonpatch.Patch, []virtualservice.Change, error) {
	vs := virtualservice.Parse(u, manager)
	routes, err := vs.Select(selection, split)
	if err != nil {
		return nil, nil, err
	}
	return vs.Set(routes, split, target)
}

// mention reports each of the wanted pieces that the error does not have.
func mention(t *testing.T, err error, wanted ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", wanted)
	}
	for _, want := range wanted {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not mention %q", err, want)
		}
	}
}
