package mesh

import (
	"context"
	"errors"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	status "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// state is what istiod tells of one proxy.
func state(t testing.TB, id string, of map[string]status.ConfigStatus) *anypb.Any {
	t.Helper()
	config := &status.ClientConfig{
		ClientScope: "more", Node: &core.Node{Id: id, Cluster: "x", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewNumberValue(1)}}},
	}
	for typeURL, is := range of {
		config.GenericXdsConfigs = append(config.GenericXdsConfigs, &status.ClientConfig_GenericXdsConfig{TypeUrl: typeURL, Name: "n", ConfigStatus: is, IsStaticResource: true})
	}
	return packed(t, config)
}

func TestAProxyIsStaleIfItLacksWhatCarriesAWeight(t *testing.T) {
	for sentence, tc := range map[string]struct {
		of   map[string]status.ConfigStatus
		want bool
	}{
		"all confirmed":             {map[string]status.ConfigStatus{routeType: status.ConfigStatus_SYNCED, clusterType: status.ConfigStatus_SYNCED}, false},
		"not sent":                  {map[string]status.ConfigStatus{routeType: status.ConfigStatus_NOT_SENT}, false},
		"routes not confirmed":      {map[string]status.ConfigStatus{routeType: status.ConfigStatus_STALE, clusterType: status.ConfigStatus_SYNCED}, true},
		"clusters not confirmed":    {map[string]status.ConfigStatus{clusterType: status.ConfigStatus_STALE}, true},
		"endpoints refused":         {map[string]status.ConfigStatus{endpointType: status.ConfigStatus_ERROR}, true},
		"secrets are no matter":     {map[string]status.ConfigStatus{typePrefix + "envoy.extensions.transport_sockets.tls.v3.Secret": status.ConfigStatus_STALE}, false},
		"one that asks for nothing": {nil, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := decodeProxies(&discovery.DiscoveryResponse{Resources: []*anypb.Any{state(t, "b.shop", tc.of), state(t, "a.edge", nil)}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]Proxy{{Name: "a.edge"}, {Name: "b.shop", Stale: tc.want}}, got); diff != "" {
				t.Errorf("proxies (-want +got):\n%s", diff)
			}
			if got[1].Namespace() != "shop" {
				t.Errorf("namespace %q", got[1].Namespace())
			}
		})
	}
}

func TestTheProxiesOfAnIstiodThatTellsNothing(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	options := plain(s)
	options.Patience = 100 * time.Millisecond
	_, err := New(options, hclog.NewNullLogger()).Proxies(context.Background())
	if !errors.Is(err, ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
	if s.node().GetMetadata().GetFields()["GENERATOR"] != nil {
		t.Error("with this generator istiod does not answer")
	}
	eventually(t, "the stream to end", func() bool { return s.connected() == 0 })
	s.server.Stop()
	if _, err := New(options, hclog.NewNullLogger()).Proxies(context.Background()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
}

// FuzzProxies: whatever istiod sends is read as the generated type reads it.
func FuzzProxies(f *testing.F) {
	raw, err := proto.Marshal(state(f, "a.shop", map[string]status.ConfigStatus{routeType: status.ConfigStatus_STALE}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(state(f, "a.shop", map[string]status.ConfigStatus{routeType: status.ConfigStatus_STALE}).GetValue())
	f.Add(raw)
	f.Add([]byte{0x0a})
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := decodeProxy(raw)
		var config status.ClientConfig
		if proto.Unmarshal(raw, &config) != nil {
			return // the real type is stricter: it looks into every field
		}
		if err != nil {
			t.Fatalf("what the real type reads is refused: %v", err)
		}
		want := Proxy{Name: config.GetNode().GetId()}
		for _, c := range config.GetGenericXdsConfigs() {
			switch c.GetTypeUrl() {
			case routeType, clusterType, endpointType:
				want.Stale = want.Stale || c.GetConfigStatus() == status.ConfigStatus_STALE || c.GetConfigStatus() == status.ConfigStatus_ERROR
			}
		}
		if got != want {
			t.Fatalf("%+v, the real type says %+v", got, want)
		}
	})
}
