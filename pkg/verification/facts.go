package verification

import (
	"strings"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

const hashLabel = v1alpha1.DefaultRolloutUniqueLabelKey

// Facts are what a plan is made of. The objects are only read.
type Facts struct {
	// Namespace is the one from which the mesh is looked at; see mesh.Client.Namespace.
	Namespace string
	// ClusterDomain is the DNS domain of full host names; empty is cluster.local.
	ClusterDomain string
	// VirtualServices are as they were read back.
	VirtualServices []*virtualservice.VirtualService
	// Pairs are the two sides of each host that the Rollout serves.
	Pairs []Pair
	// Max is maxTrafficWeight, at least 1.
	Max int32
	// Ports are those of a Service; nil if it does not exist.
	Ports func(namespace, name string) []cluster.ServicePort
}

// Pair are the two sides between which the weight of a route moves.
type Pair struct{ Canary, Stable Side }

// Side is one of them.
type Side struct {
	virtualservice.Side
	// Labels are what a pod has to carry to get this side's requests: those of the
	// subset and those that the Service selects by. Without the pod-template hash among
	// them it is not known which pods are meant, and only their number is judged.
	Labels map[string]string
}

// Counts is how many pods the guard counted on. Negative counts are read as 0.
type Counts struct{ Canary, Stable int32 }

// Endpoints are what is behind each Service by its EndpointSlices. A Service that is
// not in it has not been asked for.
type Endpoints map[types.NamespacedName][]cluster.Endpoint

// role is which of the two sides of a pair something belongs to.
type role int

const (
	canary role = iota
	stable
)

// String is how a role is called in messages.
func (r role) String() string {
	if r == canary {
		return "canary"
	}
	return "stable"
}

func (c Counts) of(r role) int {
	if r == canary {
		return max(0, int(c.Canary))
	}
	return max(0, int(c.Stable))
}

// of is that side of the pair.
func (p Pair) of(r role) Side {
	if r == canary {
		return p.Canary
	}
	return p.Stable
}

// hash is the pod-template hash that a side names, "" if it names none.
func (s Side) hash() string { return s.Labels[hashLabel] }

// has tells whether a pod carries all that the side asks for.
func (s Side) has(labels map[string]string) bool {
	for key, value := range s.Labels {
		if have, there := labels[key]; !there || have != value {
			return false
		}
	}
	return true
}

// domain is the DNS domain of the cluster.
func (f Facts) domain() string {
	if f.ClusterDomain == "" {
		return hostname.DefaultClusterDomain
	}
	return strings.Trim(strings.ToLower(f.ClusterDomain), ".")
}

// service is the Service of a full host name; false for any other host.
func (f Facts) service(host string) (types.NamespacedName, bool) {
	name, isService := strings.CutSuffix(host, ".svc."+f.domain())
	service, namespace, both := strings.Cut(name, ".")
	if !isService || !both || service == "" || namespace == "" || strings.Contains(namespace, ".") {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: namespace, Name: service}, true
}

// ports are those of the Service of a host; nil if it has none, or is no Service.
func (f Facts) ports(host string) []cluster.ServicePort {
	service, ok := f.service(host)
	if !ok || f.Ports == nil {
		return nil
	}
	return f.Ports(service.Namespace, service.Name)
}

// same tells whether two hosts mean the same Service, wherever they are written.
func (f Facts) same(host, namespace, side string) bool {
	return hostname.Same(hostname.Canonical(host, namespace, f.ClusterDomain), side, f.ClusterDomain)
}
