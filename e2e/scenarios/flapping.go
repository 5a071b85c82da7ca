package scenarios

import (
	"context"
	"fmt"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// Flaps is the mark of the moment at which a pod begins to flap.
const Flaps = "flapping"

// flapEvery is how long the pod is unready, and then ready, in each flap.
const flapEvery = time.Second

// Flapping is a canary that rests at half of the traffic while one of its pods
// fails its readiness probe and passes it again, over and over.
type Flapping struct {
	Level    Level
	Replicas int32
	// Flaps is how often.
	Flaps int
	// Before is called when everything is ready for the first flap; nil begins
	// at once.
	Before func(ctx context.Context) error
}

// Workload is the Rollout for one router.
func (f Flapping) Workload(router Router) Workload {
	return Workload{Level: f.Level, Router: router, Replicas: f.Replicas, Steps: []v1alpha1.CanaryStep{SetWeight(50), Pause(3600)}}
}

// Lasts is how long the pod flaps.
func (f Flapping) Lasts() time.Duration { return time.Duration(f.Flaps) * 2 * flapEvery }

// Play brings the canary to half of the traffic and lets the pod flap. It ends
// with the pod ready, and with the canary at its pause.
func (f Flapping) Play(ctx context.Context, s *Scene) error {
	if _, err := s.AwaitPhase(ctx, "", "Healthy"); err != nil {
		return fmt.Errorf("first deployment: %w", err)
	}
	if err := s.Deploy(ctx, "upgrade", 2); err != nil {
		return err
	}
	if _, err := s.Await(ctx, "the pause at half of the traffic", func(st timeline.State) bool {
		return st.CanaryWeight == 50 && st.Rollout.StepIndex == 1
	}); err != nil {
		return err
	}
	hash, err := s.Hash(ctx)
	if err != nil {
		return err
	}
	if f.Before != nil {
		if err := f.Before(ctx); err != nil {
			return err
		}
	}
	s.Mark(Flaps)
	for range f.Flaps {
		if err := flap(ctx, s, hash); err != nil {
			return err
		}
	}
	return nil
}

// flap makes one pod unready and ready again.
func flap(ctx context.Context, s *Scene, hash string) error {
	for _, unready := range []bool{true, false} {
		if err := s.FailOne(ctx, hash, unready); err != nil {
			return err
		}
		if err := sleep(ctx, flapEvery); err != nil {
			return err
		}
	}
	return nil
}
