package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// namespace has all objects of the benchmarks.
const namespace = "default"

// startTimeout bounds the start of etcd and kube-apiserver.
const startTimeout = 2 * time.Minute

// server is an API server without any controller.
type server struct {
	env        *envtest.Environment
	typed      kubernetes.Interface
	dynamic    dynamic.Interface
	kubeconfig string
}

// shared is started by the first benchmark that runs, so that `go test ./...`,
// which runs none, starts nothing.
var shared = struct {
	once   sync.Once
	folder string
	server *server
	err    error
}{}

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// runTests is apart from TestMain so that its deferred calls run before the exit.
func runTests(m *testing.M) int {
	defer func() {
		if err := stopShared(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
		}
	}()
	return m.Run()
}

func stopShared() error {
	if shared.folder == "" {
		return nil
	}
	defer os.RemoveAll(shared.folder)
	if shared.server == nil {
		return nil
	}
	return shared.server.env.Stop()
}

// apiServer returns the shared API server.
func apiServer(b *testing.B) *server {
	b.Helper()
	shared.once.Do(func() {
		if shared.folder, shared.err = os.MkdirTemp("", "rollouts-bench-"); shared.err == nil {
			shared.server, shared.err = start(context.Background(), shared.folder)
		}
	})
	if shared.err != nil {
		b.Fatal(shared.err)
	}
	return shared.server
}

// start builds what is missing and starts etcd and kube-apiserver with Istio's
// definitions. They keep their data in folder.
func start(ctx context.Context, folder string) (*server, error) {
	if err := lab.Build(ctx, os.Stderr, lab.Etcd, lab.APIServer); err != nil {
		return nil, err
	}
	ctrllog.SetLogger(logr.Discard()) // or envtest's library complains that it has none
	env, err := environment(ctx, folder)
	if err != nil {
		return nil, err
	}
	config, err := env.Start()
	if err != nil {
		return nil, fmt.Errorf("start etcd and kube-apiserver: %w", err)
	}
	config.QPS = -1 // the benchmarks' own requests wait for nobody
	s := &server{env: env, kubeconfig: filepath.Join(folder, "kubeconfig")}
	if s.typed, err = kubernetes.NewForConfig(config); err != nil {
		return s, err
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return s, err
	}
	return s, os.WriteFile(s.kubeconfig, env.KubeConfig, 0o600)
}

func environment(ctx context.Context, folder string) (*envtest.Environment, error) {
	etcd, err := lab.Etcd.Path()
	if err != nil {
		return nil, err
	}
	server, err := lab.APIServer.Path()
	if err != nil {
		return nil, err
	}
	istio, err := moduleFolder(ctx, "istio.io/api")
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{ControlPlaneStartTimeout: startTimeout, ErrorIfCRDPathMissing: true,
		CRDDirectoryPaths: []string{filepath.Join(istio, "kubernetes", "customresourcedefinitions.gen.yaml")}}
	env.CRDInstallOptions.MaxTime = startTimeout
	data := filepath.Join(folder, "etcd")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	env.ControlPlane.Etcd = &envtest.Etcd{Path: etcd, DataDir: data, Out: io.Discard, Err: io.Discard}
	env.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true")
	api := env.ControlPlane.GetAPIServer()
	api.Path, api.Out, api.Err = server, io.Discard, io.Discard
	return env, nil
}

// moduleFolder is where the source of a module that this one requires lies.
func moduleFolder(ctx context.Context, module string) (string, error) {
	out, err := goCommand(ctx, "list", "-m", "-f", "{{.Dir}}", module)
	return strings.TrimSpace(out), err
}

// goCommand runs the go command in this module and returns what it prints.
func goCommand(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}
