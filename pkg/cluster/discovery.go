package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

const networkingGroup = "networking.istio.io"

// istioVersions are the versions of Istio's networking API, best first. What
// the plugin edits has the same shape in all of them.
var istioVersions = []string{"v1", "v1beta1", "v1alpha3"}

// served names the resource to use for each of Istio's kinds.
type served struct {
	virtualServices, destinationRules schema.GroupVersionResource
}

// servedVersions asks the API server which version of each kind it serves. The
// discovery client takes no context, so a slow server is bounded by the
// client's own time-out and the caller's deadline is checked between requests.
func servedVersions(ctx context.Context, d discovery.DiscoveryInterface) (served, error) {
	var out served
	for _, version := range istioVersions {
		if err := ctx.Err(); err != nil {
			return served{}, fmt.Errorf("asking the API server for %s: %w", networkingGroup, err)
		}
		gv := schema.GroupVersion{Group: networkingGroup, Version: version}
		list, err := d.ServerResourcesForGroupVersion(gv.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return served{}, fmt.Errorf("asking the API server for %s: %w", gv, err)
		}
		for _, resource := range list.APIResources {
			out.take(gv.WithResource(resource.Name))
		}
	}
	return out, out.missing()
}

// take keeps the first, and so the best, version seen of a kind.
func (s *served) take(gvr schema.GroupVersionResource) {
	switch {
	case gvr.Resource == "virtualservices" && s.virtualServices.Empty():
		s.virtualServices = gvr
	case gvr.Resource == "destinationrules" && s.destinationRules.Empty():
		s.destinationRules = gvr
	}
}

func (s *served) missing() error {
	var errs []error
	if s.virtualServices.Empty() {
		errs = append(errs, notServed("VirtualService"))
	}
	if s.destinationRules.Empty() {
		errs = append(errs, notServed("DestinationRule"))
	}
	return errors.Join(errs...)
}

func notServed(kind string) error {
	return fmt.Errorf("the API server does not serve %s in %s (tried %v): install Istio's CRDs; it is tried again at the next call",
		kind, networkingGroup, istioVersions)
}
