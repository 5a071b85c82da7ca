package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// cluster is a reader over objects in memory, which serves one version of each kind.
type cluster struct {
	namespace string
	objects   []unstructured.Unstructured
	served    []schema.GroupVersionResource
	errors    map[string]error // by "resource namespace"
	reads     []string
	wait      func()
}

var plurals = map[string]string{
	"Rollout": "rollouts", "VirtualService": "virtualservices", "DestinationRule": "destinationrules", "Service": "services",
	"HTTPRoute": "httproutes", "Namespace": "namespaces", "Application": "applications", "Deployment": "deployments",
}

func (c *cluster) Namespace() string { return c.namespace }

func (c *cluster) List(_ context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	return c.read("list", resource, namespace, "")
}

func (c *cluster) Get(_ context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	found, err := c.read("get", resource, namespace, name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, apierrors.NewNotFound(resource.GroupResource(), name)
	}
	return &found[0], nil
}

func (c *cluster) read(verb string, resource schema.GroupVersionResource, namespace, name string) ([]unstructured.Unstructured, error) {
	if c.wait != nil {
		c.wait()
	}
	if err := c.errors[resource.Resource+" "+namespace]; err != nil {
		return nil, err
	}
	if !slices.Contains(c.served, resource) {
		return nil, apierrors.NewNotFound(resource.GroupResource(), "")
	}
	c.reads = append(c.reads, strings.TrimSpace(fmt.Sprintf("%s %s %s/%s", verb, resource.Resource, namespace, name)))
	var found []unstructured.Unstructured
	for _, o := range c.objects {
		if plurals[o.GetKind()] == resource.Resource && o.GetNamespace() == namespace && (name == "" || o.GetName() == name) {
			found = append(found, o)
		}
	}
	return found, nil
}

// holding is a cluster with these objects.
func holding(t *testing.T, namespace string, documents ...string) *cluster {
	t.Helper()
	c := &cluster{namespace: namespace, errors: map[string]error{}}
	for resource, group := range map[string]string{
		"rollouts": "argoproj.io/v1alpha1", "applications": "argoproj.io/v1alpha1", "services": "v1", "namespaces": "v1", "deployments": "apps/v1",
		"httproutes":      "gateway.networking.k8s.io/v1",
		"virtualservices": "networking.istio.io/v1beta1", "destinationrules": "networking.istio.io/v1beta1",
	} {
		version, err := schema.ParseGroupVersion(group)
		if err != nil {
			t.Fatal(err)
		}
		c.served = append(c.served, version.WithResource(resource))
	}
	for _, document := range documents {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetUID("1")
		c.objects = append(c.objects, o)
	}
	return c
}

func (c *cluster) connect(p *Program) {
	p.connect = func(t clusterFlags) (reader, error) {
		if t.Namespace != "" {
			c.namespace = t.Namespace
		}
		return c, nil
	}
}

func all(t *testing.T, name string) []string {
	t.Helper()
	return []string{part(t, name, 0), part(t, name, 1), part(t, name, 2), part(t, name, 3)}
}

func TestAClusterIsJudgedLikeItsFiles(t *testing.T) {
	c := holding(t, "default", all(t, "findings.yaml")...)
	got := running(t, c.connect, "lint", "-n", "shop")
	if got.code != exitFindings || got.err != "" {
		t.Errorf("exit code %d, on stderr: %s", got.code, got.err)
	}
	assertGolden(t, "lint-cluster.txt", got.out)
	want := []string{
		"list rollouts shop/", "list virtualservices shop/", "list destinationrules shop/", "list services shop/", "list httproutes shop/", "get namespaces /shop",
	}
	if !slices.Equal(c.reads, want) {
		t.Errorf("it read %q, want %q", c.reads, want)
	}
}

func TestOneRolloutOfAClusterThatIsClean(t *testing.T) {
	c := holding(t, "shop", all(t, "web.yaml")...)
	if got := running(t, c.connect, "lint", "web", "--failure-threshold", "info"); got.code != exitFine || !strings.HasPrefix(got.out, "1 Rollout checked: 0 errors") {
		t.Errorf("%+v", got)
	}
	if got := running(t, c.connect, "lint", "cart"); got.code != exitFailed || !strings.Contains(got.err, `no Rollout "cart"`) {
		t.Errorf("%+v", got)
	}
}

