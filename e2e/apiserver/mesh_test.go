package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
)

// remote is the control plane of the mesh where that is another cluster. It is
// started by the first test that needs it.
var remote struct {
	sync.Mutex
	lab *lab.Lab
	err error
}

func meshLab(t *testing.T) *lab.Lab {
	t.Helper()
	remote.Lock()
	defer remote.Unlock()
	if remote.lab == nil && remote.err == nil {
		if remote.lab, remote.err = lab.Start(context.Background(), lab.Options{}); remote.err == nil {
			t.Logf("the second control plane started in %s", remote.lab.StartTook)
		}
	}
	if remote.err != nil {
		t.Fatal(remote.err)
	}
	return remote.lab
}

func stopMesh() error {
	remote.Lock()
	defer remote.Unlock()
	if remote.lab == nil {
		return nil
	}
	return remote.lab.Stop()
}

// meshRights are what a user of the mesh's cluster needs, %[1]s is the namespace,
// %[2]s the user, %[3]s is "Cluster", or empty for that namespace only.
const meshRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: %[3]sRole
metadata: {name: %[1]s-%[2]s}
rules:
- {apiGroups: [networking.istio.io], resources: [virtualservices, destinationrules], verbs: [get, list, watch, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: %[3]sRoleBinding
metadata: {name: %[1]s-%[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %[3]sRole, name: %[1]s-%[2]s}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: "system:serviceaccount:%[1]s:%[2]s"}]
`

// twoClusters is a controller's account with the stock role in one cluster, and the
// namespace of the same name in the cluster of the mesh.
type twoClusters struct {
	account
	mesh *lab.Lab
	log  *logText
}

func newTwoClusters(t *testing.T) twoClusters {
	t.Helper()
	c := twoClusters{account: newAccount(t), mesh: meshLab(t), log: &logText{}}
	c.grant(t, stockRole(t).Rules)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
	if _, err := c.mesh.Client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// host is how errors name the mesh's cluster.
func (c twoClusters) host() string { return strings.TrimSuffix(c.mesh.Config.Host, "/") }

// kubeconfig is that of a user of the mesh's cluster, who may have no rights there.
func (c twoClusters) kubeconfig(t *testing.T, user string, through *lab.Proxy) []byte {
	t.Helper()
	path, err := c.mesh.Kubeconfig(lab.ServiceAccount(c.namespace, user), through)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// allow gives a user the rights in the mesh's cluster; scope is "Cluster", or ""
// for the namespace alone.
func (c twoClusters) allow(t *testing.T, user, scope string) {
	t.Helper()
	if _, err := c.mesh.Apply(t.Context(), c.namespace, fmt.Appendf(nil, meshRights, c.namespace, user, scope)); err != nil {
		t.Fatal(err)
	}
}

func (c twoClusters) applyObjects(t *testing.T, in *cluster.Cluster) {
	t.Helper()
	if _, err := c.mesh.Apply(t.Context(), c.namespace, []byte(manifests)); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the objects of the mesh in the caches", func() bool {
		_, vsErr := in.VirtualService(c.namespace, name)
		_, drErr := in.DestinationRule(c.namespace, name)
		return vsErr == nil && drErr == nil
	})
}

func (c twoClusters) start(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	log := hclog.New(&hclog.LoggerOptions{Output: c.log})
	started, err := cluster.New(c.config(t, nil), options, log)
	if err != nil {
		t.Fatal(err)
	}
	return started
}

// write sets a weight as the router does in one call of the controller, and
// returns who sent the patch.
func (c twoClusters) write(t *testing.T, through *cluster.Cluster, weight int64) string {
	t.Helper()
	ctx := within(t, 15*time.Second)
	if err := through.Ready(ctx); err != nil {
		t.Errorf("weight %d: %v", weight, err)
		return ""
	}
	if _, changed, err := through.UpdateVirtualService(ctx, c.namespace, name, setWeight("first", weight)); err != nil || !changed {
		t.Errorf("weight %d: changed %t, %v", weight, changed, err)
		return ""
	}
	u, err := c.mesh.Dynamic.Resource(virtualServices).Namespace(c.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := inList(u, "http", "first")["route"].([]any)[1].(map[string]any)["weight"]; got != weight {
		t.Errorf("the object of the mesh has weight %v, want %d", got, weight)
	}
	requests, err := c.mesh.Requests(func(r lab.Request) bool {
		return r.Namespace == c.namespace && r.Verb == "patch" && strings.HasPrefix(r.User, "system:serviceaccount:"+c.namespace+":")
	})
	if err != nil || len(requests) == 0 {
		t.Fatalf("no patch is in the audit log: %v", err)
	}
	_, user, _ := strings.Cut(requests[len(requests)-1].User, c.namespace+":")
	return user
}

// logText is what was logged. It is safe for concurrent use.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// says checks that an error has some parts.
func says(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

func overwrite(t *testing.T, path string, content []byte) {
	t.Helper()
	// As a mounted Secret changes: all at once.
	if err := errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func TestTheRoutingLivesInTheMeshsClusterAndAllElseInTheControllers(t *testing.T) {
	t.Parallel()
	c := newTwoClusters(t)
	c.allow(t, "mesh", "Cluster")
	path := filepath.Join(t.TempDir(), "kubeconfig")
	overwrite(t, path, c.kubeconfig(t, "mesh", nil))
	in := c.start(t, cluster.Options{MeshKubeconfig: path})
	makeReady(t, in, time.Minute)
	c.applyObjects(t, in)
	if user := c.write(t, in, 30); user != "mesh" {
		t.Errorf("the mesh's object was written by %q", user)
	}
	if _, changed, err := in.UpdateDestinationRule(within(t, 10*time.Second), c.namespace, name, setHashes("new", "old")); err != nil || !changed {
		t.Errorf("DestinationRule: changed %t, %v", changed, err)
	}

	rollout := createOwner(t, c.namespace, "Rollout", "cart")
	uid := createSet(t, c.namespace, rollout, "5f8d", 2)
	eventually(t, time.Minute, "the pods of the controller's cluster", func() bool {
		sets, err := in.ReplicaSets(rollout.UID)
		groups := in.PodLabels(uid)
		return err == nil && len(sets) == 1 && sets[0].Available == 2 && len(groups) == 1 && groups[0].Count == 2
	})
	in.Event(corev1.ObjectReference{Kind: "Rollout", Namespace: c.namespace, Name: "cart", UID: rollout.UID}, false, "Told", "here")
	told(t, c.namespace, 1)

	_, err := in.VirtualService(c.namespace, "none")
	says(t, err, c.namespace+"/none", "not found", "the mesh's cluster "+c.host())
	_, _, err = in.UpdateDestinationRule(within(t, 10*time.Second), c.namespace, "none", setHashes("new", "old"))
	says(t, err, c.namespace+"/none", "not found", "the mesh's cluster "+c.host())
	if !apierrors.IsNotFound(err) {
		t.Errorf("%v is no NotFound", err)
	}
	requests, err := shared.Requests(func(r lab.Request) bool { return r.User == c.Name && r.APIGroup == "networking.istio.io" })
	if err != nil || len(requests) > 0 {
		t.Errorf("the controller's cluster was asked for Istio's objects: %v, %v", requests, err)
	}
}

func TestNewCredentialsInTheFileAreInUseFromTheNextCallOn(t *testing.T) {
	t.Parallel()
	c := newTwoClusters(t)
	for _, user := range []string{"one", "two"} {
		c.allow(t, user, "Cluster")
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	in := c.start(t, cluster.Options{MeshKubeconfig: path})
	says(t, in.Ready(within(t, 10*time.Second)), "the kubeconfig of the mesh's cluster", path)

	overwrite(t, path, c.kubeconfig(t, "one", nil))
	makeReady(t, in, time.Minute)
	c.applyObjects(t, in)
	if user := c.write(t, in, 10); user != "one" {
		t.Errorf("written by %q, want one", user)
	}
	changes := listen(in, c.namespace)
	overwrite(t, path, c.kubeconfig(t, "two", nil))
	if user := c.write(t, in, 20); user != "two" {
		t.Errorf("written by %q, want two", user)
	}
	eventually(t, time.Minute, "news of all objects", func() bool {
		return changes.last("VirtualService cart") != "" && changes.last("DestinationRule cart") != ""
	})

	overwrite(t, path, []byte("no kubeconfig"))
	if user := c.write(t, in, 30); user != "two" {
		t.Errorf("written by %q, want two, as the file is broken", user)
	}
	// A user who may do nothing yet.
	overwrite(t, path, c.kubeconfig(t, "three", nil))
	if user := c.write(t, in, 40); user != "two" {
		t.Errorf("written by %q, want two, as three has no rights", user)
	}
	eventually(t, time.Minute, "the log to say so", func() bool {
		log := c.log.String()
		return strings.Contains(log, "is no kubeconfig") && strings.Contains(log, "forbidden") && strings.Contains(log, "those before stay in use")
	})
	c.allow(t, "three", "Cluster")
	weight := int64(50)
	eventually(t, time.Minute, "a write by three", func() bool {
		weight++
		return c.write(t, in, weight) == "three"
	})

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	says(t, in.Ready(within(t, 10*time.Second)), path)
	overwrite(t, path, c.kubeconfig(t, "three", nil))
	if user := c.write(t, in, 99); user != "three" {
		t.Errorf("written by %q, want three", user)
	}
}

// putSecret makes or changes a Secret with the label.
func (c twoClusters) putSecret(t *testing.T, secret string, data map[string][]byte) {
	t.Helper()
	secrets := shared.Client.CoreV1().Secrets(c.namespace)
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret, Labels: map[string]string{"istio.argoproj.io/primary-cluster": "true"}}, Data: data}
	_, err := secrets.Create(t.Context(), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(t.Context(), object, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (c twoClusters) dropSecret(t *testing.T, secret string) {
	t.Helper()
	if err := shared.Client.CoreV1().Secrets(c.namespace).Delete(t.Context(), secret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestTheOneSecretWithTheLabelHasTheMeshsKubeconfig(t *testing.T) {
	t.Parallel()
	c := newTwoClusters(t)
	for _, user := range []string{"one", "two"} {
		c.allow(t, user, "Cluster")
	}
	// Without the label it is not the one, whatever is in it.
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Data: map[string][]byte{"x": []byte("y")}}
	if _, err := shared.Client.CoreV1().Secrets(c.namespace).Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	in := c.start(t, cluster.Options{MeshSecretNamespace: c.namespace})
	// becomes waits for an error: the Secrets take a moment to be seen.
	becomes := func(parts ...string) {
		t.Helper()
		var last error
		eventually(t, time.Minute, fmt.Sprintf("an error with %q", parts), func() bool {
			last = in.Ready(within(t, 10*time.Second))
			if last == nil {
				return false
			}
			for _, part := range parts {
				if !strings.Contains(last.Error(), part) {
					return false
				}
			}
			return true
		})
	}
	becomes("no Secret with the label istio.argoproj.io/primary-cluster=true in namespace " + c.namespace)
	one := c.kubeconfig(t, "one", nil)
	c.putSecret(t, "east", map[string][]byte{"east": one, "west": one})
	becomes("Secret "+c.namespace+"/east", "keys east, west")
	c.putSecret(t, "west", map[string][]byte{"west": one})
	becomes("2 Secrets", "(east, west)", c.namespace)
	c.dropSecret(t, "east")
	makeReady(t, in, time.Minute)
	c.applyObjects(t, in)
	if user := c.write(t, in, 10); user != "one" {
		t.Errorf("written by %q, want one", user)
	}

	c.putSecret(t, "west", map[string][]byte{"west": c.kubeconfig(t, "two", nil)})
	weight := int64(10)
	eventually(t, time.Minute, "a write by two", func() bool {
		weight++
		return c.write(t, in, weight) == "two"
	})
	c.putSecret(t, "east", map[string][]byte{"east": one})
	eventually(t, time.Minute, "the log to name both Secrets", func() bool {
		weight++
		return c.write(t, in, weight) == "two" && strings.Contains(c.log.String(), "(east, west)")
	})
	c.dropSecret(t, "east")
	c.dropSecret(t, "west")
	becomes("no Secret with the label", c.namespace)
	c.putSecret(t, "east", map[string][]byte{"any": one})
	eventually(t, time.Minute, "a write by one", func() bool {
		if in.Ready(within(t, 10*time.Second)) != nil {
			return false
		}
		weight++
		return c.write(t, in, weight) == "one"
	})
}

func TestNamespacedTheMeshIsWatchedInThatNamespaceOnly(t *testing.T) {
	t.Parallel()
	c := newTwoClusters(t)
	c.allow(t, "narrow", "")
	path := filepath.Join(t.TempDir(), "kubeconfig")
	overwrite(t, path, c.kubeconfig(t, "narrow", nil))
	in := c.start(t, cluster.Options{Namespace: c.namespace, MeshKubeconfig: path})
	makeReady(t, in, time.Minute)
	c.applyObjects(t, in)
	if user := c.write(t, in, 30); user != "narrow" {
		t.Errorf("written by %q", user)
	}
	wide := c.start(t, cluster.Options{MeshKubeconfig: path})
	eventually(t, time.Minute, "an error that names cluster and right", func() bool {
		err := wide.Ready(within(t, 10*time.Second))
		return err != nil && strings.Contains(err.Error(), "the mesh's cluster "+c.host()) && strings.Contains(err.Error(), "at the cluster scope")
	})
}

func TestAMeshThatIsAwayIsNamedAndComesBack(t *testing.T) {
	t.Parallel()
	c := newTwoClusters(t)
	c.allow(t, "mesh", "Cluster")
	proxy, err := c.mesh.Proxy()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	proxy.Cut()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	overwrite(t, path, c.kubeconfig(t, "mesh", proxy))
	in := c.start(t, cluster.Options{MeshKubeconfig: path})
	says(t, in.Ready(within(t, 10*time.Second)), "the mesh's cluster https://"+proxy.Addr(), "asking the API server for networking.istio.io")
	proxy.Restore()
	makeReady(t, in, time.Minute)
	c.applyObjects(t, in)
	proxy.Cut()
	if err := in.Ready(within(t, 5*time.Second)); err != nil {
		t.Errorf("a cluster that was ready is no more: %v", err)
	}
	if got := canaryWeight(in, c.namespace, "first"); got != 0 {
		t.Errorf("in the outage the weight reads %d", got)
	}
	_, _, err = in.UpdateVirtualService(within(t, 2*time.Second), c.namespace, name, setWeight("first", 30))
	says(t, err, "VirtualService "+c.namespace+"/"+name)
	proxy.Restore()
	eventually(t, time.Minute, "a write", func() bool {
		_, changed, err := in.UpdateVirtualService(within(t, 5*time.Second), c.namespace, name, setWeight("first", 40))
		return err == nil && changed
	})
}
