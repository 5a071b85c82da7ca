package virtualservice_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	api "istio.io/api/networking/v1"
	networking "istio.io/client-go/pkg/apis/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// rich has the fields that routers have been seen to lose (argo-rollouts#2266 and
// #2767), and in the second half one that no client knows.
const rich = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop, resourceVersion: "7", labels: {team: shop}, annotations: {note: "1"}}
spec:
  hosts: [web]
  gateways: [mesh, gateway/public]
  exportTo: ["."]
  http:
  - name: primary
    match:
    - uri: {prefix: /api}
      withoutHeaders: {x-internal: {}}
      sourceLabels: {app: front}
      gateways: [mesh]
    route:
    - destination: {host: stable, port: {number: 8080}}
      weight: 100
      headers: {response: {add: {x-side: stable}}}
    - destination: {host: canary.shop.svc.cluster.local, port: {number: 8080}}
    retries: {attempts: 3, perTryTimeout: 2s, retryOn: "5xx"}
    timeout: 10s
    corsPolicy: {allowOrigins: [{exact: "https://example.com"}], maxAge: 24h0m0s}
    headers: {request: {set: {x-a: b}, remove: [x-c]}}
    fault: {abort: {httpStatus: 500, percentage: {value: 0.1}}}
    rewrite: {uri: /}
    mirror: {host: shadow}
    mirrorPercentage: {value: 12.5}
  - match: [{uri: {exact: /old}}]
    redirect: {uri: /new}
  tls:
  - match: [{port: 443, sniHosts: [a.example], sourceNamespace: front}]
    route:
    - {destination: {host: stable}, weight: 60}
    - {destination: {host: canary}, weight: 20}
    - {destination: {host: legacy}, weight: 20}
`

func typed(t *testing.T, u *unstructured.Unstructured) *networking.VirtualService {
	t.Helper()
	document, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	out := &networking.VirtualService{}
	if err := json.Unmarshal(document, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The patched object, read by Istio's own types, differs from the original in the
// weights that were set here by hand.
func TestIstioReadsThePatchedObject(t *testing.T) {
	u := fromYAML(t, rich)
	patch, _, err := set(u, virtualservice.Selection{AllMatching: true}, byHosts(), 25)
	if err != nil {
		t.Fatal(err)
	}
	want := typed(t, u)
	want.Spec.Http[0].Route[0].Weight, want.Spec.Http[0].Route[1].Weight = 75, 25
	want.Spec.Tls[0].Route[0].Weight, want.Spec.Tls[0].Route[1].Weight = 60, 20
	if diff := cmp.Diff(want, typed(t, apply(t, u, patch)), protocmp.Transform()); diff != "" {
		t.Errorf("typed object (-want +got):\n%s", diff)
	}
}

// Fields that no type knows survive too, wherever they stand.
func TestUnknownFieldsSurvive(t *testing.T) {
	u := fromYAML(t, rich)
	future := fields{"a": int64(1), "b": []any{nil, "x"}}
	spec := u.Object["spec"].(fields)
	route := spec["http"].([]any)[0].(fields)
	for _, holder := range []fields{u.Object, spec, route, route["route"].([]any)[1].(fields)} {
		holder["futureField"] = future
	}
	patch, _, err := set(u, virtualservice.Selection{HTTP: []string{"primary"}}, byHosts(), 30)
	if err != nil {
		t.Fatal(err)
	}
	want := decoded(t, u)
	destinations := want.Object["spec"].(fields)["http"].([]any)[0].(fields)["route"].([]any)
	destinations[0].(fields)["weight"], destinations[1].(fields)["weight"] = int64(70), int64(30)
	if diff := cmp.Diff(want, apply(t, u, patch)); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

// Managed routes and destinations of experiments, as Istio reads them: everything of
// the source is in them but what they are made for.
func TestIstioReadsManagedRoutes(t *testing.T) {
	u := fromYAML(t, rich)
	target := wants(25, header("hdr"), mirror("mir", 40))
	target.Experiments = []virtualservice.Experiment{experiment("exp-a", 15)}
	after, _ := reach(t, u, with(byHosts(), service("exp-a")), target)

	want := typed(t, u)
	primary := want.Spec.Http[0]
	added := &api.HTTPRouteDestination{Weight: 15, Destination: &api.Destination{
		Host: "exp-a.shop.svc.cluster.local", Port: &api.PortSelector{Number: 8080}}}
	primary.Route[0].Weight, primary.Route[1].Weight = 60, 25
	primary.Route = append(primary.Route, added)

	hdr := proto.Clone(primary).(*api.HTTPRoute)
	hdr.Name, hdr.Route = "hdr", []*api.HTTPRouteDestination{hdr.Route[1]}
	hdr.Route[0].Weight = 100
	hdr.Match[0].Headers = map[string]*api.StringMatch{"x-canary": {MatchType: &api.StringMatch_Exact{Exact: "yes"}}}

	mir := proto.Clone(primary).(*api.HTTPRoute)
	mir.Name = "mir"
	mir.Match[0].Method = &api.StringMatch{MatchType: &api.StringMatch_Exact{Exact: "GET"}}
	mir.Mirrors = []*api.HTTPMirrorPolicy{
		{Destination: mir.Mirror, Percentage: mir.MirrorPercentage},
		{Destination: mir.Route[1].Destination, Percentage: &api.Percent{Value: 40}},
	}
	mir.Mirror, mir.MirrorPercentage = nil, nil

	want.Spec.Http = slices.Insert(want.Spec.Http, 0, hdr, mir)
	tls := want.Spec.Tls[0]
	tls.Route[0].Weight, tls.Route[1].Weight = 48, 20
	tls.Route = append(tls.Route, &api.RouteDestination{Weight: 12, Destination: &api.Destination{Host: "exp-a.shop.svc.cluster.local"}})
	want.Annotations[ownership.Annotation] = `{"shop/web":["exp-a"]}`
	if diff := cmp.Diff(want, typed(t, after), protocmp.Transform()); diff != "" {
		t.Errorf("typed object (-want +got):\n%s", diff)
	}

	end := virtualservice.Target{Owner: owner, ManagedNames: managedNames}
	original := typed(t, u)
	original.Spec.Http[0].Route[1].Weight = 0
	original.Spec.Tls[0].Route[0].Weight, original.Spec.Tls[0].Route[1].Weight = 80, 0
	after, _ = reach(t, after, with(byHosts(), service("exp-a")), end)
	if diff := cmp.Diff(original, typed(t, after), protocmp.Transform()); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
}
