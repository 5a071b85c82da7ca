package virtualservice_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// othersAccount is what another Rollout has noted, and a field that nobody knows.
const othersAccount = `{"shop/cart":["exp-a"],"shop/odd":7}`

// prepare gives our http routes matches and rewrites that can be read, and the
// object sometimes the annotation of another Rollout.
func (w *world) prepare(t *rapid.T) {
	for _, p := range w.ours {
		if p.protocol != "http" {
			continue
		}
		route := w.at(w.object, p)
		delete(route, "rewrite")
		if rapid.Bool().Draw(t, "rewrite") {
			route["rewrite"] = sprinkle(t, fields{"uri": "/v1"}, "futureField")
		}
		var blocks []any
		for range rapid.IntRange(0, 2).Draw(t, "blocks") {
			blocks = append(blocks, matchBlock(t))
		}
		if blocks != nil {
			route["match"] = blocks
		}
	}
	if rapid.Bool().Draw(t, "another's account") {
		noted(w.object, othersAccount)
	}
	w.object = decoded(t, w.object)
}

// matchBlock has conditions with which those of draw have requests in common.
func matchBlock(t *rapid.T) any {
	block := sprinkle(t, fields{}, "port", "gateways", "withoutHeaders", "sourceLabels", "futureField")
	if condition := rapid.SampledFrom([]fields{nil, {"prefix": "/a"}, {"prefix": "/"}, {"exact": "/a/b"}}).Draw(t, "uri"); condition != nil {
		block["uri"] = condition
	}
	if condition := rapid.SampledFrom([]fields{nil, {"exact": "GET"}, {"prefix": "G"}}).Draw(t, "method"); condition != nil {
		block["method"] = condition
	}
	if condition := rapid.SampledFrom([]fields{nil, {}, {"regex": "y.*"}}).Draw(t, "header"); condition != nil {
		block["headers"] = fields{"X-Canary": condition, "other": fields{"exact": "1"}}
	}
	return block
}

// at is the route of ours in an object without managed routes.
func (w *world) at(u *unstructured.Unstructured, p place) fields {
	return u.Object["spec"].(fields)[p.protocol].([]any)[p.index].(fields)
}

// draw is any target that the generated routes can be brought to.
func (w *world) draw(t *rapid.T) virtualservice.Target {
	target := virtualservice.Target{Owner: owner, Canary: rapid.Int32Range(0, w.split.Max).Draw(t, "canary"), ManagedNames: managedNames}
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"exp-a", "exp-b"}), func(s string) string { return s }).Draw(t, "experiments") {
		weight := rapid.Int32Range(0, w.split.Max).Draw(t, "experiment weight")
		target.Experiments = append(target.Experiments, virtualservice.Experiment{Service: name, Side: w.side(name), Weight: weight})
	}
	managed := []virtualservice.ManagedRoute{header("hdr"), mirror("mir", rapid.Int32Range(0, 100).Draw(t, "percentage"))}
	http := slices.ContainsFunc(w.ours, func(p place) bool { return p.protocol == "http" })
	for _, i := range rapid.SliceOfDistinct(rapid.IntRange(0, 1), func(i int) int { return i }).Draw(t, "managed") {
		if http {
			target.Managed = append(target.Managed, managed[i])
		}
	}
	return target
}

func (w *world) side(name string) virtualservice.Side {
	switch {
	case len(w.split.More) > 0:
		return virtualservice.Side{Subset: name}
	case w.split.Stable.Subset != "":
		return subset(name)
	}
	return service(name)
}

// told is the split as a caller makes it: with what is wanted and what was added.
func (w *world) told(u *unstructured.Unstructured, target virtualservice.Target) virtualservice.Split {
	split := w.split
	for _, experiment := range target.Experiments {
		split.Experiments = append(split.Experiments, experiment.Side)
	}
	for _, name := range virtualservice.Parse(u, manager).ExperimentServices(owner) {
		split.Experiments = append(split.Experiments, w.side(name))
	}
	return split
}

// isManaged tells whether an entry of spec.http has one of our names.
func isManaged(entry any) bool {
	route, _ := entry.(fields)
	name, _ := route["name"].(string)
	return slices.Contains(managedNames, name)
}

// plain is the object without managed routes.
func plain(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	spec := out.Object["spec"].(fields)
	if list, ok := spec["http"].([]any); ok {
		spec["http"] = slices.DeleteFunc(list, isManaged)
	}
	return out
}

// weightless is the object without the weights of our two sides.
func (w *world) weightless(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := bare(u.DeepCopy())
	for _, p := range w.ours {
		list := w.at(out, p)["route"].([]any)
		delete(list[p.stable].(fields), "weight")
		delete(list[p.canary].(fields), "weight")
	}
	return out
}

// without is the object without anything that Set may change.
func (w *world) without(t *rapid.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	out := w.weightless(plain(u))
	for _, p := range w.ours {
		route := w.at(out, p)
		route["route"] = slices.DeleteFunc(route["route"].([]any), func(entry any) bool {
			where := entry.(fields)["destination"].(fields)
			return slices.ContainsFunc([]string{"exp-a", "exp-b"}, func(name string) bool {
				side := w.side(name)
				return (side.Host == "" || where["host"] == side.Host) && (where["subset"] == name || side.Subset == "")
			})
		})
	}
	annotations := out.GetAnnotations()
	account := annotations[ownership.Annotation]
	delete(annotations, ownership.Annotation)
	out.SetAnnotations(annotations)
	for other, want := range map[string]string{"shop/cart": `["exp-a"]`, "shop/odd": "7"} {
		if got := string(ownership.Parse(noted(virtualService(nil), account)).Entries[other]); account != "" && got != "" && got != want {
			t.Fatalf("the account of %s is %s, want %s", other, got, want)
		}
	}
	return bare(out)
}

