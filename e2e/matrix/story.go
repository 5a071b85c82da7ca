package matrix

import (
	"context"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// Marks of the stories.
const (
	upgrade = "upgrade"
	abort   = "abort"
)

// Story is one thing that happens to a workload.
type Story struct {
	// Name is a word for commands, Title a few words for tables.
	Name, Title string
	workload    func(scenarios.Level) scenarios.Workload
	play        func(context.Context, *scenarios.Scene) error
	// judge returns a sentence for each thing that is wrong.
	judge func(timeline.Timeline) []string
	// lacks, by controller, replaces play and judge where a release is known to be
	// unable to do it.
	lacks map[string]lack
}

// lack is what happens instead.
type lack struct {
	play  func(context.Context, *scenarios.Scene) error
	judge func(timeline.Timeline) []string
}

// Stories are all there are.
func Stories() []Story { return []Story{canary(), aborted(), incident(), parts()} }

func workload(max int32, steps ...v1alpha1.CanaryStep) func(scenarios.Level) scenarios.Workload {
	return func(level scenarios.Level) scenarios.Workload {
		return scenarios.Workload{Level: level, Router: scenarios.Plugin, Replicas: 10, Max: max, Steps: steps}
	}
}

func canary() Story {
	return Story{
		Name: "canary", Title: "canary 10 → 50 → 100",
		workload: workload(0, scenarios.SetWeight(10), scenarios.Pause(1), scenarios.SetWeight(50), scenarios.Pause(1), scenarios.SetWeight(100)),
		play:     upgraded,
		judge: func(t timeline.Timeline) []string {
			return all(within(t, upgrade, "Healthy"), follows(t, upgrade, 10, 50, 100, 0), promoted(t))
		},
	}
}

func aborted() Story {
	return Story{
		Name: "abort", Title: "abort at 50",
		workload: workload(0, scenarios.SetWeight(50), scenarios.Pause(600)),
		play: func(ctx context.Context, s *scenarios.Scene) error {
			if err := deployed(ctx, s); err != nil {
				return err
			}
			if err := s.Deploy(ctx, upgrade, 2); err != nil {
				return err
			}
			if _, err := s.Await(ctx, "weight 50", func(st timeline.State) bool { return st.CanaryWeight == 50 }); err != nil {
				return err
			}
			if err := s.Abort(ctx, abort); err != nil {
				return err
			}
			if _, err := s.AwaitPhase(ctx, abort, "Degraded"); err != nil {
				return err
			}
			_, err := s.Await(ctx, "weight 0 after the abort", func(st timeline.State) bool { return st.CanaryWeight == 0 })
			return err
		},
		judge: func(t timeline.Timeline) []string {
			return all(within(t, abort, "Degraded"), follows(t, upgrade, 50, 0))
		},
	}
}

func incident() Story {
	play := func(level scenarios.Level) scenarios.Incident {
		return scenarios.Incident{Level: level, Replicas: 20, Last: 100, Ready: 2, Wait: 3 * time.Second}
	}
	return Story{
		Name: "incident", Title: "rollback with 2 of 20 pods",
		workload: func(level scenarios.Level) scenarios.Workload { return play(level).Workload(scenarios.Plugin) },
		play: func(ctx context.Context, s *scenarios.Scene) error {
			if err := play("").Play(ctx, s); err != nil { // the level is the workload's alone
				return err
			}
			return settled(ctx, s)
		},
		judge: func(t timeline.Timeline) []string {
			return all(within(t, scenarios.Rollback, "Healthy"), promoted(t), carried(t, scenarios.Rollback),
				told(t, scenarios.Rollback, "CanaryWeightCapped", "CanaryWeightReleased", "VirtualServiceUpdated"))
		},
	}
}

// parts is a canary in tenths of a percent.
func parts() Story {
	return Story{
		Name: "parts", Title: "`maxTrafficWeight: 1000`",
		workload: workload(1000, scenarios.SetWeight(100), scenarios.Pause(1), scenarios.SetWeight(500), scenarios.Pause(1), scenarios.SetWeight(1000)),
		play:     upgraded,
		judge: func(t timeline.Timeline) []string {
			return all(within(t, upgrade, "Healthy"), follows(t, upgrade, 100, 500, 1000, 0), promoted(t))
		},
		lacks: map[string]lack{"v1.8.5": {
			// That release counts the stable's pods in parts of 100, and so finds too
			// few of them for every weight but the highest, which needs none: the
			// steps go by without traffic, and the end has all of it at once.
			play: func(ctx context.Context, s *scenarios.Scene) error {
				if err := deployed(ctx, s); err != nil {
					return err
				}
				if err := s.Deploy(ctx, upgrade, 2); err != nil {
					return err
				}
				_, err := s.AwaitPhase(ctx, upgrade, "Healthy")
				return err
			},
			judge: func(t timeline.Timeline) []string { return follows(t, upgrade, 1000) },
		}},
	}
}

// deployed waits for the first healthy state, which every story begins with.
func deployed(ctx context.Context, s *scenarios.Scene) error {
	_, err := s.AwaitPhase(ctx, "", "Healthy")
	return err
}

// upgraded brings a version out and waits for its end.
func upgraded(ctx context.Context, s *scenarios.Scene) error {
	if err := deployed(ctx, s); err != nil {
		return err
	}
	if err := s.Deploy(ctx, upgrade, 2); err != nil {
		return err
	}
	if _, err := s.AwaitPhase(ctx, upgrade, "Healthy"); err != nil {
		return err
	}
	return settled(ctx, s)
}

// settled waits until all traffic is back on the stable side, which is one
// reconcile after the Rollout is healthy.
func settled(ctx context.Context, s *scenarios.Scene) error {
	_, err := s.Await(ctx, "weight 0 after the promotion", isPromoted)
	return err
}

func isPromoted(st timeline.State) bool {
	return st.CanaryWeight == 0 && st.StableWeight == st.Max &&
		st.StableHash == st.Rollout.PodHash && st.CanaryHash == st.Rollout.PodHash
}
