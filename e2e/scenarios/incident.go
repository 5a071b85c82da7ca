package scenarios

import (
	"context"
	"fmt"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// calm is how long nothing happens before a rollback.
const calm = 2 * time.Second

// Rollback is the mark of the moment at which an incident's rollback begins.
const Rollback = "rollback"

// Incident is what this project was made for (argo-rollouts#3941): a rollback
// within rollbackWindow skips the steps, and the old revision has to be scaled
// up from nothing while the controller already asks for the last weight.
type Incident struct {
	Level    Level
	Replicas int32
	// Last is the weight of the last step.
	Last int32
	// Ready is how many of the old revision's pods become ready at first, and
	// Wait for how long it stays at that.
	Ready int
	Wait  time.Duration
	// Edit changes the Rollout before it is applied.
	Edit func(*v1alpha1.Rollout)
	// Before is called when everything is ready for the rollback, which begins
	// when it returns; nil begins at once.
	Before func(ctx context.Context) error
	// During plays on while only Ready pods are there; nil just waits for Wait.
	// It gets the hash of the revision that is being rolled back to.
	During func(ctx context.Context, s *Scene, hash string) error
}

// Workload is the incident's Rollout for one router.
func (i Incident) Workload(router Router) Workload {
	return Workload{
		Level: i.Level, Router: router, Replicas: i.Replicas,
		Steps: []v1alpha1.CanaryStep{SetWeight(1), Pause(1), SetWeight(5), Pause(1), SetWeight(i.Last)},
		Edit: func(ro *v1alpha1.Rollout) {
			minPods, delay := int32(2), int32(1)
			ro.Spec.Strategy.Canary.MinPodsPerReplicaSet = &minPods
			ro.Spec.Strategy.Canary.ScaleDownDelaySeconds = &delay
			if i.Edit != nil {
				i.Edit(ro)
			}
		},
	}
}

// Play deploys revision 1, brings out revision 2, waits until nothing of 1 is
// left, and rolls back to 1. It returns when the rollback is over, with an error
// if it never is.
func (i Incident) Play(ctx context.Context, s *Scene) error {
	old, err := i.prepare(ctx, s)
	if err != nil {
		return err
	}
	if err := s.Gate.Limit(HashSelector(old), i.Ready); err != nil {
		return err
	}
	if i.Before != nil {
		if err := i.Before(ctx); err != nil {
			return err
		}
	}
	if err := s.Deploy(ctx, Rollback, 1); err != nil {
		return err
	}
	if err := i.suffer(ctx, s, old); err != nil {
		return err
	}
	if err := s.Gate.Limit(HashSelector(old), -1); err != nil {
		return err
	}
	_, err = s.AwaitPhase(ctx, Rollback, "Healthy")
	return err
}

// prepare returns the hash of revision 1, of which no pod is left.
func (i Incident) prepare(ctx context.Context, s *Scene) (string, error) {
	if _, err := s.AwaitPhase(ctx, "", "Healthy"); err != nil {
		return "", fmt.Errorf("first deployment: %w", err)
	}
	old, err := s.Hash(ctx)
	if err != nil {
		return "", err
	}
	if err := s.Deploy(ctx, "upgrade", 2); err != nil {
		return "", err
	}
	if _, err := s.AwaitPhase(ctx, "upgrade", "Healthy"); err != nil {
		return "", fmt.Errorf("upgrade: %w", err)
	}
	_, err = s.Await(ctx, "revision 1 is scaled away", func(st timeline.State) bool {
		pods, seen := st.Pods[old]
		return seen && pods.Size == 0 && pods.Available == 0
	})
	if err != nil {
		return "", err
	}
	// A calm moment: v1.8 of the controller puts what it has just patched into its
	// own cache, and so may lose a change of the spec that comes at that instant.
	return old, sleep(ctx, calm)
}

// suffer lasts while only a few pods are there.
func (i Incident) suffer(ctx context.Context, s *Scene, old string) error {
	_, err := s.Await(ctx, "the first pods of the rollback", func(st timeline.State) bool {
		return st.Pods[old].Available >= int32(i.Ready)
	})
	if err != nil {
		return err
	}
	if i.During != nil {
		return i.During(ctx, s, old)
	}
	return sleep(ctx, i.Wait)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
