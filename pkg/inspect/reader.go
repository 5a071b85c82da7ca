package inspect

import (
	"context"
	"errors"
	"fmt"

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
	return fmt.Sprintf("missing right: %s %s in namespace %s (docs/cli.md lists all that inspect needs): %v", e.Verb, e.Resource, e.Namespace, e.Err)
}

func (e *MissingRightError) Unwrap() error { return e.Err }

// refused names the right where one is missing.
func refused(err error, verb string, resource schema.GroupResource, namespace string) error {
	if err != nil && apierrors.IsForbidden(err) {
		return &MissingRightError{Verb: verb, Resource: resource, Namespace: namespace, Err: err}
	}
	return err
}

// lacksRight finds a missing right in an error, nil if there is none.
func lacksRight(err error) *MissingRightError {
	var missing *MissingRightError
	errors.As(err, &missing)
	return missing
}

// into makes a typed object of what was read.
func into[T any](o *unstructured.Unstructured) (*T, error) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return nil, fmt.Errorf("%s %s/%s is not as its definition has it: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
	}
	return typed, nil
}
