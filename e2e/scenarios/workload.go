package scenarios

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// name is that of the Rollout and of everything that belongs to it.
const name = "cart"

// Level is where the traffic is split.
type Level string

// The two levels at which Istio splits traffic.
const (
	Host   Level = "host"   // two Services
	Subset Level = "subset" // two subsets of one Service
)

// Router is who splits it.
type Router string

// The two routers that are compared, and the second one with verify.level Mesh.
const (
	Native   Router = "native"
	Plugin   Router = "plugin"
	Verified Router = "verified"
)

// Workload is one Rollout with everything around it. Of the zero value only
// Level, Router and Replicas have to be set.
type Workload struct {
	Level    Level
	Router   Router
	Replicas int32
	// Steps of the canary.
	Steps []v1alpha1.CanaryStep
	// Guard is the plugin's guard block; nil leaves it out.
	Guard map[string]any
	// Max is the Rollout's maxTrafficWeight; 0 leaves it out, which means 100.
	Max int32
	// From is set when the Rollout takes a Deployment over: it is the scaleDown of
	// its workloadRef. Open then applies the Deployment, and [Scene.Migrate] the
	// Rollout.
	From string
	// IstioVersion of networking.istio.io that the objects are of, for a lab that
	// has only that; "" means v1.
	IstioVersion string
	// Mesh makes the objects fit for gRPC clients that really send requests; see
	// mesh.go for what differs.
	Mesh bool
	// Edit changes the Rollout before it is applied; nil leaves it as it is.
	Edit func(*v1alpha1.Rollout)

	namespace string // set by Open
}

// SetWeight and Pause are the two steps that nearly every canary is made of.
func SetWeight(weight int32) v1alpha1.CanaryStep {
	return v1alpha1.CanaryStep{SetWeight: &weight}
}

// Pause is a pause step of that many seconds.
func Pause(seconds int) v1alpha1.CanaryStep {
	d := intstr.FromInt(seconds)
	return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{Duration: &d}}
}

// manifests are the objects as YAML, for the controller with those labels.
func (w Workload) manifests(controller map[string]string) ([]byte, error) {
	first := any(w.rollout(controller))
	if w.From != "" {
		first = w.deployment()
	}
	services := []string{name}
	objects := []any{first, w.virtualService()}
	if w.Level == Subset {
		objects = append(objects, w.destinationRule())
	} else {
		services = append(services, name+"-stable", name+"-canary")
	}
	for _, serviceName := range services {
		objects = append(objects, w.meshService(service(serviceName)))
	}
	return documents(objects...)
}

// documents joins objects into one YAML text.
func documents(objects ...any) ([]byte, error) {
	var out bytes.Buffer
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.Bytes(), nil
}

func (w Workload) rollout(controller map[string]string) *v1alpha1.Rollout {
	replicas, revisions := w.Replicas, int32(3)
	ro := &v1alpha1.Rollout{
		TypeMeta:   metav1.TypeMeta{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: controller},
		Spec: v1alpha1.RolloutSpec{
			Replicas:       &replicas,
			RollbackWindow: &v1alpha1.RollbackWindowSpec{Revisions: revisions},
			Strategy:       v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{Steps: w.Steps}},
		},
	}
	if w.From != "" {
		ro.Spec.WorkloadRef = &v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: name, ScaleDown: w.From}
		// With these two neither field is marshalled: both are the Deployment's.
		ro.Spec.TemplateResolvedFromRef, ro.Spec.SelectorResolvedFromRef = true, true
	} else {
		ro.Spec.Selector, ro.Spec.Template = selector(), w.meshTemplate(podTemplate())
	}
	canary := ro.Spec.Strategy.Canary
	canary.TrafficRouting = w.routing()
	if w.Level == Host {
		canary.CanaryService, canary.StableService = name+"-canary", name+"-stable"
	}
	if w.Edit != nil {
		w.Edit(ro)
	}
	return ro
}

// selector is that of all pods of the workload, whoever owns them.
func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func podTemplate() corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector().MatchLabels, Annotations: map[string]string{lab.Gated: "true"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image(1)}}},
	}
	lab.OnNode(&template)
	return template
}

