package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// fieldOwner is who writes what Apply applies.
const fieldOwner = "lab"

// Apply applies every document of a YAML or JSON text on the server side, as
// `kubectl apply --server-side --force-conflicts` does, in the order of the
// text, and returns the objects as stored. Objects without a namespace, of a
// kind that needs one, go into the namespace given. Nothing after the document
// that fails is applied; the error names it.
func (l *Lab) Apply(ctx context.Context, namespace string, manifests []byte) ([]*unstructured.Unstructured, error) {
	objects, err := decode(manifests)
	if err != nil {
		return nil, err
	}
	stored := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		resource, err := l.resource(object, namespace)
		if err == nil {
			object, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldOwner, Force: true})
		}
		if err != nil {
			return stored, fmt.Errorf("apply document %d of %d: %w", len(stored)+1, len(objects), err)
		}
		stored = append(stored, object)
	}
	return stored, nil
}

// resource finds where an object of its kind is stored.
func (l *Lab) resource(object *unstructured.Unstructured, namespace string) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := l.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind.Kind, object.GetName(), err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return l.Dynamic.Resource(mapping.Resource), nil
	}
	if object.GetNamespace() != "" {
		namespace = object.GetNamespace()
	}
	return l.Dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// decode splits a text into its objects, leaving out empty documents.
func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	var objects []*unstructured.Unstructured
	for n := 1; ; n++ {
		raw := runtime.RawExtension{}
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" { // only a comment
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		objects = append(objects, object)
	}
}
