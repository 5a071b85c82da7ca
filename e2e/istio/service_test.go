package istio

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// managedNames are those under managedRoutes. No drawn route has one of them.
var managedNames = []string{"header-1", "header-2", "mirror-1", "mirror-2"}

// host is the full name of a Service of namespace shop.
func host(service string) string { return service + ".shop.svc.cluster.local" }

func splits() []virtualservice.Split {
	return []virtualservice.Split{
		{Stable: virtualservice.Side{Host: host("stable")}, Canary: virtualservice.Side{Host: host("canary")}},
		{Stable: virtualservice.Side{Host: host("web"), Subset: "stable"}, Canary: virtualservice.Side{Host: host("web"), Subset: "canary"}},
	}
}

// stringMatch is a match of each kind.
func stringMatch(t *rapid.T, of string) any {
	return fields{
		rapid.SampledFrom([]string{"exact", "prefix", "regex"}).Draw(t, of+" match"): rapid.SampledFrom([]string{"/a", "/a/b", "/"}).Draw(t, of),
	}
}

// httpMatch is one block of conditions, maybe none.
func httpMatch(t *rapid.T) any {
	m := fields{}
	maybe(t, m, "uri", stringMatch(t, "uri"))
	maybe(t, m, "method", fields{"exact": "GET"}, fields{"regex": "GET|POST"})
	maybe(t, m, "headers", fields{"x-user": stringMatch(t, "header")}, fields{"x-user": fields{}}, fields{"x-flag": fields{"exact": "1"}})
	switch rapid.IntRange(0, 5).Draw(t, "rare") {
	case 0:
		maybe(t, m, "withoutHeaders", fields{"x-bot": fields{}}, fields{"x-user": fields{"exact": "a"}})
		maybe(t, m, "queryParams", fields{"v": fields{"exact": "2"}})
	case 1:
		maybe(t, m, "port", int64(8080))
		maybe(t, m, "authority", fields{"prefix": "web"})
		maybe(t, m, "scheme", fields{"exact": "https"})
		maybe(t, m, "ignoreUriCase", true)
	case 2:
		maybe(t, m, "gateways", []any{"mesh"}, []any{"istio-system/front"})
		maybe(t, m, "sourceLabels", fields{"app": "front"})
		maybe(t, m, "sourceNamespace", "front")
		maybe(t, m, "name", "block", "") // "" is as good as absent
	}
	return m
}

// httpActions are what a route does besides forwarding.
func httpActions(t *rapid.T, route fields) {
	maybe(t, route, "timeout", "5s", "1h")
	maybe(t, route, "retries", fields{"attempts": int64(3), "perTryTimeout": "2s", "retryOn": "5xx"}, fields{"attempts": int64(0)})
	maybe(t, route, "rewrite", fields{"uri": "/x"}, fields{"authority": "y"}, fields{"uri": "/"},
		fields{"uriRegexRewrite": fields{"match": "^/a(.*)$", "rewrite": `/z\1`}})
	maybe(t, route, "corsPolicy", fields{"allowOrigins": []any{fields{"exact": "https://example.com"}}, "allowMethods": []any{"GET"}, "maxAge": "24h"})
	maybe(t, route, "headers", fields{"request": fields{"set": fields{"x-a": "b"}, "remove": []any{"x-c"}}}, fields{"response": fields{"add": fields{"x-d": "e"}}})
	maybe(t, route, "fault", fields{"delay": fields{"percentage": fields{"value": 0.1}, "fixedDelay": "5s"}}, fields{"abort": fields{"httpStatus": int64(503), "percentage": fields{"value": int64(1)}}})
	switch rapid.IntRange(0, 5).Draw(t, "mirroring") {
	case 0:
		route["mirror"] = fields{"host": "shadow"}
		maybe(t, route, "mirrorPercentage", fields{"value": 12.5})
	case 1:
		route["mirrors"] = []any{fields{"destination": fields{"host": "shadow"}, "percentage": fields{"value": int64(5)}}}
	}
}

