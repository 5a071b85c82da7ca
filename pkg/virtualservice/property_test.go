package virtualservice_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// place is where the generator put a route of ours.
type place struct {
	protocol       string
	index          int
	stable, canary int
	foreign        int64
}

// world is a generated VirtualService and what the generator knows about it,
// which is the oracle: it is never read back from the object.
type world struct {
	object *unstructured.Unstructured
	split  virtualservice.Split
	ours   []place
}

// ofTwoHosts is a split by subsets of two Services.
func ofTwoHosts() virtualservice.Split {
	split, host := bySubsets(), "api.shop.svc.cluster.local"
	split.More = []virtualservice.Pair{{
		Stable: virtualservice.Side{Host: host, Subset: split.Stable.Subset},
		Canary: virtualservice.Side{Host: host, Subset: "next"},
	}}
	return split
}

// forms are the ways to write the host of a Service of namespace shop.
func forms(service string) []string {
	return []string{service, service + ".shop", service + ".shop.svc", service + ".shop.svc.cluster.local", service + ".shop.svc.cluster.local."}
}

// anything is JSON content such as a field that this client has never heard of.
func anything() *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any]("x/~ \"<é"), rapid.Just[any](1.5),
		rapid.Map(rapid.Int64Range(-5, 1<<40), func(i int64) any { return i }))
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(leaf, 0, 3), func(list []any) any { return list }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"weight", "host", "a/b", "~", ""}), leaf, 0, 3), func(m map[string]any) any { return m }))
}

// sprinkle adds fields that are nobody's business to content.
func sprinkle(t *rapid.T, content fields, names ...string) fields {
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), func(s string) string { return s }).Draw(t, "extra") {
		content[name] = anything().Draw(t, name)
	}
	return content
}

// destination is a destination entry with other fields around it. A weight of 0 is
// sometimes left out, and a weight is sometimes a float.
func destination(t *rapid.T, host, subset string, weight int64) any {
	where := sprinkle(t, fields{"host": host}, "futureField")
	if subset != "" {
		where["subset"] = subset
	}
	if rapid.Bool().Draw(t, "port") {
		where["port"] = fields{"number": int64(8080)}
	}
	entry := sprinkle(t, fields{"destination": where}, "headers", "futureField")
	switch {
	case weight == 0 && rapid.Bool().Draw(t, "absent"):
	case rapid.Bool().Draw(t, "float"):
		entry["weight"] = float64(weight)
	default:
		entry["weight"] = weight
	}
	return entry
}

// ourRoute is a route list that holds both sides and maybe foreign destinations,
// in any order, with weights that Set accepts.
func (w *world) ourRoute(t *rapid.T, protocol string, index int) []any {
	most := int64(w.split.Max)
	found := place{protocol: protocol, index: index}
	foreign := rapid.IntRange(0, 3).Draw(t, "foreign")
	var list []any
	for range foreign {
		weight := rapid.Int64Range(0, (most-1-found.foreign)/2).Draw(t, "foreign weight")
		found.foreign += weight
		list = append(list, w.foreign(t, weight))
	}
	// Beside foreign weights ours may not be on another scale.
	limit := most
	if found.foreign == 0 {
		limit = 1 << 30
	}
	stable := rapid.Int64Range(0, limit).Draw(t, "stable weight")
	canary := rapid.Int64Range(0, limit-stable).Draw(t, "canary weight")
	add := func(side virtualservice.Side, service string, weight int64) int {
		at := rapid.IntRange(0, len(list)).Draw(t, "at")
		host := rapid.SampledFrom(forms(service)).Draw(t, "host")
		list = append(list[:at], append([]any{destination(t, host, side.Subset, weight)}, list[at:]...)...)
		return at
	}
	pair, host := virtualservice.Pair{Stable: w.split.Stable, Canary: w.split.Canary}, w.service
	if len(w.split.More) > 0 && rapid.Bool().Draw(t, "second pair") {
		pair, host = w.split.More[0], func(string) string { return "api" }
	}
	found.stable = add(pair.Stable, host("stable"), stable)
	found.canary = add(pair.Canary, host("canary"), canary)
	if found.canary <= found.stable {
		found.stable++
	}
	w.ours = append(w.ours, found)
	return list
}

// service is the Service of a side.
func (w *world) service(side string) string {
	if w.split.Stable.Subset != "" {
		return "web"
	}
	return side
}

