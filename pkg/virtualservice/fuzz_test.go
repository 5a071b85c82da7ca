package virtualservice_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// seeds are specs of every kind that the tables know, and some of no kind.
var seeds = []string{
	`{}`,
	`null`,
	`{"http":[{"name":"primary","route":[{"destination":{"host":"stable"},"weight":100},{"destination":{"host":"canary"},"weight":0}]}]}`,
	`{"http":[{"route":[{"destination":{"host":"web","subset":"stable"},"weight":80},{"destination":{"host":"web","subset":"canary"}},{"destination":{"host":"legacy"},"weight":20}]}]}`,
	`{"tls":[{"match":[{"port":443,"sniHosts":["a"]}],"route":[{"destination":{"host":"stable.shop.svc"}},{"destination":{"host":"CANARY.shop."}}]}]}`,
	`{"tcp":[{"route":[{"destination":{"host":"stable"},"weight":900},{"destination":{"host":"canary"},"weight":1e2},{"destination":{"host":"stable.other"},"weight":50}]}]}`,
	`{"http":[{"delegate":{"name":"del"}},{"redirect":{}},{"directResponse":{}},null,"x",{"route":[null,{"destination":null,"weight":"1"}]}]}`,
	`{"http":{"route":[]},"tls":"x","tcp":1e999}`,
	`{"http":[{"name":"hdr","route":[]},{"match":[{"uri":{"prefix":"/api"},"headers":{"X":{}},"ignoreUriCase":true},null],"rewrite":{"uri":"/"},"mirror":{"host":"m"},"mirrorPercent":5,"route":[{"destination":{"host":"stable"},"weight":95},{"destination":{"host":"canary"}},{"destination":{"host":"exp-a"},"weight":5}]}]}`,
	`{"http":[{"match":[{"uri":{"regex":".*"},"method":{"exact":"GET"}}],"mirrors":[{"destination":{"host":"m"}}],"route":[{"destination":{"host":"web","subset":"stable"},"weight":-0.0},{"destination":{"host":"web","subset":"canary"},"weight":1e2}]},{"name":"mir"}]}`,
	`{"http":[{"route":[{"destination":{"host":"stable"},"weight":-9223372036854775808},{"destination":{"host":"canary"},"weight":9223372036854775807},{"destination":{"host":"x"},"weight":2147483647}]}]}`,
}

// decode makes an object around any bytes, as a client would, or nil.
func decode(spec []byte) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	document := `{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"web","namespace":"shop","resourceVersion":"7"},"spec":` + string(spec) + `}`
	if u.UnmarshalJSON([]byte(document)) != nil || u.GetResourceVersion() != "7" {
		return nil
	}
	return u
}

