package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

var rolloutsResource = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}

// Scene is one workload in a namespace of its own, being recorded.
type Scene struct {
	// Namespace is new and used by nothing else.
	Namespace string
	// Gate decides which pods become ready.
	Gate *lab.Gate

	lab      *lab.Lab
	workload Workload
	labels   map[string]string // for the controller to see the Rollout
	rollouts dynamic.ResourceInterface
	recorder *timeline.Recorder
}

// Open applies a workload for a controller and records it from before the first
// object exists. Close it with Close.
func Open(ctx context.Context, l *lab.Lab, c *lab.Controller, w Workload) (*Scene, error) {
	namespace, err := l.Namespace(ctx, string(w.Router)+"-"+string(w.Level))
	if err != nil {
		return nil, err
	}
	w.namespace = namespace
	s := &Scene{
		Namespace: namespace, lab: l, workload: w, labels: c.Labels(),
		rollouts: l.Dynamic.Resource(rolloutsResource).Namespace(namespace),
		recorder: timeline.NewRecorder(l.Dynamic, w.subject(namespace)),
	}
	if s.Gate, err = l.Gate(ctx, namespace); err != nil {
		return nil, err
	}
	if err := s.recorder.Start(ctx); err != nil {
		return nil, err
	}
	manifests, err := w.manifests(s.labels)
	if err != nil {
		return nil, err
	}
	_, err = l.Apply(ctx, namespace, manifests)
	return s, err
}

// Close ends the recording, takes the namespace away so that it does not load
// the machine any longer, and returns what was recorded.
func (s *Scene) Close(ctx context.Context) timeline.Timeline {
	t := s.recorder.Stop()
	// A namespace that stays is a nuisance and no wrong result.
	_ = s.Gate.Close()
	_ = s.lab.DeleteNamespace(ctx, s.Namespace)
	return t
}

// Play opens a scene, runs a script in it and closes it. What was recorded is
// returned even when the script failed: it tells why.
func Play(ctx context.Context, l *lab.Lab, c *lab.Controller, w Workload, script func(context.Context, *Scene) error) (timeline.Timeline, error) {
	s, err := Open(ctx, l, c, w)
	if err != nil {
		return timeline.Timeline{}, err
	}
	err = script(ctx, s)
	return s.Close(context.WithoutCancel(ctx)), err
}

// Now is the state of the world at this moment.
func (s *Scene) Now() timeline.State {
	states := s.recorder.Timeline().States()
	return states[len(states)-1]
}

// Mark names this moment in the recording.
func (s *Scene) Mark(mark string) { s.recorder.Mark(mark) }

// Await waits for a state of the world.
func (s *Scene) Await(ctx context.Context, what string, holds func(timeline.State) bool) (timeline.State, error) {
	state, err := s.recorder.Wait(ctx, holds)
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return state, err
}

// AwaitPhase waits until the Rollout is in a phase after a mark.
func (s *Scene) AwaitPhase(ctx context.Context, mark, phase string) (time.Duration, error) {
	return s.recorder.WaitPhase(ctx, mark, phase)
}

// Deploy sets the image of a version, marks the moment with mark and returns. A
// version that was there before is a rollback: the controller can tell, see
// [lab.Lab.AwaitOlderReplicaSets].
func (s *Scene) Deploy(ctx context.Context, mark string, version int) error {
	if err := s.lab.AwaitOlderReplicaSets(ctx, s.Namespace); err != nil {
		return err
	}
	s.Mark(mark)
	ops := []map[string]any{{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image(version)}}
	if s.workload.From == "" {
		return s.patch(ctx, "", ops)
	}
	// The template is the Deployment's.
	body, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	_, err = s.lab.Client.AppsV1().Deployments(s.Namespace).Patch(ctx, name, types.JSONPatchType, body, metav1.PatchOptions{})
	return err
}

// Migrate waits until the Deployment has all of its pods and applies the Rollout
// that takes it over.
func (s *Scene) Migrate(ctx context.Context, mark string) error {
	if err := s.AwaitDeploymentPods(ctx, s.workload.Replicas); err != nil {
		return err
	}
	manifest, err := documents(s.workload.rollout(s.labels))
	if err != nil {
		return err
	}
	s.Mark(mark)
	_, err = s.lab.Apply(ctx, s.Namespace, manifest)
	return err
}

// AwaitDeploymentPods waits until that many pods of the Deployment are available.
func (s *Scene) AwaitDeploymentPods(ctx context.Context, n int32) error {
	return lab.Until(ctx, fmt.Sprintf("%d pods of the Deployment", n), func(ctx context.Context) (bool, error) {
		available, err := s.DeploymentPods(ctx)
		return available == n, err
	})
}

