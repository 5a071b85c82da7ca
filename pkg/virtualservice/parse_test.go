package virtualservice_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

const everything = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: web
  namespace: shop
  uid: u-1
  resourceVersion: "7"
  generation: 3
  labels: {team: shop}
  annotations: {note: long, istio.argoproj-labs.io/experiments: '{"shop/web": ["exp-b","exp-a"]}'}
  managedFields:
  - {manager: our-plugin, operation: Update, time: "2024-05-01T12:00:00Z", fieldsV1: {"f:spec": {"f:http": {}}}}
  - {manager: kubectl, operation: Apply, time: "2024-06-01T12:00:00Z"}
spec:
  hosts: [web, web.example]
  gateways: [mesh, gateway/edge]
  http:
  - name: primary
    match: [{port: 80}]
    timeout: 5s
    route:
    - destination: {host: stable, port: {number: 8080}}
      weight: 70
    - destination: {host: canary, subset: v2}
  - name: old
    redirect: {uri: /new}
  - directResponse: {status: 503}
  - name: far
    delegate: {name: del, namespace: gateway}
  - name: near
    delegate: {name: del}
  tls:
  - match:
    - {port: 443, sniHosts: [b.example, a.example]}
    - {sniHosts: [c.example]}
    route: [{destination: {host: stable}, weight: 0}]
  tcp:
  - match: [{port: 3306}, {}]
    route: [{destination: {host: db}}]
