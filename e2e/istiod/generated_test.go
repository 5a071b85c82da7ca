package istiod

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/verification"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// objectsToTry is how many VirtualServices are written, one after the other.
const objectsToTry = 40

type fields = map[string]any

func pick[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

// genMatch is a match block with some of its fields.
func genMatch(t *rapid.T) fields {
	text := func(label string) any {
		return fields{pick(t, label+" kind", "exact", "prefix", "regex"): pick(t, label, "/", ".*", "/a", "x")}
	}
	block := fields{}
	for field, value := range map[string]func() any{
		"name":            func() any { return pick(t, "block", "m", "n") },
		"uri":             func() any { return text("uri") },
		"method":          func() any { return text("method") },
		"scheme":          func() any { return text("scheme") },
		"authority":       func() any { return text("authority") },
		"headers":         func() any { return fields{"h": text("header")} },
		"withoutHeaders":  func() any { return fields{"h": text("no header")} },
		"queryParams":     func() any { return fields{"q": fields{"exact": "v"}} },
		"port":            func() any { return pick[int64](t, "port", 80, 81, 8080) },
		"gateways":        func() any { return pick(t, "gateways", []any{"mesh"}, []any{"edge"}, []any{"edge", "mesh"}) },
		"sourceLabels":    func() any { return fields{"a": "b"} },
		"sourceNamespace": func() any { return pick(t, "namespace", "NAMESPACE", "other") },
		"ignoreUriCase":   func() any { return true },
	} {
		if rapid.IntRange(0, 5).Draw(t, field) == 0 {
			block[field] = value()
		}
	}
	return block
}

func genRoute(t *rapid.T) any {
	route := fields{}
	if name := pick(t, "name", "", "a", "b"); name != "" {
		route["name"] = name
	}
	var blocks []any
	for range rapid.IntRange(0, 3).Draw(t, "blocks") {
		blocks = append(blocks, genMatch(t))
	}
	if blocks != nil {
		route["match"] = blocks
	}
	switch rapid.IntRange(0, 9).Draw(t, "action") {
	case 0:
		route["redirect"] = fields{"uri": "/"}
		return route
	case 1:
		route["directResponse"] = fields{"status": int64(503)}
		return route
	case 2:
		route["mirrors"] = []any{fields{"destination": fields{"host": "web", "subset": "canary"}, "percentage": fields{"value": int64(50)}}}
	case 3:
		route["rewrite"] = fields{"uri": "/x"}
	}
	var destinations []any
	for i, subset := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"stable", "canary", "", "other"}), 1, 4, rapid.ID).Draw(t, "subsets") {
		destination := fields{"host": pick(t, "host", "web", "web.NAMESPACE.svc.cluster.local", "web.NAMESPACE")}
		if subset != "" {
			destination["subset"] = subset
		}
		if rapid.Bool().Draw(t, "with a port") {
			destination["port"] = fields{"number": int64(80)}
		}
		least := int64(0)
		if i == 0 {
			least = 1 // Istio demands that there is some
		}
		destinations = append(destinations, fields{"destination": destination, "weight": rapid.Int64Range(least, 3).Draw(t, "weight")})
	}
	route["route"] = destinations
	return route
}

// genSpec is a VirtualService as Istio accepts it. NAMESPACE stands for the namespace.
func genSpec(t *rapid.T) fields {
	var routes []any
	for range rapid.IntRange(1, 4).Draw(t, "routes") {
		routes = append(routes, genRoute(t))
	}
	spec := fields{"hosts": pick(t, "hosts", []any{"web"}, []any{"web", "web.example.com"}, []any{"*.NAMESPACE.svc.cluster.local"}), "http": routes}
	if rapid.IntRange(0, 3).Draw(t, "with gateways") == 0 {
		spec["gateways"] = []any{"edge", "mesh"}
	}
	return spec
}

// TestWhatIstiodServesIsWhatThePlanExpects writes one VirtualService after the other, and waits for each to be served as
// the plan has it.
func TestWhatIstiodServesIsWhatThePlanExpects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	w.counts = verification.Counts{}
	w.labels = map[string]string{hashLabel: newHash}
	specs := rapid.Custom(genSpec)
	tried := 0
	for seed := range objectsToTry {
		raw, err := json.Marshal(specs.Example(seed))
		if err != nil {
			t.Fatal(err)
		}
		spec := strings.ReplaceAll(string(raw), "NAMESPACE", w.namespace)
		u := w.patch(t, virtualServices, `[{"op":"replace","path":"/spec","value":`+spec+`}]`)
		plan := w.planOf(virtualservice.Parse(u, "test"))
		w.client.Follow(rollout, w.namespace, plan.Want())
		if len(plan.Want().Routes) == 0 {
			continue // all of its routes are for other clients
		}
		arrived := func(s mesh.Served) bool { return s.Answered(plan.Want()) && routesRight(plan, s) }
		await(t, w.client, rollout, spec, arrived)
		tried++
	}
	if t.Logf("%d VirtualServices were served as expected", tried); tried < objectsToTry/2 {
		t.Error("most objects have no route that can be seen")
	}
}

// routesRight judges the routes alone: the destinations are anything here, so that
// not every cluster exists.
func routesRight(plan *verification.Plan, served mesh.Served) bool {
	clusters := map[string]mesh.Cluster{}
	for name := range served.Clusters {
		clusters[name] = mesh.Cluster{Asked: true, Exists: true, Listed: true}
	}
	ok, _ := plan.Judge(mesh.Served{Routes: served.Routes, Clusters: clusters}, nil, verification.Counts{})
	return ok
}
