package mesh

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// Result is a story as one router played it.
type Result struct {
	Story  Story
	Router scenarios.Router
	// Timeline begins at the story's mark.
	Timeline timeline.Timeline
	// Record are the requests from the mark on.
	Record fleet.Record
	// Moments are the changes of endpoints and istiod's pushes.
	Moments []Moment
	// Windows are the times of constant weight, with the share that was measured.
	Windows []Window
	// Cost is what istiod did, from [Performance.Begin] on, for everybody: it is
	// that of the story only where nothing else was played.
	Cost Cost
}

// Play plays a story with one router. What was recorded is returned even when
// the story failed: it tells why.
func (s *Stage) Play(ctx context.Context, story Story, router scenarios.Router) (Result, error) {
	return s.play(ctx, story, router, nil)
}

// Both plays a story with both routers at the same time, under the same load, and
// lets them begin together: a busy machine slows both down alike.
func (s *Stage) Both(ctx context.Context, story Story) (native, plugin Result, err error) {
	meeting := scenarios.NewMeeting(2)
	group, groupCtx := errgroup.WithContext(ctx)
	for router, result := range map[scenarios.Router]*Result{scenarios.Native: &native, scenarios.Plugin: &plugin} {
		group.Go(func() (err error) {
			if *result, err = s.play(groupCtx, story, router, meeting.Arrive); err != nil {
				err = fmt.Errorf("%s with the %s router: %w", story.Name, router, err)
			}
			return err
		})
	}
	err = group.Wait()
	return native, plugin, err
}

func (s *Stage) play(ctx context.Context, story Story, router scenarios.Router, meet func(context.Context) error) (Result, error) {
	result := Result{Story: story, Router: router}
	w := story.Workload(router)
	w.Mesh = true
	controller, err := s.controllerOf(ctx, router)
	if err != nil {
		return result, err
	}
	scene, err := scenarios.Open(ctx, s.Lab, controller, w)
	if err != nil {
		return result, err
	}
	err = s.underLoad(ctx, &result, scene, meet)
	result.Timeline = scene.Close(context.WithoutCancel(ctx))
	return result, errors.Join(err, result.judge())
}

// underLoad plays in an open scene and keeps what was seen beside its objects.
func (s *Stage) underLoad(ctx context.Context, result *Result, scene *scenarios.Scene, meet func(context.Context) error) error {
	s.Backend.SetCapacity(scene.Namespace, result.Story.Capacity)
	sending, err := fleet.New(fleet.Options{
		Istiod: s.Istiod.Address, Target: scenarios.Target(scene.Namespace), Namespace: scene.Namespace, Rate: result.Story.Rate,
	})
	if err != nil {
		return err
	}
	slices, err := followEndpoints(s.Lab.Client, scene.Namespace)
	if err != nil {
		return err
	}
	p := &Performance{Scene: scene, Sending: sending, stage: s, meet: meet}
	err = p.perform(ctx, result.Story)
	result.Record, result.Moments = sending.Stop(), slices.stop()
	after, costErr := readCost(context.WithoutCancel(ctx), s.Istiod)
	result.Cost = after.since(p.before)
	pushed, logErr := pushes(s.Istiod.Log(), result.Record.Began, result.Record.Ended)
	result.Moments = append(result.Moments, pushed...)
	return errors.Join(err, costErr, logErr)
}

// judge cuts everything at the mark and measures the shares.
func (r *Result) judge() error {
	if r.Story.Mark != "" {
		cut, err := r.Timeline.Since(r.Story.Mark)
		if err != nil {
			return err
		}
		r.Timeline = cut
		r.Record = r.Record.Since(cut.Start)
	}
	r.Windows = windows(r.Timeline, r.Record)
	return nil
}
