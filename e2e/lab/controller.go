package lab

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	// DefaultVersion is the release of the controller that the plugin is for.
	DefaultVersion = "v1.10.1"
	// DefaultPluginName is the name that Rollouts call the plugin by.
	DefaultPluginName = "argoproj-labs/istio"

	instanceLabel = "argo-rollouts.argoproj.io/controller-instance-id"
	// startedLine is what a controller logs once its caches are filled and its workers run.
	startedLine = "Started controller"
	// controllerPatience is how long a controller may take to end in good order.
	controllerPatience = 10 * time.Second
)

// ControllerOptions say what controller to start. The zero value is release
// DefaultVersion, without the plugin, for Rollouts without an instance label.
type ControllerOptions struct {
	// Version of Argo Rollouts; there must be a component of it, see [Rollouts].
	Version string
	// InstanceID keeps controllers of one lab apart: each sees only the
	// Rollouts with its label, see [Controller.Labels]. It must be unique, and
	// of a-z, 0-9 and - only.
	InstanceID string

	// PluginPath is the plugin's binary, see [BuildPlugin]; "" registers none.
	PluginPath string
	// PluginName is the name Rollouts use; "" means DefaultPluginName.
	PluginName string
	// PluginArgs are arguments of the plugin.
	PluginArgs []string

	// Through is a proxy between controller and API server, and so between
	// the plugin and the API server, too, as it inherits the configuration.
	Through *Proxy
	// PluginThrough is a proxy for the plugin alone, which is told to use it
	// with --kubeconfig.
	PluginThrough *Proxy

	// LogLevel of the controller: debug, info, warn or error; "" means info.
	LogLevel string
	// Args are further arguments of the controller.
	Args []string
	// Env is added to the controller's environment, which the plugin inherits.
	Env []string
}

