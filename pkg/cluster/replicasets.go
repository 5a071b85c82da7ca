package cluster

import (
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
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
func newReplicaSets(client rest.Interface, namespace string, news podNews, heard func()) *replicaSets {
	r := &replicaSets{watched: watched{name: "replicasets.apps", advice: adviceOn(namespace)}, news: news}
	from := typed[*appsv1.ReplicaSetList]{client, namespace, "replicasets", func() *appsv1.ReplicaSetList { return &appsv1.ReplicaSetList{} }}
	r.informer = newInformer(r.name, from, client, selection{labels: hashLabel}, &appsv1.ReplicaSet{},
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
	rs, ok := object.(*replicaSet)
	if !ok {
		return
	}
	switch rs.owner.kind {
	case ofRollout:
		r.news.rollout(rs.owner.uid)
	case ofExperiment:
		r.news.experiment(rs.Namespace, rs.hash)
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
	rs, ok := object.(*replicaSet)
	if !ok {
		return -1
	}
	return rs.available
}

// replicaSet is what is kept of one. The API's own type has room for a whole pod:
// empty it has 1.3 KB.
type replicaSet struct {
	metav1.TypeMeta
	// ObjectMeta has the names, the version and the time of creation only.
	metav1.ObjectMeta
	// owner is who controls it, nobody's zero value if that is neither a Rollout nor an
	// Experiment.
	owner           owner
	hash            string
	size, available int32
	// pods are the labels of the pod template.
	pods map[string]string
}

// owner is the Rollout or Experiment that controls a ReplicaSet.
type owner struct {
	kind string // ofRollout, ofExperiment or ""
	uid  types.UID
}

// The kinds of owners.
const (
	ofRollout    = "Rollout"
	ofExperiment = "Experiment"
)

// DeepCopyObject implements runtime.Object.
func (r *replicaSet) DeepCopyObject() runtime.Object {
	out := *r
	out.ObjectMeta, out.pods = *r.ObjectMeta.DeepCopy(), maps.Clone(r.pods)
	return &out
}

// stripReplicaSet keeps names, the hash, the owner, the counts and the labels of
// the pods. What is the same in many is kept once.
func stripReplicaSet(object any) (any, error) {
	full, ok := object.(*appsv1.ReplicaSet)
	if !ok {
		return object, nil
	}
	return &replicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: full.Name, Namespace: shared(full.Namespace), UID: full.UID, ResourceVersion: full.ResourceVersion,
			CreationTimestamp: full.CreationTimestamp,
		},
		owner: ownerOf(full),
		hash:  full.Labels[hashLabel],
		size:  sizeOf(full), available: full.Status.AvailableReplicas,
		pods: sharedLabels(full.Spec.Template.Labels),
	}, nil
}

func ownerOf(rs *appsv1.ReplicaSet) owner {
	by := metav1.GetControllerOfNoCopy(rs)
	for _, kind := range []string{ofRollout, ofExperiment} {
		if isA(by, kind) {
			return owner{kind, types.UID(shared(string(by.UID)))}
		}
	}
	return owner{}
}

// isA tells whether an owner, which may be nil, is of that kind of Argo Rollouts.
func isA(owner *metav1.OwnerReference, kind string) bool {
	return owner != nil && owner.Kind == kind && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group == rollouts.Group
}

func uidOf(object any) ([]string, error) {
	rs, ok := object.(*replicaSet)
	if !ok {
		return nil, nil
	}
	return []string{string(rs.UID)}, nil
}

// rolloutOf indexes a ReplicaSet by the UID of the Rollout that controls it. The
// UID, not the name: a Rollout deleted and made again is another one.
func rolloutOf(object any) ([]string, error) {
	rs, ok := object.(*replicaSet)
	if !ok || rs.owner.kind != ofRollout {
		return nil, nil
	}
	return []string{string(rs.owner.uid)}, nil
}

// experimentOf indexes a ReplicaSet that an Experiment controls by what the
// controller tells of it: the namespace and the hash.
func experimentOf(object any) ([]string, error) {
	rs, ok := object.(*replicaSet)
	if !ok || rs.owner.kind != ofExperiment {
		return nil, nil
	}
	return []string{keyOf(rs.Namespace, rs.hash)}, nil
}

// ReplicaSets returns the ReplicaSets of one Rollout, in no particular order.
func (c *Cluster) ReplicaSets(rollout types.UID) ([]ReplicaSet, error) {
	objects, err := c.replicaSets.informer.GetIndexer().ByIndex(byRollout, string(rollout))
	if err != nil {
		return nil, err
	}
	out := make([]ReplicaSet, 0, len(objects))
	for _, object := range objects {
		rs, ok := object.(*replicaSet)
		if !ok {
			continue
		}
		out = append(out, ReplicaSet{
			Name: rs.Name, UID: rs.UID, Created: rs.CreationTimestamp.Time, Hash: rs.hash,
			Size: rs.size, Available: rs.available, Labels: rs.pods,
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
