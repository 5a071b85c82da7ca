package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

var rolloutsResource = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}

// fastest is the shortest time between two pods that become ready.
const fastest = 20 * time.Millisecond

// scene is one variant in a namespace of its own, being recorded.
type scene struct {
	lab       *lab.Lab
	namespace string
	name      string
	gate      *lab.Gate
	rollouts  dynamic.ResourceInterface
	recorder  *timeline.Recorder
	// strategy is that of the variant; see adopt.
	strategy any
}

// open applies a variant and records it from before the first object exists. The Rollout
// has no strategy of its own yet, so that the revisions before the story come out at
// once.
func open(ctx context.Context, l *lab.Lab, prefix string, v Variant) (*scene, error) {
	namespace, err := l.Namespace(ctx, prefix)
	if err != nil {
		return nil, err
	}
	subject := v.Subject
	subject.Namespace = namespace
	s := &scene{
		lab: l, namespace: namespace, name: subject.Rollout,
		rollouts: l.Dynamic.Resource(rolloutsResource).Namespace(namespace), recorder: timeline.NewRecorder(l.Dynamic, subject),
	}
	if s.gate, err = l.Gate(ctx, namespace); err != nil {
		return nil, err
	}
	if err := s.recorder.Start(ctx); err != nil {
		return nil, err
	}
	for _, object := range v.Objects {
		if object["kind"] == "Rollout" {
			object = runtime.DeepCopyJSON(object)
			s.strategy = at(object, "spec", "strategy")
			fields(object, "spec")["strategy"] = map[string]any{"canary": map[string]any{"maxSurge": "100%", "maxUnavailable": int64(0)}}
		}
		text, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		if _, err := l.Apply(ctx, namespace, text); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// close ends the recording and takes the namespace away, so that it does not load the
// machine any longer.
func (s *scene) close(ctx context.Context) timeline.Timeline {
	t := s.recorder.Stop()
	_ = s.gate.Close()
	_ = s.lab.DeleteNamespace(ctx, s.namespace)
	return t
}

func (s *scene) now() timeline.State {
	states := s.recorder.Timeline().States()
	return states[len(states)-1]
}

// await waits for a state; the error says for what.
func (s *scene) await(ctx context.Context, what string, holds func(timeline.State) bool) (timeline.State, error) {
	state, err := s.recorder.Wait(ctx, holds)
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return state, err
}

// selectorOf selects the pods of a revision.
func selectorOf(revision int) string { return revisionLabel + "=" + strconv.Itoa(revision) }

// deploy asks for a revision. One that was there before is a rollback: the controller can
// tell, see [lab.Lab.AwaitOlderReplicaSets].
func (s *scene) deploy(ctx context.Context, revision int) error {
	if err := s.lab.AwaitOlderReplicaSets(ctx, s.namespace); err != nil {
		return err
	}
	return s.merge(ctx, map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{revisionLabel: strconv.Itoa(revision)}},
	}}})
}

// adopt gives the Rollout its own strategy, with the router, while it is at rest.
func (s *scene) adopt(ctx context.Context) error {
	patch := []map[string]any{{"op": "replace", "path": "/spec/strategy", "value": s.strategy}}
	return s.patch(ctx, types.JSONPatchType, patch)
}

// scale sets spec.replicas, as an autoscaler does.
func (s *scene) scale(ctx context.Context, replicas int32) error {
	return s.merge(ctx, map[string]any{"spec": map[string]any{"replicas": replicas}})
}

// abort does what the command line of Argo Rollouts does.
func (s *scene) abort(ctx context.Context) error {
	return s.merge(ctx, map[string]any{"status": map[string]any{"abort": true}}, "status")
}

func (s *scene) merge(ctx context.Context, patch map[string]any, subresources ...string) error {
	return s.patch(ctx, types.MergePatchType, patch, subresources...)
}

func (s *scene) patch(ctx context.Context, kind types.PatchType, patch any, subresources ...string) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	if _, err = s.rollouts.Patch(ctx, s.name, kind, body, metav1.PatchOptions{FieldManager: "simulate"}, subresources...); err != nil {
		return fmt.Errorf("patch Rollout %s/%s: %w", s.namespace, s.name, err)
	}
	return nil
}

// breakPods makes that many pods of a revision fail their readiness probe.
func (s *scene) breakPods(ctx context.Context, hash string, n int32) error {
	pods, err := s.lab.Client.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: hashLabel + "=" + hash})
	if err != nil {
		return fmt.Errorf("list pods in %s: %w", s.namespace, err)
	}
	for _, pod := range pods.Items[:min(int(n), len(pods.Items))] {
		if err := s.lab.SetPodUnready(ctx, s.namespace, pod.Name, true); err != nil {
			return err
		}
	}
	return nil
}

// startUp lets the pods of a revision that is about to be asked for become ready one
// after another, until ctx ends: the first after Startup, the last of a whole Rollout's
// worth Spread later, and the failing ones never. Pods of other revisions that start
// from now on take Startup. When it returns the gate is shut for the revision, so that
// no pod is early.
func (s *scene) startUp(ctx context.Context, revision int, pods Settings) error {
	before := s.now().Rollout.PodHash
	if err := s.gate.Delay("", pods.Startup); err != nil {
		return err
	}
	selector := selectorOf(revision)
	if err := s.gate.Delay(selector, pods.Startup); err != nil {
		return err
	}
	if err := s.gate.Limit(selector, 0); err != nil {
		return err
	}
	go s.pace(ctx, selector, before, pods)
	return nil
}

// pace opens the gate for one more pod at a time while pods wait.
func (s *scene) pace(ctx context.Context, selector, before string, pods Settings) {
	replicas := time.Duration(max(s.now().Rollout.Replicas, 1))
	ticker := time.NewTicker(max(pods.Spread/replicas, fastest))
	defer ticker.Stop()
	through := int32(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := s.now().Rollout
		size := s.now().Pods[now.PodHash].Size
		if most := min(size, now.Replicas-pods.Failing.of(now.Replicas)); now.PodHash != before && through < most {
			through++
			if pods.Spread == 0 {
				through = most
			}
			if s.gate.Limit(selector, int(through)) != nil {
				return // only a selector that cannot be read is refused, and this one was read before
			}
		}
	}
}
