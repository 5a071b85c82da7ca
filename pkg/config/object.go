package config

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The vocabulary: the fields of each object, in the order in which a report lists
// them.
var (
	blockFields           = []string{"virtualService", "virtualServices", "destinationRule", "destinationRules", "guard", "verify", "healthGate"}
	virtualServiceFields  = []string{"name", "namespace", "routes", "tlsRoutes", "tcpRoutes", "allMatchingRoutes"}
	tlsRouteFields        = []string{"port", "sniHosts"}
	tcpRouteFields        = []string{"port"}
	destinationRuleFields = []string{"name", "namespace", "canarySubsetName", "stableSubsetName", "additionalSubsetNames"}
	guardFields           = []string{"mode", "minRaise", "settle", "maxHold"}
	verifyFields          = []string{"level", "proxies", "onUnavailable"}
	healthGateFields      = []string{"provider", "interval", "minRequests", "max5xxPercent", "maxLatencyFactor", "minLatencyIncrease", "onUnhealthy"}
	providerFields        = []string{"prometheus"}
	prometheusFields      = []string{"address", "reporter", "hashLabel", "queries"}
	queriesFields         = []string{"requests", "errors", "latencySum", "latencyCount"}
)

// presence tells a missing field, which may have a default, from a faulty one,
// which has been reported already.
type presence uint8

const (
	absent presence = iota
	faulty
	given
)

// object reads the fields of one JSON object and reports what is wrong with them.
type object struct {
	c      *checker
	at     *field.Path
	fields []member
}

// object checks that the value is an object with known fields only, each given
// once.
func (c *checker) object(n node, at *field.Path, known []string) (object, bool) {
	if !c.isKind(n, kindObject, at) {
		return object{}, false
	}
	o := object{c: c, at: at, fields: n.fields}
	names := make([]string, 0, len(n.fields))
	for _, f := range n.fields {
		names = append(names, f.name)
	}
	// Sorted, so that the report does not depend on the order in which the fields
	// were written.
	slices.Sort(names)
	for i, name := range names {
		if i > 0 && names[i-1] == name {
			if i == 1 || names[i-2] != name {
				c.add(repeated(at.Child(spell(name)), name, "the field is given more than once: keep one"))
			}
			continue
		}
		if !slices.Contains(known, name) {
			c.add(unknown(at.Child(spell(name)), name, known))
		}
	}
	return o, true
}

// find returns the first field of that name.
func (o object) find(name string) (node, bool) {
	for _, f := range o.fields {
		if f.name == name {
			return f.value, true
		}
	}
	return node{}, false
}

// has tells whether the field is there, faulty or not: which form of the block a
// user meant must not depend on whether it was filled in rightly.
func (o object) has(name string) bool {
	_, ok := o.find(name)
	return ok
}

// text reads a string that must not be empty.
func (o object) text(name string) (string, presence) {
	n, ok := o.find(name)
	if !ok {
		return "", absent
	}
	return o.c.text(n, o.at.Child(name))
}

// requiredText reads a string that must be there. It returns "" when it is not,
// and has reported that.
func (o object) requiredText(name, remedy string) string {
	value, p := o.text(name)
	if p == absent {
		o.c.add(field.Required(o.at.Child(name), remedy))
	}
	return value
}

// yes reads a boolean that defaults to false.
func (o object) yes(name string) bool {
	n, ok := o.find(name)
	return ok && o.c.isKind(n, kindBool, o.at.Child(name)) && n.text == "true"
}

// list reads a list; a missing one is empty.
func (o object) list(name string) []node {
	n, ok := o.find(name)
	if !ok || !o.c.isKind(n, kindList, o.at.Child(name)) {
		return nil
	}
	return n.items
}

// texts reads a list of different strings, none of them empty. It returns nil for
// an empty list.
func (o object) texts(name string) []string {
	var all []string
	seen := map[string]bool{}
	for i, item := range o.list(name) {
		at := o.at.Child(name).Index(i)
		value, p := o.c.text(item, at)
		if p != given {
			continue
		}
		if seen[value] {
			o.c.add(repeated(at, value, "is listed already: remove one"))
			continue
		}
		seen[value] = true
		all = append(all, value)
	}
	return all
}

// port reads a port number; 0 stands for a missing or faulty one.
func (o object) port(name string) (int64, presence) {
	n, ok := o.find(name)
	if !ok {
		return 0, absent
	}
	at := o.at.Child(name)
	if !o.c.isKind(n, kindNumber, at) {
		return 0, faulty
	}
	port, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || port < 1 || port > 65535 {
		o.c.add(field.Invalid(at, n.sketch(), "must be a whole number from 1 to 65535, the port in the route's match"))
		return 0, faulty
	}
	return port, given
}

// text takes a string as it is. Only blanks count as empty; blanks at the ends are
// left in, for the checks of form to name.
func (c *checker) text(n node, at *field.Path) (string, presence) {
	if !c.isKind(n, kindString, at) {
		return "", faulty
	}
	if strings.TrimSpace(n.text) == "" {
		c.add(field.Invalid(at, show(n.text), "is empty: give a value or remove the field"))
		return "", faulty
	}
	return n.text, given
}

// isKind reports a value of another kind. Null gets no meaning of its own: it
// mostly comes from a template whose value was missing, and taking it as "not
// given" would hide that.
func (c *checker) isKind(n node, want kind, at *field.Path) bool {
	if n.kind == want {
		return true
	}
	if n.kind == kindNull {
		c.add(field.Invalid(at, n.sketch(), "give "+want.String()+" or remove the field"))
		return false
	}
	c.add(field.TypeInvalid(at, n.sketch(), "must be "+want.String()+", not "+n.kind.String()))
	return false
}

// sketch is what a report shows of a value: scalars as they were written, nothing
// of a list or an object.
func (n node) sketch() any {
	switch n.kind {
	case kindNull:
		return nil
	case kindBool:
		return n.text == "true"
	case kindNumber:
		if len(n.text) <= maxShown {
			return json.Number(n.text)
		}
		return show(n.text)
	case kindString:
		return show(n.text)
	default:
		return field.OmitValueType{}
	}
}

// spell makes a field name of the user's safe for a path.
func spell(name string) string {
	for _, r := range name {
		if r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return strconv.Quote(show(name))
		}
	}
	return show(name)
}

// repeated is a value or field that may be there once; the remedy says which to
// keep.
func repeated(at *field.Path, value, remedy string) *field.Error {
	p := field.Duplicate(at, show(value))
	p.Detail = remedy
	return p
}

// unknown names all fields that would be right: the user has no schema at hand, as
// the API server does not look into plugins.
func unknown(at *field.Path, name string, known []string) *field.Error {
	detail := "unknown field: remove it."
	if near := closest(name, known); near != "" {
		detail = "unknown field: did you mean " + near + "?"
	} else if name == "istio" {
		// The commonest slip when a native block is moved: its outer name is moved
		// along.
		detail = "unknown field: move what is inside it one level up."
	}
	return field.Forbidden(at, detail+" Known here: "+strings.Join(known, ", "))
}
