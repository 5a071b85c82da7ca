package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

const hashLabel = v1alpha1.DefaultRolloutUniqueLabelKey

// livePods leaves out those that have ended, as the plugin does.
const livePods = "status.phase!=Succeeded,status.phase!=Failed"

// sight is the cluster as one look sees it: a router.Sight whose answers are read when
// they are first asked for, each once. It lives as long as the look, which is why it holds
// the look's context. It is for one goroutine.
type sight struct {
	ctx       context.Context
	reader    Reader
	namespace string // the Rollout's

	virtualServices  map[string]answer[*virtualservice.VirtualService]
	destinationRules map[string]answer[*destinationrule.DestinationRule]
	services         map[string]answer[*corev1.Service]
	endpoints        map[string]answer[[]cluster.Endpoint]
	replicaSets      *answer[[]appsv1.ReplicaSet]
	pods             *answer[[]corev1.Pod]
	// unread are rights and kinds that are missing and without which not all can be told;
	// failed are errors of such reads that another try may not have.
	unread, failed []error
	// notes are what could not be read.
	notes []string
}

// answer is what a read gave.
type answer[T any] struct {
	value T
	err   error
}

func newSight(ctx context.Context, reader Reader, namespace string) *sight {
	return &sight{
		ctx: ctx, reader: reader, namespace: namespace,
		virtualServices: map[string]answer[*virtualservice.VirtualService]{}, destinationRules: map[string]answer[*destinationrule.DestinationRule]{},
		services: map[string]answer[*corev1.Service]{}, endpoints: map[string]answer[[]cluster.Endpoint]{},
	}
}

// once reads what has not been read yet.
func once[T any](known map[string]answer[T], namespace, name string, read func() (T, error)) (T, error) {
	key := namespace + "/" + name
	a, there := known[key]
	if !there {
		a.value, a.err = read()
		known[key] = a
	}
	return a.value, a.err
}

// essential keeps an error without whose cure not all can be told; that an object is not
// there is something to tell.
func (s *sight) essential(err error) error {
	switch {
	case err == nil:
	case outOfSight(err):
		s.unread = append(s.unread, err)
	case !apierrors.IsNotFound(err):
		s.failed = append(s.failed, err)
	}
	return err
}

// note keeps, once, what could not be read.
func (s *sight) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

// get reads one object, in the first version that the cluster serves.
func (s *sight) get(resource schema.GroupResource, versions []string, namespace, name string) (*unstructured.Unstructured, error) {
	served := false
	var last error
	for _, version := range versions {
		o, err := s.reader.Get(s.ctx, resource.WithVersion(version), namespace, name)
		if !apierrors.IsNotFound(err) {
			return o, refused(err, "get", resource, namespace)
		}
		last, served = err, served || !noSuchKind(err)
	}
	if !served {
		return nil, &MissingKindError{Resource: resource, Versions: versions, Err: last}
	}
	return nil, last
}

func (s *sight) VirtualService(namespace, name string) (*virtualservice.VirtualService, error) {
	return once(s.virtualServices, namespace, name, func() (*virtualservice.VirtualService, error) {
		o, err := s.get(virtualServices, istioVersions, namespace, name)
		if err != nil {
			return nil, s.essential(err)
		}
		return virtualservice.Parse(o, cluster.FieldManager), nil
	})
}

func (s *sight) DestinationRule(namespace, name string) (*destinationrule.DestinationRule, error) {
	return once(s.destinationRules, namespace, name, func() (*destinationrule.DestinationRule, error) {
		o, err := s.get(destinationRules, istioVersions, namespace, name)
		if err != nil {
			return nil, s.essential(err)
		}
		return destinationrule.Parse(o, cluster.FieldManager), nil
	})
}

// allSets are the ReplicaSets of the Rollout's namespace that have a hash.
func (s *sight) allSets() ([]appsv1.ReplicaSet, error) {
	if s.replicaSets == nil {
		sets, err := list[appsv1.ReplicaSet](s, replicaSets, s.namespace, hashLabel, "")
		s.replicaSets = &answer[[]appsv1.ReplicaSet]{sets, s.essential(err)}
	}
	return s.replicaSets.value, s.replicaSets.err
}

func (s *sight) ReplicaSets(rollout types.UID) ([]cluster.ReplicaSet, error) {
	all, err := s.allSets()
	var out []cluster.ReplicaSet
	for i := range all {
		set := &all[i]
		if owner := metav1.GetControllerOf(set); owner == nil || owner.UID != rollout {
			continue
		}
		size := int32(1)
		if set.Spec.Replicas != nil {
			size = *set.Spec.Replicas
		}
		out = append(out, cluster.ReplicaSet{
			Name: set.Name, UID: set.UID, Created: set.CreationTimestamp.Time, Hash: set.Labels[hashLabel],
			Size: size, Available: set.Status.AvailableReplicas, Labels: set.Spec.Template.Labels,
		})
	}
	return out, err
}

func (s *sight) ExperimentAvailable(_, hash string) int32 {
	all, _ := s.allSets() // the error has been kept
	var available int32
	for i := range all {
		owner := metav1.GetControllerOf(&all[i])
		if owner != nil && owner.Kind == "Experiment" && all[i].Labels[hashLabel] == hash {
			available += max(0, all[i].Status.AvailableReplicas)
		}
	}
	return available
}

// allPods are those of the namespace that have a hash and have not ended. Without them
// labels are taken to be as the templates have them.
func (s *sight) allPods() []corev1.Pod {
	if s.pods == nil {
		found, err := list[corev1.Pod](s, pods, s.namespace, hashLabel, livePods)
		if err != nil {
			s.note("pods of namespace %s could not be read: their labels are taken to be those of their ReplicaSets' templates: %v", s.namespace, err)
		}
		s.pods = &answer[[]corev1.Pod]{found, err}
	}
	return s.pods.value
}

