package lab

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodsOfAReplicaSetBecomeAvailableFailAndRecover(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	namespace := scenario(t, ctx)
	createReplicaSet(ctx, t, namespace, "web", 3, nil)
	awaitAvailable(ctx, t, namespace, "web", 3)

	for _, step := range []struct {
		unready bool
		want    int32
	}{{true, 0}, {false, 3}, {true, 0}, {false, 3}} {
		n, err := shared.SetUnready(ctx, namespace, "app=web", step.unready)
		if err != nil || n != 3 {
			t.Fatalf("SetUnready(%t) = %d, %v, want 3 pods", step.unready, n, err)
		}
		awaitAvailable(ctx, t, namespace, "web", step.want)
	}
}

func TestAnnotationsOfATemplateSayWhenPodsAreReady(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	namespace := scenario(t, ctx)
	createReplicaSet(ctx, t, namespace, "late", 2, map[string]string{ReadyAfter: "4s"})
	createReplicaSet(ctx, t, namespace, "never", 2, map[string]string{NeverReady: "true"})
	createReplicaSet(ctx, t, namespace, "prompt", 2, nil)
	began := time.Now()

	awaitAvailable(ctx, t, namespace, "prompt", 2)
	if n, err := available(ctx, namespace, "late"); err != nil || n != 0 {
		t.Errorf("pods that are ready after 4s: %d available after %s, %v", n, time.Since(began), err)
	}
	awaitAvailable(ctx, t, namespace, "late", 2)
	if took := time.Since(began); took < 3500*time.Millisecond {
		t.Errorf("pods that are ready after 4s were available after %s", took)
	}
	if n, err := available(ctx, namespace, "never"); err != nil || n != 0 {
		t.Errorf("pods that are never ready: %d available, %v", n, err)
	}
}

func TestAPodHeldBackBeforeItIsReadyIsNeverReadyForAMoment(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	namespace := scenario(t, ctx)
	watch, err := shared.Client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	createReplicaSet(ctx, t, namespace, "web", 1, map[string]string{ReadyAfter: "2s"})
	// Held back once it runs: it is on its way to ready then.
	err = Until(ctx, "a running pod", func(ctx context.Context) (bool, error) {
		pods, err := shared.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := shared.SetUnready(ctx, namespace, "app=web", true); err != nil || n != 1 {
		t.Fatalf("SetUnready = %d, %v, want 1 pod", n, err)
	}

	looked := time.After(4 * time.Second)
	for {
		select {
		case event := <-watch.ResultChan():
			if pod, ok := event.Object.(*corev1.Pod); ok && ready(pod) {
				t.Fatalf("pod %s was ready at resourceVersion %s", pod.Name, pod.ResourceVersion)
			}
		case <-looked:
			return
		}
	}
}

func TestAPodWithoutANodeIsBoundAndADeletedOneGoesAtOnce(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	namespace := scenario(t, ctx)
	pods := shared.Client.CoreV1().Pods(namespace)
	_, err := shared.Apply(ctx, namespace, []byte(`
apiVersion: v1
kind: Pod
metadata: {name: alone}
spec: {containers: [{name: app, image: "app:1"}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	err = Until(ctx, "the pod to be ready", func(ctx context.Context) (bool, error) {
		pod, err := pods.Get(ctx, "alone", metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName == NodeName && ready(pod), err
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := pods.Delete(ctx, "alone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = Until(ctx, "the pod to be gone", func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, "alone", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if took := time.Since(began); err != nil || took > 10*time.Second {
		t.Errorf("deleted pod went after %s: %v", took, err)
	}
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func TestAPodWithAGraceIsThereForAWhileAfterItsDeletion(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	namespace := scenario(t, ctx)
	createReplicaSet(ctx, t, namespace, "graceful", 1, map[string]string{Grace: "3s"})
	awaitAvailable(ctx, t, namespace, "graceful", 1)
	pods := shared.Client.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first := list.Items[0].Name
	if err := pods.Delete(ctx, first, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ending, err := pods.Get(ctx, first, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("the pod is gone at once: %v", err)
	}
	if ending.DeletionTimestamp == nil || !ready(ending) {
		t.Errorf("deleted at %v, ready: %t; want a pod that is ending and still serves", ending.DeletionTimestamp, ready(ending))
	}
	err = Until(ctx, "the end of the pod", func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, first, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2500*time.Millisecond {
		t.Errorf("it was there for %s, want 3s", took)
	}
}
