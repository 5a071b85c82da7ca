package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

var (
	rolloutResource         = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	virtualServiceResource  = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
	destinationRuleResource = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "destinationrules"}
)

const (
	// memberReplicas is the size of each Rollout of many.
	memberReplicas = 2
	// variables is how many variables a member's container has: a pod template of
	// ordinary size, which the plugin is sent with each Rollout and each ReplicaSet.
	variables = 30
)

// member is one Rollout of many. Its name is that of all that belongs to it: a
// Service, a VirtualService and a DestinationRule with two subsets.
type member struct {
	name   string
	router scenarios.Router
	steps  []v1alpha1.CanaryStep
	// controller are the labels with which the controller sees it.
	controller map[string]string
}

// manifests are its objects as YAML, the Rollout last: it finds the others.
func (m member) manifests() ([]byte, error) {
	var out bytes.Buffer
	for _, object := range []any{m.service(), m.virtualService(), m.destinationRule(), m.rollout()} {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.Bytes(), nil
}

func (m member) rollout() *v1alpha1.Rollout {
	replicas, delay := int32(memberReplicas), int32(1)
	return &v1alpha1.Rollout{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Rollout"},
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: m.controller},
		Spec: v1alpha1.RolloutSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": m.name}},
			Template: m.template(),
			Strategy: v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{
				Steps: m.steps, TrafficRouting: m.routing(), ScaleDownDelaySeconds: &delay,
			}},
		},
	}
}

func (m member) template() corev1.PodTemplateSpec {
	container := corev1.Container{Name: "shop", Image: image(1), Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}
	for i := range variables {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: "a value of ordinary length"})
	}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": m.name, "team": "shop"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container}},
	}
	lab.OnNode(&template)
	return template
}

// image is that of a version; another image is another revision.
func image(version int) string { return fmt.Sprintf("shop:%d", version) }

func (m member) routing() *v1alpha1.RolloutTrafficRouting {
	if m.router == scenarios.Native {
		return &v1alpha1.RolloutTrafficRouting{Istio: &v1alpha1.IstioTrafficRouting{
			VirtualService:  &v1alpha1.IstioVirtualService{Name: m.name, Routes: []string{"primary"}},
			DestinationRule: &v1alpha1.IstioDestinationRule{Name: m.name, CanarySubsetName: "canary", StableSubsetName: "stable"},
		}}
	}
	config := fmt.Sprintf(`{"virtualService":{"name":%q,"routes":["primary"]},"destinationRule":{"name":%q,"canarySubsetName":"canary","stableSubsetName":"stable"}}`, m.name, m.name)
	return &v1alpha1.RolloutTrafficRouting{Plugins: map[string]json.RawMessage{lab.DefaultPluginName: json.RawMessage(config)}}
}

// virtualService has a second route, which no router may touch.
func (m member) virtualService() map[string]any {
	to := func(subset string) map[string]any { return map[string]any{"host": m.name, "subset": subset} }
	return m.istio("VirtualService", map[string]any{
		"hosts": []any{m.name},
		"http": []any{
			map[string]any{
				"name": "health", "match": []any{map[string]any{"uri": map[string]any{"prefix": "/health"}}},
				"route": []any{map[string]any{"destination": map[string]any{"host": m.name}}},
			},
			map[string]any{
				"name": "primary", "timeout": "5s", "retries": map[string]any{"attempts": 2},
				"route": []any{
					map[string]any{"destination": to("stable"), "weight": 100},
					map[string]any{"destination": to("canary"), "weight": 0},
				},
			},
		},
	})
}

func (m member) destinationRule() map[string]any {
	subset := func(name string) map[string]any {
		return map[string]any{"name": name, "labels": map[string]any{"app": m.name}}
	}
	return m.istio("DestinationRule", map[string]any{"host": m.name, "subsets": []any{subset("stable"), subset("canary")}})
}

func (m member) istio(kind string, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": "networking.istio.io/v1", "kind": kind, "metadata": map[string]any{"name": m.name}, "spec": spec}
}

// service has no address of its own: a range of addresses is soon used up.
func (m member) service() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: m.name},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": m.name},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
}
