package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

//go:embed istiod.yaml
var istiodIdentity []byte

const (
	istioNamespace = "istio-system"
	// istiodPatience is how long istiod may take to end in good order.
	istiodPatience = 10 * time.Second
	// scrapeTimeout bounds one question to istiod's own HTTP servers.
	scrapeTimeout = 5 * time.Second
)

// IstiodOptions say how to start istiod. The zero value is right for tests.
type IstiodOptions struct {
	// Through is a proxy between istiod and the API server.
	Through *Proxy
	// Args are further arguments; of two that set the same flag the later counts.
	Args []string
	// Env is added to istiod's environment.
	Env []string
}

// Istiod is Istio's control plane as the mesh sees it: it reads Services,
// EndpointSlices, VirtualServices and DestinationRules and serves them as XDS.
// It injects nothing, signs no certificates and validates nothing. Its methods
// may be called concurrently.
type Istiod struct {
	// Address serves XDS as plain text, as port 15010 of an installed istiod
	// does. It stays the same when istiod is restarted.
	Address string
	// HTTPAddress has /ready and /debug, MonitoringAddress has /metrics.
	HTTPAddress, MonitoringAddress string

	lab     *Lab
	program program

	mu   sync.Mutex
	proc *process
}

// StartIstiod builds istiod if need be, starts it with a service account of its
// own and waits until it is ready. When that fails istiod has ended and the
// error holds its log's end. There can be one istiod in a lab.
//
// It can be used anywhere to ask what it serves. Only in a network namespace in
// which the pods' addresses are local, see package mesh, can the endpoints that
// it names be reached.
func (l *Lab) StartIstiod(ctx context.Context, options IstiodOptions) (*Istiod, error) {
	if err := Build(ctx, l.progress, IstiodProgram); err != nil {
		return nil, err
	}
	i := &Istiod{lab: l}
	if err := l.adoptIstiod(i); err != nil {
		return nil, err
	}
	if err := i.prepare(ctx, options); err != nil {
		return nil, fmt.Errorf("prepare istiod: %w", err)
	}
	return i, i.Start(ctx)
}

// adoptIstiod keeps two istiods from sharing a namespace and a log.
func (l *Lab) adoptIstiod(i *Istiod) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.istiod != nil {
		return errors.New("the lab has an istiod already: restart that one")
	}
	l.istiod = i
	return nil
}

func (i *Istiod) prepare(ctx context.Context, options IstiodOptions) error {
	if _, err := i.lab.Apply(ctx, istioNamespace, istiodIdentity); err != nil {
		return err
	}
	kubeconfig, err := i.lab.Kubeconfig(ServiceAccount(istioNamespace, "istiod"), options.Through)
	if err != nil {
		return err
	}
	addresses, err := freeAddresses(3)
	if err != nil {
		return err
	}
	i.Address, i.HTTPAddress, i.MonitoringAddress = addresses[0], addresses[1], addresses[2]
	path, err := IstiodProgram.Path()
	if err != nil {
		return err
	}
	dir := filepath.Join(i.lab.dir, "istiod") // istiod looks for its files in the working folder
	i.program = program{
		name: "istiod", path: path, dir: dir, args: i.arguments(kubeconfig, options),
		env: append([]string{
			"POD_NAME=istiod", "POD_NAMESPACE=" + istioNamespace,
			"PILOT_CERT_PROVIDER=none", "ENABLE_CA_SERVER=false",
			"INJECTION_WEBHOOK_CONFIG_NAME=", "VALIDATION_WEBHOOK_CONFIG_NAME=",
		}, options.Env...),
	}
	return os.MkdirAll(dir, 0o755)
}

func (i *Istiod) arguments(kubeconfig string, options IstiodOptions) []string {
	return append([]string{
		"discovery", "--kubeconfig=" + kubeconfig,
		"--grpcAddr=" + i.Address, "--httpAddr=" + i.HTTPAddress, "--monitoringAddr=" + i.MonitoringAddress,
		"--secureGRPCAddr=", "--httpsAddr=", "--ctrlz_port=0", "--profile=false",
	}, options.Args...)
}

// freeAddresses are loopback addresses that nobody listens on. All are held
// until the last is found, so that they differ.
func freeAddresses(n int) (addresses []string, err error) {
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("look for a free port: %w", err)
		}
		defer listener.Close()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}

// Start starts istiod after a Stop or Kill, on the addresses that it had, and
// waits until it is ready.
func (i *Istiod) Start(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.proc != nil && !i.proc.ended() {
		return errors.New("istiod already runs")
	}
	proc, err := i.lab.processes.start(i.program)
	if err != nil {
		return err
	}
	i.proc = proc
	err = proc.await(ctx, func(ctx context.Context) (bool, error) {
		_, err := fetch(ctx, "http://"+i.HTTPAddress+"/ready")
		return err == nil, nil
	})
	if err != nil {
		proc.stop(0)
		return fmt.Errorf("istiod: %w\n%s", err, proc.tail(20))
	}
	return nil
}

// Stop ends istiod, in good order if it does so within ten seconds.
func (i *Istiod) Stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.proc != nil {
		i.proc.stop(istiodPatience)
	}
}

// Restart stops istiod and starts it again. The log goes on in the same file.
func (i *Istiod) Restart(ctx context.Context) error {
	i.Stop()
	return i.Start(ctx)
}

// Kill ends istiod at once, as the loss of its node does. Start brings it back.
func (i *Istiod) Kill() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.proc == nil || i.proc.ended() {
		return errors.New("istiod does not run")
	}
	i.proc.kill()
	<-i.proc.done
	return nil
}

// Signal sends a signal to istiod. With SIGSTOP and SIGCONT a test plays an
// istiod whose answers are late.
func (i *Istiod) Signal(signal syscall.Signal) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.proc == nil || i.proc.ended() {
		return errors.New("istiod does not run")
	}
	return i.proc.cmd.Process.Signal(signal)
}

// Metrics are istiod's own, in Prometheus' text format.
func (i *Istiod) Metrics(ctx context.Context) ([]byte, error) {
	return fetch(ctx, "http://"+i.MonitoringAddress+"/metrics")
}

// Log is the path of istiod's log.
func (i *Istiod) Log() string { return filepath.Join(i.lab.processes.logs, i.program.name+".log") }

// fetch reads a page; anything but 200 is an error.
func fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	return io.ReadAll(answer.Body)
}