// vandalize does to managed routes what nobody should.
func (w *world) vandalize(t *rapid.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	list := httpOf(u)
	if len(list) == 0 {
		return u
	}
	for range rapid.IntRange(0, 3).Draw(t, "vandals") {
		at := rapid.IntRange(0, len(list)).Draw(t, "vandal at")
		switch rapid.SampledFrom([]string{"insert", "remove", "double", "edit"}).Draw(t, "vandal does") {
		case "insert":
			name := rapid.SampledFrom(managedNames).Draw(t, "vandal name")
			list = slices.Insert(list, at, any(fields{"name": name, "redirect": fields{"uri": "/"}}))
		case "remove":
			if at < len(list) && isManaged(list[at]) {
				list = slices.Delete(list, at, at+1)
			}
		case "double":
			if at < len(list) && isManaged(list[at]) {
				list = slices.Insert(list, rapid.IntRange(0, len(list)).Draw(t, "double at"), list[at])
			}
		case "edit":
			if at < len(list) && isManaged(list[at]) {
				list[at].(fields)["timeout"] = "1s"
			}
		}
	}
	out := u.DeepCopy()
	out.Object["spec"].(fields)["http"] = list
	return decoded(t, out)
}

// checkRoutes asserts what the target says of each http route.
func checkRoutes(t *rapid.T, w *world, u *unstructured.Unstructured, target virtualservice.Target) {
	var want, before []string
	for _, managed := range target.Managed {
		want = append(want, managed.Name)
	}
	index := 0 // without managed routes
	list := httpOf(u)
	for at, entry := range list {
		if isManaged(entry) {
			before = append(before, entry.(fields)["name"].(string))
			continue
		}
		here := []string(nil)
		if slices.ContainsFunc(w.ours, func(p place) bool { return p.protocol == "http" && p.index == index }) {
			here = want
			for i, managed := range target.Managed {
				checkManaged(t, managed, list[at-len(want)+i].(fields), entry.(fields))
			}
		}
		if diff := cmp.Diff(here, before); diff != "" {
			t.Fatalf("managed routes before http[%d] (-want +got):\n%s", at, diff)
		}
		before = nil
		index++
	}
	if before != nil {
		t.Fatalf("managed routes %v at the end", before)
	}
}

// checkManaged compares a managed route with its source.
func checkManaged(t *rapid.T, managed virtualservice.ManagedRoute, got, source fields) {
	if got["name"] != managed.Name {
		t.Fatalf("route %v, want %s", got["name"], managed.Name)
	}
	if managed.Mirror == nil {
		if weights := routeWeights(got); weights != "100" {
			t.Fatalf("the header route has the weights %s", weights)
		}
	} else if diff := cmp.Diff(source["route"], got["route"]); diff != "" {
		t.Fatalf("destinations of the mirror route (-source +got):\n%s", diff)
	}
	for _, known := range []string{"name", "match", "route", "rewrite", "mirror", "mirrors", "mirrorPercentage"} {
		got, source = omit(got, known), omit(source, known)
	}
	if diff := cmp.Diff(source, got); diff != "" {
		t.Fatalf("other fields of the managed route (-source +got):\n%s", diff)
	}
}

func omit(content fields, name string) fields {
	out := fields{}
	for key, value := range content {
		if key != name {
			out[key] = value
		}
	}
	return out
}

// checkSums asserts that all of our routes add up to Max and nothing is negative.
func checkSums(t *rapid.T, w *world, u *unstructured.Unstructured) {
	without := plain(u)
	for _, p := range w.ours {
		var sum int64
		for _, entry := range w.at(without, p)["route"].([]any) {
			var weight int64
			switch number := entry.(fields)["weight"].(type) {
			case int64:
				weight = number
			case float64:
				weight = int64(number)
			}
			if sum += weight; weight < 0 {
				t.Fatalf("%s[%d] has the weight %d", p.protocol, p.index, weight)
			}
		}
		if sum != int64(w.split.Max) {
			t.Fatalf("%s[%d] adds up to %d of %d", p.protocol, p.index, sum, w.split.Max)
		}
	}
}

// Whatever is asked for, in whatever order, and whatever somebody does to managed
// routes in between: only what is ours differs, and in the end nothing is left.
func TestAnySequenceLeavesNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.prepare(t)
		u := w.object
		for range rapid.IntRange(1, 4).Draw(t, "targets") {
			target := w.draw(t)
			u = w.vandalize(t, u)
			u, _ = reach(t, u, w.told(u, target), target)
			if diff := cmp.Diff(w.without(t, w.object), w.without(t, u)); diff != "" {
				t.Fatalf("what is not ours (-want +got):\n%s", diff)
			}
			checkSums(t, w, u)
			checkRoutes(t, w, u, target)
			if diff := cmp.Diff(sorted(target), virtualservice.Parse(u, manager).ExperimentServices(owner)); diff != "" {
				t.Fatalf("account (-want +got):\n%s", diff)
			}
		}
		end := virtualservice.Target{Owner: owner, ManagedNames: managedNames}
		u, _ = reach(t, u, w.told(u, end), end)
		if diff := cmp.Diff(w.weightless(w.object), w.weightless(u)); diff != "" {
			t.Fatalf("in the end (-want +got):\n%s", diff)
		}
	})
}

func sorted(target virtualservice.Target) []string {
	var names []string
	for _, experiment := range target.Experiments {
		names = append(names, experiment.Service)
	}
	slices.Sort(names)
	return names
}