// foreign is a destination that only looks like ours.
func (w *world) foreign(t *rapid.T, weight int64) any {
	hosts := []string{"db", "stable.other", "canary.other.svc.cluster.local", "web.other", "stable-2", "example.com", "*.shop"}
	host := rapid.SampledFrom(hosts).Draw(t, "foreign host")
	return destination(t, host, rapid.SampledFrom([]string{"", "stable", "canary", "legacy"}).Draw(t, "foreign subset"), weight)
}

// route is one entry of a list; about half of them are ours.
func (w *world) route(t *rapid.T, protocol string, index int) any {
	route := sprinkle(t, fields{}, "retries", "timeout", "corsPolicy", "headers", "fault", "rewrite", "mirror", "futureField")
	if protocol != "http" {
		route["match"] = []any{fields{"port": int64(index), "sniHosts": []any{"a"}}}
	}
	kinds := []string{"ours", "ours", "ours", "foreign", "one side", "empty", "delegate", "redirect", "garbage"}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "ours":
		if protocol == "http" && rapid.Bool().Draw(t, "named") {
			route["name"] = "route-" + strconv.Itoa(index)
		}
		route["route"] = w.ourRoute(t, protocol, index)
	case "foreign":
		route["route"] = []any{w.foreign(t, 0), w.foreign(t, 10)}
	case "one side":
		side, name := w.split.Stable, "stable"
		if rapid.Bool().Draw(t, "canary side") {
			side, name = w.split.Canary, "canary"
		}
		route["route"] = []any{destination(t, w.service(name), side.Subset, 100)}
	case "delegate":
		route["delegate"] = fields{"name": "del"}
	case "redirect":
		route["redirect"] = fields{"uri": "/"}
	case "garbage":
		return rapid.SampledFrom([]any{nil, "x", int64(1), []any{}, fields{"route": "x", "name": int64(1)}, fields{"route": []any{nil, "x"}}}).Draw(t, "garbage")
	}
	return route
}

// drawWorld makes a VirtualService with at least one route of ours.
func drawWorld(t *rapid.T) *world {
	w := &world{split: rapid.SampledFrom([]virtualservice.Split{byHosts(), bySubsets(), ofTwoHosts()}).Draw(t, "split")}
	w.split.Max = rapid.SampledFrom([]int32{2, 7, 100, 1000, 1<<31 - 1}).Draw(t, "max")
	spec := sprinkle(t, fields{"hosts": []any{"web"}}, "gateways", "exportTo", "futureField")
	for _, protocol := range []string{"http", "tls", "tcp"} {
		var list []any
		for i := range rapid.IntRange(0, 4).Draw(t, protocol+" routes") {
			list = append(list, w.route(t, protocol, i))
		}
		if list != nil {
			spec[protocol] = list
		}
	}
	if len(w.ours) == 0 {
		last, _ := spec["http"].([]any)
		spec["http"] = append(last, fields{"route": w.ourRoute(t, "http", len(last))})
	}
	w.object = decoded(t, virtualService(spec))
	return w
}

// decoded is the object as a client would have it from the API server.
func decoded(t fataler, u *unstructured.Unstructured) *unstructured.Unstructured {
	return apply(t, u, nil)
}

// expected is the object with nothing but the weights changed, computed from what
// the generator knows.
func (w *world) expected(canary int32) *unstructured.Unstructured {
	out := w.object.DeepCopy()
	for _, p := range w.ours {
		rest := int64(w.split.Max) - p.foreign
		part := rest * int64(canary) / int64(w.split.Max)
		w.setAt(out, p, p.canary, part)
		w.setAt(out, p, p.stable, rest-part)
	}
	return out
}

func (w *world) setAt(u *unstructured.Unstructured, p place, destination int, weight int64) {
	entry := u.Object["spec"].(fields)[p.protocol].([]any)[p.index].(fields)["route"].([]any)[destination].(fields)
	if _, found := entry["weight"]; !found && weight == 0 {
		return
	}
	entry["weight"] = weight
}

func TestOnlyOurWeightsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		canary := rapid.Int32Range(0, w.split.Max).Draw(t, "canary")
		all := virtualservice.Selection{AllMatching: true}
		before := w.object.DeepCopy()
		patch, _, err := set(w.object, all, w.split, canary)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, w.object); diff != "" {
			t.Fatalf("the cached object changed (-before +after):\n%s", diff)
		}
		after := apply(t, w.object, patch)
		if diff := cmp.Diff(w.expected(canary), after); diff != "" {
			t.Fatalf("object (-want +got):\n%s", diff)
		}
		again, changes, err := set(after, all, w.split, canary)
		if err != nil || len(again) != 0 || len(changes) != 0 {
			t.Fatalf("the second time: patch %v, changes %v, error %v", again, changes, err)
		}
	})
}

func TestAWrittenWeightIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		canary := rapid.Int32Range(0, w.split.Max).Draw(t, "canary")
		all := virtualservice.Selection{AllMatching: true}
		patch, _, err := set(w.object, all, w.split, canary)
		if err != nil {
			t.Fatal(err)
		}
		vs := virtualservice.Parse(apply(t, w.object, patch), manager)
		routes, err := vs.Select(all, w.split)
		if err != nil {
			t.Fatal(err)
		}
		read, known, uniform, err := vs.CanaryWeight(routes, w.split)
		if err != nil || !known || !uniform {
			t.Fatalf("weight %d, known %v, uniform %v, error %v", read, known, uniform, err)
		}
		if read > canary {
			t.Fatalf("%d was asked for and %d is read back", canary, read)
		}
		if patch, _, err := vs.Set(routes, w.split, virtualservice.Target{Canary: read}); err != nil || len(patch) != 0 {
			t.Fatalf("setting the weight %d that was read for %d: patch %v, error %v", read, canary, patch, err)
		}
	})
}

// parts are what each selected route gives the canary, -1 where it says nothing.
func parts(t *rapid.T, u *unstructured.Unstructured, split virtualservice.Split) []int32 {
	vs := virtualservice.Parse(u, manager)
	routes, err := vs.Select(virtualservice.Selection{AllMatching: true}, split)
	if err != nil {
		t.Fatal(err)
	}
	var all []int32
	for i := range routes {
		part, known, _, err := vs.CanaryWeight(routes[i:i+1], split)
		if err != nil {
			t.Fatal(err)
		}
		if !known {
			part = -1
		}
		all = append(all, part)
	}
	return all
}

func TestLoweringGivesNoRoutesCanaryMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		canary := rapid.Int32Range(0, w.split.Max).Draw(t, "canary")
		vs := virtualservice.Parse(w.object, manager)
		routes, err := vs.Select(virtualservice.Selection{AllMatching: true}, w.split)
		if err != nil {
			t.Fatal(err)
		}
		patch, _, err := vs.Set(routes, w.split, virtualservice.Target{Canary: canary, Lower: true})
		if err != nil {
			t.Fatal(err)
		}
		before, after := parts(t, w.object, w.split), parts(t, apply(t, w.object, patch), w.split)
		for i := range after {
			most := canary
			if before[i] >= 0 {
				most = min(canary, before[i])
			}
			if after[i] > most {
				t.Fatalf("route %d: canary %d -> %d, %d was the most", i, before[i], after[i], canary)
			}
			if before[i] >= canary && after[i] < 0 {
				t.Fatalf("route %d has no weights any more", i)
			}
		}
	})
}

func TestSelectFindsExactlyOurRoutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		routes, err := virtualservice.Parse(w.object, manager).Select(virtualservice.Selection{AllMatching: true}, w.split)
		if err != nil {
			t.Fatal(err)
		}
		type key struct {
			Protocol string
			Index    int
		}
		var want, got []key
		for _, p := range w.ours {
			want = append(want, key{p.protocol, p.index})
		}
		for _, r := range routes {
			got = append(got, key{string(r.Protocol), r.Index})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("routes (-want +got):\n%s", diff)
		}
	})
}

// Whatever is selected without a list, it is a part of what is ours, and of each
// protocol there is at most one route.
func TestNothingIsGuessedWithoutAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		routes, err := virtualservice.Parse(w.object, manager).Select(virtualservice.Selection{}, w.split)
		if (err == nil) != (len(routes) > 0) {
			t.Fatalf("%d routes and error %v", len(routes), err)
		}
		seen := map[virtualservice.Protocol]bool{}
		for _, route := range routes {
			ours := false
			for _, p := range w.ours {
				ours = ours || p.protocol == string(route.Protocol) && p.index == route.Index
			}
			if !ours || seen[route.Protocol] {
				t.Fatalf("route %s was guessed", route)
			}
			seen[route.Protocol] = true
		}
	})
}
