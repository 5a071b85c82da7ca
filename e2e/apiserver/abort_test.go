package apiserver

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
)

const mark = "istio.argoproj-labs.io/canary-rolled-back"

var rolloutResource = v1alpha1.SchemeGroupVersion.WithResource("rollouts")

// aRollout is one at a revision, without a controller.
func aRollout(t *testing.T, namespace, hash string) corev1.ObjectReference {
	t.Helper()
	owner := createOwner(t, namespace, "Rollout", "cart")
	setStatus(t, namespace, fmt.Sprintf(`{"status":{"currentPodHash":%q,"stableRS":"old"}}`, hash))
	return corev1.ObjectReference{Namespace: namespace, Name: "cart", UID: owner.UID}
}

func setStatus(t *testing.T, namespace, patch string) {
	t.Helper()
	_, err := shared.Dynamic.Resource(rolloutResource).Namespace(namespace).
		Patch(t.Context(), "cart", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

func storedRollout(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	u, err := shared.Dynamic.Resource(rolloutResource).Namespace(namespace).Get(t.Context(), "cart", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestARolloutIsMarkedAndAbortedWithTheRightsThatTheControllerHas(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	rollout := aRollout(t, s.namespace, "new")
	ctx := within(t, time.Minute)
	const value = "new aborting: rolled back from 25: 5xx 4.2 % over 1 %"
	for range 2 {
		if err := s.MarkRollout(ctx, rollout, "new", mark, value); err != nil {
			t.Fatal(err)
		}
		if err := s.AbortRollout(ctx, rollout, "new"); err != nil {
			t.Fatal(err)
		}
	}
	u := storedRollout(t, s.namespace)
	aborted, _, _ := unstructured.NestedBool(u.Object, "status", "abort")
	if !aborted || u.GetAnnotations()[mark] != value {
		t.Errorf("aborted: %t, annotations: %v", aborted, u.GetAnnotations())
	}
	if codes := s.patches(t, "rollouts", "cart"); len(codes) != 2 {
		t.Errorf("patches were answered with %v, want two", codes)
	}
	if err := s.MarkRollout(ctx, rollout, "new", mark, ""); err != nil {
		t.Fatal(err)
	}
	if value, there := storedRollout(t, s.namespace).GetAnnotations()[mark]; there {
		t.Errorf("the annotation still says %q", value)
	}
}

func TestAWriteAboutARevisionThatIsNotTheRolloutsAnyMoreIsNone(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	rollout := aRollout(t, s.namespace, "newer")
	ctx := within(t, time.Minute)
	another := rollout
	another.UID = "another"
	for sentence, err := range map[string]error{
		"a mark of another revision":   s.MarkRollout(ctx, rollout, "new", mark, "new aborting: why"),
		"an abort of another revision": s.AbortRollout(ctx, rollout, "new"),
		"an abort of another Rollout":  s.AbortRollout(ctx, another, "newer"),
		"an abort of none":             s.AbortRollout(ctx, corev1.ObjectReference{Namespace: s.namespace, Name: "none"}, "new"),
	} {
		if !errors.Is(err, cluster.ErrSuperseded) {
			t.Errorf("%s: %v", sentence, err)
		}
	}
	if codes := s.patches(t, "rollouts", "cart"); len(codes) != 0 {
		t.Errorf("patches were answered with %v", codes)
	}
}

func TestAnAbortGetsThroughWhileTheStatusChangesAllTheTime(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	rollout := aRollout(t, s.namespace, "new")
	ctx, stop := context.WithCancel(within(t, time.Minute))
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = shared.Dynamic.Resource(rolloutResource).Namespace(s.namespace).Patch(ctx, "cart", types.MergePatchType,
				fmt.Appendf(nil, `{"status":{"availableReplicas":%d}}`, i), metav1.PatchOptions{}, "status")
		}
	}()
	for i := range 10 {
		if err := s.MarkRollout(ctx, rollout, "new", mark, fmt.Sprintf("new aborting: %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AbortRollout(ctx, rollout, "new"); err != nil {
		t.Fatal(err)
	}
	stop()
	<-done
	u := storedRollout(t, s.namespace)
	if aborted, _, _ := unstructured.NestedBool(u.Object, "status", "abort"); !aborted || u.GetAnnotations()[mark] != "new aborting: 9" {
		t.Errorf("aborted: %t, annotations: %v", aborted, u.GetAnnotations())
	}
}
