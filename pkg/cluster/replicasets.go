package cluster

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

const hashLabel = v1alpha1.DefaultRolloutUniqueLabelKey

// ReplicaSet is what counts of one ReplicaSet of a Rollout.
type ReplicaSet struct {
	Name string
	UID  types.UID
	// Created is when the API server made it, in whole seconds.
	Created time.Time
	// Hash is the value of the label rollouts-pod-template-hash.
	Hash string
	// Size is spec.replicas: how many pods the controller has asked for.
	Size int32
	// Available is how many pods have been ready for minReadySeconds.
	Available int32
	// Labels are those of the pod template, which every pod is created with; what
	// became of them is in PodLabels. Shared with the cache: not to be changed.
	Labels map[string]string
}

// The indices of the cache of ReplicaSets.
const (
	byUID        = "uid"
	byRollout    = "rollout"    // the UID of the Rollout that controls it
	byExperiment = "experiment" // namespace and hash, if an Experiment controls it
)

// podNews is who is told that the pods behind a hash have changed.
type podNews struct {
	rollout    func(types.UID)
	experiment func(namespace, hash string)
}

type replicaSets struct {
	watched
	news podNews
}

// newReplicaSets watches only ReplicaSets that carry a Rollout's hash, so those
// of Deployments never reach the process.
func newReplicaSets(client kubernetes.Interface, namespace string, news podNews, heard func()) *replicaSets {
	r := &replicaSets{watched: watched{name: "replicasets.apps"}, news: news}
	r.informer = newInformer(r.name, client.AppsV1().ReplicaSets(namespace), client, selection{labels: hashLabel}, &appsv1.ReplicaSet{},
		cache.Indexers{byUID: uidOf, byRollout: rolloutOf, byExperiment: experimentOf}, heard)
	// Set before the start, so it cannot fail.
	_ = r.informer.SetTransform(stripReplicaSet)
	_, _ = r.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		// One that is there at the start is news to nobody. One that comes later has no
		// pods, unless it came while the watch was interrupted.
		AddFunc: func(object any, atStart bool) {
			if !atStart && availableOf(object) > 0 {
				r.tell(object)
			}
		},
		UpdateFunc: func(before, after any) {
			if availableOf(before) != availableOf(after) {
				r.tell(after)
			}
		},
		DeleteFunc: func(object any) { r.tell(last(object)) },
	})
	return r
}

// tell passes on whose ReplicaSet it is.
func (r *replicaSets) tell(object any) {
	rs, ok := object.(*appsv1.ReplicaSet)
	if !ok {
		return
	}
	switch owner := metav1.GetControllerOf(rs); {
	case isA(owner, "Rollout"):
		r.news.rollout(owner.UID)
	case isA(owner, "Experiment"):
		r.news.experiment(rs.Namespace, rs.Labels[hashLabel])
	}
}

// tellOf is tell for a ReplicaSet that is known by its UID. One that is not known
// is news to nobody: it will come with all its pods.
func (r *replicaSets) tellOf(uid types.UID) {
	objects, _ := r.informer.GetIndexer().ByIndex(byUID, string(uid)) // fails without the index only
	for _, object := range objects {
		r.tell(object)
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
			CreationTimestamp: full.CreationTimestamp,
			Labels:            map[string]string{hashLabel: full.Labels[hashLabel]},
			OwnerReferences:   full.OwnerReferences,
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: full.Spec.Replicas,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: full.Spec.Template.Labels}},
		},
		Status: appsv1.ReplicaSetStatus{AvailableReplicas: full.Status.AvailableReplicas},
	}, nil
}

// isA tells whether an owner, which may be nil, is of that kind of Argo Rollouts.
func isA(owner *metav1.OwnerReference, kind string) bool {
	return owner != nil && owner.Kind == kind && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group == rollouts.Group
}

func uidOf(object any) ([]string, error) {
	rs, ok := object.(*appsv1.ReplicaSet)
	if !ok {
		return nil, nil
	}
	return []string{string(rs.UID)}, nil
}

// rolloutOf indexes a ReplicaSet by the UID of the Rollout that controls it. The
// UID, not the name: a Rollout deleted and made again is another one.
func rolloutOf(object any) ([]string, error) {
	rs, ok := object.(*appsv1.ReplicaSet)
	if !ok {
		return nil, nil
	}
	if owner := metav1.GetControllerOf(rs); isA(owner, "Rollout") {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

// experimentOf indexes a ReplicaSet that an Experiment controls by what the
// controller tells of it: the namespace and the hash.
func experimentOf(object any) ([]string, error) {
	rs, ok := object.(*appsv1.ReplicaSet)
	if !ok || !isA(metav1.GetControllerOf(rs), "Experiment") {
		return nil, nil
	}
	return []string{keyOf(rs.Namespace, rs.Labels[hashLabel])}, nil
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
			Name: rs.Name, UID: rs.UID, Created: rs.CreationTimestamp.Time, Hash: rs.Labels[hashLabel],
			Size: sizeOf(rs), Available: rs.Status.AvailableReplicas, Labels: rs.Spec.Template.Labels,
		})
	}
	return out, nil
}

// ExperimentAvailable is how many pods of the Experiments of a namespace are
// available under this pod-template hash; 0 if no Experiment has it.
func (c *Cluster) ExperimentAvailable(namespace, hash string) int32 {
	objects, _ := c.replicaSets.informer.GetIndexer().ByIndex(byExperiment, keyOf(namespace, hash)) // fails without the index only
	var available int32
	for _, object := range objects {
		available += max(0, availableOf(object))
	}
	return available
}

// sizeOf resolves an absent spec.replicas to 1, as the API does.
func sizeOf(rs *appsv1.ReplicaSet) int32 {
	if rs.Spec.Replicas == nil {
		return 1
	}
	return *rs.Spec.Replicas
}
