package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

const (
	// aloneReplicas is the size of a Rollout that has the lab to itself.
	aloneReplicas = 20
	// alonePatience bounds one story.
	alonePatience = 4 * time.Minute
	// upgrade is the mark at which a canary begins.
	upgrade = "upgrade"
)

// levels are the two at which Istio splits traffic.
var levels = []scenarios.Level{scenarios.Subset, scenarios.Host}

// routers are the two that are compared, in the order of the tables.
var routers = []scenarios.Router{scenarios.Native, scenarios.Plugin}

// aloneRow is what one router made of one canary.
type aloneRow struct {
	story    string
	level    scenarios.Level
	router   scenarios.Router
	measures timeline.Measures
	parts    parts
}

// story is a script that both routers play.
type story struct {
	name     string
	mark     string // where the measured time begins
	workload func(scenarios.Router) scenarios.Workload
	play     func(context.Context, *scenarios.Scene) error
}

// stepsStory is a canary 10 → 50 → 100.
func stepsStory(level scenarios.Level, together *scenarios.Meeting) story {
	return story{
		name: "canary 10 → 50 → 100", mark: upgrade,
		workload: func(router scenarios.Router) scenarios.Workload {
			return scenarios.Workload{Level: level, Router: router, Replicas: aloneReplicas, Steps: []v1alpha1.CanaryStep{
				scenarios.SetWeight(10), scenarios.Pause(1), scenarios.SetWeight(50), scenarios.Pause(1), scenarios.SetWeight(100),
			}}
		},
		play: func(ctx context.Context, s *scenarios.Scene) error {
			if _, err := s.AwaitPhase(ctx, "", "Healthy"); err != nil {
				return fmt.Errorf("first deployment: %w", err)
			}
			if err := together.Arrive(ctx); err != nil {
				return err
			}
			if err := s.Deploy(ctx, upgrade, 2); err != nil {
				return err
			}
			_, err := s.AwaitPhase(ctx, upgrade, "Healthy")
			return err
		},
	}
}

// incidentStory is a rollback with 2 of 20 pods for 5 s.
func incidentStory(level scenarios.Level, together *scenarios.Meeting) story {
	incident := scenarios.Incident{Level: level, Replicas: aloneReplicas, Last: 100, Ready: 2, Wait: 5 * time.Second, Before: together.Arrive}
	return story{name: "incident", mark: scenarios.Rollback, workload: incident.Workload, play: incident.Play}
}

// playAlone plays a story with both routers at the same time, at both levels.
func playAlone(ctx context.Context, l *lab.Lab, c *lab.Controller, make func(scenarios.Level, *scenarios.Meeting) story) ([]aloneRow, error) {
	var rows []aloneRow
	for _, level := range levels {
		pair, err := playBoth(ctx, l, c, level, make(level, scenarios.NewMeeting(len(routers))))
		if err != nil {
			return rows, err
		}
		rows = append(rows, pair...)
	}
	return rows, nil
}

func playBoth(ctx context.Context, l *lab.Lab, c *lab.Controller, level scenarios.Level, s story) ([]aloneRow, error) {
	ctx, cancel := context.WithTimeout(ctx, alonePatience)
	defer cancel()
	rows := make([]aloneRow, len(routers))
	group, ctx := errgroup.WithContext(ctx)
	for i, router := range routers {
		group.Go(func() error {
			recorded, err := scenarios.Play(ctx, l, c, s.workload(router), s.play)
			if err == nil {
				recorded, err = recorded.Since(s.mark)
			}
			if err != nil {
				return fmt.Errorf("%s, %s level, with the %s router: %w", s.name, level, router, err)
			}
			rows[i] = aloneRow{story: s.name, level: level, router: router, measures: recorded.Measure()}
			if rows[i].parts, err = partsOf(recorded); err != nil {
				return fmt.Errorf("%s, %s level, with the %s router: %w", s.name, level, router, err)
			}
			return nil
		})
	}
	return rows, group.Wait()
}
