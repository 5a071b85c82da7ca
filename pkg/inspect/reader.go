package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reader reads one cluster. An error of a kind that the cluster does not serve, or of an
// object that is not there, is an apierrors.IsNotFound; one of a right that is missing is
// an apierrors.IsForbidden. Each call has a deadline of its own.
type Reader interface {
	Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error)
	// Select lists what both selectors, in the API server's notation, fit.
	Select(ctx context.Context, resource schema.GroupVersionResource, namespace, labels, fields string) ([]unstructured.Unstructured, error)
}

// The resources that are read.
var (
	rollouts       = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	replicaSets    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	pods           = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	services       = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	events         = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	endpointSlices = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}

	virtualServices  = schema.GroupResource{Group: "networking.istio.io", Resource: "virtualservices"}
	destinationRules = schema.GroupResource{Group: "networking.istio.io", Resource: "destinationrules"}
)

// istioVersions are those of Istio's API, best first. What is read has the same shape in
// all of them.
var istioVersions = []string{"v1", "v1beta1", "v1alpha3"}

// MissingRightError is a read that the API server refuses.
type MissingRightError struct {
	Verb      string
	Resource  schema.GroupResource
	Namespace string
	Err       error
}

func (e *MissingRightError) Error() string {
	return fmt.Sprintf("missing right: %s %s in namespace %s (docs/cli.md has a Role with all that inspect needs, to be bound to you): %v", e.Verb, e.Resource, e.Namespace, e.Err)
}

func (e *MissingRightError) Unwrap() error { return e.Err }

// MissingKindError is a kind that the cluster does not serve in any version that is known
// here. It wraps the API server's answer, an apierrors.IsNotFound.
type MissingKindError struct {
	Resource schema.GroupResource
	// Versions are those that were asked for.
	Versions []string
	Err      error
}

func (e *MissingKindError) Error() string {
	remedy := "is this the right cluster (--context)?"
	switch e.Resource.Group {
	case rollouts.Group:
		remedy += " Install Argo Rollouts with its CustomResourceDefinitions, of a release that has this version"
	case virtualServices.Group:
		remedy += " Install Istio's CustomResourceDefinitions (its base chart); objects of a mesh in another cluster are not seen from here"
	}
	return fmt.Sprintf("the cluster does not serve %s in %s (kubectl api-resources --api-group=%s shows what it serves): %s",
		e.Resource, strings.Join(e.Versions, ", "), e.Resource.Group, remedy)
}

func (e *MissingKindError) Unwrap() error { return e.Err }

// refused names the right where one is missing.
func refused(err error, verb string, resource schema.GroupResource, namespace string) error {
	if err != nil && apierrors.IsForbidden(err) {
		return &MissingRightError{Verb: verb, Resource: resource, Namespace: namespace, Err: err}
	}
	return err
}

// noSuchKind tells a kind that is not served from an object that is not there: the API server
// names the object only where it knows the kind.
func noSuchKind(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

// outOfSight tells an error of a right or a kind that is missing: the rest can be told all
// the same.
func outOfSight(err error) bool {
	var right *MissingRightError
	var kind *MissingKindError
	return errors.As(err, &right) || errors.As(err, &kind)
}

// into makes a typed object of what was read.
func into[T any](o *unstructured.Unstructured) (*T, error) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return nil, fmt.Errorf("%s %s/%s is not as its definition has it: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
	}
	return typed, nil
}
