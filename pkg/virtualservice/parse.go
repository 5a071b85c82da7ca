package virtualservice

import (
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch/object"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
)

// Parse reads the view out of u, which is neither changed nor referred to
// afterwards. fieldManager is the name under which the plugin writes; it is used
// for Ours alone.
//
// Parse never fails and never panics. Content of the wrong type is left out and
// reported where it matters: in Malformed if the object itself, its metadata, spec
// or a list of routes cannot be read, otherwise in the Malformed of the route.
func Parse(u *unstructured.Unstructured, fieldManager string) *VirtualService {
	identity, err := object.IdentityOf(u)
	vs := &VirtualService{
		TypeMeta:    identity.TypeMeta,
		ObjectMeta:  identity.ObjectMeta,
		Experiments: ownership.Parse(u),
		LastChange:  object.LastChange(u),
	}
	for _, protocol := range []Protocol{HTTP, TLS, TCP} {
		if object.Owns(u, fieldManager, "spec", string(protocol)) {
			vs.Ours = append(vs.Ours, protocol)
		}
	}
	spec := object.ContentOf(u).Field("spec")
	// Which requests the routes are for is no matter of weights: nothing is refused.
	vs.Hosts, _ = spec.Field("hosts").Texts()
	vs.Gateways, _ = spec.Field("gateways").Texts()
	http, httpErr := parseRoutes(HTTP, spec)
	tls, tlsErr := parseRoutes(TLS, spec)
	tcp, tcpErr := parseRoutes(TCP, spec)
	vs.HTTP, vs.TLS, vs.TCP = http, tls, tcp
	vs.keepRaw(u)
	vs.Malformed = cmp.Or(err, spec.Object(), httpErr, tlsErr, tcpErr)
	return vs
}

// keepRaw gives the http routes their JSON. There is a list with as many entries as
// routes if there are routes.
func (vs *VirtualService) keepRaw(u *unstructured.Unstructured) {
	if len(vs.HTTP) == 0 {
		return
	}
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", string(HTTP))
	entries, _ := list.([]any)
	for i := range min(len(entries), len(vs.HTTP)) {
		raw, err := json.Marshal(entries[i])
		if err != nil { // not for anything that came as JSON
			err = fmt.Errorf("spec.http[%d]: cannot be written as JSON: %w", i, err)
		}
		vs.HTTP[i].Raw, vs.HTTP[i].Malformed = raw, cmp.Or(vs.HTTP[i].Malformed, err)
	}
}

// parseRoutes reads one list of routes; the error is about the list, not about
// what one of the routes holds.
func parseRoutes(protocol Protocol, spec object.Node) ([]Route, error) {
	entries, err := spec.Field(string(protocol)).Items()
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	routes := make([]Route, len(entries))
	for i, entry := range entries {
		routes[i] = parseRoute(protocol, i, entry)
	}
	return routes, nil
}

// reader reads fields and keeps the first error, so that a route with one bad
// field is still known by all its others.
type reader struct {
	err error
}

func parseRoute(protocol Protocol, index int, entry object.Node) Route {
	route := Route{Protocol: protocol, Index: index}
	r := &reader{err: entry.Object()}
	if entry.Absent() {
		r.keep(entry.Wrong("an object"))
	}
	route.Destinations = r.destinations(entry.Field("route"))
	if protocol == HTTP {
		r.http(&route, entry)
	} else {
		route.Matches = r.matches(entry.Field("match"))
	}
	route.Malformed = r.err
	return route
}

// http reads what only an http route has.
func (r *reader) http(route *Route, entry object.Node) {
	route.Name = r.text(entry.Field("name"))
	route.Redirect = !entry.Field("redirect").Absent()
	route.DirectResponse = !entry.Field("directResponse").Absent()
	if delegate := entry.Field("delegate"); !delegate.Absent() {
		r.keep(delegate.Object())
		route.Delegate = &Delegate{
			Name:      r.text(delegate.Field("name")),
			Namespace: r.text(delegate.Field("namespace")),
		}
	}
}

func (r *reader) destinations(list object.Node) []Destination {
	entries := r.items(list)
	destinations := make([]Destination, len(entries))
	for i, entry := range entries {
		destination, weight := entry.Field("destination"), entry.Field("weight")
		port := destination.Field("port")
		r.keep(destination.Object())
		r.keep(port.Object())
		destinations[i] = Destination{
			Index:     i,
			Host:      r.text(destination.Field("host")),
			Subset:    r.text(destination.Field("subset")),
			Port:      r.integer(port.Field("number")),
			Weight:    r.integer(weight),
			HasWeight: !weight.Absent(),
		}
	}
	return destinations
}

func (r *reader) matches(list object.Node) []Match {
	entries := r.items(list)
	matches := make([]Match, len(entries))
	for i, entry := range entries {
		matches[i].Port = r.integer(entry.Field("port"))
		hosts, err := entry.Field("sniHosts").Texts()
		r.keep(err)
		matches[i].SNIHosts = hosts
	}
	return matches
}

// items are the entries of a list of objects. An entry that is no object stays in
// its place with nothing in it: the indices of the others must not move.
func (r *reader) items(list object.Node) []object.Node {
	entries, err := list.Items()
	r.keep(err)
	for _, entry := range entries {
		r.keep(entry.Object())
		if entry.Absent() {
			r.keep(entry.Wrong("an object"))
		}
	}
	return entries
}

func (r *reader) text(n object.Node) string {
	text, err := n.Text()
	r.keep(err)
	return text
}

func (r *reader) integer(n object.Node) int64 {
	number, err := n.Integer()
	r.keep(err)
	return number
}

func (r *reader) keep(err error) {
	r.err = cmp.Or(r.err, err)
}
