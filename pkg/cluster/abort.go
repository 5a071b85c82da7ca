package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
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
	var written any // null removes
	if value != "" {
		written = value
	}
	return c.writeRollout(ctx, rollout, hash, right, "", func(version string) merge {
		return merge{"metadata": merge{"resourceVersion": version, "annotations": merge{annotation: written}}}
	})
}

// AbortRollout aborts a Rollout that is at the revision with this pod-template hash, as
// `kubectl argo rollouts abort` does: by status.abort, on the status subresource, or on
// the whole object where Rollouts are installed without one. An aborted Rollout is left
// as it is. Errors are as those of MarkRollout.
func (c *Cluster) AbortRollout(ctx context.Context, rollout corev1.ObjectReference, hash string) error {
	aborted := func(ro *v1alpha1.Rollout) bool { return ro.Status.Abort }
	abort := func(version string) merge {
		return merge{"metadata": merge{"resourceVersion": version}, "status": merge{"abort": true}}
	}
	err := c.writeRollout(ctx, rollout, hash, aborted, "status", abort)
	if apierrors.IsNotFound(err) {
		err = c.writeRollout(ctx, rollout, hash, aborted, "", abort)
	}
	return err
}

// merge is a JSON merge patch, or a part of one.
type merge map[string]any

// writeRollout patches the version of the Rollout that it has read and found not to be
// right, and reads again after a conflict.
func (c *Cluster) writeRollout(ctx context.Context, rollout corev1.ObjectReference, hash string,
	right func(*v1alpha1.Rollout) bool, subresource string, patch func(version string) merge,
) error {
	backoff := conflictBackoff
	for {
		ro, err := c.Rollout(ctx, rollout.Namespace, rollout.Name)
		switch {
		case err != nil:
			return err
		case ro == nil || ro.UID != rollout.UID || ro.Status.CurrentPodHash != hash:
			return fmt.Errorf("Rollout %s/%s at pod-template hash %s: %w", rollout.Namespace, rollout.Name, hash, ErrSuperseded)
		case right(ro):
			return nil
		}
		err = c.patchRollout(ctx, ro, patch(ro.ResourceVersion), subresource)
		if !apierrors.IsConflict(err) {
			return err
		}
		c.hooks().conflict("Rollout")
		if pause(ctx, backoff.Step()) != nil {
			return fmt.Errorf("gave up while others kept changing it: %w", err)
		}
	}
}

func (c *Cluster) patchRollout(ctx context.Context, ro *v1alpha1.Rollout, patch merge, subresource string) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	var on []string
	if subresource != "" {
		on = []string{subresource}
	}
	_, err = c.dynamic.Resource(rolloutResource).Namespace(ro.Namespace).
		Patch(ctx, ro.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager}, on...)
	if err != nil {
		return fmt.Errorf("writing Rollout %s/%s: %w", ro.Namespace, ro.Name, err)
	}
	c.hooks().written("Rollout")
	return nil
}
