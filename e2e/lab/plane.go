package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// PodCIDR has the addresses of all pods.
const PodCIDR = "10.244.0.0/16"

// nodeIP is the address of the one node.
const nodeIP = "10.99.0.1"

// silenceControllerRuntime keeps envtest's library from printing, after half a
// minute, that nobody gave it a logger.
var silenceControllerRuntime = sync.OnceFunc(func() { ctrllog.SetLogger(logr.Discard()) })

// startAPIServer runs etcd and kube-apiserver and installs the definitions of
// Argo Rollouts and Istio.
func (l *Lab) startAPIServer(ctx context.Context) error {
	crds, err := definitionsOf(ctx, l.options)
	if err != nil {
		return err
	}
	l.env = &envtest.Environment{CRDs: crds, ControlPlaneStartTimeout: startTimeout}
	l.env.CRDInstallOptions.MaxTime = startTimeout
	etcd, err := l.configureEtcd()
	if err != nil {
		return err
	}
	server, err := l.configureAPIServer()
	if err != nil {
		return err
	}
	started := make(chan error, 1)
	go func() {
		_, err := l.env.Start()
		// The programs have these files; envtest starts none any more.
		etcd.Close()
		server.Close()
		started <- err
	}()
	// envtest knows no context. After an interruption it fails by itself, as
	// Stop kills what it started and keeps it from starting more.
	select {
	case err := <-started:
		return err
	case <-ctx.Done():
		return fmt.Errorf("waiting for etcd and kube-apiserver: %w", ctx.Err())
	}
}

// configureEtcd returns etcd's log, to be closed when etcd has been started.
func (l *Lab) configureEtcd() (*os.File, error) {
	etcd := &envtest.Etcd{DataDir: filepath.Join(l.dir, "etcd")}
	path, out, err := l.wrapped(Etcd)
	if err != nil {
		return nil, err
	}
	etcd.Path, etcd.Out, etcd.Err = path, out, out
	// The data does not outlive the lab, so nothing is gained by waiting for the disk.
	etcd.Configure().Set("unsafe-no-fsync", "true").Set("log-level", "warn")
	l.env.ControlPlane.Etcd = etcd
	return out, nil
}

// configureAPIServer returns the server's log, as configureEtcd does.
func (l *Lab) configureAPIServer() (*os.File, error) {
	policy := filepath.Join(l.dir, "audit.yaml")
	if err := os.WriteFile(policy, auditPolicy, 0o644); err != nil {
		return nil, err
	}
	path, out, err := l.wrapped(APIServer)
	if err != nil {
		return nil, err
	}
	server := l.env.ControlPlane.GetAPIServer()
	server.CertDir = filepath.Join(l.dir, "apiserver")
	server.Path, server.Out, server.Err = path, out, out
	server.Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", l.auditLog).
		Set("audit-log-maxsize", "10000"). // in MB; the log must not be rotated away from Requests
		// Many scenarios share this server. What they measure must not depend on
		// how it shares itself out among them.
		Set("enable-priority-and-fairness", "false").
		Set("max-requests-inflight", "0").
		Set("max-mutating-requests-inflight", "0").
		Set("profiling", "false").
		// The address of the Service "kubernetes", which nobody uses. By default it
		// is that of the default route, and in a network namespace there is none.
		Set("advertise-address", nodeIP)
	return out, nil
}

// wrapped prepares a component for envtest, which starts it by a path alone:
// a script that the reaper knows of, and its log.
func (l *Lab) wrapped(c Component) (script string, out *os.File, err error) {
	binary, err := c.Path()
	if err != nil {
		return "", nil, err
	}
	proc := &process{name: c.binary, log: filepath.Join(l.processes.logs, c.binary+".log")}
	out, err = os.Create(proc.log)
	if err != nil {
		return "", nil, err
	}
	l.processes.remember(proc)
	script, err = l.processes.script(l.dir, c.binary, binary)
	return script, out, err
}

// apiAddress is the host and port of the API server.
func (l *Lab) apiAddress() string {
	serving := l.env.ControlPlane.APIServer.SecureServing
	return net.JoinHostPort(serving.Address, serving.Port)
}

