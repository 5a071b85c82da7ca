package istiod

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/verification"
)

const clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// sidecar is a proxy as istiod sees one. It confirms nothing by itself.
type sidecar struct {
	stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	last   *discovery.DiscoveryResponse
}

// connect makes a sidecar ask for clusters, and waits until it has been sent some.
func connect(t *testing.T, namespace string) *sidecar {
	t.Helper()
	connection, err := grpc.NewClient(served.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(connection).StreamAggregatedResources(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	s := &sidecar{stream: stream}
	s.send(t, &discovery.DiscoveryRequest{TypeUrl: clusterType, Node: &core.Node{
		Id: "sidecar~10.9.9.9~app." + namespace + "~" + namespace + ".svc.cluster.local",
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"NAMESPACE": structpb.NewStringValue(namespace), "PROXY_CONFIG": structpb.NewStructValue(&structpb.Struct{}),
		}},
	}})
	if s.last, err = stream.Recv(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *sidecar) send(t *testing.T, request *discovery.DiscoveryRequest) {
	t.Helper()
	if err := s.stream.Send(request); err != nil {
		t.Fatal(err)
	}
}

// confirm answers what was sent last.
func (s *sidecar) confirm(t *testing.T) {
	t.Helper()
	s.send(t, &discovery.DiscoveryRequest{TypeUrl: clusterType, VersionInfo: s.last.GetVersionInfo(), ResponseNonce: s.last.GetNonce()})
}

func TestAProxyThatHasNotConfirmedIsSeenWithATokenOfIstiodsNamespaceAlone(t *testing.T) {
	w := &world{namespace: newNamespace(t)}
	namespaces := []string{w.namespace}
	proxy := connect(t, w.namespace)
	all := mesh.New(secured.as(t, "istio-system", "istio-ca"), hclog.NewNullLogger())
	own := mesh.New(secured.as(t, newNamespace(t), "istio-ca"), hclog.NewNullLogger())
	judged := func(client *mesh.Client) (ok, known bool, waiting string) {
		t.Helper()
		proxies, err := client.Proxies(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return verification.JudgeProxies(proxies, namespaces)
	}
	if ok, known, waiting := judged(all); ok || !known || !strings.HasSuffix(waiting, "not confirmed what they were sent: app."+w.namespace) {
		t.Errorf("before the proxy has confirmed: %t, %t, %q", ok, known, waiting)
	}
	if ok, known, _ := judged(own); ok || known {
		t.Errorf("with a token of another namespace: ok %t, known %t, want neither", ok, known)
	}
	proxy.confirm(t)
	w.until(t, "the confirmation", func(context.Context) bool {
		ok, known, _ := judged(all)
		return ok && known
	})
}

func TestWhoIsToldOfTheProxies(t *testing.T) {
	t.Parallel()
	for sentence, tc := range map[string]struct {
		options mesh.Options
		refused string
	}{
		"over plain text nobody":                  {options: plain(), refused: "authentication required"},
		"a token of istiod's namespace is enough": {options: secured.as(t, "istio-system", "istio-ca")},
		"so is one of any namespace, for its own": {options: secured.as(t, newNamespace(t), "istio-ca")},
		"a token for another audience is not":     {options: secured.as(t, newNamespace(t), "other"), refused: "authentication failure"},
	} {
		proxies, err := mesh.New(tc.options, hclog.NewNullLogger()).Proxies(t.Context())
		if (err == nil) != (tc.refused == "") || err != nil && (!errors.Is(err, mesh.ErrUnavailable) || !strings.Contains(err.Error(), tc.refused)) {
			t.Errorf("%s: %v, %v", sentence, proxies, err)
		}
		if slices.ContainsFunc(proxies, func(p mesh.Proxy) bool { return strings.HasPrefix(p.Name, "rollouts-plugin") }) {
			t.Errorf("%s: the plugin counts as a proxy itself", sentence)
		}
	}
}
