package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// ReplicaSet is what counts of one ReplicaSet of a Rollout.
type ReplicaSet struct {
	Name string
	// Hash is the value of the label rollouts-pod-template-hash.
	Hash string
	// Size is spec.replicas: how many pods the controller has asked for.
	Size int32
	// Available is how many pods have been ready for minReadySeconds.
	Available int32
	// Labels are those of the pod template, which every pod is created with.
	// Shared with the cache: not to be changed.
	Labels map[string]string
}

// byRollout is the index from a Rollout's UID to its ReplicaSets.
const byRollout = "rollout"

type replicaSets struct{ watched }

// newReplicaSets watches only ReplicaSets that carry a Rollout's hash, so those
// of Deployments never reach the process.
func newReplicaSets(client kubernetes.Interface, namespace string, changed func(types.UID)) *replicaSets {
	informer := appsinformers.NewFilteredReplicaSetInformer(client, namespace, 0,
		cache.Indexers{byRollout: rolloutOf},
		func(o *metav1.ListOptions) { o.LabelSelector = v1alpha1.DefaultRolloutUniqueLabelKey })
	// Set before the start, so it cannot fail.
	_ = informer.SetTransform(stripReplicaSet)
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			if availableOf(before) != availableOf(after) {
				tellRollout(after, changed)
			}
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			tellRollout(object, changed)
		},
	})
	return &replicaSets{watched{name: "replicasets.apps", informer: informer}}
}

// tellRollout passes on whose ReplicaSet it is.
func tellRollout(object any, changed func(types.UID)) {
	owners, _ := rolloutOf(object) // never fails
	for _, uid := range owners {
		changed(types.UID(uid))
	}
}

func availableOf(object any) int32 {
	rs, ok := object.(*appsv1.ReplicaSet)
	if !ok {
		return -1
	}
	return rs.Status.AvailableReplicas
}

// stripReplicaSet keeps names, the hash, the owner, the counts and the labels of
// the pods.
func stripReplicaSet(object any) (any, error) {
	full, ok := object.(*appsv1.ReplicaSet)
	if !ok {
		return object, nil
	}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: full.Name, Namespace: full.Namespace, UID: full.UID, ResourceVersion: full.ResourceVersion,
			Labels:          map[string]string{v1alpha1.DefaultRolloutUniqueLabelKey: full.Labels[v1alpha1.DefaultRolloutUniqueLabelKey]},
			OwnerReferences: full.OwnerReferences,
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: full.Spec.Replicas,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: full.Spec.Template.Labels}},
		},
		Status: appsv1.ReplicaSetStatus{AvailableReplicas: full.Status.AvailableReplicas},
	}, nil
}

// rolloutOf indexes a ReplicaSet by the UID of the Rollout that controls it. The
// UID, not the name: a Rollout deleted and made again is another one.
func rolloutOf(object any) ([]string, error) {
	rs, ok := object.(*appsv1.ReplicaSet)
	if !ok {
		return nil, nil
	}
	owner := metav1.GetControllerOf(rs)
	if owner == nil || owner.Kind != "Rollout" {
		return nil, nil
	}
	return []string{string(owner.UID)}, nil
}

// ReplicaSets returns the ReplicaSets of one Rollout, in no particular order.
func (c *Cluster) ReplicaSets(rollout types.UID) ([]ReplicaSet, error) {
	objects, err := c.replicaSets.informer.GetIndexer().ByIndex(byRollout, string(rollout))
	if err != nil {
		return nil, err
	}
	out := make([]ReplicaSet, 0, len(objects))
	for _, object := range objects {
		rs, ok := object.(*appsv1.ReplicaSet)
		if !ok {
			continue
		}
		out = append(out, ReplicaSet{
			Name: rs.Name, Hash: rs.Labels[v1alpha1.DefaultRolloutUniqueLabelKey],
			Size: sizeOf(rs), Available: rs.Status.AvailableReplicas, Labels: rs.Spec.Template.Labels,
		})
	}
	return out, nil
}

// sizeOf resolves an absent spec.replicas to 1, as the API does.
func sizeOf(rs *appsv1.ReplicaSet) int32 {
	if rs.Spec.Replicas == nil {
		return 1
	}
	return *rs.Spec.Replicas
}
