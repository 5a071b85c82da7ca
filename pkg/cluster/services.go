package cluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

type services struct{ watched }

func newServices(client rest.Interface, namespace string, heard func()) *services {
	s := &services{watched{name: "services", advice: adviceOn(namespace)}}
	from := typed[*corev1.ServiceList]{client, namespace, s.name, func() *corev1.ServiceList { return &corev1.ServiceList{} }}
	s.informer = newInformer(s.name, from, client, selection{}, &corev1.Service{}, cache.Indexers{}, heard)
	// Set before the start, so it cannot fail.
	_ = s.informer.SetTransform(stripService)
	return s
}

// service is what is kept of one: of every Service that may be seen, and most are no
// Rollout's.
type service struct {
	metav1.TypeMeta
	metav1.ObjectMeta // the name and the version only
	selector          map[string]string
	ports             []ServicePort
}

// DeepCopyObject implements runtime.Object.
func (s *service) DeepCopyObject() runtime.Object {
	out := *s
	out.ObjectMeta, out.selector, out.ports = *s.ObjectMeta.DeepCopy(), maps.Clone(s.selector), slices.Clone(s.ports)
	return &out
}

// stripService keeps the name, the selector, and of the ports what they are for.
func stripService(object any) (any, error) {
	full, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	return &service{
		ObjectMeta: metav1.ObjectMeta{Name: full.Name, Namespace: shared(full.Namespace), ResourceVersion: full.ResourceVersion},
		selector:   sharedLabels(full.Spec.Selector), ports: stripPorts(full.Spec.Ports),
	}, nil
}

// stripPorts is nil for no ports.
func stripPorts(full []corev1.ServicePort) []ServicePort {
	var stripped []ServicePort
	for _, port := range full {
		one := ServicePort{Port: port.Port, Name: shared(port.Name), UDP: port.Protocol == corev1.ProtocolUDP}
		if port.AppProtocol != nil {
			one.AppProtocol = shared(*port.AppProtocol)
		}
		stripped = append(stripped, one)
	}
	return slices.Clip(stripped)
}

// ServiceSelector returns a Service's selector, nil when it does not exist or
// has none. It is shared with the cache and must not be changed.
func (c *Cluster) ServiceSelector(namespace, name string) map[string]string {
	service := c.services.get(namespace, name)
	if service == nil {
		return nil
	}
	return service.selector
}

// ServicePort is one port that a Service listens on.
type ServicePort struct {
	// Port is 1 to 65535, and different from that of the Service's other ports of the
	// same protocol.
	Port int32
	// Name may be empty where there is only one port.
	Name string
	// AppProtocol is "" where it is not given.
	AppProtocol string
	// UDP is true for a port that is neither TCP's nor SCTP's.
	UDP bool
}

// ServicePorts returns a Service's ports in the order of the object, nil when it does
// not exist or has none. They are shared with the cache and must not be changed.
func (c *Cluster) ServicePorts(namespace, name string) []ServicePort {
	service := c.services.get(namespace, name)
	if service == nil {
		return nil
	}
	return service.ports
}

// get is nil for a Service that does not exist.
func (s *services) get(namespace, name string) *service {
	object, found, err := s.informer.GetStore().GetByKey(keyOf(namespace, name))
	if err != nil || !found {
		return nil
	}
	stripped, _ := object.(*service)
	return stripped
}
