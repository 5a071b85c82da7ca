package cli

import (
	"context"

	"github.com/hashicorp/go-hclog"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/inspect"
)

// selectingReader is a reader that also lists by selectors.
type selectingReader interface {
	reader
	inspect.Reader
}

// Select is List of what both selectors fit.
func (r *clusterReader) Select(ctx context.Context, resource schema.GroupVersionResource, namespace, labels, fields string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	options := metav1.ListOptions{Limit: pageSize, LabelSelector: labels, FieldSelector: fields}
	for {
		page, err := r.page(ctx, resource, namespace, options)
		if err != nil {
			return nil, r.explain(err, "list", resource, namespace)
		}
		all = append(all, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}

// quiet is a log that nobody reads: what istiod does not answer stands in the report.
func quiet() hclog.Logger { return hclog.NewNullLogger() }
