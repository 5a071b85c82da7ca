package lab

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations of a pod, or of a pod template, that say when it is ready. They
// are read by stages.yaml, so the texts have to be the same there.
const (
	// ReadyAfter is the time from running to ready for the first time, as a Go
	// duration such as "5s". Without it a pod is ready after half a second.
	ReadyAfter = "lab/ready-after"
	// NeverReady set to "true" keeps a pod from being ready, like an image that
	// does not start.
	NeverReady = "lab/never-ready"
	// Unready set to "true" makes a ready pod unready; taking the annotation
	// away makes it ready again at once. See [Lab.SetUnready].
	Unready = "lab/unready"
	// Grace is how long a pod that is being deleted is still there, as a Go
	// duration: terminating, out of the ready endpoints, and serving what still
	// comes, as a pod with a preStop hook does. Without it a pod is gone at once.
	Grace = "lab/grace"
	// Gated set to "true" keeps a pod from being ready until a [Gate] of its
	// namespace lets it through.
	Gated = "lab/gate"
)

// gateOpen is the value of Gated once the gate has let a pod through.
const gateOpen = "open"

// NodeName is the one node of the lab.
const NodeName = "lab-node"

// patchesAtOnce bounds the writes of SetUnready in flight.
const patchesAtOnce = 8

// OnNode puts a pod template on the lab's node, which saves the lab the write
// that binds each pod. Templates without it work too.
func OnNode(template *corev1.PodTemplateSpec) { template.Spec.NodeName = NodeName }

// SetUnready makes the pods that match a label selector fail their readiness
// probe, or with unready false pass it again, and returns how many there were.
// It waits for the annotations to be stored, not for the pods' status: that
// follows within a fraction of a second. Pods created later are not affected.
func (l *Lab) SetUnready(ctx context.Context, namespace, selector string, unready bool) (int, error) {
	pods, err := l.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return 0, fmt.Errorf("pods %s in %s: %w", selector, namespace, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(patchesAtOnce)
	for _, pod := range pods.Items {
		group.Go(func() error { return l.SetPodUnready(ctx, pod.Namespace, pod.Name, unready) })
	}
	return len(pods.Items), group.Wait()
}

// SetPodUnready is SetUnready for one pod. A pod that is gone is no error.
func (l *Lab) SetPodUnready(ctx context.Context, namespace, name string, unready bool) error {
	var value any // null removes the annotation
	if unready {
		value = "true"
	}
	return l.annotate(ctx, namespace, name, map[string]any{Unready: value})
}

// annotate sets annotations of a pod; one that is gone needs none.
func (l *Lab) annotate(ctx context.Context, namespace, name string, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = l.Client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotate Pod %s/%s: %w", namespace, name, err)
	}
	return nil
}
