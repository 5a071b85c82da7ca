package virtualservice_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	networking "istio.io/client-go/pkg/apis/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