// startControllerManager runs the few controllers that Rollouts depend on, and
// waits until ReplicaSets are reconciled. It starts after the definitions are
// installed: the garbage collector looks for new kinds only now and then.
func (l *Lab) startControllerManager(ctx context.Context) error {
	proc, err := l.run(ControllerManager, nil,
		"--kubeconfig="+l.AdminKubeconfig,
		"--controllers=deployment-controller,replicaset-controller,endpointslice-controller,garbage-collector-controller,namespace-controller",
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000", "--kube-api-burst=1000",
		"--concurrent-replicaset-syncs=10",
		// Pods that become ready one after the other have their Services synced faster than
		// what was written comes back. Each time that is an error, and doubles a pause from
		// 1 s on: endpoints were seen to be minutes late with nothing wrong.
		"--endpointslice-updates-batch-period=100ms",
	)
	if err != nil {
		return err
	}
	return l.awaitReplicaSets(ctx, proc)
}

// awaitReplicaSets creates a ReplicaSet without pods and waits until it is seen to.
func (l *Lab) awaitReplicaSets(ctx context.Context, manager *process) error {
	labels := map[string]string{"app": "lab-probe"}
	none := int32(0)
	sets := l.Client.AppsV1().ReplicaSets("default")
	probe, err := sets.Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "lab-probe-"},
		Spec: appsv1.ReplicaSetSpec{Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "none", Image: "none"}}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a ReplicaSet: %w", err)
	}
	err = manager.await(ctx, func(ctx context.Context) (bool, error) {
		seen, err := sets.Get(ctx, probe.Name, metav1.GetOptions{})
		return err == nil && seen.Status.ObservedGeneration > 0, err
	})
	if err != nil {
		return err
	}
	return sets.Delete(ctx, probe.Name, metav1.DeleteOptions{})
}

// startKwok creates the node, runs kwok with the lab's stages and waits until
// the node is ready.
func (l *Lab) startKwok(ctx context.Context) error {
	if err := os.WriteFile(filepath.Join(l.dir, "kwok", "stages.yaml"), stages, 0o644); err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: NodeName, Labels: map[string]string{corev1.LabelHostname: NodeName}}}
	if _, err := l.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create Node %s: %w", NodeName, err)
	}
	proc, err := l.runKwok()
	if err != nil {
		return err
	}
	return proc.await(ctx, l.nodeReady)
}

// runKwok runs kwok with what startKwok has written. Each run has addresses of its own: it
// gives some away before it has read those that there are.
func (l *Lab) runKwok() (*process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cidr, err := podCIDR(l.kwokRuns)
	if err != nil {
		return nil, err
	}
	l.kwokRuns++
	l.kwok, err = l.run(Kwok, []string{"KWOK_WORKDIR=" + filepath.Join(l.dir, "kwok")},
		"--kubeconfig="+l.AdminKubeconfig,
		"--config="+filepath.Join(l.dir, "kwok", "stages.yaml"),
		"--manage-all-nodes=true",
		"--cidr="+cidr, "--node-ip="+nodeIP,
		// One kwok has all nodes: no lease is needed to agree on that.
		"--node-lease-duration-seconds=0",
	)
	return l.kwok, err
}

// podCIDR is the part of PodCIDR of the nth run of kwok, from 0: the first has half of it,
// each further one, after an outage, 1 022 addresses. The last part is left to clients.
func podCIDR(run int) (string, error) {
	switch {
	case run == 0:
		return "10.244.0.0/17", nil
	case run > 28:
		return "", errors.New("kwok has been started 29 times, and there are no addresses left: start another lab")
	}
	return fmt.Sprintf("10.244.%d.0/22", 128+4*(run-1)), nil
}

func (l *Lab) nodeReady(ctx context.Context) (bool, error) {
	node, err := l.Client.CoreV1().Nodes().Get(ctx, NodeName, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue, nil
		}
	}
	return false, nil
}

// run starts a component under its own name.
func (l *Lab) run(c Component, env []string, args ...string) (*process, error) {
	path, err := c.Path()
	if err != nil {
		return nil, err
	}
	return l.processes.start(program{name: c.binary, path: path, args: args, dir: l.dir, env: env})
}
