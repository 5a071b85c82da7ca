package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// clusterFlags says which cluster and namespace, with kubectl's own flags.
type clusterFlags struct {
	Kubeconfig, Context string
	// Namespace is empty for that of the context.
	Namespace string
	// Timeout bounds each request; above 0.
	Timeout time.Duration
	// UserAgent is how the API server's log names the program.
	UserAgent string
	// Else is what can be given in place of a cluster, for an error; may be empty.
	Else string
}

func (t *clusterFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&t.Kubeconfig, "kubeconfig", "", "path of the kubeconfig; empty: KUBECONFIG, else ~/.kube/config")
	f.StringVar(&t.Context, "context", "", "context of the kubeconfig; empty: its current one")
	f.StringVarP(&t.Namespace, "namespace", "n", "", "namespace; empty: that of the context")
	f.DurationVar(&t.Timeout, "request-timeout", 15*time.Second, "how long one request to the API server may take")
}

// reader reads objects of one cluster. An error of a kind that the cluster does not
// have, or of an object that is not there, is an apierrors.IsNotFound.
type reader interface {
	// Namespace is the one that the user chose, or the context's.
	Namespace() string
	List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error)
	Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error)
}

// connect opens the cluster as kubectl does. It sends no request.
func connect(t clusterFlags) (reader, error) {
	if t.Timeout <= 0 {
		return nil, fmt.Errorf("--request-timeout %s: must be above 0", t.Timeout)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: t.Context}
	overrides.Context.Namespace = t.Namespace
	loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loading.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (--kubeconfig, --context)%s: %w", t.Else, err)
	}
	namespace, _, err := loading.Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the namespace (-n): %w", err)
	}
	config.UserAgent, config.QPS, config.Burst = t.UserAgent, 20, 40
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	return &clusterReader{client: client, namespace: namespace, timeout: t.Timeout}, nil
}

type clusterReader struct {
	client    dynamic.Interface
	namespace string
	timeout   time.Duration
}

func (r *clusterReader) Namespace() string { return r.namespace }

// pageSize bounds one answer of the API server.
const pageSize = 500

func (r *clusterReader) List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	options := metav1.ListOptions{Limit: pageSize}
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

func (r *clusterReader) page(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return r.client.Resource(resource).Namespace(namespace).List(ctx, options)
}

func (r *clusterReader) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	o, err := r.client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, r.explain(err, "get", resource, namespace)
	}
	return o, nil
}

// explain names what was asked for; a server that is away says nothing about that.
func (r *clusterReader) explain(err error, verb string, resource schema.GroupVersionResource, namespace string) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s %s in namespace %q: no answer within %s (--request-timeout)", verb, resource.Resource, namespace, r.timeout)
	}
	return fmt.Errorf("%s %s in namespace %q: %w", verb, resource.Resource, namespace, err)
}
