package mesh

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"k8s.io/apimachinery/pkg/types"
)

// The types of resources that are asked for.
const (
	typePrefix   = "type.googleapis.com/"
	routeType    = typePrefix + "envoy.config.route.v3.RouteConfiguration"
	clusterType  = typePrefix + "envoy.config.cluster.v3.Cluster"
	endpointType = typePrefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// routeName is how a client without a proxy asks for the routes of a host.
func (h Host) routeName() string { return fmt.Sprintf("outbound|%d||%s", h.Port, h.Name) }

// hostOf is the host of such a name; false for any other.
func hostOf(routeName string) (Host, bool) {
	parts := strings.Split(routeName, "|")
	if len(parts) != 4 || parts[0] != "outbound" || parts[2] != "" || parts[3] == "" {
		return Host{}, false
	}
	port, err := strconv.ParseUint(parts[1], 10, 16)
	return Host{Name: parts[3], Port: uint32(port)}, err == nil && port > 0
}

// decodeRoutes reads the routes of one host. The host's own come first where several
// virtual hosts fit, such as one with a wildcard: a request goes to the most specific.
func decodeRoutes(resource *anypb.Any) (Host, []Route, error) {
	var config route.RouteConfiguration
	if err := resource.UnmarshalTo(&config); err != nil {
		return Host{}, nil, fmt.Errorf("routes: %w", err)
	}
	host, ok := hostOf(config.GetName())
	if !ok {
		return Host{}, nil, fmt.Errorf("routes %q: not a name that was asked for", config.GetName())
	}
	var routes []Route
	if virtual := mostSpecific(config.GetVirtualHosts(), host); virtual != nil {
		for _, r := range virtual.GetRoutes() {
			routes = append(routes, decodeRoute(r))
		}
	}
	return host, routes, nil
}

// mostSpecific is the virtual host that a request to the host would take: by its
// exact name, else by the longest wildcard.
func mostSpecific(all []*route.VirtualHost, host Host) *route.VirtualHost {
	var best *route.VirtualHost
	most := -1
	for _, virtual := range all {
		for _, domain := range virtual.GetDomains() {
			if fit := fits(strings.ToLower(domain), host); fit > most {
				best, most = virtual, fit
			}
		}
	}
	return best
}

// fits is how well a domain fits a host; -1 if it does not.
func fits(domain string, host Host) int {
	if name, port, err := net.SplitHostPort(domain); err == nil {
		if port != strconv.FormatUint(uint64(host.Port), 10) {
			return -1
		}
		domain = name
	}
	switch suffix, wildcard := strings.CutPrefix(domain, "*"); {
	case domain == host.Name:
		return math.MaxInt
	case wildcard && strings.HasSuffix(host.Name, suffix):
		return len(suffix)
	}
	return -1
}

func decodeRoute(r *route.Route) Route {
	out := Route{Name: r.GetName(), VirtualService: virtualServiceOf(r.GetMetadata())}
	action := r.GetRoute()
	if single := action.GetCluster(); single != "" {
		out.Clusters = []Weighted{{Cluster: single, Weight: 1}}
	}
	for _, weighted := range action.GetWeightedClusters().GetClusters() {
		out.Clusters = append(out.Clusters, Weighted{Cluster: weighted.GetName(), Weight: weighted.GetWeight().GetValue()})
	}
	return out
}

// virtualServiceOf reads where Istio notes what a route was made of:
// /apis/networking.istio.io/v1/namespaces/NAMESPACE/virtual-service/NAME.
func virtualServiceOf(metadata *core.Metadata) types.NamespacedName {
	config := metadata.GetFilterMetadata()["istio"].GetFields()["config"].GetStringValue()
	parts := strings.Split(config, "/")
	if len(parts) != 8 || parts[4] != "namespaces" || parts[6] != "virtual-service" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: parts[5], Name: parts[7]}
}

// decodeCluster reads the name of a cluster that exists.
func decodeCluster(resource *anypb.Any) (string, error) {
	var config cluster.Cluster
	if err := unmarshal(resource, &config); err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	return config.GetName(), nil
}

// decodeEndpoints reads the endpoints of one cluster.
func decodeEndpoints(resource *anypb.Any) (string, []Endpoint, error) {
	var config endpoint.ClusterLoadAssignment
	if err := unmarshal(resource, &config); err != nil {
		return "", nil, fmt.Errorf("endpoints: %w", err)
	}
	var all []Endpoint
	for _, locality := range config.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			address := e.GetEndpoint().GetAddress().GetSocketAddress()
			all = append(all, Endpoint{Address: address.GetAddress(), Port: address.GetPortValue(), Healthy: healthy(e.GetHealthStatus())})
		}
	}
	return config.GetClusterName(), all, nil
}

// healthy is what envoy and gRPC send requests to.
func healthy(status core.HealthStatus) bool {
	return status == core.HealthStatus_UNKNOWN || status == core.HealthStatus_HEALTHY
}

func unmarshal(resource *anypb.Any, into proto.Message) error {
	return resource.UnmarshalTo(into)
}