func (s *sight) PodLabels(replicaSet types.UID) []cluster.PodGroup {
	var groups []cluster.PodGroup
	for _, pod := range s.allPods() {
		owner := metav1.GetControllerOfNoCopy(&pod)
		if owner == nil || owner.UID != replicaSet || pod.DeletionTimestamp != nil {
			continue
		}
		at := slices.IndexFunc(groups, func(g cluster.PodGroup) bool { return maps.Equal(g.Labels, pod.Labels) })
		if at < 0 {
			at, groups = len(groups), append(groups, cluster.PodGroup{Labels: pod.Labels})
		}
		groups[at].Count++
	}
	slices.SortStableFunc(groups, func(a, b cluster.PodGroup) int { return cmp.Compare(b.Count, a.Count) })
	return groups
}

// service is nil for one that does not exist.
func (s *sight) service(namespace, name string) *corev1.Service {
	service, err := once(s.services, namespace, name, func() (*corev1.Service, error) {
		o, err := s.get(services.GroupResource(), []string{services.Version}, namespace, name)
		if err != nil {
			return nil, err
		}
		return into[corev1.Service](o)
	})
	if err != nil && !apierrors.IsNotFound(err) {
		s.note("Service %s/%s could not be read: what it selects is not known: %v", namespace, name, err)
	}
	return service
}

// needServices makes a Service that cannot be read an essential lack where it is one of the
// two sides: nothing else tells which revision it leads to.
func (s *sight) needServices(e *router.Explanation) {
	for i := range e.Sides {
		side := &e.Sides[i]
		if side.Kind != "Service" {
			continue
		}
		err := s.services[side.Namespace+"/"+side.Name].err
		if s.essential(err) != nil && !apierrors.IsNotFound(err) {
			side.HashErr, side.PodsErr = err, err
		}
	}
}

func (s *sight) ServiceSelector(namespace, name string) map[string]string {
	if service := s.service(namespace, name); service != nil {
		return service.Spec.Selector
	}
	return nil
}

func (s *sight) ServicePorts(namespace, name string) []cluster.ServicePort {
	service := s.service(namespace, name)
	if service == nil {
		return nil
	}
	var ports []cluster.ServicePort
	for _, port := range service.Spec.Ports {
		one := cluster.ServicePort{Port: port.Port, Name: port.Name, UDP: port.Protocol == corev1.ProtocolUDP}
		if port.AppProtocol != nil {
			one.AppProtocol = *port.AppProtocol
		}
		ports = append(ports, one)
	}
	return ports
}

func (s *sight) Endpoints(namespace, service string) ([]cluster.Endpoint, error) {
	found, err := once(s.endpoints, namespace, service, func() ([]cluster.Endpoint, error) {
		return s.readEndpoints(namespace, service)
	})
	if err != nil {
		s.note("endpoints of Service %s/%s could not be read: %v", namespace, service, err)
	}
	return found, err
}

func (s *sight) readEndpoints(namespace, service string) ([]cluster.Endpoint, error) {
	found, err := list[discoveryv1.EndpointSlice](s, endpointSlices, namespace, discoveryv1.LabelServiceName+"="+service, "")
	if err != nil {
		return nil, err
	}
	var all []cluster.Endpoint
	for _, slice := range found {
		for _, endpoint := range slice.Endpoints {
			all = append(all, s.endpointsOf(namespace, endpoint)...)
		}
	}
	slices.SortFunc(all, func(a, b cluster.Endpoint) int {
		return cmp.Or(strings.Compare(a.Pod, b.Pod), strings.Compare(a.Address, b.Address))
	})
	return slices.CompactFunc(all, func(a, b cluster.Endpoint) bool { return a.Pod == b.Pod && a.Address == b.Address }), nil
}

func (s *sight) endpointsOf(namespace string, from discoveryv1.Endpoint) []cluster.Endpoint {
	one := cluster.Endpoint{Ready: isTrue(from.Conditions.Ready, true), Terminating: isTrue(from.Conditions.Terminating, false)}
	one.Serving = isTrue(from.Conditions.Serving, one.Ready)
	if ref := from.TargetRef; ref != nil && ref.Kind == "Pod" {
		one.Pod = ref.Name
		one.Labels = s.labelsOf(namespace, ref.Name)
	}
	out := make([]cluster.Endpoint, len(from.Addresses))
	for i, address := range from.Addresses {
		out[i], out[i].Address = one, address
	}
	return out
}

// labelsOf are a pod's, nil for one that is not known or is being deleted.
func (s *sight) labelsOf(namespace, name string) map[string]string {
	for _, pod := range s.allPods() {
		if pod.Namespace == namespace && pod.Name == name && pod.DeletionTimestamp == nil {
			return pod.Labels
		}
	}
	return nil
}

func isTrue(condition *bool, otherwise bool) bool {
	if condition == nil {
		return otherwise
	}
	return *condition
}

// list reads objects and makes typed ones of them.
func list[T any](s *sight, resource schema.GroupVersionResource, namespace, labels, fields string) ([]T, error) {
	found, err := s.reader.Select(s.ctx, resource, namespace, labels, fields)
	if err != nil {
		return nil, refused(err, "list", resource.GroupResource(), namespace)
	}
	all := make([]T, 0, len(found))
	for i := range found {
		one, err := into[T](&found[i])
		if err != nil {
			return nil, err
		}
		all = append(all, *one)
	}
	return all, nil
}
