package virtualservice

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
)

// Protocol is the list of spec that a route stands in.
type Protocol string

// The three lists of routes in a VirtualService.
const (
	HTTP Protocol = "http"
	TLS  Protocol = "tls"
	TCP  Protocol = "tcp"
)

// VirtualService is the plugin's view of one VirtualService in one version. It must
// not be changed once parsed, and may then be used from any number of goroutines.
//
// Of the metadata only name, namespace, uid, resourceVersion and generation are
// kept: the rest is most of what a cached object weighs.
type VirtualService struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// Hosts and Gateways are as written: for whose requests the routes are, and which
	// proxies have them. What is no list of texts counts as none.
	Hosts, Gateways []string
	// HTTP, TLS and TCP are the routes in the order of the object.
	HTTP, TLS, TCP []Route
	// Ours are the protocols whose list of routes was last changed by a process of
	// this plugin: our field manager owns it in metadata.managedFields.
	Ours []Protocol
	// Experiments is the account of the destinations that were added for experiments.
	Experiments ownership.Account
	// LastChange is when anybody last changed the object by the API server's clock,
	// in whole seconds; zero if that is not known. Whoever lowered a weight, it takes
	// time to reach the proxies.
	LastChange time.Time
	// Malformed is why the object cannot be read at all, and names the field. Every
	// method returns it. What is wrong inside one route is in Route.Malformed.
	Malformed error
}

var (
	_ runtime.Object = (*VirtualService)(nil)
	_ metav1.Object  = (*VirtualService)(nil)
)

// LastChangedByUs tells whether the lists in which these routes stand were all last
// changed by a process of this plugin.
func (vs *VirtualService) LastChangedByUs(routes []Route) bool {
	for _, route := range routes {
		if !slices.Contains(vs.Ours, route.Protocol) {
			return false
		}
	}
	return len(routes) > 0
}

// Route is one entry of spec.http, spec.tls or spec.tcp.
type Route struct {
	Protocol Protocol
	// Index is the place in its list, from 0.
	Index int
	// Name is empty for tls and tcp routes, which have none.
	Name string
	// Matches are the match blocks of a tls or tcp route; those of an http route are
	// not needed and not kept.
	Matches []Match
	// Destinations are the entries of "route", in order.
	Destinations []Destination
	// Delegate is set if the routing is left to another VirtualService.
	Delegate *Delegate
	// Redirect and DirectResponse tell that the route answers instead of forwarding.
	Redirect, DirectResponse bool
	// Raw is the whole route as compact JSON with sorted keys, numbers as the API
	// server writes them: two routes with the same Raw have the same content. Only
	// http routes have it. It is shared by all copies and must not be changed.
	Raw json.RawMessage
	// Malformed is the first thing in the route that has the wrong type, by path. It
	// matters only once the route is selected.
	Malformed error
}

// Match is what the selection of tls and tcp routes looks at in one match block.
type Match struct {
	// Port is 0 if the block does not name one.
	Port int64
	// SNIHosts is always empty for tcp.
	SNIHosts []string
}

// Destination is one entry of a route's "route" list.
type Destination struct {
	// Index is the place in the list, from 0.
	Index int
	// Host and Subset are as written in the object, Subset may be empty.
	Host, Subset string
	// Port is destination.port.number, 0 if there is none.
	Port int64
	// Weight is relative to the other weights of the route and may be anything that
	// somebody wrote. Absent is 0, but Istio sends all requests of a route with a
	// single destination there, whatever its weight.
	Weight    int64
	HasWeight bool
}

// Delegate names the VirtualService that routes instead. Namespace is empty if it
// is the namespace of the VirtualService that delegates.
type Delegate struct {
	Name, Namespace string
}

// String names the route for people, as in: http[2] "primary", http[0] without a
// name, tls[0] (port 443, sniHosts a.example b.example).
func (r Route) String() string {
	place := string(r.Protocol) + "[" + strconv.Itoa(r.Index) + "]"
	switch {
	case r.Name != "":
		return place + " " + strconv.Quote(r.Name)
	case r.Protocol == HTTP:
		return place + " without a name"
	}
	return place + " (" + r.matched() + ")"
}

// matched describes the connections of a tls or tcp route.
func (r Route) matched() string {
	var ports []string
	for _, match := range r.Matches {
		if port := strconv.FormatInt(match.Port, 10); match.Port != 0 && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	text := "any port"
	if len(ports) > 0 {
		text = "port " + strings.Join(ports, " ")
	}
	if hosts := r.sniHosts(); len(hosts) > 0 {
		text += ", sniHosts " + strings.Join(hosts, " ")
	}
	return text
}

// sniHosts are the SNI hosts of all match blocks together, sorted, each once.
func (r Route) sniHosts() []string {
	var hosts []string
	for _, match := range r.Matches {
		hosts = append(hosts, match.SNIHosts...)
	}
	return set(hosts)
}

// port is the port of all match blocks, false if they name different ones. A
// block without a port counts as port 0, and so does a route without any block.
func (r Route) port() (int64, bool) {
	if len(r.Matches) == 0 {
		return 0, true
	}
	port := r.Matches[0].Port
	for _, match := range r.Matches {
		if match.Port != port {
			return 0, false
		}
	}
	return port, true
}

// path is where one of the route's destinations stands in the object.
func (r Route) path(destination int) string {
	return fmt.Sprintf("spec.%s[%d].route[%d]", r.Protocol, r.Index, destination)
}

// set is the sorted list without repetitions; the list itself is not changed.
func set(list []string) []string {
	unique := make(map[string]struct{}, len(list))
	for _, entry := range list {
		unique[entry] = struct{}{}
	}
	return slices.Sorted(maps.Keys(unique))
}

// ref names the object in errors.
func (vs *VirtualService) ref() string {
	return fmt.Sprintf("VirtualService %s/%s", vs.Namespace, vs.Name)
}

// errorf is an error about this object.
func (vs *VirtualService) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", vs.ref(), fmt.Errorf(format, args...))
}

// lists are the routes by protocol, in the order in which patches name them.
func (vs *VirtualService) lists() [3][]Route {
	return [3][]Route{vs.HTTP, vs.TLS, vs.TCP}
}

// DeepCopyObject is a copy that shares nothing with vs but strings, errors and the
// Raw of routes, none of which may be changed.
func (vs *VirtualService) DeepCopyObject() runtime.Object {
	return vs.DeepCopy()
}

// DeepCopy is DeepCopyObject with its own type; the copy of nil is nil.
func (vs *VirtualService) DeepCopy() *VirtualService {
	if vs == nil {
		return nil
	}
	out := *vs
	vs.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Experiments = vs.Experiments.DeepCopy()
	out.Ours = slices.Clone(vs.Ours)
	out.Hosts, out.Gateways = slices.Clone(vs.Hosts), slices.Clone(vs.Gateways)
	out.HTTP, out.TLS, out.TCP = copyRoutes(vs.HTTP), copyRoutes(vs.TLS), copyRoutes(vs.TCP)
	return &out
}

func copyRoutes(routes []Route) []Route {
	out := slices.Clone(routes)
	for i := range out {
		out[i].Destinations = slices.Clone(out[i].Destinations)
		out[i].Matches = slices.Clone(out[i].Matches)
		for m := range out[i].Matches {
			out[i].Matches[m].SNIHosts = slices.Clone(out[i].Matches[m].SNIHosts)
		}
		if delegate := out[i].Delegate; delegate != nil {
			out[i].Delegate = &Delegate{Name: delegate.Name, Namespace: delegate.Namespace}
		}
	}
	return out
}
