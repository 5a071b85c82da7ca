package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

const (
	pluginName = "argoproj-labs/istio"

	canaryHash = "6d4c7b9f58"
	stableHash = "5f8d7c9b44"

	// replicas is the size of each Rollout, and half of it that of each of its
	// two ReplicaSets.
	replicas = 20
	// startWeight is what half of the replicas may get.
	startWeight = 50

	// rolloutSize is the size of a large Rollout as JSON, in bytes.
	rolloutSize = 40 << 10
	// creators is how many objects are created at once.
	creators = 16
)

var (
	virtualServices  = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
	destinationRules = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "destinationrules"}
)

// runs tells apart the objects of several runs (-count).
var runs atomic.Int32

// rollout is a canary at a step with startWeight. It need not be in the cluster:
// the plugin knows it by what it is sent.
func rollout(name string) *v1alpha1.Rollout {
	size, weight, step := int32(replicas), int32(startWeight), int32(0)
	config := fmt.Sprintf(`{"virtualService":{"name":%q},"destinationRule":{"name":%q,"canarySubsetName":"canary","stableSubsetName":"stable"}}`, name, name)
	return &v1alpha1.Rollout{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Rollout"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Generation: 2},
		Spec: v1alpha1.RolloutSpec{
			Replicas: &size,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}},
			Strategy: v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{
				Steps: []v1alpha1.CanaryStep{{SetWeight: &weight}, {Pause: &v1alpha1.RolloutPause{}}},
				TrafficRouting: &v1alpha1.RolloutTrafficRouting{
					Plugins: map[string]json.RawMessage{pluginName: json.RawMessage(config)},
				},
			}},
		},
		Status: v1alpha1.RolloutStatus{CurrentPodHash: canaryHash, StableRS: stableHash, CurrentStepIndex: &step},
	}
}

// large makes a Rollout as large as the largest that people have: many containers
// with many variables, and kubectl's annotation with all of it once more.
func large(b *testing.B, ro *v1alpha1.Rollout) *v1alpha1.Rollout {
	b.Helper()
	pod := &ro.Spec.Template.Spec
	for i := 0; sizeOf(b, ro) < rolloutSize/2; i++ {
		if i%40 == 0 {
			pod.Containers = append(pod.Containers, corev1.Container{
				Name: fmt.Sprintf("part-%d", i/40), Image: "registry.example.com/shop/part:v1",
				Ports:   []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				Command: []string{"/bin/part", "--listen=:8080", "--log-level=info"},
			})
		}
		last := &pod.Containers[len(pod.Containers)-1]
		last.Env = append(last.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: "a value of ordinary length"})
	}
	applied := strings.Repeat("x", rolloutSize-sizeOf(b, ro)-len(`"annotations":{"":""},`)-len(corev1.LastAppliedConfigAnnotation))
	ro.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: applied}
	if size := sizeOf(b, ro); size != rolloutSize {
		b.Fatalf("the Rollout has %d bytes, want %d", size, rolloutSize)
	}
	return ro
}

func sizeOf(b *testing.B, ro *v1alpha1.Rollout) int {
	b.Helper()
	text, err := json.Marshal(ro)
	if err != nil {
		b.Fatal(err)
	}
	return len(text)
}

// create puts all that belongs to the Rollouts into the cluster, as it is once
// the controller has settled at startWeight, and returns their canaries.
func (s *server) create(ctx context.Context, rollouts ...*v1alpha1.Rollout) ([]*appsv1.ReplicaSet, error) {
	canaries := make([]*appsv1.ReplicaSet, len(rollouts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i, ro := range rollouts {
		group.Go(func() (err error) {
			canaries[i], err = s.createFor(ctx, ro)
			return err
		})
	}
	return canaries, group.Wait()
}

func (s *server) createFor(ctx context.Context, ro *v1alpha1.Rollout) (canary *appsv1.ReplicaSet, err error) {
	for resource, object := range map[schema.GroupVersionResource]*unstructured.Unstructured{
		virtualServices:  virtualService(ro.Name),
		destinationRules: destinationRule(ro.Name),
	} {
		if _, err := s.dynamic.Resource(resource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	for _, hash := range []string{stableHash, canaryHash} {
		canary, err = s.typed.AppsV1().ReplicaSets(namespace).Create(ctx, replicaSet(ro, hash), metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		if canary, err = s.setAvailable(ctx, canary, replicas/2); err != nil {
			return nil, err
		}
	}
	return canary, nil
}

func replicaSet(ro *v1alpha1.Rollout, hash string) *appsv1.ReplicaSet {
	size := int32(replicas / 2)
	labels := map[string]string{"app": ro.Name, v1alpha1.DefaultRolloutUniqueLabelKey: hash}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: ro.Name + "-" + hash, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ro, v1alpha1.SchemeGroupVersion.WithKind("Rollout"))},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &size, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "part", Image: "part"}}},
			},
		},
	}
}

// setAvailable writes how many pods of a ReplicaSet are available.
func (s *server) setAvailable(ctx context.Context, rs *appsv1.ReplicaSet, n int32) (*appsv1.ReplicaSet, error) {
	rs = rs.DeepCopy()
	rs.Status = appsv1.ReplicaSetStatus{Replicas: *rs.Spec.Replicas, ReadyReplicas: n, AvailableReplicas: n}
	return s.typed.AppsV1().ReplicaSets(namespace).UpdateStatus(ctx, rs, metav1.UpdateOptions{})
}

func virtualService(name string) *unstructured.Unstructured {
	side := func(subset string, weight int64) any {
		return map[string]any{"destination": map[string]any{"host": name, "subset": subset}, "weight": weight}
	}
	return object("VirtualService", name, map[string]any{
		"hosts": []any{name},
		"http": []any{map[string]any{
			"name": "primary", "timeout": "5s",
			"route": []any{side("stable", 100-startWeight), side("canary", startWeight)},
		}},
	})
}

func destinationRule(name string) *unstructured.Unstructured {
	side := func(subset, hash string) any {
		return map[string]any{"name": subset, "labels": map[string]any{"app": name, v1alpha1.DefaultRolloutUniqueLabelKey: hash}}
	}
	return object("DestinationRule", name, map[string]any{
		"host":    name,
		"subsets": []any{side("stable", stableHash), side("canary", canaryHash)},
	})
}

func object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": kind,
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec,
	}}
}
