package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CrossNamespace says which namespaces beside its own a Rollout may name. The zero
// value is none: the controller may write everywhere, so what a Rollout's author
// may do has to be limited here.
type CrossNamespace struct {
	all        bool
	namespaces []string
}

// ParseCrossNamespace reads the flag --allow-cross-namespace: "" or "off" (none),
// "*" (all), or namespaces with commas between them. An error names the faulty
// part; the plugin should not start with it.
func ParseCrossNamespace(flag string) (CrossNamespace, error) {
	switch flag = strings.TrimSpace(flag); flag {
	case "", "off", "false":
		return CrossNamespace{}, nil
	case "*":
		return CrossNamespace{all: true}, nil
	case "on", "true":
		return CrossNamespace{}, fmt.Errorf(`--allow-cross-namespace=%s: list the namespaces, or write "*" for all`, flag)
	}
	var namespaces []string
	for _, ns := range strings.Split(flag, ",") {
		ns = strings.TrimSpace(ns)
		if why := validation.IsDNS1123Label(ns); len(why) > 0 {
			return CrossNamespace{}, fmt.Errorf(`--allow-cross-namespace: %q is no namespace: write "off", "*" or names with commas between them`, ns)
		}
		namespaces = append(namespaces, ns)
	}
	slices.Sort(namespaces)
	return CrossNamespace{namespaces: slices.Compact(namespaces)}, nil
}

// Allows tells whether a Rollout of another namespace may name this one.
func (x CrossNamespace) Allows(namespace string) bool {
	return x.all || slices.Contains(x.namespaces, namespace)
}

// String is what ParseCrossNamespace reads back: "off", "*" or the sorted list.
func (x CrossNamespace) String() string {
	switch {
	case x.all:
		return "*"
	case len(x.namespaces) == 0:
		return "off"
	default:
		return strings.Join(x.namespaces, ",")
	}
}

// namespace reads the explicit namespace of an object, and whether there was one.
// A faulty one counts as there, so that the name is not taken apart for it.
func (o object) namespace(s scope) (string, bool) {
	ns, p := o.text("namespace")
	if p != given {
		return s.namespace, p == faulty
	}
	at := o.at.Child("namespace")
	if o.c.isLabel(ns, at, "a namespace") {
		o.c.allowed(ns, at, s)
	}
	return ns, true
}

// allowed reports a namespace that is neither the Rollout's own nor opened by the
// operator.
func (c *checker) allowed(namespace string, at *field.Path, s scope) {
	if namespace == s.namespace || s.cross.Allows(namespace) {
		return
	}
	c.add(field.Forbidden(at, fmt.Sprintf(
		"the Rollout may not change objects in namespace %q: use one in %q, or have the operator start the plugin with --allow-cross-namespace=%s",
		show(namespace), s.namespace, show(namespace))))
}

// isLabel checks the form that Kubernetes gives to namespaces and Services.
func (c *checker) isLabel(value string, at *field.Path, what string) bool {
	if len(validation.IsDNS1123Label(value)) == 0 {
		return true
	}
	c.add(field.Invalid(at, show(value),
		"cannot be the name of "+what+": use at most 63 lower-case letters, digits and '-', with a letter or digit at both ends"))
	return false
}

// isObjectName checks the form that Kubernetes gives to the names of custom
// resources.
func (c *checker) isObjectName(value string, at *field.Path, what string) bool {
	if len(validation.IsDNS1123Subdomain(value)) == 0 {
		return true
	}
	c.add(field.Invalid(at, show(value),
		"cannot be the name of "+what+": use at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends"))
	return false
}