func TestHTTPRoutesOfAClusterAreJudged(t *testing.T) {
	rollout := strings.Replace(part(t, "web.yaml", 0), "      trafficRouting:\n", "      canaryService: web-canary\n      stableService: web\n      trafficRouting:\n", 1)
	canary := strings.Replace(part(t, "web.yaml", 1), "name: web,", "name: web-canary,", 1)
	route := "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: web, namespace: shop}\nspec: {rules: [{backendRefs: [{name: web}, {name: web-canary}]}]}\n"
	c := holding(t, "shop", append(all(t, "web.yaml")[1:], rollout, canary, route)...)
	if got := running(t, c.connect, "lint", "--failure-threshold=warning"); got.code != exitFindings || !strings.Contains(got.out, "ARI0225 HTTPRoute shop/web") || strings.Count(got.out, "ARI") != 1 {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsMissingInAClusterDoesNotExist(t *testing.T) {
	c := holding(t, "shop", part(t, "web.yaml", 0))
	got := running(t, c.connect, "lint")
	if got.code != exitFindings || !strings.Contains(got.out, "ARI0201") || !strings.Contains(got.out, "ARI0301") || strings.Contains(got.out, "note:") {
		t.Errorf("%+v", got)
	}
}

func TestObjectsInOtherNamespacesAreRead(t *testing.T) {
	inEdge := strings.NewReplacer("namespace: shop", "namespace: edge", "host: web,", "host: web.shop.svc.cluster.local,")
	rollout := strings.Replace(part(t, "web.yaml", 0), "              name: web\n              routes", "              name: web.edge\n              routes", 1)
	c := holding(t, "shop", rollout, part(t, "web.yaml", 1), part(t, "web.yaml", 2), inEdge.Replace(part(t, "web.yaml", 3)))
	got := running(t, c.connect, "lint", "--allow-cross-namespace=edge", "--failure-threshold=info")
	if got.code != exitFine {
		t.Errorf("%+v", got)
	}
	if !slices.Contains(c.reads, "get virtualservices edge/web") {
		t.Errorf("it read %q", c.reads)
	}
}

func TestTheApplicationThatTracksAnObjectIsRead(t *testing.T) {
	tracked := strings.Replace(part(t, "web.yaml", 3), "metadata:\n", "metadata:\n  annotations: {argocd.argoproj.io/tracking-id: \"shop:networking.istio.io/VirtualService:shop/web\"}\n", 1)
	application := "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: argocd}\nspec: {}\n"
	c := holding(t, "shop", part(t, "web.yaml", 0), part(t, "web.yaml", 1), part(t, "web.yaml", 2), tracked, application)
	got := running(t, c.connect, "lint")
	if got.code != exitFine || strings.Count(got.out, "ARI0502 Application argocd/shop") != 2 {
		t.Errorf("%+v", got)
	}
}

func TestWhatMayNotBeReadIsNotedOrEndsTheRun(t *testing.T) {
	forbidden := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("not yours"))
	}
	for sentence, tc := range map[string]struct {
		place string
		err   error
		code  int
		says  string
	}{
		"Services may not be read":              {"services shop", forbidden("services"), exitFine, "note: Service of namespace shop: could not be read"},
		"the Namespace may not be read":         {"namespaces ", forbidden("namespaces"), exitFine, "note: Namespace: could not be read"},
		"Rollouts may not be read":              {"rollouts shop", forbidden("rollouts"), exitFailed, "not yours"},
		"VirtualServices may not be read":       {"virtualservices shop", forbidden("virtualservices"), exitFailed, "not yours"},
		"the server is away":                    {"services shop", errors.New("connection refused"), exitFailed, "connection refused"},
		"the server is away for one object":     {"namespaces ", errors.New("connection refused"), exitFailed, "connection refused"},
		"the cluster has no Rollouts":           {"rollouts shop", apierrors.NewNotFound(schema.GroupResource{Resource: "rollouts"}, ""), exitFailed, "is this the right cluster?"},
		"the cluster has no VirtualServices":    {"virtualservices shop", apierrors.NewNotFound(schema.GroupResource{Resource: "virtualservices"}, ""), exitFailed, "has no virtualservices"},
		"the cluster has no such optional kind": {"helmreleases shop", apierrors.NewNotFound(schema.GroupResource{Resource: "helmreleases"}, ""), exitFine, "0 errors"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := holding(t, "shop", all(t, "web.yaml")...)
			c.errors[tc.place] = tc.err
			got := running(t, c.connect, "lint")
			if got.code != tc.code || !strings.Contains(got.out+got.err, tc.says) {
				t.Errorf("%+v, want exit code %d and %q", got, tc.code, tc.says)
			}
		})
	}
}

// waiting is a writer that tells when something is written.
type waiting struct {
	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
	done chan struct{}
}

func (w *waiting) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.once.Do(func() { close(w.done) })
	return w.text.Write(p)
}

func TestWhatTakesLongIsToldOnStderr(t *testing.T) {
	c := holding(t, "shop", all(t, "web.yaml")...)
	progress := &waiting{done: make(chan struct{})}
	c.wait = func() { <-progress.done } // the first read takes until something is said
	got := running(t, func(p *Program) {
		c.connect(p)
		p.Err, p.patience = progress, time.Millisecond
	}, "lint")
	if got.code != exitFine || !strings.HasPrefix(progress.text.String(), "reading rollouts of namespace shop …\n") {
		t.Errorf("%+v, and on stderr %q", got, progress.text.String())
	}
}
