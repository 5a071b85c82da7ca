package mesh

import (
	"errors"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
)

// resourceTypes are asked for in this order, which is also that in which envoy asks:
// a cluster before its endpoints.
var resourceTypes = [...]string{clusterType, endpointType, routeType}

// errNothingLeft says that a stream has to be made anew: in this protocol asking for
// no cluster means asking for all.
var errNothingLeft = errors.New("nothing of a kind is asked for any more")

// conversation is what one stream has said and heard, of each type of resource. It
// knows no connection: what comes in is given to it, and it answers what to send.
type conversation struct {
	node  *core.Node
	begun bool
	types map[string]*exchange
}

// exchange is about one type.
type exchange struct {
	names []string
	// version is that of the last answer that was accepted, nonce that of the last.
	version, nonce string
}

func newConversation(node *core.Node) *conversation {
	c := &conversation{node: node, types: map[string]*exchange{}}
	for _, typeURL := range resourceTypes {
		c.types[typeURL] = &exchange{}
	}
	return c
}

// ask returns what to send for other names; nothing if they are the same.
func (c *conversation) ask(wanted names) ([]*discovery.DiscoveryRequest, error) {
	var requests []*discovery.DiscoveryRequest
	for _, typeURL := range resourceTypes {
		e, now := c.types[typeURL], wanted.of(typeURL)
		if slices.Equal(e.names, now) {
			continue
		}
		if len(now) == 0 {
			return nil, errNothingLeft
		}
		e.names = now
		requests = append(requests, c.request(typeURL))
	}
	return requests, nil
}

// asked are the names of a type that were last asked for.
func (c *conversation) asked(typeURL string) []string {
	if e := c.types[typeURL]; e != nil {
		return e.names
	}
	return nil
}

// answer returns what to send for an answer that was read; problem is why it could
// not be, and is sent along. An answer that nobody asked for is ignored.
//
// The names are always sent as they are now: istiod ignores a change that it was told
// of while this answer was under way.
func (c *conversation) answer(response *discovery.DiscoveryResponse, problem error) *discovery.DiscoveryRequest {
	e := c.types[response.GetTypeUrl()]
	if e == nil || len(e.names) == 0 {
		return nil
	}
	e.nonce = response.GetNonce()
	if problem == nil {
		e.version = response.GetVersionInfo()
	}
	request := c.request(response.GetTypeUrl())
	if problem != nil {
		request.ErrorDetail = &status.Status{Code: int32(codes.InvalidArgument), Message: problem.Error()}
	}
	return request
}

func (c *conversation) request(typeURL string) *discovery.DiscoveryRequest {
	e := c.types[typeURL]
	request := &discovery.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: e.names, VersionInfo: e.version, ResponseNonce: e.nonce}
	if !c.begun {
		request.Node, c.begun = c.node, true
	}
	return request
}
