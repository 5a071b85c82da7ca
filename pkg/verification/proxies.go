package verification

import (
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
)

// mostNamed bounds how many proxies a message names.
const mostNamed = 3

// JudgeProxies tells whether no proxy of the namespaces lags behind. known is false
// where istiod named no proxy of them: there may be none, or it may not have told.
func JudgeProxies(proxies []mesh.Proxy, namespaces []string) (ok, known bool, waiting string) {
	var late []string
	for _, proxy := range proxies {
		if !slices.Contains(namespaces, proxy.Namespace()) {
			continue
		}
		known = true
		if proxy.Stale {
			late = append(late, proxy.Name)
		}
	}
	if len(late) == 0 {
		return known, known, ""
	}
	slices.Sort(late)
	text := "proxies that have not confirmed what they were sent: " + strings.Join(late[:min(len(late), mostNamed)], ", ")
	if len(late) > mostNamed {
		text += ", and others"
	}
	return false, true, text
}
