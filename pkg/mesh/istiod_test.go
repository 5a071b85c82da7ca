package mesh

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/apimachinery/pkg/types"
)

// istiod is a server that keeps to the rules of the real one: it answers requests by
// name, ignores those with a nonce that is not the last, and answers again when the
// names have changed.
type istiod struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer

	mu sync.Mutex
	// resources by type and name; a name that is not in it is not answered, but for
	// clusters it is left out of the answer.
	resources map[string]map[string]*anypb.Any
	streams   map[*stream]bool
	// requests of all streams so far, the tokens and the nodes of each stream.
	requests []*discovery.DiscoveryRequest
	tokens   []string
	nodes    []*core.Node
	mute     bool
	version  int

	server *grpc.Server
	addr   string
}

// stream is one client's.
type stream struct {
	discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer
	names map[string][]string
	nonce map[string]string
}

// startIstiod serves on a free port, or again on that of an earlier one.
func startIstiod(t *testing.T, addr string, options ...grpc.ServerOption) *istiod {
	t.Helper()
	s := &istiod{resources: map[string]map[string]*anypb.Any{routeType: {}, clusterType: {}, endpointType: {}}, streams: map[*stream]bool{}}
	s.serve(t, addr, options...)
	return s
}

func (s *istiod) serve(t *testing.T, addr string, options ...grpc.ServerOption) {
	t.Helper()
	var listener net.Listener
	// The port of a server that was just stopped may be held for a moment.
	eventually(t, "the port "+addr, func() bool {
		var err error
		listener, err = net.Listen("tcp", addr)
		return err == nil
	})
	s.server, s.addr = grpc.NewServer(options...), listener.Addr().String()
	discovery.RegisterAggregatedDiscoveryServiceServer(s.server, s)
	server := s.server
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
}

func (s *istiod) StreamAggregatedResources(server discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	client := &stream{AggregatedDiscoveryService_StreamAggregatedResourcesServer: server, names: map[string][]string{}, nonce: map[string]string{}}
	incoming, _ := metadata.FromIncomingContext(server.Context())
	s.with(func() {
		s.streams[client] = true
		s.tokens = append(s.tokens, strings.Join(incoming.Get("authorization"), ","))
	})
	defer s.with(func() { delete(s.streams, client) })
	for {
		request, err := server.Recv()
		if err != nil {
			return nil
		}
		s.with(func() { err = s.handle(client, request) })
		if err != nil {
			return err
		}
	}
}

// handle needs the lock.
func (s *istiod) handle(client *stream, request *discovery.DiscoveryRequest) error {
	s.requests = append(s.requests, request)
	if request.GetNode() != nil {
		s.nodes = append(s.nodes, request.GetNode())
	}
	typeURL, before := request.GetTypeUrl(), client.names[request.GetTypeUrl()]
	if request.GetErrorDetail() != nil || before != nil && request.GetResponseNonce() != client.nonce[typeURL] {
		return nil
	}
	client.names[typeURL] = request.GetResourceNames()
	if slices.Equal(before, request.GetResourceNames()) {
		return nil
	}
	return s.push(client, typeURL)
}

// push sends a client what it has asked for. It needs the lock.
func (s *istiod) push(client *stream, typeURL string) error {
	if s.mute || len(client.names[typeURL]) == 0 {
		return nil
	}
	s.version++
	response := &discovery.DiscoveryResponse{TypeUrl: typeURL, VersionInfo: fmt.Sprint("v", s.version), Nonce: fmt.Sprint("n", s.version)}
	for _, name := range client.names[typeURL] {
		if resource := s.resources[typeURL][name]; resource != nil {
			response.Resources = append(response.Resources, resource)
		}
	}
	client.nonce[typeURL] = response.GetNonce()
	return client.Send(response)
}

// set changes what is served, and pushes it to all.
func (s *istiod) set(t *testing.T, typeURL, name string, resource *anypb.Any) {
	t.Helper()
	s.with(func() {
		s.resources[typeURL][name] = resource
		if resource == nil {
			delete(s.resources[typeURL], name)
		}
		for client := range s.streams {
			if err := s.push(client, typeURL); err != nil {
				t.Log("push:", err)
			}
		}
	})
}

func (s *istiod) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// asked are the names of a type that clients ask for at this moment, sorted.
func (s *istiod) asked(typeURL string) (names []string) {
	s.with(func() {
		for client := range s.streams {
			names = append(names, client.names[typeURL]...)
		}
	})
	slices.Sort(names)
	return names
}

func (s *istiod) count(of func(*discovery.DiscoveryRequest) bool) (count int) {
	s.with(func() {
		for _, request := range s.requests {
			if of(request) {
				count++
			}
		}
	})
	return count
}