// DeploymentPods is how many pods of the Deployment are available.
func (s *Scene) DeploymentPods(ctx context.Context) (int32, error) {
	d, err := s.lab.Client.AppsV1().Deployments(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	return d.Status.AvailableReplicas, nil
}

// Abort and PromoteFull do what the Rollouts CLI does.
func (s *Scene) Abort(ctx context.Context, mark string) error {
	s.Mark(mark)
	return s.patch(ctx, "status", []map[string]any{{"op": "add", "path": "/status/abort", "value": true}})
}

// PromoteFull skips what is left of the steps.
func (s *Scene) PromoteFull(ctx context.Context, mark string) error {
	s.Mark(mark)
	return s.patch(ctx, "status", []map[string]any{{"op": "add", "path": "/status/promoteFull", "value": true}})
}

// Resume ends the present pause, as the Rollouts CLI does.
func (s *Scene) Resume(ctx context.Context) error {
	return s.patch(ctx, "status", []map[string]any{{"op": "remove", "path": "/status/pauseConditions"}})
}

// Retry begins an aborted canary anew, as the Rollouts CLI does.
func (s *Scene) Retry(ctx context.Context, mark string) error {
	s.Mark(mark)
	return s.patch(ctx, "status", []map[string]any{{"op": "replace", "path": "/status/abort", "value": false}})
}

// Merge changes one of the objects around the Rollout, as a person with kubectl
// does. The patch is a JSON merge patch.
func (s *Scene) Merge(ctx context.Context, resource schema.GroupVersionResource, object, patch string) error {
	_, err := s.lab.Dynamic.Resource(resource).Namespace(s.Namespace).
		Patch(ctx, object, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		return fmt.Errorf("patch %s %s/%s: %w", resource.Resource, s.Namespace, object, err)
	}
	return nil
}

// Scale sets spec.replicas, as an autoscaler does.
func (s *Scene) Scale(ctx context.Context, replicas int32) error {
	return s.patch(ctx, "", []map[string]any{{"op": "replace", "path": "/spec/replicas", "value": replicas}})
}

func (s *Scene) patch(ctx context.Context, subresource string, ops []map[string]any) error {
	body, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	var subresources []string
	if subresource != "" {
		subresources = append(subresources, subresource)
	}
	_, err = s.rollouts.Patch(ctx, name, types.JSONPatchType, body, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return fmt.Errorf("patch Rollout %s/%s: %w", s.Namespace, name, err)
	}
	return nil
}

// Hash is the pod-template hash of the Rollout's present revision, once the
// controller has seen it.
func (s *Scene) Hash(ctx context.Context) (string, error) {
	ro, err := s.rollouts.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get Rollout %s/%s: %w", s.Namespace, name, err)
	}
	hash, _, err := unstructured.NestedString(ro.Object, "status", "currentPodHash")
	return hash, err
}

// HashSelector selects the pods of one revision.
func HashSelector(hash string) string { return v1alpha1.DefaultRolloutUniqueLabelKey + "=" + hash }

// Fail makes the pods of a revision fail their readiness probe, or pass it again.
func (s *Scene) Fail(ctx context.Context, hash string, unready bool) error {
	_, err := s.lab.SetUnready(ctx, s.Namespace, HashSelector(hash), unready)
	return err
}

// ScaleReplicaSet sets the size of a revision's ReplicaSet behind the
// controller's back.
func (s *Scene) ScaleReplicaSet(ctx context.Context, hash string, replicas int32) error {
	sets := s.lab.Client.AppsV1().ReplicaSets(s.Namespace)
	list, err := sets.List(ctx, metav1.ListOptions{LabelSelector: HashSelector(hash)})
	if err != nil {
		return err
	}
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	for _, set := range list.Items {
		if _, err := sets.Patch(ctx, set.Name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("scale ReplicaSet %s/%s: %w", s.Namespace, set.Name, err)
		}
	}
	return nil
}

// Annotate sets an annotation of the Rollout, or removes it when the value is "".
func (s *Scene) Annotate(ctx context.Context, key, value string) error {
	var set any // null removes it
	if value != "" {
		set = value
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: set}}})
	if err != nil {
		return err
	}
	if _, err = s.rollouts.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("annotate Rollout %s/%s: %w", s.Namespace, name, err)
	}
	return nil
}

// LabelPods sets a label of a revision's pods. One that their ReplicaSet selects
// by would only make it bring new ones.
func (s *Scene) LabelPods(ctx context.Context, hash, key, value string) error {
	pods := s.lab.Client.CoreV1().Pods(s.Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: HashSelector(hash)})
	if err != nil {
		return err
	}
	body := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
	for _, pod := range list.Items {
		if _, err := pods.Patch(ctx, pod.Name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("label Pod %s/%s: %w", s.Namespace, pod.Name, err)
		}
	}
	return nil
}

// FailOne is Fail for one pod of a revision, always the same.
func (s *Scene) FailOne(ctx context.Context, hash string, unready bool) error {
	pods, err := s.lab.Client.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: HashSelector(hash)})
	if err != nil {
		return err
	}
	first := ""
	for _, pod := range pods.Items {
		if first == "" || pod.Name < first {
			first = pod.Name
		}
	}
	var value any // null removes it
	if unready {
		value = "true"
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{lab.Unready: value}}})
	if err != nil {
		return err
	}
	if _, err = s.lab.Client.CoreV1().Pods(s.Namespace).Patch(ctx, first, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("annotate Pod %s/%s: %w", s.Namespace, first, err)
	}
	return nil
}
