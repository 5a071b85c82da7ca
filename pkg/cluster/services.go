package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

type services struct{ watched }

func newServices(client kubernetes.Interface, namespace string, heard func()) *services {
	s := &services{watched{name: "services"}}
	s.informer = newInformer(s.name, client.CoreV1().Services(namespace), client, selection{}, &corev1.Service{}, cache.Indexers{}, heard)
	// Set before the start, so it cannot fail.
	_ = s.informer.SetTransform(stripService)
	return s
}

// stripService keeps the name, the selector, and of the ports what they are for.
func stripService(object any) (any, error) {
	full, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: full.Name, Namespace: full.Namespace, UID: full.UID, ResourceVersion: full.ResourceVersion},
		Spec:       corev1.ServiceSpec{Selector: full.Spec.Selector, Ports: stripPorts(full.Spec.Ports)},
	}, nil
}

func stripPorts(full []corev1.ServicePort) []corev1.ServicePort {
	stripped := make([]corev1.ServicePort, len(full))
	for i, port := range full {
		stripped[i] = corev1.ServicePort{Name: port.Name, Protocol: port.Protocol, AppProtocol: port.AppProtocol, Port: port.Port}
	}
	return stripped
}

// ServiceSelector returns a Service's selector, nil when it does not exist or
// has none. It is shared with the cache and must not be changed.
func (c *Cluster) ServiceSelector(namespace, name string) map[string]string {
	service := c.services.get(namespace, name)
	if service == nil {
		return nil
	}
	return service.Spec.Selector
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
// not exist or has none.
func (c *Cluster) ServicePorts(namespace, name string) []ServicePort {
	service := c.services.get(namespace, name)
	if service == nil {
		return nil
	}
	var ports []ServicePort
	for _, port := range service.Spec.Ports {
		one := ServicePort{Port: port.Port, Name: port.Name, UDP: port.Protocol == corev1.ProtocolUDP}
		if port.AppProtocol != nil {
			one.AppProtocol = *port.AppProtocol
		}
		ports = append(ports, one)
	}
	return ports
}

// get is nil for a Service that does not exist.
func (s *services) get(namespace, name string) *corev1.Service {
	object, found, err := s.informer.GetStore().GetByKey(keyOf(namespace, name))
	if err != nil || !found {
		return nil
	}
	service, _ := object.(*corev1.Service)
	return service
}
