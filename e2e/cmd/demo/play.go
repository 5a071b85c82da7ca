package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

const (
	// patience bounds one story, without the wait that it was asked for. On a
	// quiet machine the longest takes a minute and a half.
	patience = 8 * time.Minute
	// upgrade is the mark at which the plain canary begins.
	upgrade = "upgrade"
)

// stage is where stories are played and told.
type stage struct {
	lab        *lab.Lab
	controller *lab.Controller
	out        io.Writer
}

// pair is one story, played by both routers at the same time.
type pair struct{ native, plugin timeline.Timeline }

// since cuts both timelines at the same mark.
func (p pair) since(mark string) (pair, error) {
	native, nativeErr := p.native.Since(mark)
	plugin, pluginErr := p.plugin.Since(mark)
	return pair{native, plugin}, errors.Join(nativeErr, pluginErr)
}

func (p pair) draw(out io.Writer) error { return timeline.WriteSVG(out, p.native, p.plugin) }

// incident plays the rollback; the timelines begin with it.
func (s stage) incident(ctx context.Context, o options) (pair, error) {
	m := scenarios.NewMeeting(2)
	story := o.incident()
	story.Before = m.Arrive
	return s.both(ctx, o.wait, scenarios.Rollback, story.Workload, story.Play)
}

// canary plays three steps to their end; the timelines begin with the new
// version.
func (s stage) canary(ctx context.Context, o options) (pair, error) {
	m := scenarios.NewMeeting(2)
	workload := func(router scenarios.Router) scenarios.Workload {
		return scenarios.Workload{Level: o.level, Router: router, Replicas: o.replicas, Steps: canarySteps()}
	}
	return s.both(ctx, 0, upgrade, workload, func(ctx context.Context, scene *scenarios.Scene) error {
		if _, err := scene.AwaitPhase(ctx, "", "Healthy"); err != nil {
			return fmt.Errorf("first deployment: %w", err)
		}
		if err := m.Arrive(ctx); err != nil {
			return err
		}
		if err := scene.Deploy(ctx, upgrade, 2); err != nil {
			return err
		}
		_, err := scene.AwaitPhase(ctx, upgrade, "Healthy")
		return err
	})
}

// flapping plays the pod that comes and goes; the timelines begin with its first
// failure.
func (s stage) flapping(ctx context.Context, o options) (pair, error) {
	m := scenarios.NewMeeting(2)
	story := o.flapping()
	story.Before = m.Arrive
	return s.both(ctx, story.Lasts(), scenarios.Flaps, story.Workload, story.Play)
}

func canarySteps() []v1alpha1.CanaryStep {
	return []v1alpha1.CanaryStep{
		scenarios.SetWeight(10), scenarios.Pause(1), scenarios.SetWeight(50), scenarios.Pause(1), scenarios.SetWeight(100),
	}
}

type script = func(context.Context, *scenarios.Scene) error

// both plays one script with each router, tells how it goes, and cuts what was
// recorded at the mark. A failure of one ends the other, too.
func (s stage) both(ctx context.Context, extra time.Duration, mark string,
	workload func(scenarios.Router) scenarios.Workload, play script,
) (pair, error) {
	ctx, cancel := context.WithTimeout(ctx, patience+extra)
	defer cancel()
	var played pair
	watched := timeline.NewProgress(s.out, "", [2]string{string(scenarios.Native), string(scenarios.Plugin)})
	group, groupCtx := errgroup.WithContext(ctx)
	for router, recorded := range map[scenarios.Router]*timeline.Timeline{
		scenarios.Native: &played.native, scenarios.Plugin: &played.plugin,
	} {
		group.Go(func() error {
			var err error
			*recorded, err = scenarios.Play(groupCtx, s.lab, s.controller, workload(router), followed(watched, router, play))
			if err != nil {
				err = fmt.Errorf("play with the %s router: %w", router, err)
			}
			return err
		})
	}
	stop := watched.Start()
	err := group.Wait()
	stop()
	if err != nil {
		return played, fmt.Errorf("%w\n%s", err, s.explain(played))
	}
	return played.since(mark)
}

// followed is a script whose scene is watched while it is played.
func followed(watched *timeline.Progress, router scenarios.Router, play script) script {
	return func(ctx context.Context, scene *scenarios.Scene) error {
		watched.Follow(string(router), scene.Now)
		defer watched.Follow(string(router), nil)
		return play(ctx, scene)
	}
}

// explain is what helps to understand a story without an end.
func (s stage) explain(p pair) string {
	var b strings.Builder
	for _, t := range []timeline.Timeline{p.native, p.plugin} {
		if len(t.Entries) > 0 {
			_ = timeline.Print(&b, t) // a Builder takes everything
			b.WriteString("\n")
		}
	}
	return b.String() + s.controller.Tail(40)
}
