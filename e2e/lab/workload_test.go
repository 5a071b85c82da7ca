package lab

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// createReplicaSet makes a ReplicaSet whose pods carry the label app=name and
// the annotations given.
func createReplicaSet(ctx context.Context, t *testing.T, namespace, name string, replicas int32, annotations map[string]string) {
	t.Helper()
	labels := map[string]string{"app": name}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
			},
		},
	}
	OnNode(&set.Spec.Template)
	if _, err := shared.Client.AppsV1().ReplicaSets(namespace).Create(ctx, set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func available(ctx context.Context, namespace, name string) (int32, error) {
	set, err := shared.Client.AppsV1().ReplicaSets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	return set.Status.AvailableReplicas, nil
}

// awaitAvailable waits until the ReplicaSet has exactly n available pods.
func awaitAvailable(ctx context.Context, t *testing.T, namespace, name string, n int32) {
	t.Helper()
	var last int32
	err := Until(ctx, "available pods", func(ctx context.Context) (bool, error) {
		now, err := available(ctx, namespace, name)
		last = now
		return now == n, err
	})
	if err != nil {
		t.Fatalf("ReplicaSet %s/%s has %d available pods, want %d: %v", namespace, name, last, n, err)
	}
}
