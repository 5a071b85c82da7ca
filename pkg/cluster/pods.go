package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// livePods leaves out pods that have ended. They are not deleted for a while, for
// people to look at, and count for nothing.
const livePods = "status.phase!=Succeeded,status.phase!=Failed"

// PodGroup is how many pods of one ReplicaSet have the same labels.
type PodGroup struct {
	// Labels are shared with the cache and must not be changed.
	Labels map[string]string
	// Count is at least 1.
	Count int32
}

// pods watches the metadata of pods with a Rollout's hash. Nothing else of them is
// sent by the API server. The cache itself is never read: it is there for what it
// makes of a watch, and what is asked is answered by the tally.
type pods struct {
	watched
	tally tally
}

// newPods makes the watch; changed is told the ReplicaSet whose pods' labels
// differ from what they were, be it in a pod or in how many pods have which.
func newPods(client metadata.Interface, namespace string, changed func(replicaSet types.UID), heard func()) *pods {
	p := &pods{watched: watched{name: "pods", advice: adviceOn(namespace)}}
	p.informer = newInformer(p.name, client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace), client,
		selection{labels: hashLabel, fields: livePods}, &metav1.PartialObjectMetadata{}, cache.Indexers{}, heard)
	// Set before the start, so it cannot fail.
	_ = p.informer.SetTransform(p.strip)
	move := func(object any, deleted bool) {
		pod, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			return
		}
		to := pod
		if deleted || !counts(pod) {
			to = nil
		}
		for _, replicaSet := range p.tally.move(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, to) {
			changed(replicaSet)
		}
	}
	handled, _ := p.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { move(object, false) },
		UpdateFunc: func(_, object any) { move(object, false) },
		DeleteFunc: func(object any) { move(last(object), true) },
	})
	p.handled = handled.HasSynced
	return p
}

// strip keeps the name, the version and whether the pod is being deleted, and of
// pods that count the owner and the labels. Labels and owner are shared among the pods of a ReplicaSet: they
// are most of what is kept.
func (p *pods) strip(object any) (any, error) {
	full, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	stripped := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: full.Name, Namespace: full.Namespace, ResourceVersion: full.ResourceVersion, DeletionTimestamp: full.DeletionTimestamp,
	}}
	if counts(full) {
		stripped.Labels, stripped.OwnerReferences = p.tally.share(full)
	}
	return stripped, nil
}

// counts tells whether a pod belongs to a ReplicaSet and is not being deleted.
func counts(pod *metav1.PartialObjectMetadata) bool {
	return pod.DeletionTimestamp == nil && controllerOf(pod) != nil
}

// controllerOf is the ReplicaSet that controls a pod, nil if none does. No copy is
// made, as metav1.GetControllerOf does: it is asked for every event of every pod.
func controllerOf(pod *metav1.PartialObjectMetadata) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "ReplicaSet" {
		return nil
	}
	return owner
}

// PodLabels returns what labels the pods of a ReplicaSet have by now, the most
// frequent first. Pods that are being deleted or have ended do not count.
func (c *Cluster) PodLabels(replicaSet types.UID) []PodGroup {
	return c.pods.tally.groups(replicaSet)
}