// namesNamespace is what an instance id has to be for its controller's
// namespace to be named by it.
var namesNamespace = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?)?$`)

// Controller is one Argo Rollouts controller. Its methods may be called
// concurrently.
type Controller struct {
	// Namespace has the controller's ConfigMap and service account.
	Namespace string

	lab     *Lab
	options ControllerOptions
	dir     string // working folder
	program program

	mu   sync.Mutex
	proc *process
}

// StartController builds the controller if need be, gives it a namespace, a
// service account with exactly the ClusterRole of its release, and a
// configuration that names the plugin, starts it, and waits until it works.
// When that fails the controller has ended and the error holds its log's end.
func (l *Lab) StartController(ctx context.Context, options ControllerOptions) (*Controller, error) {
	options.Version = cmp.Or(options.Version, DefaultVersion)
	options.PluginName = cmp.Or(options.PluginName, DefaultPluginName)
	if err := Build(ctx, l.progress, Rollouts(options.Version)); err != nil {
		return nil, err
	}
	if !namesNamespace.MatchString(options.InstanceID) {
		return nil, fmt.Errorf("instance id %q: it becomes part of a namespace's name, use up to 40 of a-z, 0-9 and -", options.InstanceID)
	}
	c := &Controller{lab: l, options: options, Namespace: serviceAccountName}
	if options.InstanceID != "" {
		c.Namespace += "-" + options.InstanceID
	}
	if err := l.adopt(c); err != nil {
		return nil, err
	}
	if err := c.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare controller %s: %w", c.Namespace, err)
	}
	return c, c.Start(ctx)
}

// adopt keeps two controllers from taking the same instance id.
func (l *Lab) adopt(c *Controller) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return errors.New("the lab is stopped")
	}
	if _, taken := l.controllers[c.options.InstanceID]; taken {
		return fmt.Errorf("instance id %q is taken by another controller of this lab", c.options.InstanceID)
	}
	// The folder's name is short as the plugin's socket, whose path may have
	// only about a hundred characters, lies in it.
	c.dir = filepath.Join(l.dir, fmt.Sprintf("c%d", len(l.controllers)))
	l.controllers[c.options.InstanceID] = c
	return nil
}

// prepare makes all that the controller finds when it starts.
func (c *Controller) prepare(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(c.dir, "tmp"), 0o755); err != nil {
		return err
	}
	if err := c.lab.authorize(ctx, c.options.Version, c.Namespace); err != nil {
		return err
	}
	if err := c.configure(ctx); err != nil {
		return err
	}
	account := ServiceAccount(c.Namespace, serviceAccountName)
	kubeconfig, err := c.lab.Kubeconfig(account, c.options.Through)
	if err != nil {
		return err
	}
	path, err := Rollouts(c.options.Version).Path()
	if err != nil {
		return err
	}
	c.program = program{
		name: c.Namespace, path: path, dir: c.dir,
		args: append([]string{
			"--leader-elect=false", "--instance-id=" + c.options.InstanceID,
			// Port 0 is any free one. The old spelling of the first is known to all releases.
			"--metricsport=0", "--healthzPort=0",
			"--loglevel=" + cmp.Or(c.options.LogLevel, "info"),
		}, c.options.Args...),
		// The plugin finds all of these, too.
		env: append([]string{
			"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=" + c.Namespace, "TMPDIR=" + filepath.Join(c.dir, "tmp"),
		}, c.options.Env...),
	}
	return nil
}

// pluginItem is an entry of trafficRouterPlugins in argo-rollouts-config.
type pluginItem struct {
	Name     string   `json:"name"`
	Location string   `json:"location"`
	Args     []string `json:"args,omitempty"`
}

// configure writes the ConfigMap that registers the plugin.
func (c *Controller) configure(ctx context.Context) error {
	if c.options.PluginPath == "" {
		return nil
	}
	path, err := filepath.Abs(c.options.PluginPath)
	if err != nil {
		return err
	}
	item := pluginItem{Name: c.options.PluginName, Location: "file://" + path, Args: c.options.PluginArgs}
	if c.options.PluginThrough != nil {
		kubeconfig, err := c.lab.Kubeconfig(ServiceAccount(c.Namespace, serviceAccountName), c.options.PluginThrough)
		if err != nil {
			return err
		}
		item.Args = append(item.Args, "--kubeconfig="+kubeconfig)
	}
	plugins, err := yaml.Marshal([]pluginItem{item})
	if err != nil {
		return err
	}
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "argo-rollouts-config"},
		"data":     map[string]any{"trafficRouterPlugins": string(plugins)},
	})
	if err != nil {
		return err
	}
	_, err = c.lab.Apply(ctx, c.Namespace, manifest)
	return err
}

// Labels are what a Rollout needs for this controller to see it; nil when the
// controller has no instance id.
func (c *Controller) Labels() map[string]string {
	if c.options.InstanceID == "" {
		return nil
	}
	return map[string]string{instanceLabel: c.options.InstanceID}
}

// Start starts the controller after a Stop and waits until it works.
func (c *Controller) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc != nil && !c.proc.ended() {
		return fmt.Errorf("controller %s already runs", c.Namespace)
	}
	// The log may have the line from an earlier run.
	before, _ := os.ReadFile(filepath.Join(c.lab.processes.logs, c.program.name+".log"))
	proc, err := c.lab.processes.start(c.program)
	if err != nil {
		return err
	}
	c.proc = proc
	err = proc.await(ctx, func(context.Context) (bool, error) {
		log, err := os.ReadFile(proc.log)
		return err == nil && bytes.Contains(log[len(before):], []byte(startedLine)), err
	})
	if err != nil {
		proc.stop(0)
		return fmt.Errorf("controller %s: %w\n%s", c.Namespace, err, proc.tail(20))
	}
	return nil
}

// Stop ends the controller and its plugin, in good order if they do so within
// ten seconds.
func (c *Controller) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc != nil {
		c.proc.stop(controllerPatience)
	}
}

// Restart stops the controller and starts it again. The log goes on in the same file.
func (c *Controller) Restart(ctx context.Context) error {
	c.Stop()
	return c.Start(ctx)
}

// PluginPID is the process id of the controller's plugin. The controller
// starts it with the first Rollout that needs it; until then there is an error.
func (c *Controller) PluginPID() (int, error) {
	c.mu.Lock()
	proc := c.proc
	c.mu.Unlock()
	if proc == nil || proc.ended() {
		return 0, fmt.Errorf("controller %s does not run", c.Namespace)
	}
	pids, err := children(proc.pid())
	if err != nil {
		return 0, err
	}
	if len(pids) == 0 {
		return 0, fmt.Errorf("controller %s has not started the plugin", c.Namespace)
	}
	return pids[0], nil
}

// KillPlugin sends a signal, as a rule SIGKILL, to the plugin's process and
// returns its process id.
func (c *Controller) KillPlugin(signal syscall.Signal) (int, error) {
	pid, err := c.PluginPID()
	if err != nil {
		return 0, err
	}
	return pid, syscall.Kill(pid, signal)
}

// Log is the path of the controller's log, which holds the plugin's lines, too.
func (c *Controller) Log() string {
	return filepath.Join(c.lab.processes.logs, c.program.name+".log")
}

// faultTexts are what no log may have: the race detector's report, and a panic,
// recovered or not.
var faultTexts = []string{"DATA RACE", "recovered from a panic", "panic: "}

// Faults are the lines of the whole log that no log may have. The plugin is one
// process for all Rollouts of a controller, and each may have brought them about.
func (c *Controller) Faults() ([]string, error) {
	content, err := os.ReadFile(c.Log())
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(content)) {
		if slices.ContainsFunc(faultTexts, func(text string) bool { return strings.Contains(line, text) }) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found, nil
}

// Tail returns the last n lines of the controller's log that contain any of
// the texts, or the last n of all when none is given.
func (c *Controller) Tail(n int, texts ...string) string {
	content, err := os.ReadFile(c.Log())
	if err != nil {
		return err.Error()
	}
	if len(texts) == 0 {
		return lastLines(content, n)
	}
	var kept []string
	for line := range strings.Lines(string(content)) {
		for _, text := range texts {
			if strings.Contains(line, text) {
				kept = append(kept, line)
				break
			}
		}
	}
	return strings.Join(kept[max(0, len(kept)-n):], "")
}