func destination(t *rapid.T, side virtualservice.Side, weight int64) any {
	where := fields{"host": side.Host}
	if side.Subset != "" {
		where["subset"] = side.Subset
	}
	maybe(t, where, "port", fields{"number": int64(80)})
	return fields{"destination": where, "weight": weight}
}

// ours is a route list with both sides, and maybe a foreign destination.
func ours(t *rapid.T, split virtualservice.Split) []any {
	most := int64(split.Max)
	foreign := rapid.SampledFrom([]int64{0, 0, 0, 1, most / 4}).Draw(t, "foreign")
	canary := rapid.Int64Range(0, most-foreign).Draw(t, "canary")
	list := []any{destination(t, split.Stable, most-foreign-canary), destination(t, split.Canary, canary)}
	if foreign > 0 {
		list = append(list, destination(t, virtualservice.Side{Host: "legacy.shop.svc.cluster.local"}, foreign))
	}
	return rapid.Permutation(list).Draw(t, "route")
}

// httpRoute is of one of the kinds, and ours in most cases.
func httpRoute(t *rapid.T, split virtualservice.Split, index int, kinds []string) any {
	route := fields{}
	maybe(t, route, "name", fmt.Sprintf("route-%d", index))
	if blocks := rapid.IntRange(0, 3).Draw(t, "matches"); blocks > 0 {
		var match []any
		for range blocks {
			match = append(match, httpMatch(t))
		}
		route["match"] = match
	}
	switch rapid.SampledFrom(append(kinds, "ours", "ours", "ours")).Draw(t, "kind") {
	case "ours":
		httpActions(t, route)
		route["route"] = ours(t, split)
	case "foreign":
		route["route"] = []any{fields{"destination": fields{"host": "db"}}}
	case "redirect":
		route["redirect"] = fields{"uri": "/moved"}
	case "direct":
		route["directResponse"] = fields{"status": int64(404)}
	case "delegate":
		route["delegate"] = fields{"name": "other"}
	}
	return route
}

// drawService is a VirtualService with at least one http route of ours. One in two
// is a delegate, which has http routes alone and does not delegate itself.
func drawService(t *rapid.T, split virtualservice.Split) *unstructured.Unstructured {
	kinds, spec := []string{"foreign", "redirect", "direct"}, fields{}
	if !rapid.Bool().Draw(t, "delegate") {
		kinds = append(kinds, "delegate")
		drawRoot(t, split, spec)
	}
	last := fields{"route": ours(t, split)}
	httpActions(t, last)
	var http []any
	for i := range rapid.IntRange(0, 3).Draw(t, "http routes") {
		http = append(http, httpRoute(t, split, i, kinds))
	}
	spec["http"] = append(http, last)
	maybe(t, spec, "exportTo", []any{"."}, []any{"*"})
	return &unstructured.Unstructured{Object: fields{
		"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
		"metadata": fields{"name": "web", "namespace": "shop"}, "spec": spec,
	}}
}

// drawRoot adds what a delegate may not have.
func drawRoot(t *rapid.T, split virtualservice.Split, spec fields) {
	spec["hosts"] = rapid.SampledFrom([]any{[]any{"web"}, []any{"web.example.com", "api.example.com"}}).Draw(t, "hosts")
	maybe(t, spec, "gateways", []any{"mesh"}, []any{"istio-system/front", "mesh"})
	if rapid.Bool().Draw(t, "tls") {
		spec["tls"] = []any{fields{"match": []any{fields{"port": int64(443), "sniHosts": spec["hosts"]}}, "route": ours(t, split)}}
	}
	if rapid.Bool().Draw(t, "tcp") {
		spec["tcp"] = []any{fields{"match": []any{fields{"port": int64(27017)}}, "route": ours(t, split)}}
	}
}

// condition is a match of a step. Header names and values are what the controller
// lets a Rollout say.
func condition(t *rapid.T, of string) virtualservice.StringMatch {
	text := rapid.SampledFrom([]string{"a", "/a", "1"}).Draw(t, of)
	switch rapid.SampledFrom([]string{"exact", "prefix", "regex", "present"}).Draw(t, of+" kind") {
	case "exact":
		return virtualservice.StringMatch{Exact: text}
	case "prefix":
		return virtualservice.StringMatch{Prefix: text}
	case "regex":
		return virtualservice.StringMatch{Regex: text + ".*"}
	}
	return virtualservice.StringMatch{}
}

