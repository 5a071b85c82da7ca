package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// eventBurst is how many Events one Rollout may have at once before client-go
// drops them, and of one reason within ten minutes before it merges them. A
// canary of many steps, or a ramp of many pods, has more than its defaults of 25
// and 10.
const eventBurst = 200

// events writes Events in the background: a reconcile never waits for one, and
// one that cannot be written is dropped, as Events are everywhere.
type events struct {
	client      kubernetes.Interface
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
}

func newEvents(client kubernetes.Interface) *events {
	broadcaster := record.NewBroadcaster(record.WithCorrelatorOptions(record.CorrelatorOptions{BurstSize: eventBurst, QPS: 1, MaxEvents: eventBurst}))
	return &events{
		client: client, broadcaster: broadcaster,
		recorder: broadcaster.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: FieldManager}),
	}
}

func (e *events) start() {
	e.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: e.client.CoreV1().Events(metav1.NamespaceAll)})
}

// Event tells a Rollout's owner what happened. warning chooses the Event's type.
// The caller sends one per change, never one per reconcile.
func (c *Cluster) Event(rollout corev1.ObjectReference, warning bool, reason, message string) {
	eventType := corev1.EventTypeNormal
	if warning {
		eventType = corev1.EventTypeWarning
	}
	c.events.recorder.Event(&rollout, eventType, reason, message)
}