// FuzzParse reads any bytes, as the whole object and as a spec.
func FuzzParse(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
		f.Add([]byte(`{"kind":"VirtualService","metadata":{"managedFields":[{"manager":"our-plugin","time":"2024-05-01T12:00:00Z"}]},"spec":` + seed + `}`))
	}
	f.Add([]byte(`{"kind":"x","metadata":[]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		whole := &unstructured.Unstructured{}
		_ = whole.UnmarshalJSON(document)
		for _, u := range []*unstructured.Unstructured{whole, decode(document)} {
			vs := virtualservice.Parse(u, manager)
			if diff := cmp.Diff(vs.DeepCopy(), vs, byText()); diff != "" {
				t.Errorf("copy (-copy +original):\n%s", diff)
			}
			if again := virtualservice.Parse(u, manager); cmp.Diff(again, vs, byText()) != "" {
				t.Error("reading twice gives two views")
			}
			for _, list := range [][]virtualservice.Route{vs.HTTP, vs.TLS, vs.TCP} {
				for i, route := range list {
					if route.Index != i || route.String() == "" {
						t.Errorf("route %d is %s", i, route)
					}
				}
			}
		}
	})
}

// byText compares errors as people do.
func byText() cmp.Option {
	return cmp.Comparer(func(a, b error) bool {
		return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
	})
}

// FuzzSetWeight sets any weight in any object, in each way to select.
func FuzzSetWeight(f *testing.F) {
	for i, seed := range seeds {
		f.Add([]byte(seed), int32(i*10), int32(100), "primary", int64(443))
		f.Add([]byte(seed), int32(-1), int32(math.MaxInt32), "", int64(0))
	}
	f.Fuzz(func(t *testing.T, spec []byte, canary, most int32, name string, port int64) {
		u := decode(spec)
		if u == nil {
			return
		}
		selections := []virtualservice.Selection{
			{}, {AllMatching: true}, {HTTP: []string{name}}, {Managed: []string{name}},
			{TLS: []virtualservice.TLSRoute{{Port: port, SNIHosts: []string{name}}}}, {TCP: []virtualservice.TCPRoute{{Port: port}}},
		}
		for _, selection := range selections {
			for _, split := range []virtualservice.Split{outOf(most, byHosts()), outOf(most, bySubsets()), outOf(most, ofTwoHosts())} {
				checkSet(t, u, selection, split, canary)
			}
		}
	})
}

// checkSet asserts what holds for every object there is.
func checkSet(t *testing.T, u *unstructured.Unstructured, selection virtualservice.Selection, split virtualservice.Split, canary int32) {
	patch, changes, err := set(u, selection, split, canary)
	if err != nil {
		if patch != nil || changes != nil {
			t.Errorf("patch %v and changes %v beside error %v", patch, changes, err)
		}
		return
	}
	after := apply(t, u, patch)
	vs := virtualservice.Parse(after, manager)
	routes, err := vs.Select(selection, split)
	if err != nil {
		t.Fatalf("the patched object is refused: %v", err)
	}
	for _, route := range routes {
		var sum int64
		for _, d := range route.Destinations {
			sum += d.Weight
			if d.Weight < 0 {
				t.Errorf("route %s has the weight %d", route, d.Weight)
			}
		}
		if sum != int64(split.Max) {
			t.Errorf("the weights of route %s add up to %d of %d", route, sum, split.Max)
		}
	}
	if again, _, err := vs.Set(routes, split, virtualservice.Target{Canary: canary}); err != nil || len(again) != 0 {
		t.Errorf("the second time: patch %v, error %v", again, err)
	}
	read, known, uniform, err := vs.CanaryWeight(routes, split)
	if err != nil || !known || !uniform || read < 0 || read > canary {
		t.Errorf("%d was set, and read back is %d, known %v, uniform %v, error %v", canary, read, known, uniform, err)
	}
}

// FuzzSet brings any object with any annotation to targets with everything in them,
// and back.
func FuzzSet(f *testing.F) {
	for i, seed := range seeds {
		f.Add([]byte(seed), `{"shop/web":["exp-a"],"shop/cart":7}`, int32(i*10), int32(15), int32(50), "x", "/api/cart", uint8(i))
		f.Add([]byte(seed), `{`, int32(1), int32(1<<30), int32(100), "X", ".*", uint8(3*i))
	}
	f.Fuzz(func(t *testing.T, spec []byte, account string, canary, weight, percentage int32, name, text string, flags uint8) {
		u := decode(spec)
		if u == nil {
			return
		}
		if flags&1 == 0 {
			noted(u, account)
		}
		value := []virtualservice.StringMatch{{Exact: text}, {Prefix: text}, {Regex: text}, {}}[flags>>1&3]
		managed := []virtualservice.ManagedRoute{
			{Name: "hdr", Header: []virtualservice.HeaderMatch{{Name: name, Value: value}, {Name: "z"}}},
			{Name: "mir", Mirror: &virtualservice.Mirror{Percentage: percentage, Match: []virtualservice.MirrorMatch{
				{Path: &value}, {Method: &value, Headers: map[string]virtualservice.StringMatch{name: value}}}}},
		}
		for _, side := range []func(string) virtualservice.Side{service, subset} {
			split := byHosts()
			if side("x").Subset != "" {
				split = bySubsets()
			}
			full := wants(canary, managed[flags>>3&1:]...)
			full.Experiments = []virtualservice.Experiment{{Service: "exp-a", Side: side("exp-a"), Weight: weight}, {Service: "exp-b", Side: side("exp-b"), Weight: canary}}
			split.Experiments = []virtualservice.Side{side("exp-a"), side("exp-b")}
			checkTarget(t, checkTarget(t, u, split, full), split, wants(0))
		}
	})
}

// checkTarget asserts what holds for every object there is, and returns it as it is
// then.
func checkTarget(t *testing.T, u *unstructured.Unstructured, split virtualservice.Split, target virtualservice.Target) *unstructured.Unstructured {
	selection := virtualservice.Selection{AllMatching: true, Managed: target.ManagedNames}
	patch, changes, err := setTarget(u, selection, split, target)
	if err != nil {
		if patch != nil || changes != nil {
			t.Errorf("patch %v and changes %v beside error %v", patch, changes, err)
		}
		return u
	}
	if (len(patch) == 0) != (len(changes) == 0) {
		t.Errorf("patch %v with changes %v", patch, changes)
	}
	after := apply(t, u, patch)
	again, _, err := setTarget(after, selection, split, target)
	if err != nil || len(again) != 0 {
		t.Fatalf("the second time: patch %v, error %v", again, err)
	}
	if diff := cmp.Diff(foreignRoutes(u), foreignRoutes(after)); diff != "" {
		t.Errorf("routes that are not ours (-before +after):\n%s", diff)
	}
	vs := virtualservice.Parse(after, manager)
	routes, err := vs.Select(selection, split)
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range routes {
		var sum int64
		for _, d := range route.Destinations {
			sum += d.Weight
		}
		if sum != int64(split.Max) {
			t.Errorf("the weights of route %s add up to %d", route, sum)
		}
	}
	return after
}

// foreignRoutes are the http routes that are not managed and cannot hold a canary.
func foreignRoutes(u *unstructured.Unstructured) []string {
	var all []string
	for _, route := range virtualservice.Parse(u, manager).HTTP {
		text := strings.ToLower(string(route.Raw))
		if !slices.Contains(managedNames, route.Name) && !strings.Contains(text, "canary") && !strings.Contains(text, "web") {
			all = append(all, text)
		}
	}
	return all
}
