package lab

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
)

// application is a Rollout with all it needs: %[1]s is the controller's
// instance id, %[2]s the image, %[3]s the traffic routing.
const application = `
apiVersion: v1
kind: Service
metadata: {name: web-stable}
spec: {ports: [{port: 80}], selector: {app: web}}
---
apiVersion: v1
kind: Service
metadata: {name: web-canary}
spec: {ports: [{port: 80}], selector: {app: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: asked}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata:
  name: web
  labels: {argo-rollouts.argoproj.io/controller-instance-id: "%[1]s"}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "%[2]s"}]}
  strategy:
    canary:
      canaryService: web-canary
      stableService: web-stable
      trafficRouting: %[3]s
      steps: [{setWeight: 50}, {pause: {duration: 1s}}]
`

const virtualService = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web}
spec:
  hosts: [web]
  http:
  - name: primary
    route:
    - {destination: {host: web-stable}, weight: 100}
    - {destination: {host: web-canary}, weight: 0}
`

var (
	rolloutResource        = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	virtualServiceResource = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
)

const (
	nativeRouting = `{istio: {virtualService: {name: web, routes: [primary]}}}`
	stubRouting   = `{plugins: {test/stub: {}}}`
)

// startController starts a controller of the shared lab for one test.
func startController(ctx context.Context, t *testing.T, options ControllerOptions) *Controller {
	t.Helper()
	c, err := shared.StartController(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

// applyApplication creates or changes the application and waits until its
// Rollout is healthy with the image given.
func applyApplication(ctx context.Context, t *testing.T, c *Controller, namespace, image, routing string) {
	t.Helper()
	if _, err := shared.Apply(ctx, namespace, fmt.Appendf(nil, application, c.options.InstanceID, image, routing)); err != nil {
		t.Fatal(err)
	}
	awaitHealthy(ctx, t, c, namespace)
}

func awaitHealthy(ctx context.Context, t *testing.T, c *Controller, namespace string) {
	t.Helper()
	var last any
	err := Until(ctx, "Rollout "+namespace+"/web to be healthy", func(ctx context.Context) (bool, error) {
		ro, err := shared.Dynamic.Resource(rolloutResource).Namespace(namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = ro.Object["status"]
		phase, _, _ := unstructured.NestedString(ro.Object, "status", "phase")
		seen, _, _ := unstructured.NestedString(ro.Object, "status", "observedGeneration")
		return phase == "Healthy" && seen == fmt.Sprint(ro.GetGeneration()), nil
	})
	if err != nil {
		t.Fatalf("%v\nstatus: %v\n%s", err, last, c.Tail(20))
	}
}

// canaryWeights follows the weight of the second destination of the
// VirtualService until it is back at 0. Each of its values is sent once.
func canaryWeights(ctx context.Context, t *testing.T, namespace string) <-chan []int64 {
	t.Helper()
	watch, err := shared.Dynamic.Resource(virtualServiceResource).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
	result := make(chan []int64, 1)
	go func() {
		var weights []int64
		for event := range watch.ResultChan() {
			vs := event.Object.(*unstructured.Unstructured)
			http, _, _ := unstructured.NestedSlice(vs.Object, "spec", "http")
			route, _, _ := unstructured.NestedSlice(http[0].(map[string]any), "route")
			weight, _, _ := unstructured.NestedInt64(route[1].(map[string]any), "weight")
			if weights = slices.Compact(append(weights, weight)); len(weights) > 1 && weight == 0 {
				break
			}
		}
		result <- weights
	}()
	return result
}

func TestANativeHostLevelCanaryFinishesOnEveryRelease(t *testing.T) {
	t.Parallel()
	for _, version := range []string{DefaultVersion, "v1.8.5"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ctx := within(t, 2*time.Minute)
			namespace := scenario(t, ctx)
			c := startController(ctx, t, ControllerOptions{Version: version, InstanceID: "native-" + strings.ReplaceAll(version, ".", "-")})
			if _, err := shared.Apply(ctx, namespace, []byte(virtualService)); err != nil {
				t.Fatal(err)
			}
			weights := canaryWeights(ctx, t, namespace)
			applyApplication(ctx, t, c, namespace, "app:1", nativeRouting)
			applyApplication(ctx, t, c, namespace, "app:2", nativeRouting)
			if got, want := <-weights, []int64{0, 50, 100, 0}; !slices.Equal(got, want) {
				t.Errorf("canary weights %v, want %v", got, want)
			}
		})
	}
}

// stub are options for a controller whose plugin is this test binary.
func stub(t *testing.T, id string) ControllerOptions {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return ControllerOptions{InstanceID: id, PluginPath: path, PluginName: "test/stub", Env: []string{stubVariable + "=1"}}
}

func TestAPluginIsStartedFoundKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	namespace := scenario(t, ctx)
	c := startController(ctx, t, stub(t, "stub"))
	if pid, err := c.PluginPID(); err == nil {
		t.Errorf("plugin runs as %d before any Rollout", pid)
	}
	applyApplication(ctx, t, c, namespace, "app:1", stubRouting)

	first, err := c.KillPlugin(syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	awaitGone(t, []int{first})
	applyApplication(ctx, t, c, namespace, "app:2", stubRouting)
	second, err := c.PluginPID()
	if err != nil || second == first {
		t.Errorf("plugin after a kill: process %d, %v, before: %d", second, err, first)
	}

	if err := c.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, []int{second})
	applyApplication(ctx, t, c, namespace, "app:3", stubRouting)
	third, err := c.PluginPID()
	if err != nil {
		t.Fatal(err)
	}
	c.Stop()
	awaitGone(t, []int{third})
	if _, err := c.PluginPID(); err == nil {
		t.Error("a stopped controller has a plugin")
	}
}

func TestAnOutageForThePluginAloneIsSeenByItAndNotByTheController(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	namespace := scenario(t, ctx)
	proxy, err := shared.Proxy()
	if err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	options := stub(t, "outage")
	options.PluginThrough = proxy
	c := startController(ctx, t, options)
	manifest := fmt.Appendf(nil, application, "outage", "app:1", stubRouting)
	if _, err := shared.Apply(ctx, namespace, manifest); err != nil {
		t.Fatal(err)
	}
	err = Until(ctx, "the plugin's complaint", func(context.Context) (bool, error) {
		return contains(c.Tail(50, "connection"), proxy.Addr()), nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Tail(20))
	}
	if asked := asked(t, c); len(asked) > 0 {
		t.Errorf("requests of the plugin in its outage: %v", asked)
	}
	proxy.Restore()
	awaitHealthy(ctx, t, c, namespace)
	if len(asked(t, c)) == 0 {
		t.Error("no request of the plugin after its outage")
	}
}

// asked lists what the stub asked the API server for.
func asked(t *testing.T, c *Controller) []Request {
	t.Helper()
	found, err := shared.Requests(func(r Request) bool {
		return r.User == ServiceAccount(c.Namespace, "argo-rollouts").Name && r.Name == "asked"
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAControllerBehindAProxySeesItsOutage(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	namespace := scenario(t, ctx)
	proxy, err := shared.Proxy()
	if err != nil {
		t.Fatal(err)
	}
	c := startController(ctx, t, ControllerOptions{InstanceID: "behind", Through: proxy})
	proxy.Cut()
	if _, err := shared.Apply(ctx, namespace, []byte(virtualService)); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Apply(ctx, namespace, fmt.Appendf(nil, application, "behind", "app:1", nativeRouting)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	ro, err := shared.Dynamic.Resource(rolloutResource).Namespace(namespace).Get(ctx, "web", metav1.GetOptions{})
	if err != nil || ro.Object["status"] != nil {
		t.Errorf("status in the outage: %v, %v, want none", ro.Object["status"], err)
	}
	proxy.Restore()
	awaitHealthy(ctx, t, c, namespace)
}

func TestAControllerHasExactlyTheRightsOfItsRelease(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	namespace := scenario(t, ctx)
	c := startController(ctx, t, ControllerOptions{InstanceID: "rights"})
	config, err := shared.ConfigFor(ServiceAccount(c.Namespace, "argo-rollouts"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("list ConfigMaps, which the role grants: %v", err)
	}
	if _, err := client.CoreV1().Pods(namespace).Get(ctx, "any", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("get a Pod, which the role does not grant: %v", err)
	}
	role, err := ClusterRole(ctx, DefaultVersion)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := shared.Client.RbacV1().ClusterRoles().Get(ctx, role.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(role.Rules, stored.Rules); diff != "" {
		t.Errorf("rules of ClusterRole %s (-release +stored):\n%s", role.Name, diff)
	}
}

func TestAnInstanceIDIsGivenOnce(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	startController(ctx, t, ControllerOptions{InstanceID: "twice"})
	_, err := shared.StartController(ctx, ControllerOptions{InstanceID: "twice"})
	if err == nil || !contains(err.Error(), `"twice"`) {
		t.Errorf("second controller with the same id: %v", err)
	}
}

func TestAControllerThatCannotStartIsAnErrorWithItsLog(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	_, err := shared.StartController(ctx, ControllerOptions{InstanceID: "broken", PluginPath: "/nowhere/plugin"})
	if err == nil || !contains(err.Error(), "controller argo-rollouts-broken", "/nowhere/plugin", "==> argo-rollouts-broken (exit status 1)") {
		t.Errorf("a plugin that is not there: %v", err)
	}
}

func TestAnInstanceIDThatCannotNameANamespaceIsRefused(t *testing.T) {
	_, err := shared.StartController(t.Context(), ControllerOptions{InstanceID: "v1.10"})
	if err == nil || !contains(err.Error(), `instance id "v1.10"`, "a-z, 0-9 and -") {
		t.Errorf("instance id with a dot: %v", err)
	}
}

func TestAStartThatIsInterruptedEndsSoonAndLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	began := time.Now()
	l, err := Start(ctx, Options{})
	if err == nil || l != nil || !contains(err.Error(), "start the lab", context.DeadlineExceeded.Error(), "==> kube-apiserver") {
		t.Fatalf("lab %v, error %v", l, err)
	}
	// envtest would try for minutes.
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %s with a deadline of 2 s", took)
	}
	_, path, _ := strings.Cut(err.Error(), "run by envtest) ")
	folder := filepath.Dir(filepath.Dir(strings.Fields(path)[0]))
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("folder %s: %v, want none", folder, err)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range commands {
		if command, _ := os.ReadFile(name); contains(string(command), folder) {
			t.Errorf("still running: %q", command)
		}
	}
}

func TestTwoLabsAtOnceDoNotMeet(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	other, err := Start(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Apply(ctx, "default", []byte(virtualService)); err != nil {
		t.Error(err)
	}
	// The same controller in both: folders, ports and identities must differ.
	c, err := other.StartController(ctx, ControllerOptions{})
	if err != nil {
		t.Error(err)
	} else if log := c.Log(); !contains(log, other.Dir()) {
		t.Errorf("log %s is not in the lab's folder %s", log, other.Dir())
	}
	_, err = shared.Dynamic.Resource(virtualServiceResource).Namespace("default").Get(ctx, "web", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("an object of one lab, asked for in the other: %v", err)
	}

	notes, err := filepath.Glob(filepath.Join(other.processes.notes, "*"))
	if err != nil || len(notes) != 5 {
		t.Errorf("programs running in a lab with one controller: %v, %v, want 5", notes, err)
	}
	if err := other.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other.Dir()); !os.IsNotExist(err) {
		t.Errorf("folder %s: %v, want none", other.Dir(), err)
	}
	var pids []int
	for _, note := range notes {
		var pid int
		fmt.Sscan(filepath.Base(note), &pid)
		pids = append(pids, pid)
	}
	awaitGone(t, pids)
	if _, err := http.Get(other.Config.Host); err == nil {
		t.Error("the stopped lab's API server answers")
	}
}
