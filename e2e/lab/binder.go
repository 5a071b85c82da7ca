package lab

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// startBinder puts pods that have no node on the lab's one, in place of a
// scheduler, so that manifests written for a real cluster run unchanged. It
// watches only pods without a node: those of templates that name it cost nothing.
func (l *Lab) startBinder(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(l.Client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", "").String()
		}))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { l.bind(ctx, object.(*corev1.Pod)) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	return nil
}

func (l *Lab) bind(ctx context.Context, pod *corev1.Pod) {
	err := l.Client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: NodeName},
	}, metav1.CreateOptions{})
	// A pod deleted or bound meanwhile needs nothing more.
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		fmt.Fprintf(l.progress, "lab: bind Pod %s/%s: %v\n", pod.Namespace, pod.Name, err)
	}
}
