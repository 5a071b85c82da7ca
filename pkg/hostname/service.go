package hostname

import "strings"

// Service takes a canonical name apart. ok is false for a host that is not that
// of a Kubernetes Service of this cluster, such as one of a ServiceEntry.
func Service(canonical, clusterDomain string) (namespace, name string, ok bool) {
	labels := strings.SplitN(canonical, ".", 4)
	if len(labels) == 4 && labels[2] == "svc" && labels[3] == domainOf(clusterDomain) {
		return labels[1], labels[0], true
	}
	if len(labels) == 2 {
		// Too short for a name with a domain: Canonical leaves it as svc.ns.
		return labels[1], labels[0], true
	}
	return "", "", false
}
