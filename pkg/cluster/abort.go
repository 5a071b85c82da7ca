package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
)

// ErrSuperseded says that a write was about a revision that is not the Rollout's any more:
// the Rollout is gone, is another one of that name, or has moved on to another pod
// template. Nothing was written, and there is nothing to try again.
var ErrSuperseded = errors.New("the Rollout has moved on")

// MarkRollout sets an annotation of a Rollout that is at the revision with this
// pod-template hash; an empty value removes the annotation. Where it is right already
// nothing is written. The error is ErrSuperseded, or one after which the caller should try
// again.
func (c *Cluster) MarkRollout(ctx context.Context, rollout corev1.ObjectReference, hash, annotation, value string) error {
	right := func(ro *v1alpha1.Rollout) bool {
		present, there := ro.Annotations[annotation]
		return there == (value != "") && present == value
	}
	return c.writeRollout(ctx, rollout, hash, right, "", func(ro *v1alpha1.Rollout) jsonpatch.Patch {
		field := jsonpatch.Pointer("metadata", "annotations", annotation)
		switch {
		case value == "":
			return jsonpatch.Patch{jsonpatch.Remove(field)}
		case len(ro.Annotations) == 0:
			// The parent is missing, and must not replace one that has come since.
			return jsonpatch.Patch{jsonpatch.Add(jsonpatch.Pointer("metadata", "annotations"), map[string]string{annotation: value})}.
				Guarded(ro.ResourceVersion)
		}
		return jsonpatch.Patch{jsonpatch.Add(field, value)}
	})
}

// AbortRollout aborts a Rollout that is at the revision with this pod-template hash, as
// `kubectl argo rollouts abort` does: by status.abort, on the status subresource, or on
// the whole object where Rollouts are installed without one. An aborted Rollout is left
// as it is. Errors are as those of MarkRollout.
func (c *Cluster) AbortRollout(ctx context.Context, rollout corev1.ObjectReference, hash string) error {
	aborted := func(ro *v1alpha1.Rollout) bool { return ro.Status.Abort }
	abort := func(*v1alpha1.Rollout) jsonpatch.Patch {
		return jsonpatch.Patch{jsonpatch.Add(jsonpatch.Pointer("status", "abort"), true)}
	}
	err := c.writeRollout(ctx, rollout, hash, aborted, "status", abort)
	if apierrors.IsNotFound(err) {
		err = c.writeRollout(ctx, rollout, hash, aborted, "", abort)
	}
	return err
}

// writeRollout patches a Rollout that it has read and found not to be right. The patch
// holds for that Rollout at that revision and for whatever else of it has changed since:
// a status that the controller changes all the time must not keep an abort from coming
// through, as a test of the resourceVersion would.
func (c *Cluster) writeRollout(ctx context.Context, rollout corev1.ObjectReference, hash string,
	right func(*v1alpha1.Rollout) bool, subresource string, patch func(*v1alpha1.Rollout) jsonpatch.Patch,
) error {
	version, backoff := "", conflictBackoff
	var refused error
	for {
		ro, err := c.Rollout(ctx, rollout.Namespace, rollout.Name)
		switch {
		case err != nil:
			return errors.Join(refused, err)
		case ro == nil || ro.UID != rollout.UID || ro.Status.CurrentPodHash != hash:
			return fmt.Errorf("Rollout %s/%s at pod-template hash %s: %w", rollout.Namespace, rollout.Name, hash, ErrSuperseded)
		case right(ro):
			return nil
		case refused != nil && ro.ResourceVersion == version:
			return refused // not for what has changed meanwhile: nothing has
		}
		version = ro.ResourceVersion
		refused = c.patchRollout(ctx, ro, patch(ro), subresource)
		if !apierrors.IsInvalid(refused) && !apierrors.IsConflict(refused) {
			return refused
		}
		c.hooks().conflict("Rollout")
		if pause(ctx, backoff.Step()) != nil {
			return fmt.Errorf("gave up while others kept changing it: %w", refused)
		}
	}
}

// patchRollout lets the API server apply the patch only to the Rollout and the revision
// that were read.
func (c *Cluster) patchRollout(ctx context.Context, ro *v1alpha1.Rollout, patch jsonpatch.Patch, subresource string) error {
	body, err := append(jsonpatch.Patch{
		jsonpatch.Test(jsonpatch.Pointer("metadata", "uid"), ro.UID),
		jsonpatch.Test(jsonpatch.Pointer("status", "currentPodHash"), ro.Status.CurrentPodHash),
	}, patch...).Marshal()
	if err != nil {
		return err
	}
	var on []string
	if subresource != "" {
		on = []string{subresource}
	}
	_, err = c.dynamic.Resource(rolloutResource).Namespace(ro.Namespace).
		Patch(ctx, ro.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: FieldManager}, on...)
	if err != nil {
		return fmt.Errorf("writing Rollout %s/%s: %w", ro.Namespace, ro.Name, err)
	}
	c.hooks().written("Rollout")
	return nil
}
