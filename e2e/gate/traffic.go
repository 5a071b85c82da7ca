package gate

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

const (
	// tick is how often requests are counted, as many as would have been sent since.
	tick = 100 * time.Millisecond
	// service is the host that the workloads of package scenarios serve.
	service = "cart"
)

// Behaviour is how a version serves.
type Behaviour struct {
	// Failing is the part of its requests that fails, 0 to 1.
	Failing float64
	// Latency is that of each request, in milliseconds.
	Latency float64
}

// Traffic is what the clients of one scene send.
type Traffic struct {
	fleet *Fleet
	lab   *lab.Lab
	scene *scenarios.Scene

	mu   sync.Mutex
	rate float64 // requests per second
	// behaves is by the image's version; a version that is not named is well.
	behaves map[string]Behaviour
	// debt are the parts of a request that are not counted yet, by series.
	debt   map[string]float64
	failed error
}

// Send begins to send to a scene, until ctx ends.
func Send(ctx context.Context, f *Fleet, l *lab.Lab, s *scenarios.Scene, rate float64) *Traffic {
	t := &Traffic{fleet: f, lab: l, scene: s, rate: rate, behaves: map[string]Behaviour{}, debt: map[string]float64{}}
	go t.run(ctx)
	return t
}

// Rate changes how many requests are sent in a second.
func (t *Traffic) Rate(rate float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rate = rate
}

// Behave says how a version serves from now on.
func (t *Traffic) Behave(version int, b Behaviour) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.behaves[fmt.Sprintf("%s:%d", service, version)] = b
}

// Restart has all proxies of the scene count from 0.
func (t *Traffic) Restart() {
	t.fleet.mu.Lock()
	defer t.fleet.mu.Unlock()
	for path, p := range t.fleet.proxies {
		if len(path) > len(t.prefix()) && path[:len(t.prefix())] == t.prefix() {
			p.reset()
		}
	}
}

// Err is why nothing is sent any more, nil while it is.
func (t *Traffic) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

func (t *Traffic) prefix() string { return "/" + t.scene.Namespace + "/" }

func (t *Traffic) run(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	defer func() { _ = t.fleet.Keep(t.prefix(), nil) }()
	var pods []corev1.Pod
	for last, ticks := time.Now(), 0; ; ticks++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if ticks%5 == 0 {
			list, err := t.lab.Client.CoreV1().Pods(t.scene.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue // the next tick tries again
			}
			pods = list.Items
		}
		now := time.Now()
		if err := t.send(pods, now.Sub(last)); err != nil {
			t.mu.Lock()
			t.failed = err
			t.mu.Unlock()
			return
		}
		last = now
	}
}

// send counts what was sent in a while.
func (t *Traffic) send(pods []corev1.Pod, while time.Duration) error {
	state := t.scene.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	alive := map[string]bool{t.prefix() + "client": true}
	byHash := map[string][]corev1.Pod{}
	for _, pod := range pods {
		alive[t.prefix()+pod.Name] = true
		if ready(pod) {
			hash := pod.Labels[v1alpha1.DefaultRolloutUniqueLabelKey]
			byHash[hash] = append(byHash[hash], pod)
		}
	}
	for _, pod := range pods {
		if _, err := t.proxy(pod); err != nil {
			return err
		}
	}
	all := t.rate * while.Seconds()
	canary := all * float64(state.CanaryWeight) / float64(max(state.Max, 1))
	if err := t.serve(byHash[state.CanaryHash], "canary", canary); err != nil {
		return err
	}
	if err := t.serve(byHash[state.StableHash], "stable", all-canary); err != nil {
		return err
	}
	return t.fleet.Keep(t.prefix(), alive)
}

// serve spreads requests over the pods of a side.
func (t *Traffic) serve(pods []corev1.Pod, side string, requests float64) error {
	client, err := t.fleet.Proxy(t.prefix()+"client", map[string]string{"namespace": t.scene.Namespace, "pod": "client"})
	if err != nil {
		return err
	}
	for _, pod := range pods {
		p, err := t.proxy(pod)
		if err != nil {
			return err
		}
		b := t.behaves[pod.Spec.Containers[0].Image]
		share := requests / float64(len(pods))
		for code, part := range map[string]float64{"200": share * (1 - b.Failing), "503": share * b.Failing} {
			whole := t.whole(pod.Name+side+code, part)
			if whole == 0 {
				continue
			}
			namespace := t.scene.Namespace
			p.add(labels{"destination", namespace, host(service, namespace), code}, whole, b.Latency)
			client.add(labels{"source", namespace, host(service+"-"+side, namespace), code}, whole, b.Latency)
		}
	}
	return nil
}

// whole keeps parts of a request until they are one.
func (t *Traffic) whole(series string, part float64) float64 {
	t.debt[series] += part
	whole := float64(int(t.debt[series]))
	t.debt[series] -= whole
	return whole
}

// proxy is that of a pod, scraped with the labels that the discovery of pods gives it.
func (t *Traffic) proxy(pod corev1.Pod) (*proxy, error) {
	return t.fleet.Proxy(t.prefix()+pod.Name, map[string]string{
		"namespace": pod.Namespace, "pod": pod.Name, "app": service,
		"rollouts_pod_template_hash": pod.Labels[v1alpha1.DefaultRolloutUniqueLabelKey],
	})
}

func host(service, namespace string) string { return service + "." + namespace + ".svc.cluster.local" }

func ready(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}
