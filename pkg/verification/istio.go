package verification

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// meshGateway is how a VirtualService names all clients in the mesh.
const meshGateway = "mesh"

// httpPort is the one port on which istiod also serves hosts that nobody registered.
const httpPort = 80

// resolve completes a host as Istio does: only a name without a dot belongs to the
// namespace. The plugin itself is more lenient, in hostname.
func (f Facts) resolve(host, namespace string) string {
	if _, err := netip.ParseAddr(host); err == nil || host == "*" || host == "" || strings.Contains(host, ".") {
		return strings.ToLower(host)
	}
	return strings.ToLower(host + "." + namespace + ".svc." + f.domain())
}

// clusterName is how Istio calls the endpoints of one port of a host.
func clusterName(port uint32, subset, host string) string {
	return fmt.Sprintf("outbound|%d|%s|%s", port, subset, host)
}

// wellKnown are ports that Istio takes to be TCP's unless the Service says what they
// are: mail, DNS, MySQL and MongoDB.
var wellKnown = []int32{25, 53, 3306, 27017}

// notHTTP are the protocols of a port whose connections have no http routes.
var notHTTP = []string{"tcp", "udp", "https", "tls", "mongo", "redis", "mysql", "kubernetes.io/wss"}

// carriesHTTP tells whether Istio gives a port http routes: it goes by appProtocol,
// else by the name up to the first hyphen, and finds out by itself where that says
// nothing.
func carriesHTTP(port cluster.ServicePort) bool {
	if port.UDP {
		return false
	}
	name := port.Name
	if port.AppProtocol != "" {
		name = port.AppProtocol
	}
	name = strings.ToLower(name)
	if slices.Contains(notHTTP, name) {
		return false
	}
	name, _, _ = strings.Cut(name, "-")
	switch name {
	case "http", "http2", "grpc", "http_proxy", "kubernetes.io/h2c", "kubernetes.io/ws":
		return true
	}
	return !slices.Contains(notHTTP, name) && !slices.Contains(wellKnown, port.Port)
}

// expected is one route that istiod has to serve, or with any set any number of
// routes that are not known from here.
type expected struct {
	any      bool
	name     string
	clusters []mesh.Weighted
}

// matchBlock is what decides whether a client has a route, and whether any comes
// after it.
type matchBlock struct {
	Name            string                     `json:"name"`
	Port            uint32                     `json:"port"`
	Gateways        []string                   `json:"gateways"`
	SourceLabels    map[string]string          `json:"sourceLabels"`
	SourceNamespace string                     `json:"sourceNamespace"`
	URI             pathMatch                  `json:"uri"`
	Scheme          json.RawMessage            `json:"scheme"`
	Method          json.RawMessage            `json:"method"`
	Authority       json.RawMessage            `json:"authority"`
	Headers         map[string]json.RawMessage `json:"headers"`
	WithoutHeaders  map[string]json.RawMessage `json:"withoutHeaders"`
	QueryParams     map[string]json.RawMessage `json:"queryParams"`
}

type pathMatch struct {
	Exact  *string `json:"exact"`
	Prefix *string `json:"prefix"`
	Regex  *string `json:"regex"`
}

// takesAll tells whether no request goes past it.
func (b matchBlock) takesAll() bool {
	conditions := len(b.Headers) + len(b.WithoutHeaders) + len(b.QueryParams)
	for _, condition := range []json.RawMessage{b.Scheme, b.Method, b.Authority} {
		if len(condition) > 0 && string(condition) != "null" {
			conditions++
		}
	}
	return conditions == 0 && b.URI.takesAll()
}

func (p pathMatch) takesAll() bool {
	switch {
	case p.Exact != nil:
		return false
	case p.Prefix != nil:
		return *p.Prefix == "/"
	case p.Regex != nil:
		return *p.Regex == ".*"
	}
	return true
}

// fits tells whether a client of the namespace, without labels, has the route on this
// port.
func (b matchBlock) fits(port uint32, namespace string) bool {
	return (b.Port == 0 || b.Port == port) && b.forUs(namespace)
}

func (b matchBlock) forUs(namespace string) bool {
	if len(b.Gateways) > 0 {
		return slices.Contains(b.Gateways, meshGateway)
	}
	return len(b.SourceLabels) == 0 && (b.SourceNamespace == "" || b.SourceNamespace == namespace)
}

// blocksOf are the match blocks of a route; one without conditions for a route
// without any.
func blocksOf(route virtualservice.Route) ([]matchBlock, error) {
	var content struct {
		Match []matchBlock `json:"match"`
	}
	if err := json.Unmarshal(route.Raw, &content); err != nil {
		return nil, err
	}
	if len(content.Match) == 0 {
		return []matchBlock{{}}, nil
	}
	return content.Match, nil
}

// routesFor are the routes that istiod makes of a VirtualService for one port.
func (f Facts) routesFor(vs *virtualservice.VirtualService, port uint32) []expected {
	var out []expected
	for _, route := range vs.HTTP {
		blocks, err := blocksOf(route)
		if err != nil || route.Malformed != nil || route.Delegate != nil {
			out = append(out, expected{any: true})
			continue
		}
		clusters := f.clustersOf(vs, route, port)
		for _, block := range blocks {
			if !block.fits(port, f.Namespace) {
				continue
			}
			name := route.Name
			if block.Name != "" {
				name += "." + block.Name
			}
			out = append(out, expected{name: name, clusters: clusters})
			if block.takesAll() {
				return out
			}
		}
	}
	return out
}

// clustersOf are those that share the requests of a route on one port.
func (f Facts) clustersOf(vs *virtualservice.VirtualService, route virtualservice.Route, port uint32) []mesh.Weighted {
	if route.Redirect || route.DirectResponse {
		return nil
	}
	var out []mesh.Weighted
	for _, d := range route.Destinations {
		weight := uint32(max(0, min(d.Weight, 1<<32-1)))
		if len(route.Destinations) == 1 {
			weight = 1
		}
		if weight > 0 {
			out = append(out, mesh.Weighted{Cluster: clusterName(portOf(d, port), d.Subset, f.resolve(d.Host, vs.Namespace)), Weight: weight})
		}
	}
	return out
}

// portOf is the port of a destination: the one that it names, else that of the
// request.
func portOf(d virtualservice.Destination, port uint32) uint32 {
	if d.Port > 0 && d.Port <= 65535 {
		return uint32(d.Port)
	}
	return port
}