func (s *istiod) connected() (count int) {
	s.with(func() { count = len(s.streams) })
	return count
}

// seen are the tokens of all streams so far.
func (s *istiod) seen() (tokens []string) {
	s.with(func() { tokens = slices.Clone(s.tokens) })
	return tokens
}

// node is who made the first stream.
func (s *istiod) node() (node *core.Node) {
	s.with(func() { node = s.nodes[0] })
	return node
}

func packed(t testing.TB, message proto.Message) *anypb.Any {
	t.Helper()
	out, err := anypb.New(message)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// made is the metadata of what was made of a VirtualService.
func made(of string) *core.Metadata {
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"istio": {Fields: map[string]*structpb.Value{"config": structpb.NewStringValue(of)}},
	}}
}

const madeOfWeb = "/apis/networking.istio.io/v1/namespaces/shop/virtual-service/web"

// weighted is a route that splits.
func weighted(name string, weights map[string]uint32) *routev3.Route {
	var all []*routev3.WeightedCluster_ClusterWeight
	for _, cluster := range slices.Sorted(maps.Keys(weights)) {
		all = append(all, &routev3.WeightedCluster_ClusterWeight{Name: cluster, Weight: wrapperspb.UInt32(weights[cluster])})
	}
	return &routev3.Route{Name: name, Metadata: made(madeOfWeb), Action: &routev3.Route_Route{Route: &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_WeightedClusters{WeightedClusters: &routev3.WeightedCluster{Clusters: all}},
	}}}
}

func configuration(host Host, routes ...*routev3.Route) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{Name: host.routeName(), VirtualHosts: []*routev3.VirtualHost{
		{Name: host.Name, Domains: []string{host.Name, fmt.Sprintf("%s:%d", host.Name, host.Port)}, Routes: routes},
	}}
}

func assignment(cluster string, addresses ...string) *endpointv3.ClusterLoadAssignment {
	var all []*endpointv3.LbEndpoint
	for _, address := range addresses {
		all = append(all, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
				Address: address, PortSpecifier: &core.SocketAddress_PortValue{PortValue: 8080},
			}}},
		}}})
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: cluster, Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: all}}}
}

const canary, stable = "outbound|80|canary|web.shop.svc.cluster.local", "outbound|80|stable|web.shop.svc.cluster.local"

var web = Host{Name: "web.shop.svc.cluster.local", Port: 80}

// want is what a Rollout of web follows.
var want = Want{Routes: []Host{web}, Clusters: []string{canary, stable}}

// setWeb serves web with this weight for the canary.
func (s *istiod) setWeb(t *testing.T, weight uint32) {
	t.Helper()
	s.set(t, routeType, web.routeName(), packed(t, configuration(web, weighted("primary", map[string]uint32{canary: weight, stable: 100 - weight}))))
}

// setAll serves everything of web.
func (s *istiod) setAll(t *testing.T) {
	t.Helper()
	for _, name := range want.Clusters {
		s.set(t, clusterType, name, packed(t, &clusterv3.Cluster{Name: name}))
		s.set(t, endpointType, name, packed(t, assignment(name, "10.0.0.1")))
	}
	s.setWeb(t, 10)
}

// told collects for whom something has changed. It is safe for concurrent use.
type told struct {
	mu  sync.Mutex
	who []types.UID
}

func (n *told) add(who types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.who = append(n.who, who)
}

func (n *told) count(who types.UID) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.who {
		if one == who {
			count++
		}
	}
	return count
}

// start runs a client for as long as the test; it does not pause for long.
func start(t *testing.T, options Options) *Client {
	t.Helper()
	c := New(options, hclog.NewNullLogger())
	c.pause = func(failed int) time.Duration { return min(pauseAfter(failed), 50*time.Millisecond) }
	run(t, c)
	return c
}

func run(t *testing.T, c *Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		c.Run(ctx)
		close(over)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
}

func plain(s *istiod) Options { return Options{Address: s.addr, Plaintext: true} }

// eventually fails the test when a condition does not come to hold.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// await fails the test when a client does not come to serve what holds.
func await(t *testing.T, c *Client, rollout types.UID, what string, holds func(Served) bool) Served {
	t.Helper()
	var last Served
	var err error
	eventually(t, what, func() bool {
		last, err = c.Served(rollout)
		return err == nil && holds(last)
	})
	return last
}

// canaryWeight is that of the first route of web, -1 if there is none.
func canaryWeight(s Served) int {
	for _, route := range s.Routes[web] {
		for _, c := range route.Clusters {
			if c.Cluster == canary {
				return int(c.Weight)
			}
		}
	}
	return -1
}