// deployment is what serves before a Rollout takes it over.
func (w Workload) deployment() *appsv1.Deployment {
	replicas := w.Replicas
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector(), Template: w.meshTemplate(podTemplate())},
	}
}

// image is that of a version of the workload; another image is another revision.
func image(version int) string { return fmt.Sprintf("%s:%d", name, version) }

// routing is what the Rollout says of its router.
func (w Workload) routing() *v1alpha1.RolloutTrafficRouting {
	routing := w.block()
	if w.Max != 0 {
		routing.MaxTrafficWeight = &w.Max
	}
	return routing
}

// block is the router's own.
func (w Workload) block() *v1alpha1.RolloutTrafficRouting {
	if w.Router == Native {
		istio := &v1alpha1.IstioTrafficRouting{VirtualService: &v1alpha1.IstioVirtualService{Name: name, Routes: []string{"primary"}}}
		if w.Level == Subset {
			istio.DestinationRule = &v1alpha1.IstioDestinationRule{Name: name, CanarySubsetName: "canary", StableSubsetName: "stable"}
		}
		return &v1alpha1.RolloutTrafficRouting{Istio: istio}
	}
	config := map[string]any{"virtualService": map[string]any{"name": name, "routes": []string{"primary"}}}
	if w.Level == Subset {
		config["destinationRule"] = map[string]any{"name": name, "canarySubsetName": "canary", "stableSubsetName": "stable"}
	}
	if w.Guard != nil {
		config["guard"] = w.Guard
	}
	if w.Router == Verified {
		config["verify"] = map[string]any{"level": "Mesh", "onUnavailable": "Hold"}
	}
	raw, err := json.Marshal(config)
	if err != nil {
		panic(err) // maps of texts and numbers always marshal
	}
	return &v1alpha1.RolloutTrafficRouting{Plugins: map[string]json.RawMessage{lab.DefaultPluginName: raw}}
}

// istio is the group and version of the routing's objects.
func (w Workload) istio() schema.GroupVersion {
	return schema.GroupVersion{Group: "networking.istio.io", Version: cmp.Or(w.IstioVersion, "v1")}
}

// virtualService has a second route and fields that no router may touch.
func (w Workload) virtualService() map[string]any {
	stable := map[string]any{"host": name, "subset": "stable"}
	canary := map[string]any{"host": name, "subset": "canary"}
	if w.Level == Host {
		stable, canary = map[string]any{"host": name + "-stable"}, map[string]any{"host": name + "-canary"}
	}
	return w.meshRoutes(map[string]any{
		"apiVersion": w.istio().String(), "kind": "VirtualService",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"hosts": []any{name},
			"http": []any{
				map[string]any{
					"name": "health", "match": []any{map[string]any{"uri": map[string]any{"prefix": "/health"}}},
					"route": []any{map[string]any{"destination": map[string]any{"host": name}}},
				},
				map[string]any{
					"name": "primary", "timeout": "5s", "retries": map[string]any{"attempts": 2},
					"route": []any{
						map[string]any{"destination": stable, "weight": cmp.Or(w.Max, 100)},
						map[string]any{"destination": canary, "weight": 0},
					},
				},
			},
		},
	})
}

func (w Workload) destinationRule() map[string]any {
	subset := func(name string) map[string]any {
		return map[string]any{
			"name": name, "labels": map[string]any{"app": "cart"},
			"trafficPolicy": map[string]any{"loadBalancer": map[string]any{"simple": "LEAST_REQUEST"}},
		}
	}
	return w.meshSubsets(map[string]any{
		"apiVersion": w.istio().String(), "kind": "DestinationRule",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"host": name, "subsets": []any{subset("stable"), subset("canary")}},
	})
}

func service(serviceName string) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: serviceName},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt(8080)}},
		},
	}
}

// subject says what of it is recorded.
func (w Workload) subject(namespace string) timeline.Subject {
	s := timeline.Subject{Namespace: namespace, Rollout: name, VirtualServices: []string{name}, MaxWeight: w.Max, IstioVersion: w.IstioVersion}
	if w.Level == Subset {
		s.DestinationRule, s.CanarySubset, s.StableSubset = name, "canary", "stable"
	} else {
		s.CanaryService, s.StableService = name+"-canary", name+"-stable"
	}
	return s
}
