package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
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
	client      rest.Interface
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
}

func newEvents(client rest.Interface) *events {
	broadcaster := record.NewBroadcaster(record.WithCorrelatorOptions(record.CorrelatorOptions{BurstSize: eventBurst, QPS: 1, MaxEvents: eventBurst}))
	return &events{
		client: client, broadcaster: broadcaster,
		recorder: broadcaster.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: FieldManager}),
	}
}

func (e *events) start() {
	e.broadcaster.StartRecordingToSink(eventSink{e.client})
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

// eventTimeout bounds the write of one Event. Those that come meanwhile wait.
const eventTimeout = 10 * time.Second

// eventSink is where the Events of a broadcaster go.
type eventSink struct{ client rest.Interface }

// Create implements record.EventSink.
func (s eventSink) Create(event *corev1.Event) (*corev1.Event, error) {
	return stored(s.client.Post().Namespace(event.Namespace).Body(event))
}

// Update implements record.EventSink.
func (s eventSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return stored(s.client.Put().Namespace(event.Namespace).Name(event.Name).Body(event))
}

// Patch implements record.EventSink: it counts an Event up that comes again.
func (s eventSink) Patch(event *corev1.Event, patch []byte) (*corev1.Event, error) {
	return stored(s.client.Patch(types.StrategicMergePatchType).Namespace(event.Namespace).Name(event.Name).Body(patch))
}

func stored(request *rest.Request) (*corev1.Event, error) {
	ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
	defer cancel()
	event := &corev1.Event{}
	err := request.Resource("events").Do(ctx).Into(event)
	return event, err
}
