package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// plugin is an entry of argo-rollouts-config.
type plugin struct {
	Name     string   `json:"name"`
	Location string   `json:"location"`
	Sha256   string   `json:"sha256,omitempty"`
	Args     []string `json:"args,omitempty"`
}

// volumes are what is writable in the pod; the zero value is the stock Deployment's.
type volumes struct {
	noPluginBin, noTmp bool
	// noExec mounts plugin-bin so that nothing in it can be started.
	noExec bool
}

// mounting is run as the controller's process before it becomes the controller. $1
// is the pod's folder. Nothing of it is seen outside, as the process has mounts of
// its own.
const mounting = `set -e
mount --make-rprivate /
mount -o remount,bind,ro /
for volume in $2; do mount -t tmpfs -o "${volume#*:}" tmpfs "$1/${volume%%:*}"; done
cd "$1/home"
shift 2
exec "$@"`

func (v volumes) list() string {
	var all []string
	if !v.noPluginBin {
		options := "mode=755"
		if v.noExec {
			options += ",noexec"
		}
		all = append(all, "home/plugin-bin:"+options)
	}
	if !v.noTmp {
		all = append(all, "tmp:mode=755")
	}
	return strings.Join(all, " ")
}

// pod is a place for a controller, with a namespace and a service account.
type pod struct {
	*testing.T
	ctx       context.Context
	namespace string
	// dir is the pod's folder; its home is the controller's working directory.
	dir string
	// args are further arguments of the controller.
	args []string
}

func newPod(t *testing.T) *pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	namespace, err := shared.Namespace(ctx, "release")
	if err != nil {
		t.Fatal(err)
	}
	// A short name: the plugin's socket lies in it.
	dir, err := os.MkdirTemp("", "pod-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(shared.DeleteNamespace(ctx, namespace), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return &pod{T: t, ctx: ctx, namespace: namespace, dir: dir}
}

// register writes the ConfigMap.
func (p *pod) register(plugins ...plugin) {
	p.Helper()
	list, err := yaml.Marshal(plugins)
	if err != nil {
		p.Fatal(err)
	}
	p.configure(string(list))
}

// configure writes a text as the list of plugins.
func (p *pod) configure(list string) {
	p.Helper()
	p.apply(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "argo-rollouts-config"},
		"data": map[string]any{"trafficRouterPlugins": list},
	})
}

func (p *pod) apply(object any) {
	p.Helper()
	manifest, err := yaml.Marshal(object)
	if err != nil {
		p.Fatal(err)
	}
	p.applyText(string(manifest))
}

func (p *pod) applyText(manifests string) {
	p.Helper()
	if _, err := shared.Apply(p.ctx, p.namespace, []byte(manifests)); err != nil {
		p.Fatal(err)
	}
}

// controller is a process of the controller, with what it started.
type controller struct {
	*pod
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// start starts the controller. It is the first process of a process namespace, so
// the plugin ends with it, and it ends with the test.
func (p *pod) start(v volumes) *controller {
	p.Helper()
	for folder, left := range map[string]bool{"home": false, "home/plugin-bin": v.noPluginBin, "tmp": v.noTmp} {
		if err := os.MkdirAll(filepath.Join(p.dir, folder), 0o755); err != nil && !left {
			p.Fatal(err)
		}
	}
	if v.noPluginBin {
		if err := os.Remove(filepath.Join(p.dir, "home/plugin-bin")); err != nil {
			p.Fatal(err)
		}
	}
	path, err := lab.Rollouts(lab.DefaultVersion).Path()
	if err != nil {
		p.Fatal(err)
	}
	kubeconfig, err := shared.Kubeconfig(lab.ServiceAccount(p.namespace, "argo-rollouts"), nil)
	if err != nil {
		p.Fatal(err)
	}
	c := &controller{pod: p, done: make(chan struct{})}
	c.cmd = exec.Command("/bin/sh", append([]string{"-c", mounting, "pod", p.dir, v.list(), path,
		"--leader-elect=false", "--instance-id=" + p.namespace, "--metricsPort=0", "--healthzPort=0"}, p.args...)...)
	c.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAMESPACE="+p.namespace, "TMPDIR="+filepath.Join(p.dir, "tmp"))
	c.cmd.Stdout, c.cmd.Stderr = c, c
	c.cmd.SysProcAttr = isolated()
	if err := c.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait() // how it ended is in ProcessState
		close(c.done)
	}()
	p.Cleanup(func() {
		c.stop()
		if p.Failed() {
			p.Logf("the controller's log:\n%s", c.text())
		}
	})
	return c
}

// isolated gives a process mounts and process ids of its own. Only root may have
// that without being root of a user namespace, too.
func isolated() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return attributes
}

// Write takes what the controller prints.
func (c *controller) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Write(text)
}

func (c *controller) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.String()
}

func (c *controller) stop() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.done
}

// exitCode waits for the controller's end.
func (c *controller) exitCode() int {
	c.Helper()
	select {
	case <-c.done:
	case <-c.ctx.Done():
		c.Fatal("the controller has not ended")
	}
	return c.cmd.ProcessState.ExitCode()
}

func (c *controller) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// startedLine is what a controller logs once its workers run.
const startedLine = "Started controller"

// says waits until a line of the log has all the fragments.
func (c *controller) says(fragments ...string) {
	c.Helper()
	err := lab.Until(c.ctx, fmt.Sprintf("a line with %q", fragments), func(context.Context) (bool, error) {
		for line := range strings.Lines(c.text()) {
			if missing := slices.DeleteFunc(slices.Clone(fragments), func(f string) bool { return pattern(f).MatchString(line) }); len(missing) == 0 {
				return true, nil
			}
		}
		if c.ended() {
			return false, fmt.Errorf("the controller ended: %s", c.cmd.ProcessState)
		}
		return false, nil
	})
	if err != nil {
		c.Fatal(err)
	}
}

// pattern finds a fragment of the documentation in a line of the log, where quotes
// are escaped; an ellipsis stands for any text.
func pattern(fragment string) *regexp.Regexp {
	parts := strings.Split(strings.ReplaceAll(fragment, `"`, `\"`), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(strings.Join(parts, ".*"))
}

func (c *controller) events(name string) []string {
	c.Helper()
	list, err := shared.Client.CoreV1().Events(c.namespace).List(c.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		c.Fatal(err)
	}
	var all []string
	for _, event := range list.Items {
		all = append(all, event.Type+" "+event.Reason+" "+event.Message)
	}
	return all
}
