package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

const (
	// modelName is the name of a Rollout that others are copies of. Nothing else in its
	// objects may hold this text.
	modelName = "shop-model"
	// originalPatience bounds each of its revisions.
	originalPatience = 2 * time.Minute
	// calmLooks is how many looks in a row have to find it at rest: what is written at
	// last may come after the status.
	calmLooks = 20
)

// original is the Rollout that others will be copies of, while the controller brings it
// to where they are to be.
type original struct {
	lab       *lab.Lab
	namespace string
	member    member
}

// play brings out so many revisions, one after the other.
func (o original) play(ctx context.Context, revisions int) error {
	manifests, err := o.member.manifests()
	if err != nil {
		return err
	}
	if _, err := o.lab.Apply(ctx, o.namespace, manifests); err != nil {
		return err
	}
	for version := 1; version <= revisions; version++ {
		if err := o.patch(ctx, fmt.Sprintf(`{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}`, image(version))); err != nil {
			return err
		}
		if err := o.await(ctx, memberReplicas, version); err != nil {
			return err
		}
	}
	return nil
}

func (o original) patch(ctx context.Context, op string) error {
	_, err := o.lab.Dynamic.Resource(rolloutResource).Namespace(o.namespace).
		Patch(ctx, o.member.name, types.JSONPatchType, []byte("["+op+"]"), metav1.PatchOptions{})
	return err
}

// await waits until it is at rest with so many pods and ReplicaSets.
func (o original) await(ctx context.Context, replicas int64, sets int) error {
	ctx, cancel := context.WithTimeout(ctx, originalPatience)
	defer cancel()
	calm := 0
	return lab.Until(ctx, fmt.Sprintf("%s at rest with %d pods in revision %d", o.member.name, replicas, sets), func(ctx context.Context) (bool, error) {
		ok, err := o.rests(ctx, replicas, sets)
		if calm++; err != nil || !ok {
			calm = 0
		}
		return calm > calmLooks, err
	})
}

func (o original) rests(ctx context.Context, replicas int64, sets int) (bool, error) {
	ro, err := o.lab.Dynamic.Resource(rolloutResource).Namespace(o.namespace).Get(ctx, o.member.name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	list, err := o.lab.Client.AppsV1().ReplicaSets(o.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + o.member.name})
	if err != nil || len(list.Items) != sets {
		return false, err
	}
	there := int64(0)
	for _, set := range list.Items {
		there += int64(set.Status.Replicas)
	}
	weight, _, _ := unstructured.NestedInt64(ro.Object, "status", "canary", "weights", "canary", "weight")
	return there == replicas && weight == 0 && isHealthy(ro), nil
}