`

func TestParseReadsWhatRoutingNeeds(t *testing.T) {
	want := &virtualservice.VirtualService{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.istio.io/v1", Kind: "VirtualService"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u-1", ResourceVersion: "7", Generation: 3},
		Experiments: ownership.Account{
			Entries:   map[string]json.RawMessage{"shop/web": json.RawMessage(`["exp-b","exp-a"]`)},
			Annotated: true,
		},
		Ours:       []virtualservice.Protocol{virtualservice.HTTP},
		LastChange: time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC),
		Hosts:      []string{"web", "web.example"},
		Gateways:   []string{"mesh", "gateway/edge"},
		HTTP: []virtualservice.Route{
			{Protocol: "http", Index: 0, Name: "primary", Destinations: []virtualservice.Destination{
				{Index: 0, Host: "stable", Port: 8080, Weight: 70, HasWeight: true},
				{Index: 1, Host: "canary", Subset: "v2"},
			}, Raw: json.RawMessage(`{"match":[{"port":80}],"name":"primary","route":[` +
				`{"destination":{"host":"stable","port":{"number":8080}},"weight":70},{"destination":{"host":"canary","subset":"v2"}}],"timeout":"5s"}`)},
			{Protocol: "http", Index: 1, Name: "old", Redirect: true, Destinations: []virtualservice.Destination{},
				Raw: json.RawMessage(`{"name":"old","redirect":{"uri":"/new"}}`)},
			{Protocol: "http", Index: 2, DirectResponse: true, Destinations: []virtualservice.Destination{},
				Raw: json.RawMessage(`{"directResponse":{"status":503}}`)},
			{Protocol: "http", Index: 3, Name: "far", Delegate: &virtualservice.Delegate{Name: "del", Namespace: "gateway"}, Destinations: []virtualservice.Destination{},
				Raw: json.RawMessage(`{"delegate":{"name":"del","namespace":"gateway"},"name":"far"}`)},
			{Protocol: "http", Index: 4, Name: "near", Delegate: &virtualservice.Delegate{Name: "del"}, Destinations: []virtualservice.Destination{},
				Raw: json.RawMessage(`{"delegate":{"name":"del"},"name":"near"}`)},
		},
		TLS: []virtualservice.Route{{
			Protocol: "tls",
			Matches: []virtualservice.Match{
				{Port: 443, SNIHosts: []string{"b.example", "a.example"}},
				{SNIHosts: []string{"c.example"}},
			},
			Destinations: []virtualservice.Destination{{Host: "stable", HasWeight: true}},
		}},
		TCP: []virtualservice.Route{{
			Protocol:     "tcp",
			Matches:      []virtualservice.Match{{Port: 3306}, {}},
			Destinations: []virtualservice.Destination{{Host: "db"}},
		}},
	}
	got := virtualservice.Parse(fromYAML(t, everything), manager)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}

func TestParseLeavesTheObjectAlone(t *testing.T) {
	u := fromYAML(t, everything)
	view := virtualservice.Parse(u, manager)
	if diff := cmp.Diff(fromYAML(t, everything), u); diff != "" {
		t.Errorf("the object changed (-want +got):\n%s", diff)
	}
	spoil(u.Object)
	if diff := cmp.Diff(virtualservice.Parse(fromYAML(t, everything), manager), view); diff != "" {
		t.Errorf("the view follows the object (-want +got):\n%s", diff)
	}
}

// spoil overwrites every value in place, down to the last.
func spoil(value any) {
	switch v := value.(type) {
	case fields:
		for key, inner := range v {
			spoil(inner)
			v[key] = "spoiled"
		}
	case []any:
		for i, inner := range v {
			spoil(inner)
			v[i] = "spoiled"
		}
	}
}

func TestMalformedObjects(t *testing.T) {
	for sentence, tc := range map[string]struct {
		u    *unstructured.Unstructured
		want string
	}{
		"no object":                  {nil, "object: want an object, found null"},
		"an object without content":  {&unstructured.Unstructured{}, "object: want an object, found null"},
		"metadata of the wrong type": {&unstructured.Unstructured{Object: fields{"metadata": "x"}}, "metadata: want an object, found text"},
		"a spec that is text":        {virtualService("x"), "spec: want an object, found text"},
		"http that is an object":     {virtualService(fields{"http": fields{}}), "spec.http: want a list, found an object"},
		"tls that is text":           {virtualService(fields{"tls": "x"}), "spec.tls: want a list, found text"},
		"tcp that is a number":       {virtualService(fields{"tcp": int64(1)}), "spec.tcp: want a list, found an integer"},
	} {
		t.Run(sentence, func(t *testing.T) {
			vs := virtualservice.Parse(tc.u, manager)
			mention(t, vs.Malformed, tc.want)
			_, err := vs.Select(virtualservice.Selection{}, byHosts())
			mention(t, err, "VirtualService", "malformed", tc.want)
			_, _, _, err = vs.CanaryWeight(nil, byHosts())
			mention(t, err, tc.want)
			_, _, err = vs.Set(nil, byHosts(), virtualservice.Target{Canary: 1})
			mention(t, err, tc.want)
		})
	}
}

func TestMalformedRoutes(t *testing.T) {
	route := func(edit func(route fields)) fields {
		content := http("primary", ours(100, 0)...).(fields)
		edit(content)
		return fields{"http": []any{content}}
	}
	l4 := func(match any) fields {
		return fields{"tcp": []any{fields{"match": match, "route": ours(100, 0)}}}
	}
	for sentence, tc := range map[string]struct {
		spec any
		want string
	}{
		"a route that is null":             {fields{"http": []any{nil}}, "spec.http[0]: want an object, found null"},
		"a route that is text":             {fields{"tls": []any{"x"}}, "spec.tls[0]: want an object, found text"},
		"a name that is a number":          {route(func(r fields) { r["name"] = int64(1) }), "spec.http[0].name: want text"},
		"a route list that is an object":   {route(func(r fields) { r["route"] = fields{} }), "spec.http[0].route: want a list"},
		"a destination entry that is null": {route(func(r fields) { r["route"] = append(ours(1, 1), nil) }), "spec.http[0].route[2]: want an object, found null"},
		"a destination that is text":       {route(func(r fields) { r["route"] = []any{fields{"destination": "x"}} }), "spec.http[0].route[0].destination: want an object"},
		"a host that is a number":          {route(func(r fields) { r["route"] = []any{fields{"destination": fields{"host": int64(1)}}} }), "spec.http[0].route[0].destination.host: want text"},
		"a subset that is a list":          {route(func(r fields) { r["route"] = []any{fields{"destination": fields{"subset": []any{}}}} }), "spec.http[0].route[0].destination.subset: want text"},
		"a port that is a number":          {route(func(r fields) { r["route"] = []any{fields{"destination": fields{"port": int64(80)}}} }), "spec.http[0].route[0].destination.port: want an object"},
		"a port number that is text":       {route(func(r fields) { r["route"] = []any{fields{"destination": fields{"port": fields{"number": "http"}}}} }), "spec.http[0].route[0].destination.port.number: want an integer"},
		"a weight that is text":            {route(func(r fields) { r["route"] = []any{to("stable", "70"), to("canary", weighs(30))} }), "spec.http[0].route[0].weight: want an integer, found text"},
		"a weight with a fraction":         {route(func(r fields) { r["route"] = []any{to("stable", 70.5), to("canary", 29.5)} }), "spec.http[0].route[0].weight: want an integer"},
		"a delegate that is text":          {route(func(r fields) { r["delegate"] = "x" }), "spec.http[0].delegate: want an object"},
		"a delegate's name is a number":    {route(func(r fields) { r["delegate"] = fields{"name": int64(1)} }), "spec.http[0].delegate.name: want text"},
		"a match that is an object":        {l4(fields{}), "spec.tcp[0].match: want a list"},
		"a match entry that is text":       {l4([]any{"x"}), "spec.tcp[0].match[0]: want an object"},
		"a match port that is text":        {l4([]any{fields{"port": "http"}}), "spec.tcp[0].match[0].port: want an integer"},
		"SNI hosts that are text":          {l4([]any{fields{"sniHosts": "x"}}), "spec.tcp[0].match[0].sniHosts: want a list"},
		"an SNI host that is a number":     {l4([]any{fields{"sniHosts": []any{int64(1)}}}), "spec.tcp[0].match[0].sniHosts[0]: want text"},
		"the first of several is reported": {route(func(r fields) { r["route"], r["name"] = "x", int64(1) }), "spec.http[0].route: want a list"},
	} {
		t.Run(sentence, func(t *testing.T) {
			vs := parse(tc.spec)
			if vs.Malformed != nil {
				t.Fatalf("the whole object is malformed: %v", vs.Malformed)
			}
			routes := append(append(vs.HTTP, vs.TLS...), vs.TCP...)
			mention(t, routes[0].Malformed, tc.want)
			_, err := vs.Select(virtualservice.Selection{}, byHosts())
			mention(t, err, "VirtualService shop/web", "malformed", tc.want)
		})
	}
}

func TestAbsentAndNullAreNoFaults(t *testing.T) {
	for sentence, spec := range map[string]any{
		"no spec":                nil,
		"an empty spec":          fields{},
		"lists that are null":    fields{"http": nil, "tls": nil, "tcp": nil},
		"empty lists":            fields{"http": []any{}, "tls": []any{}},
		"a route without fields": fields{"http": []any{fields{}}},
		"fields that are null":   fields{"http": []any{fields{"name": nil, "route": nil, "delegate": nil, "redirect": nil, "directResponse": nil}}},
		"a destination of nulls": fields{"tcp": []any{fields{"match": nil, "route": []any{fields{"destination": nil, "weight": nil}}}}},
		"a match of nulls":       fields{"tls": []any{fields{"match": []any{fields{"port": nil, "sniHosts": nil}}}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			vs := parse(spec)
			if vs.Malformed != nil {
				t.Error(vs.Malformed)
			}
			for _, route := range append(append(vs.HTTP, vs.TLS...), vs.TCP...) {
				if route.Malformed != nil || route.Delegate != nil || route.Redirect || route.DirectResponse {
					t.Errorf("route %+v", route)
				}
			}
		})
	}
}

func TestHostsOfAnotherKindAreNone(t *testing.T) {
	for sentence, value := range map[string]any{"one text": "web", "numbers": []any{int64(1)}, "null": nil, "an object": fields{"a": "b"}} {
		vs := parse(fields{"hosts": value, "gateways": value})
		if vs.Malformed != nil || len(vs.Hosts)+len(vs.Gateways) > 0 {
			t.Errorf("%s: hosts %q, gateways %q, %v", sentence, vs.Hosts, vs.Gateways, vs.Malformed)
		}
	}
}

func TestTheViewIsAKubernetesObject(t *testing.T) {
	var object runtime.Object = virtualservice.Parse(fromYAML(t, everything), manager)
	if got := object.GetObjectKind().GroupVersionKind().String(); got != "networking.istio.io/v1, Kind=VirtualService" {
		t.Errorf("kind = %q", got)
	}
	accessor, ok := object.(metav1.Object)
	if !ok || accessor.GetNamespace() != "shop" || accessor.GetName() != "web" || accessor.GetResourceVersion() != "7" {
		t.Errorf("accessor = %+v", accessor)
	}
}

func TestDeepCopySharesNothing(t *testing.T) {
	original := virtualservice.Parse(fromYAML(t, everything), manager)
	duplicate, ok := original.DeepCopyObject().(*virtualservice.VirtualService)
	if !ok {
		t.Fatal("the copy has another type")
	}
	if diff := cmp.Diff(original, duplicate); diff != "" {
		t.Fatalf("copy (-want +got):\n%s", diff)
	}
	duplicate.Labels = map[string]string{"a": "b"}
	duplicate.Hosts[0], duplicate.Gateways[0] = "changed", "changed"
	duplicate.HTTP[0].Name = "changed"
	duplicate.HTTP[0].Destinations[0].Host = "changed"
	duplicate.HTTP[3].Delegate.Name = "changed"
	duplicate.TLS[0].Matches[0].Port = 1
	duplicate.TLS[0].Matches[0].SNIHosts[0] = "changed"
	duplicate.TCP[0].Destinations[0].Weight = 1
	if diff := cmp.Diff(virtualservice.Parse(fromYAML(t, everything), manager), original); diff != "" {
		t.Errorf("the original changed with the copy (-want +got):\n%s", diff)
	}
	if got := (*virtualservice.VirtualService)(nil).DeepCopy(); got != nil {
		t.Errorf("copy of nil = %v", got)
	}
}

func TestRoutesAreNamedForPeople(t *testing.T) {
	for sentence, tc := range map[string]struct {
		route virtualservice.Route
		want  string
	}{
		"a named http route":        {virtualservice.Route{Protocol: "http", Index: 2, Name: "primary"}, `http[2] "primary"`},
		"an http route":             {virtualservice.Route{Protocol: "http"}, `http[0] without a name`},
		"a tcp route with a port":   {virtualservice.Route{Protocol: "tcp", Index: 1, Matches: []virtualservice.Match{{Port: 3306}}}, `tcp[1] (port 3306)`},
		"a tcp route without match": {virtualservice.Route{Protocol: "tcp"}, `tcp[0] (any port)`},
		"a tls route names each port and host once": {virtualservice.Route{Protocol: "tls", Matches: []virtualservice.Match{
			{Port: 443, SNIHosts: []string{"b.example", "a.example"}}, {Port: 443, SNIHosts: []string{"a.example"}}, {Port: 8443},
		}}, `tls[0] (port 443 8443, sniHosts a.example b.example)`},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := tc.route.String(); got != tc.want {
				t.Errorf("route = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhoChangedTheRoutesLast(t *testing.T) {
	for sentence, tc := range map[string]struct {
		manager, fields string
		want            []virtualservice.Protocol
	}{
		"we, in http":                  {manager, `{"f:spec": {"f:http": {}}}`, []virtualservice.Protocol{"http"}},
		"we, in tls":                   {manager, `{"f:spec": {"f:tls": {}}}`, []virtualservice.Protocol{"tls"}},
		"we, in http and tcp":          {manager, `{"f:spec": {"f:http": {}, "f:tcp": {}}}`, []virtualservice.Protocol{"http", "tcp"}},
		"we, but only the annotation":  {manager, `{"f:metadata": {"f:annotations": {"f:x": {}}}}`, nil},
		"somebody else":                {"kubectl", `{"f:spec": {"f:http": {}}}`, nil},
		"we, but something else there": {manager, `{"f:spec": {"f:hosts": {}}}`, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			var owned fields
			if err := json.Unmarshal([]byte(tc.fields), &owned); err != nil {
				t.Fatal(err)
			}
			u := virtualService(one(ours(100, 0)...))
			u.Object["metadata"].(fields)["managedFields"] = []any{fields{"manager": tc.manager, "operation": "Update", "fieldsV1": owned}}
			vs := virtualservice.Parse(u, manager)
			if diff := cmp.Diff(tc.want, vs.Ours); diff != "" {
				t.Errorf("ours (-want +got):\n%s", diff)
			}
			if got := vs.LastChangedByUs(vs.HTTP); got != slices.Contains(tc.want, virtualservice.HTTP) {
				t.Errorf("its http routes were last changed by us: %v", got)
			}
		})
	}
}

// The same content is the same text, in whatever types the decoder put it.
func TestRawIsCanonical(t *testing.T) {
	first := parse(fields{"http": []any{fields{"name": "a", "timeout": "1s", "route": []any{to("stable", weighs(100)), to("canary", 0.5)}}}})
	second := parse(fields{"http": []any{fields{"timeout": "1s", "route": []any{to("stable", 100.0), to("canary", 0.5)}, "name": "a"}}})
	if diff := cmp.Diff(string(first.HTTP[0].Raw), string(second.HTTP[0].Raw)); diff != "" {
		t.Errorf("raw (-first +second):\n%s", diff)
	}
	if raw := parse(fields{"tls": []any{tls([]string{"443 a"}, ours(100, 0)...)}}).TLS[0].Raw; raw != nil {
		t.Errorf("a tls route has the raw %s", raw)
	}
}

func TestARouteThatIsNoJSON(t *testing.T) {
	vs := parse(fields{"http": []any{fields{"timeout": math.NaN(), "route": ours(100, 0)}}})
	_, err := vs.Select(virtualservice.Selection{}, byHosts())
	mention(t, err, "VirtualService shop/web: ", "http[0]", "cannot be written as JSON")
}
