package hostname

import "strings"

// DefaultClusterDomain is the DNS domain of a cluster that was not told another.
const DefaultClusterDomain = "cluster.local"

// serviceLabel stands between the namespace and the cluster domain of a Service.
const serviceLabel = "svc"

// Canonical returns the one name by which host is to be compared. host is what an
// object of the given namespace says; clusterDomain may be empty, which means
// DefaultClusterDomain.
//
// "web", "web.<namespace>", "web.<any namespace>.svc" and the full name become
// "web.<namespace>.svc.<clusterDomain>". Every other name stays what it is, in
// lower case and without a trailing dot. A name of two labels whose second label is
// not the given namespace stays too, as "example.com" and "web.other" look alike:
// use Same to compare names that come from objects of different namespaces.
//
// The result is canonical again: Canonical of it, in the same namespace, is the
// same name. Without a namespace a short name cannot be completed and stays short.
func Canonical(host, namespace, clusterDomain string) string {
	name, domain := normal(host), domainOf(clusterDomain)
	if !mayBeService(name) {
		return name
	}
	labels := strings.SplitN(name, ".", 4)
	switch {
	case len(labels) == 1 && namespace != "":
		return full(name, strings.ToLower(namespace), domain)
	case len(labels) == 2 && strings.EqualFold(labels[1], namespace):
		return full(labels[0], labels[1], domain)
	case len(labels) == 3 && labels[2] == serviceLabel:
		return full(labels[0], labels[1], domain)
	}
	return name
}

// Same tells whether two canonical names mean the same Service. It is equality,
// but for one case: "web.other" that was made canonical in another namespace than
// "other" equals "web.other.svc.<clusterDomain>". A short name that could not be
// completed equals only itself.
func Same(a, b, clusterDomain string) bool {
	if a == b {
		return true
	}
	domain := domainOf(clusterDomain)
	return completed(a, domain) == completed(b, domain)
}

// completed writes a name of two labels as if it were service.namespace. For a
// foreign name such as example.com that makes a name that nothing else has, so it
// can be told from all Services but the one called "example" in namespace "com".
func completed(canonical, domain string) string {
	service, namespace, two := strings.Cut(canonical, ".")
	if !two || strings.Contains(namespace, ".") || !mayBeService(canonical) {
		return canonical
	}
	return full(service, namespace, domain)
}

// normal is host in lower case and without the dot that DNS allows at the end. A
// name like "web." keeps it: it is absolute, so it is not the short name "web".
func normal(host string) string {
	name := strings.ToLower(host)
	trimmed, dot := strings.CutSuffix(name, ".")
	if dot && strings.Contains(trimmed, ".") && !strings.HasSuffix(trimmed, ".") {
		return trimmed
	}
	return name
}

// mayBeService is false for what Istio never completes: wildcards, IP addresses of
// version 6, and names with an empty label, which are no DNS names at all.
func mayBeService(name string) bool {
	if name == "" || strings.ContainsAny(name, "*:") {
		return false
	}
	return name[0] != '.' && name[len(name)-1] != '.' && !strings.Contains(name, "..")
}

func full(service, namespace, domain string) string {
	return service + "." + namespace + "." + serviceLabel + "." + domain
}

func domainOf(clusterDomain string) string {
	if domain := strings.ToLower(strings.Trim(clusterDomain, ".")); domain != "" {
		return domain
	}
	return DefaultClusterDomain
}
