package virtualservice_test

import (
	"math"
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

// FuzzSetCanaryWeight sets any weight in any object, in each way to select.
func FuzzSetCanaryWeight(f *testing.F) {
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
			for _, split := range []virtualservice.Split{outOf(most, byHosts()), outOf(most, bySubsets())} {
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
	if again, _, err := vs.SetCanaryWeight(routes, split, canary); err != nil || len(again) != 0 {
		t.Errorf("the second time: patch %v, error %v", again, err)
	}
	read, known, uniform, err := vs.CanaryWeight(routes, split)
	if err != nil || !known || !uniform || read < 0 || read > canary {
		t.Errorf("%d was set, and read back is %d, known %v, uniform %v, error %v", canary, read, known, uniform, err)
	}
}
