package scenarios

import (
	"net"

	corev1 "k8s.io/api/core/v1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// grace is how long a pod of a mesh workload still serves after its deletion. It
// is what a preStop hook of a production workload is for: longer than the news
// of its end takes to every client, on a slow machine, too.
const grace = "5s"

// MeshHost is the name that clients call a mesh workload of a namespace by.
func MeshHost(namespace string) string { return name + "." + namespace + ".svc.cluster.local" }

// Target is MeshHost with the port, as gRPC's xDS resolver wants it.
func Target(namespace string) string { return "xds:///" + net.JoinHostPort(MeshHost(namespace), "80") }

// meshTemplate lets pods end gracefully.
func (w Workload) meshTemplate(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	if w.Mesh {
		template.Annotations[lab.Grace] = grace
	}
	return template
}

// meshService names the port after its protocol, which is how Istio learns of it.
func (w Workload) meshService(service *corev1.Service) *corev1.Service {
	if w.Mesh {
		service.Spec.Ports[0].Name = "grpc"
	}
	return service
}

// meshRoutes names the host in full, which gRPC clients match it by, and takes
// retries and timeout away: a retried request would hide a lost one.
func (w Workload) meshRoutes(virtualService map[string]any) map[string]any {
	if !w.Mesh {
		return virtualService
	}
	spec := virtualService["spec"].(map[string]any)
	spec["hosts"] = []any{MeshHost(w.namespace)}
	for _, route := range spec["http"].([]any) {
		delete(route.(map[string]any), "timeout")
		route.(map[string]any)["retries"] = map[string]any{"attempts": 0}
	}
	return virtualService
}

// meshSubsets leaves the choice of a pod to the clients' default, which is to
// take one after the other.
func (w Workload) meshSubsets(rule map[string]any) map[string]any {
	if !w.Mesh {
		return rule
	}
	for _, subset := range rule["spec"].(map[string]any)["subsets"].([]any) {
		delete(subset.(map[string]any), "trafficPolicy")
	}
	return rule
}
