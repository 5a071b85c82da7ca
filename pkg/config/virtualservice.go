package config

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// virtualServices reads either form of the block.
func (c *checker) virtualServices(o object, s scope) []VirtualService {
	single, hasSingle := o.find("virtualService")
	switch {
	case hasSingle && o.has("virtualServices"):
		c.add(field.Forbidden(o.at.Child("virtualServices"),
			"virtualService is there too: keep one of them, all VirtualServices in virtualServices"))
	case hasSingle:
		if vs, ok := c.virtualService(single, o.at.Child("virtualService"), s); ok {
			return []VirtualService{vs}
		}
	case o.has("virtualServices"):
		return c.virtualServiceList(o, s)
	default:
		c.add(field.Required(o.at.Child("virtualService"),
			"name the VirtualService that splits the traffic, or several in virtualServices"))
	}
	return nil
}

// virtualServiceList reads the list form. Two entries for one object are refused
// even with different routes: each would be written for itself, and the second
// write would be decided without the first.
func (c *checker) virtualServiceList(o object, s scope) []VirtualService {
	at := o.at.Child("virtualServices")
	n, _ := o.find("virtualServices")
	if n.kind == kindList && len(n.items) == 0 {
		c.add(field.Required(at, "the list is empty: name at least one VirtualService"))
	}
	var all []VirtualService
	first := map[string]int{}
	for i, item := range o.list("virtualServices") {
		vs, ok := c.virtualService(item, at.Index(i), s)
		if !ok {
			continue
		}
		key := vs.Namespace + "/" + vs.Name
		if earlier, twice := first[key]; twice {
			c.add(repeated(at.Index(i).Child("name"), key,
				fmt.Sprintf("is the same object as %s: put all its routes there", at.Index(earlier))))
			continue
		}
		first[key] = i
		all = append(all, vs)
	}
	return all
}

// virtualService reads one entry. It answers false when the entry names no object;
// other problems leave it usable for the search for duplicates.
func (c *checker) virtualService(n node, at *field.Path, s scope) (VirtualService, bool) {
	o, ok := c.object(n, at, virtualServiceFields)
	if !ok {
		return VirtualService{}, false
	}
	vs := VirtualService{AllMatchingRoutes: o.yes("allMatchingRoutes")}
	vs.Namespace, vs.Name = c.reference(o, s)
	vs.Routes = o.texts("routes")
	vs.TLSRoutes = c.tlsRoutes(o)
	vs.TCPRoutes = c.tcpRoutes(o)
	if vs.AllMatchingRoutes && len(vs.Routes)+len(vs.TLSRoutes)+len(vs.TCPRoutes) > 0 {
		c.add(field.Forbidden(at.Child("allMatchingRoutes"),
			"takes every route with both destinations, and routes are listed too: keep one of them"))
	}
	return vs, vs.Name != ""
}

// reference reads where the VirtualService is. An explicit namespace wins, and
// dots then belong to the name. Without one, a dot means name.namespace as in the
// native block; a namespace has no dots, so it is the last part
// (argo-rollouts#4709).
func (c *checker) reference(o object, s scope) (namespace, name string) {
	at := o.at.Child("name")
	name = o.requiredText("name", "name the VirtualService")
	namespace, explicit := o.namespace(s)
	if name == "" {
		return namespace, ""
	}
	if explicit {
		c.isObjectName(name, at, "a VirtualService")
		return namespace, name
	}
	whole := name
	name, inNamespace, dotted := splitName(whole)
	if !dotted {
		c.isObjectName(name, at, "a VirtualService")
		return namespace, name
	}
	if !c.isDotted(whole, name, inNamespace, at) {
		return namespace, ""
	}
	c.allowed(inNamespace, at, s)
	return inNamespace, name
}

// isDotted checks both halves of name.namespace with one report.
func (c *checker) isDotted(whole, name, namespace string, at *field.Path) bool {
	if len(validation.IsDNS1123Subdomain(name))+len(validation.IsDNS1123Label(namespace)) == 0 {
		return true
	}
	c.add(field.Invalid(at, show(whole),
		"is neither a name nor name.namespace: if the dots belong to the name, give the namespace in the field namespace"))
	return false
}

// splitName takes name.namespace apart, also with the cluster's own domain behind
// it.
func splitName(whole string) (name, namespace string, dotted bool) {
	if short, ok := strings.CutSuffix(whole, ".cluster.local"); ok {
		whole = strings.TrimSuffix(short, ".svc")
	}
	last := strings.LastIndexByte(whole, '.')
	if last < 0 {
		return whole, "", false
	}
	return whole[:last], whole[last+1:], true
}

// tlsRoutes reads what Istio gives no names to. Two entries may well mean one
// route, which only its VirtualService can tell.
func (c *checker) tlsRoutes(o object) []TLSRoute {
	var all []TLSRoute
	for i, item := range o.list("tlsRoutes") {
		at := o.at.Child("tlsRoutes").Index(i)
		r, ok := c.object(item, at, tlsRouteFields)
		if !ok {
			continue
		}
		port, p := r.port("port")
		route := TLSRoute{Port: port, SNIHosts: r.texts("sniHosts")}
		if hosts, ok := r.find("sniHosts"); p == absent && (!ok || hosts.kind == kindList && len(hosts.items) == 0) {
			c.add(field.Required(at, "tell the route by port, sniHosts or both"))
		}
		all = append(all, route)
	}
	return all
}

// tcpRoutes reads ports, each of which can be listed once.
func (c *checker) tcpRoutes(o object) []TCPRoute {
	var all []TCPRoute
	seen := map[int64]bool{}
	for i, item := range o.list("tcpRoutes") {
		at := o.at.Child("tcpRoutes").Index(i)
		r, ok := c.object(item, at, tcpRouteFields)
		if !ok {
			continue
		}
		port, p := r.port("port")
		switch {
		case p == absent:
			c.add(field.Required(at.Child("port"), "tell the route by the port in its match"))
		case p == given && seen[port]:
			c.add(repeated(at.Child("port"), fmt.Sprint(port), "is listed already: remove one"))
		}
		seen[port] = true
		all = append(all, TCPRoute{Port: port})
	}
	return all
}
