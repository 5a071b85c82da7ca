package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
)

// shared is the lab of all tests.
var shared *lab.Lab

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// runTests is apart from TestMain so that its deferred Stop runs before the exit.
func runTests(m *testing.M) int {
	var err error
	if shared, err = lab.Start(context.Background(), lab.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := errors.Join(shared.Stop(), stopMesh()); err != nil {
			fmt.Fprintln(os.Stderr, "stop the lab:", err)
		}
	}()
	stop, err := keepWritten(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// account is the service account of one test, without any right at first.
type account struct {
	lab.User
	namespace string
}

// newNamespace returns a namespace of the test's own.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace, err := shared.Namespace(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := shared.DeleteNamespace(ctx, namespace); err != nil {
			t.Error(err)
		}
	})
	return namespace
}

// newAccount returns a service account with its own namespace.
func newAccount(t *testing.T) account {
	t.Helper()
	namespace := newNamespace(t)
	return account{User: lab.ServiceAccount(namespace, "argo-rollouts"), namespace: namespace}
}

// stockRole is the ClusterRole of the controller's release. The plugin has no
// other rights.
func stockRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	role, err := lab.ClusterRole(t.Context(), lab.DefaultVersion)
	if err != nil {
		t.Fatal(err)
	}
	return role
}

// grant gives the account exactly these rights, in place of earlier ones.
func (a account) grant(t *testing.T, rules []rbacv1.PolicyRule) {
	t.Helper()
	role := rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: a.namespace},
		Rules:      rules,
	}
	binding := rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: a.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: a.Name}},
	}
	for _, object := range []any{role, binding} {
		manifest, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shared.Apply(t.Context(), a.namespace, manifest); err != nil {
			t.Fatal(err)
		}
	}
}

// config is the account's way to the API server, through a proxy unless it is nil.
func (a account) config(t *testing.T, through *lab.Proxy) *rest.Config {
	t.Helper()
	path, err := shared.Kubeconfig(a.User, through)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	// The plugin's defaults.
	config.QPS, config.Burst = 50, 100
	return config
}

func newCluster(t *testing.T, config *rest.Config, options cluster.Options) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New(config, options, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// makeReady calls Ready as the controller does, again and again.
func makeReady(t *testing.T, c *cluster.Cluster, patience time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last error
	err := lab.Until(ctx, "Ready", func(ctx context.Context) (bool, error) {
		if err := c.Ready(ctx); err != nil {
			last = err
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("%v; last it said: %v", err, last)
	}
}

// stock is a cluster that is ready and has the stock ClusterRole, and its user.
type stock struct {
	*cluster.Cluster
	account
}

func newStock(t *testing.T, through *lab.Proxy) stock {
	t.Helper()
	a := newAccount(t)
	a.grant(t, stockRole(t).Rules)
	c := newCluster(t, a.config(t, through), cluster.Options{})
	makeReady(t, c, time.Minute)
	return stock{Cluster: c, account: a}
}

// patches are the codes of the account's patches of one object so far, in order.
func (a account) patches(t *testing.T, resource, name string) []int {
	t.Helper()
	var codes []int
	_, err := shared.Requests(func(r lab.Request) bool {
		if r.User == a.Name && r.Verb == "patch" && r.Resource == resource && r.Name == name {
			codes = append(codes, r.Code)
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	return codes
}

// within bounds one call, as the plugin's RPC edge does.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// eventually fails the test when a condition does not come to hold.
func eventually(t *testing.T, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	err := lab.Until(within(t, patience), what, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatal(err)
	}
}

// every runs functions at the same time and waits for all.
func every(functions ...func()) {
	var group sync.WaitGroup
	for _, f := range functions {
		group.Go(f)
	}
	group.Wait()
}
