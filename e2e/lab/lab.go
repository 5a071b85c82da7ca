package lab

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

//go:embed stages.yaml
var stages []byte

//go:embed audit.yaml
var auditPolicy []byte

// startTimeout bounds each step of a start. A loaded machine is slow, and a
// test's own deadline is the better judge.
const startTimeout = 2 * time.Minute

// Options say how to start a lab. The zero value is right for tests.
type Options struct {
	// Progress is told what is built and what goes wrong in the background;
	// nil means standard error.
	Progress io.Writer
	// KeepFiles leaves the logs in the temporary folder after Stop.
	KeepFiles bool
	// RolloutsVersion is the release of Argo Rollouts whose definitions are
	// installed, such as "v1.8.5"; there must be a component of it, see [Rollouts].
	// "" is the release that the e2e module requires, with which older controllers
	// work, too.
	RolloutsVersion string
	// IstioVersion is the only version in which Istio's kinds exist: "v1", "v1beta1"
	// or "v1alpha3". "" is all three, as Istio has them.
	IstioVersion string
}

// Lab is a running control plane. Its methods may be called concurrently, and
// several labs may run at once, in one process or in many.
type Lab struct {
	// Config is that of an administrator, without a client-side rate limit.
	Config *rest.Config
	// Client and Dynamic are clients with Config.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// AdminKubeconfig is the path of a kubeconfig file of an administrator.
	AdminKubeconfig string
	// StartTook is how long Start needed after the builds.
	StartTook time.Duration

	dir       string
	auditLog  string
	options   Options
	progress  io.Writer
	ctx       context.Context // ends what runs in this process
	cancel    context.CancelFunc
	env       *envtest.Environment
	processes *processes
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	minting   sync.Mutex

	mu          sync.Mutex
	controllers map[string]*Controller // by instance id
	istiod      *Istiod
	apiServer   *process // nil while it is the one that envtest started
	kwok        *process
	kwokRuns    int
	stops       []func()
	stopped     bool
}

// Start builds what is missing and starts a control plane with one node. ctx
// bounds the start only; end the lab with Stop. When Start fails it has ended
// what it started, and the error holds the ends of the logs.
func Start(ctx context.Context, options Options) (*Lab, error) {
	progress := cmp.Or[io.Writer](options.Progress, os.Stderr)
	if err := Build(ctx, progress, ControlPlane()...); err != nil {
		return nil, err
	}
	silenceControllerRuntime()
	began := time.Now()
	l, err := newLab(options, progress)
	if err != nil {
		return nil, err
	}
	if err := l.start(ctx); err != nil {
		err = fmt.Errorf("start the lab: %w\n%s", err, l.Tail(15))
		return nil, errors.Join(err, l.Stop())
	}
	l.StartTook = time.Since(began)
	return l, nil
}

func newLab(options Options, progress io.Writer) (*Lab, error) {
	dir, err := os.MkdirTemp("", "rollouts-lab-")
	if err != nil {
		return nil, err
	}
	// Not derived from Start's context, which only bounds the start.
	ctx, cancel := context.WithCancel(context.Background())
	l := &Lab{dir: dir, auditLog: filepath.Join(dir, "logs", "audit.log"), options: options, progress: progress,
		ctx: ctx, cancel: cancel, controllers: map[string]*Controller{}}
	for _, folder := range []string{"etcd", "apiserver", "kubeconfigs", "kwok"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	l.processes, err = newProcesses(dir)
	return l, err
}

func (l *Lab) start(ctx context.Context) error {
	if err := l.startAPIServer(ctx); err != nil {
		return err
	}
	if err := l.makeClients(); err != nil {
		return err
	}
	if err := l.awaitReady(ctx); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.startControllerManager(groupCtx) })
	group.Go(func() error { return l.startKwok(groupCtx) })
	group.Go(func() error { return l.startBinder(l.ctx) })
	return group.Wait()
}

func (l *Lab) makeClients() (err error) {
	l.Config = rest.CopyConfig(l.env.Config)
	l.Config.QPS = -1
	if l.Client, err = kubernetes.NewForConfig(l.Config); err != nil {
		return err
	}
	if l.Dynamic, err = dynamic.NewForConfig(l.Config); err != nil {
		return err
	}
	l.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(l.Client.Discovery()))
	l.AdminKubeconfig, err = l.Kubeconfig(User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	return err
}

// awaitReady waits for /readyz: the API server answers before its roles exist.
func (l *Lab) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return Until(ctx, "/readyz of the API server", func(ctx context.Context) (bool, error) {
		_, err := l.Client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, nil
	})
}

// Stop ends everything the lab started and removes its folder. It may be
// called more than once; the lab is of no use afterwards.
func (l *Lab) Stop() error {
	l.mu.Lock()
	stops, again := l.stops, l.stopped
	l.stopped = true
	l.mu.Unlock()
	if again {
		return nil
	}
	l.cancel()
	for _, stop := range stops {
		stop()
	}
	l.processes.stop()
	if l.options.KeepFiles {
		return nil
	}
	return os.RemoveAll(l.dir)
}

// onStop calls a function at the beginning of Stop.
func (l *Lab) onStop(stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stops = append(l.stops, stop)
}

// Dir is the lab's temporary folder; logs are in its folder "logs".
func (l *Lab) Dir() string { return l.dir }

// Tail returns the last n lines of the log of every process, each below a line
// with the process's name, whether it still runs, and the log's path.
func (l *Lab) Tail(n int) string {
	l.processes.mu.Lock()
	defer l.processes.mu.Unlock()
	var all strings.Builder
	for _, proc := range l.processes.list {
		all.WriteString(proc.tail(n))
	}
	return all.String()
}

// Namespace creates a namespace whose name begins with the prefix and is used
// by no one else, and returns the name.
func (l *Lab) Namespace(ctx context.Context, prefix string) (string, error) {
	created, err := l.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a namespace %s-…: %w", prefix, err)
	}
	return created.Name, nil
}

// DeleteNamespace deletes a namespace and does not wait until it is empty. A
// scenario that has ended should not load the machine for those that run.
func (l *Lab) DeleteNamespace(ctx context.Context, name string) error {
	return l.Client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
}
