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

// stripService keeps the name and the selector.
func stripService(object any) (any, error) {
	full, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: full.Name, Namespace: full.Namespace, UID: full.UID, ResourceVersion: full.ResourceVersion},
		Spec:       corev1.ServiceSpec{Selector: full.Spec.Selector},
	}, nil
}

// ServiceSelector returns a Service's selector, nil when it does not exist or
// has none. It is shared with the cache and must not be changed.
func (c *Cluster) ServiceSelector(namespace, name string) map[string]string {
	object, found, err := c.services.informer.GetStore().GetByKey(keyOf(namespace, name))
	if err != nil || !found {
		return nil
	}
	service, ok := object.(*corev1.Service)
	if !ok {
		return nil
	}
	return service.Spec.Selector
}
