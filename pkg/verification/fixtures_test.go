package verification_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/verification"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

const (
	hashLabel = "rollouts-pod-template-hash"
	// web is the host of both sides, with a subset each.
	web         = "web.shop.svc.cluster.local"
	canaryName  = "outbound|80|canary|" + web
	stableName  = "outbound|80|stable|" + web
	oldRevision = "5f8d"
	newRevision = "7c9b"
)

var (
	webHost    = mesh.Host{Name: web, Port: 80}
	webService = types.NamespacedName{Namespace: "shop", Name: "web"}
)

// fromYAML is a VirtualService shop/web with this spec.
func fromYAML(t testing.TB, spec string) *virtualservice.VirtualService {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	return parse(content)
}

func parse(spec map[string]any) *virtualservice.VirtualService {
	return virtualservice.Parse(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
		"metadata": map[string]any{"namespace": "shop", "name": "web"},
		"spec":     spec,
	}}, "manager")
}

func side(host, subset, hash string) verification.Side {
	return verification.Side{
		Side:   virtualservice.Side{Host: host, Subset: subset},
		Labels: map[string]string{"app": "web", hashLabel: hash},
	}
}

// facts are those of a split by subsets; the Services have these ports.
func facts(ports map[string][]cluster.ServicePort, services ...*virtualservice.VirtualService) verification.Facts {
	return verification.Facts{
		Namespace: "shop", VirtualServices: services, Max: 100,
		Pairs: []verification.Pair{{Canary: side(web, "canary", newRevision), Stable: side(web, "stable", oldRevision)}},
		Ports: func(namespace, name string) []cluster.ServicePort { return ports[namespace+"/"+name] },
	}
}

// http is one Service web with the port 80.
func http() map[string][]cluster.ServicePort {
	return map[string][]cluster.ServicePort{"shop/web": {{Port: 80, Name: "http"}}}
}

// split is the usual VirtualService.
const split = `
hosts: [web]
http:
- name: primary
  route:
  - {destination: {host: web, subset: stable}, weight: 75}
  - {destination: {host: web, subset: canary}, weight: 25}
`

// route is one that istiod made of the VirtualService.
func route(name string, clusters ...mesh.Weighted) mesh.Route {
	return mesh.Route{Name: name, VirtualService: webService, Clusters: clusters}
}

func weights(stable, canary uint32) []mesh.Weighted {
	return []mesh.Weighted{{Cluster: stableName, Weight: stable}, {Cluster: canaryName, Weight: canary}}
}

// pods are ready endpoints with these addresses.
func pods(hash string, addresses ...string) []cluster.Endpoint {
	var out []cluster.Endpoint
	for _, address := range addresses {
		out = append(out, cluster.Endpoint{
			Address: address, Ready: true, Serving: true, Pod: "web-" + hash + "-" + address,
			Labels: map[string]string{"app": "web", hashLabel: hash, "more": "labels"},
		})
	}
	return out
}

// listed is a cluster that exists, with healthy endpoints.
func listed(addresses ...string) mesh.Cluster {
	c := mesh.Cluster{Asked: true, Exists: true, Listed: true}
	for _, address := range addresses {
		c.Endpoints = append(c.Endpoints, mesh.Endpoint{Address: address, Port: 8080, Healthy: true})
	}
	return c
}

// whole is what is served for split when everything has arrived, and what is behind
// the Service.
func whole() (mesh.Served, verification.Endpoints) {
	return mesh.Served{
			Routes:   map[mesh.Host][]mesh.Route{webHost: {route("primary", weights(75, 25)...)}},
			Clusters: map[string]mesh.Cluster{stableName: listed("10.0.0.1", "10.0.0.2", "10.0.0.3"), canaryName: listed("10.0.1.1")},
		}, verification.Endpoints{
			webService: append(pods(oldRevision, "10.0.0.1", "10.0.0.2", "10.0.0.3"), pods(newRevision, "10.0.1.1")...),
		}
}

// counted are the pods of whole.
var counted = verification.Counts{Canary: 1, Stable: 3}
