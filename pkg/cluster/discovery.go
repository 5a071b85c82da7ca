package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const networkingGroup = "networking.istio.io"

// istioVersions are the versions of Istio's networking API, best first. What
// the plugin edits has the same shape in all of them.
var istioVersions = []string{"v1", "v1beta1", "v1alpha3"}

// served names the resource to use for each of Istio's kinds.
type served struct {
	virtualServices, destinationRules schema.GroupVersionResource
}

// resourcesOf asks for the resources of one version.
func (m *mesh) resourcesOf(ctx context.Context, version schema.GroupVersion) (*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{}
	err := m.asking.Get().AbsPath("/apis/" + version.String()).Do(ctx).Into(list)
	return list, err
}

// servedVersions asks which version of each kind is served.
func servedVersions(ctx context.Context,
	ask func(context.Context, schema.GroupVersion) (*metav1.APIResourceList, error),
) (served, error) {
	var out served
	for _, version := range istioVersions {
		gv := schema.GroupVersion{Group: networkingGroup, Version: version}
		list, err := ask(ctx, gv)
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

// unserved tells a request for one object that failed because the API server does not
// serve the version of its resource from one for which there is no such object. Of the
// latter the server says so itself, in a Status; to the former it has no handler, and
// answers as to any path that is not there, with a text of which client-go makes an error.
// The code and the reason are the same, and the name may be there or not in both. A
// webhook that refuses with 404 has a Status, too.
func unserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func noLongerServed(gvr schema.GroupVersionResource) error {
	return fmt.Errorf("the API server does not serve %s in %s any more; at the next call it is asked which version it serves",
		gvr.Resource, gvr.GroupVersion())
}

func notServed(kind string) error {
	return fmt.Errorf("the API server does not serve %s in %s (tried %v): install Istio's CRDs; it is tried again at the next call",
		kind, networkingGroup, istioVersions)
}
