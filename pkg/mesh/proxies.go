package mesh

import (
	"context"
	"fmt"
	"slices"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
)

// syncType asks istiod which of its proxies have confirmed what they were last sent.
const syncType = "istio.io/debug/syncz"

// Proxy is a proxy that is connected to the istiod that was asked.
type Proxy struct {
	// Name is POD.NAMESPACE.
	Name string
	// Stale tells that it has not confirmed the last clusters, endpoints or routes that
	// it was sent, or that it has refused them.
	Stale bool
}

// Namespace is that of the proxy's pod.
func (p Proxy) Namespace() string {
	_, namespace, _ := strings.Cut(p.Name, ".")
	return namespace
}

// Proxies asks which proxies there are and how they are, and waits for the answer.
// ErrUnavailable says that istiod did not tell.
//
// istiod tells it to nobody over plain text, unless its own
// ENABLE_DEBUG_ENDPOINT_AUTH is off. With a token it tells the proxies of the token's
// namespace; all of them if that is istiod's own namespace, or is listed in istiod's
// DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES. Of several istiods the one that is asked
// knows its own proxies only.
func (c *Client) Proxies(ctx context.Context) ([]Proxy, error) {
	proxies, err := c.proxies(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w for the state of its proxies at %s: %w", ErrUnavailable, c.options.Address, err)
	}
	return proxies, nil
}

func (c *Client) proxies(ctx context.Context) ([]Proxy, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Patience)
	defer cancel()
	namespace := nodeName // of no meaning over plain text
	if !c.options.Plaintext {
		var err error
		if namespace, err = c.options.tokenNamespace(); err != nil {
			return nil, err
		}
	}
	stream, end, err := c.options.open(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	// A failed Send is explained by Recv.
	_ = stream.Send(&discovery.DiscoveryRequest{TypeUrl: syncType, Node: c.options.node(namespace, "")})
	response, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	return decodeProxies(response)
}

func decodeProxies(response *discovery.DiscoveryResponse) ([]Proxy, error) {
	var all []Proxy
	for _, resource := range response.GetResources() {
		proxy, err := decodeProxy(resource.GetValue())
		if err != nil {
			return nil, fmt.Errorf("the state of a proxy: %w", err)
		}
		all = append(all, proxy)
	}
	slices.SortFunc(all, func(a, b Proxy) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// The fields of envoy.service.status.v3.ClientConfig that count. The generated type
// would bring a dozen packages and 3 MB along.
const (
	clientNode    protowire.Number = 1 // of ClientConfig: core.v3.Node
	clientConfigs protowire.Number = 3 // of ClientConfig: repeated GenericXdsConfig
	nodeID        protowire.Number = 1 // of Node
	configType    protowire.Number = 1 // of GenericXdsConfig: type_url
	configStatus  protowire.Number = 6 // of GenericXdsConfig: ConfigStatus

	// The values of ConfigStatus that mean that a proxy lags behind.
	statusStale int32 = 3
	statusError int32 = 4
)

func decodeProxy(message []byte) (Proxy, error) {
	var p Proxy
	err := fields(message, func(number protowire.Number, _ uint64, content []byte) error {
		switch number {
		case clientNode:
			return fields(content, func(number protowire.Number, _ uint64, content []byte) error {
				if number == nodeID {
					p.Name = string(content)
				}
				return nil
			})
		case clientConfigs:
			stale, err := decodeConfig(content)
			p.Stale = p.Stale || stale
			return err
		}
		return nil
	})
	return p, err
}

// decodeConfig tells whether one type of resource, of those that carry a weight, lags
// behind.
func decodeConfig(message []byte) (stale bool, err error) {
	var typeURL string
	var status int32
	err = fields(message, func(number protowire.Number, value uint64, content []byte) error {
		switch number {
		case configType:
			typeURL = string(content)
		case configStatus:
			status = int32(value) // as an enum is read, whatever was sent
		}
		return nil
	})
	counts := typeURL == routeType || typeURL == clusterType || typeURL == endpointType
	return counts && (status == statusStale || status == statusError), err
}

// fields calls with each field of a message: value is that of a number, content that
// of everything with a length.
func fields(message []byte, f func(number protowire.Number, value uint64, content []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		var value uint64
		var content []byte
		switch kind {
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			content, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if err := f(number, value, content); err != nil {
			return err
		}
	}
	return nil
}