func drawManaged(t *rapid.T, name string) virtualservice.ManagedRoute {
	headers := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x-user", "X-Flag", "x-new"}), 1, 3, rapid.ID).Draw(t, "headers")
	if name[0] == 'h' {
		m := virtualservice.ManagedRoute{Name: name}
		for _, header := range headers {
			m.Header = append(m.Header, virtualservice.HeaderMatch{Name: header, Value: condition(t, header)})
		}
		return m
	}
	mirror := &virtualservice.Mirror{Percentage: rapid.Int32Range(0, 100).Draw(t, "percentage")}
	for range rapid.IntRange(1, 2).Draw(t, "matches") {
		match := virtualservice.MirrorMatch{}
		if rapid.Bool().Draw(t, "method") {
			match.Method = &virtualservice.StringMatch{Exact: "GET"}
		}
		if rapid.Bool().Draw(t, "path") {
			path := condition(t, "path")
			match.Path = &path
		}
		if rapid.Bool().Draw(t, "with headers") {
			match.Headers = map[string]virtualservice.StringMatch{headers[0]: condition(t, headers[0])}
		}
		mirror.Match = append(mirror.Match, match)
	}
	return virtualservice.ManagedRoute{Name: name, Mirror: mirror}
}

// drawTarget is what one call wants. Few of them want everything at once.
func drawTarget(t *rapid.T, split virtualservice.Split) virtualservice.Target {
	target := virtualservice.Target{
		Owner: "shop/web", ManagedNames: managedNames,
		Canary: rapid.SampledFrom([]int32{0, split.Max, split.Max / 3, split.Max / 2}).Draw(t, "canary weight"),
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(managedNames), 0, 2, rapid.ID).Draw(t, "managed") {
		target.Managed = append(target.Managed, drawManaged(t, name))
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"exp-a", "exp-b"}), 0, 2, rapid.ID).Draw(t, "experiments") {
		target.Experiments = append(target.Experiments, virtualservice.Experiment{
			Service: name, Side: experimentSide(split, name), Weight: rapid.Int32Range(0, split.Max).Draw(t, name),
		})
	}
	return target
}

func experimentSide(split virtualservice.Split, name string) virtualservice.Side {
	if split.Stable.Subset == "" {
		return virtualservice.Side{Host: host(name)}
	}
	return virtualservice.Side{Host: split.Stable.Host, Subset: name}
}

func TestIstioAcceptsEveryVirtualServiceAfterAPatchThatItAcceptedBefore(t *testing.T) {
	var seen tally
	rapid.Check(t, func(t *rapid.T) {
		split := rapid.SampledFrom(splits()).Draw(t, "split")
		split.Max = rapid.SampledFrom([]int32{100, 1000, 7}).Draw(t, "max")
		u := drawService(t, split)
		if _, err := Validate(asJSON(t, u)); err != nil {
			seen.refused++
			return
		}
		split.Experiments = []virtualservice.Side{experimentSide(split, "exp-a"), experimentSide(split, "exp-b")}
		// Weights move, managed routes and experiments come and go.
		for range 3 {
			vs := virtualservice.Parse(patched(t, u, nil), manager)
			routes, err := vs.Select(virtualservice.Selection{AllMatching: true, Managed: managedNames}, split)
			if err != nil {
				t.Fatal(err)
			}
			patch, _, err := vs.Set(routes, split, drawTarget(t, split))
			if !seen.count(patch, err) {
				continue
			}
			after := patched(t, u, patch)
			accepted(t, u, after, patch)
			u = after
		}
		removed(t, u)
	})
	seen.enough(t, 1000)
}

// removed takes the managed routes out, as for a Rollout that is gone.
func removed(t *rapid.T, u *unstructured.Unstructured) {
	t.Helper()
	patch, _, err := virtualservice.Parse(patched(t, u, nil), manager).RemoveManaged(managedNames)
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, u, patched(t, u, patch), patch)
}
