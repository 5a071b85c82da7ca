package timeline

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// hashLabel is the pod-template hash that Argo Rollouts puts on ReplicaSets,
// their pods, subsets and selectors.
const hashLabel = "rollouts-pod-template-hash"

// The wire types hold the few fields that are judged. They are read only, so
// what they leave out is not lost: Entry.Object keeps all of it.

type wireVirtualService struct {
	Spec struct {
		HTTP []wireRoute `json:"http"`
		TLS  []wireRoute `json:"tls"`
		TCP  []wireRoute `json:"tcp"`
	} `json:"spec"`
}

type wireRoute struct {
	Name  string `json:"name"`
	Route []struct {
		Destination struct {
			Host   string `json:"host"`
			Subset string `json:"subset"`
		} `json:"destination"`
		Weight int32 `json:"weight"`
	} `json:"route"`
}

type wireDestinationRule struct {
	Spec struct {
		Host    string `json:"host"`
		Subsets []struct {
			Name   string            `json:"name"`
			Labels map[string]string `json:"labels"`
		} `json:"subsets"`
	} `json:"spec"`
}

type wireService struct {
	Spec struct {
		Selector map[string]string `json:"selector"`
	} `json:"spec"`
}

type wireReplicaSet struct {
	Spec struct {
		Replicas *int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ReadyReplicas     int32 `json:"readyReplicas"`
		AvailableReplicas int32 `json:"availableReplicas"`
	} `json:"status"`
}

type wireRollout struct {
	Spec struct {
		Replicas *int32 `json:"replicas"`
		Strategy struct {
			Canary struct {
				Steps []any `json:"steps"`
			} `json:"canary"`
		} `json:"strategy"`
	} `json:"spec"`
	Status struct {
		Phase              string `json:"phase"`
		Message            string `json:"message"`
		ObservedGeneration string `json:"observedGeneration"`
		CurrentStepIndex   *int32 `json:"currentStepIndex"`
		CurrentPodHash     string `json:"currentPodHash"`
		StableRS           string `json:"stableRS"`
		Abort              bool   `json:"abort"`
		Canary             struct {
			Weights struct {
				Canary struct {
					Weight int32 `json:"weight"`
				} `json:"canary"`
				Verified *bool `json:"verified"`
			} `json:"weights"`
		} `json:"canary"`
	} `json:"status"`
}

type wireEvent struct {
	InvolvedObject struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"involvedObject"`
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// decode reads the wire type of an object. Fields of an unexpected type are an
// error that names them.
func decode[W any](obj *unstructured.Unstructured) (wire W, err error) {
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &wire)
	return wire, err
}

// readVirtualService takes the routes of all protocols; an unnamed route gets
// its place as a name, so that a sentence about it can point at it.
func readVirtualService(obj *unstructured.Unstructured) (Fact, error) {
	wire, err := decode[wireVirtualService](obj)
	if err != nil {
		return nil, err
	}
	var vs VirtualService
	for _, protocol := range []struct {
		name   string
		routes []wireRoute
	}{{"http", wire.Spec.HTTP}, {"tls", wire.Spec.TLS}, {"tcp", wire.Spec.TCP}} {
		for i, r := range protocol.routes {
			vs.Routes = append(vs.Routes, r.route(fmt.Sprintf("%s[%d]", protocol.name, i)))
		}
	}
	return vs, nil
}

func (r wireRoute) route(fallback string) Route {
	out := Route{Name: orDefault(r.Name, fallback)}
	for _, d := range r.Route {
		out.Destinations = append(out.Destinations, Destination{
			Host: d.Destination.Host, Subset: d.Destination.Subset, Weight: d.Weight,
		})
	}
	return out
}

// readDestinationRule keeps subsets without the label too: their hash is empty,
// which means that they select pods by other labels.
func readDestinationRule(obj *unstructured.Unstructured) (Fact, error) {
	wire, err := decode[wireDestinationRule](obj)
	if err != nil {
		return nil, err
	}
	dr := DestinationRule{Host: wire.Spec.Host, Hashes: map[string]string{}}
	for _, s := range wire.Spec.Subsets {
		dr.Hashes[s.Name] = s.Labels[hashLabel]
	}
	return dr, nil
}

func readService(obj *unstructured.Unstructured) (Fact, error) {
	wire, err := decode[wireService](obj)
	return Service{Hash: wire.Spec.Selector[hashLabel]}, err
}

// readReplicaSet takes Size from the spec, what the controller asked for, as the
// guard's rule does; the status's count of replicas includes pods that are about
// to go.
func readReplicaSet(obj *unstructured.Unstructured) (Fact, error) {
	wire, err := decode[wireReplicaSet](obj)
	return ReplicaSet{
		Hash: obj.GetLabels()[hashLabel],
		Pods: Pods{
			Size:      replicas(wire.Spec.Replicas),
			Ready:     wire.Status.ReadyReplicas,
			Available: wire.Status.AvailableReplicas,
		},
	}, err
}

// readRollout notes whether the status is about the present spec. The controller
// writes the generation it has seen as text.
func readRollout(obj *unstructured.Unstructured) (Fact, error) {
	wire, err := decode[wireRollout](obj)
	if err != nil {
		return nil, err
	}
	step := int32(-1)
	if wire.Status.CurrentStepIndex != nil {
		step = *wire.Status.CurrentStepIndex
	}
	return Rollout{
		Phase: wire.Status.Phase, Message: wire.Status.Message,
		StepIndex: step, Steps: int32(len(wire.Spec.Strategy.Canary.Steps)),
		DesiredWeight: wire.Status.Canary.Weights.Canary.Weight,
		Verified:      wire.Status.Canary.Weights.Verified,
		Abort:         wire.Status.Abort,
		PodHash:       wire.Status.CurrentPodHash, StableRS: wire.Status.StableRS,
		Replicas: replicas(wire.Spec.Replicas),
		Current:  wire.Status.ObservedGeneration == strconv.FormatInt(obj.GetGeneration(), 10),
		Object:   obj,
	}, nil
}

func readEvent(obj *unstructured.Unstructured) (Fact, error) {
	wire, err := decode[wireEvent](obj)
	return Event{Type: wire.Type, Reason: wire.Reason, Message: wire.Message}, err
}

// replicas is the API's default for spec.replicas of both kinds: 1.
func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// writer names the field manager whose entry is new or changed since the last
// version. When none is (one manager, twice in one second), the newest one.
func writer(before, now []metav1.ManagedFieldsEntry) string {
	var newest, changed *metav1.ManagedFieldsEntry
	for i := range now {
		e := &now[i]
		newest = later(newest, e)
		if !contains(before, *e) {
			changed = later(changed, e)
		}
	}
	switch {
	case changed != nil:
		return changed.Manager
	case newest != nil:
		return newest.Manager
	default:
		return ""
	}
}

// later prefers the second of two of one second: the server keeps entries in the
// order of their times.
func later(a, b *metav1.ManagedFieldsEntry) *metav1.ManagedFieldsEntry {
	if a == nil || b.Time != nil && (a.Time == nil || !b.Time.Before(a.Time)) {
		return b
	}
	return a
}
