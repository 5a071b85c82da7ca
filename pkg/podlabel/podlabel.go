package podlabel

import (
	"slices"
	"strings"
)

// ofNodes are the domains of labels that say where a pod runs. Istio takes them over from
// the node for its endpoints.
var ofNodes = []string{"kubernetes.io", "topology.kubernetes.io", "beta.kubernetes.io", "failure-domain.beta.kubernetes.io"}

// AddedLater tells whether a label with this key may come from others than the template:
// from Istio's injection (any domain of istio.io) or from the node. The labels of
// app.kubernetes.io and helm.sh are their author's: nobody adds them to a pod.
func AddedLater(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return false
	}
	return domain == "istio.io" || strings.HasSuffix(domain, ".istio.io") || slices.Contains(ofNodes, domain)
}
