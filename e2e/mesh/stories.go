package mesh

import (
	"context"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// Marks of the stories.
const (
	Upgrade   = "upgrade"
	Supersede = "supersede"
	Abort     = "abort"
	Promote   = "promote"
	Revert    = "revert"
	Migration = "migration"
)

// Names of the stories that a test or a table asks for.
const (
	plainName    = "plain"
	incidentName = "incident"
)

// perPod is what a pod of the incident can take in requests a second: the whole
// load needs 7 pods, and 2 can carry less than a third of it.
const perPod = 14

// shrinkAfter is how long the old revision's pods are kept, in seconds. It is
// short so that their end belongs to the story.
const shrinkAfter = 2

// Stories are all there are, by level.
func Stories(level scenarios.Level) []Story {
	return []Story{
		PlainCanary(level), Incident(level), Flapping(level), Superseded(level), Aborted(level), Promoted(level),
		DynamicStable(level), FirstDeployment(level), TakenOver(level), Reverted(level),
	}
}

// workload is one for either router. The old revision's pods go soon after.
func workload(level scenarios.Level, replicas int32, steps ...v1alpha1.CanaryStep) func(scenarios.Router) scenarios.Workload {
	return func(router scenarios.Router) scenarios.Workload {
		return scenarios.Workload{Level: level, Router: router, Replicas: replicas, Steps: steps, Edit: func(ro *v1alpha1.Rollout) {
			delay := int32(shrinkAfter)
			ro.Spec.Strategy.Canary.ScaleDownDelaySeconds = &delay
			ro.Spec.Strategy.Canary.AbortScaleDownDelaySeconds = &delay
		}}
	}
}

// PlainCanary is 10, 50 and 100 percent, with a load and with pauses that are
// enough to measure the shares.
func PlainCanary(level scenarios.Level) Story {
	return Story{
		Name: plainName, Level: level, Title: "plain canary, 10 → 50 → 100", Rate: 240, Mark: Upgrade,
		Workload: workload(level, 10, scenarios.SetWeight(10), scenarios.Pause(12), scenarios.SetWeight(50), scenarios.Pause(22), scenarios.SetWeight(100)),
		Play: func(ctx context.Context, p *Performance) error {
			return upgraded(ctx, p, 2)
		},
	}
}

// Incident is what this project was made for, with pods that cannot take more
// than their share.
func Incident(level scenarios.Level) Story {
	i := scenarios.Incident{Level: level, Replicas: 20, Last: 100, Ready: 2, Wait: 5 * time.Second}
	return Story{
		Name: incidentName, Level: level, Title: "incident: rollback with 2 of 20 pods for 5 s, overload", Capacity: perPod, Mark: scenarios.Rollback,
		Workload: i.Workload,
		Play:     rollback(i),
	}
}

// Flapping is the incident with the two pods failing their readiness twice.
func Flapping(level scenarios.Level) Story {
	i := scenarios.Incident{Level: level, Replicas: 20, Last: 100, Ready: 2, During: failTwice}
	return Story{
		Name: "flapping", Level: level, Title: "the same, with both pods failing readiness twice", Capacity: perPod, Mark: scenarios.Rollback, Forced: true,
		Workload: i.Workload,
		Play:     rollback(i),
	}
}

// rollback plays an incident that begins as a performance does.
func rollback(i scenarios.Incident) func(context.Context, *Performance) error {
	return func(ctx context.Context, p *Performance) error {
		i.Before = p.Begin
		return i.Play(ctx, p.Scene)
	}
}

func failTwice(ctx context.Context, s *scenarios.Scene, hash string) error {
	for range 2 {
		for _, unready := range []bool{true, false} {
			if err := s.Fail(ctx, hash, unready); err != nil {
				return err
			}
			if err := sleep(ctx, 2*time.Second); err != nil {
				return err
			}
		}
	}
	return nil
}

// Superseded is a third version that comes while the second has half of the
// traffic.
func Superseded(level scenarios.Level) Story {
	return Story{
		Name: "superseded", Level: level, Title: "running canary superseded at 50 %", Mark: Supersede,
		Workload: workload(level, 10, scenarios.SetWeight(50), scenarios.Pause(600), scenarios.SetWeight(100)),
		Play: func(ctx context.Context, p *Performance) error {
			if err := p.Deploy(ctx, Upgrade, 2); err != nil {
				return err
			}
			second, err := resting(ctx, p, 50, "")
			if err != nil {
				return err
			}
			if err := p.Begin(ctx); err != nil {
				return err
			}
			if err := p.Deploy(ctx, Supersede, 3); err != nil {
				return err
			}
			if _, err := resting(ctx, p, 50, second); err != nil {
				return err
			}
			if err := p.Resume(ctx); err != nil {
				return err
			}
			return finished(ctx, p, Supersede)
		},
	}
}

// Aborted is a canary that is given up at half of the traffic.
func Aborted(level scenarios.Level) Story {
	return Story{
		Name: "abort", Level: level, Title: "abort at 50 %", Mark: Abort,
		Workload: workload(level, 10, scenarios.SetWeight(50), scenarios.Pause(600)),
		Play: func(ctx context.Context, p *Performance) error {
			if err := p.Deploy(ctx, Upgrade, 2); err != nil {
				return err
			}
			if _, err := resting(ctx, p, 50, ""); err != nil {
				return err
			}
			if err := p.Begin(ctx); err != nil {
				return err
			}
			if err := p.Abort(ctx, Abort); err != nil {
				return err
			}
			if _, err := p.AwaitPhase(ctx, Abort, "Degraded"); err != nil {
				return err
			}
			_, err := p.Await(ctx, "no pod of the aborted canary", func(st timeline.State) bool {
				return st.CanaryWeight == 0 && st.Pods[st.Rollout.PodHash].Size == 0
			})
			return err
		},
	}
}

// Promoted skips what is left of the steps.
func Promoted(level scenarios.Level) Story {
	return Story{
		Name: "promotion", Level: level, Title: "full promotion at 10 %", Mark: Promote,
		Workload: workload(level, 10, scenarios.SetWeight(10), scenarios.Pause(600), scenarios.SetWeight(50)),
		Play: func(ctx context.Context, p *Performance) error {
			if err := p.Deploy(ctx, Upgrade, 2); err != nil {
				return err
			}
			if _, err := resting(ctx, p, 10, ""); err != nil {
				return err
			}
			if err := p.Begin(ctx); err != nil {
				return err
			}
			if err := p.PromoteFull(ctx, Promote); err != nil {
				return err
			}
			return finished(ctx, p, Promote)
		},
	}
}

// DynamicStable scales the stable away as the canary grows, to its end.
func DynamicStable(level scenarios.Level) Story {
	steps := workload(level, 10, scenarios.SetWeight(30), scenarios.Pause(3), scenarios.SetWeight(70), scenarios.Pause(3), scenarios.SetWeight(100))
	return Story{
		Name: "dynamic", Level: level, Title: "dynamicStableScale, 30 → 70 → 100", Mark: Upgrade,
		Workload: func(router scenarios.Router) scenarios.Workload {
			w := steps(router)
			w.Edit = func(ro *v1alpha1.Rollout) { ro.Spec.Strategy.Canary.DynamicStableScale = true }
			return w
		},
		Play: func(ctx context.Context, p *Performance) error {
			return upgraded(ctx, p, 2)
		},
	}
}

// FirstDeployment has nothing before it: requests come with the first pod.
func FirstDeployment(level scenarios.Level) Story {
	return Story{
		Name: "first", Level: level, Title: "first deployment", Cold: true,
		Workload: workload(level, 10, scenarios.SetWeight(10), scenarios.Pause(1)),
		Play: func(ctx context.Context, p *Performance) error {
			if _, err := p.Await(ctx, "the first pod", func(st timeline.State) bool {
				return st.Pods[st.Rollout.PodHash].Available > 0
			}); err != nil {
				return err
			}
			if err := p.Load(ctx); err != nil {
				return err
			}
			if err := p.Begin(ctx); err != nil {
				return err
			}
			_, err := p.AwaitPhase(ctx, "", "Healthy")
			return err
		},
	}
}

// TakenOver is the first deployment where a Deployment served before.
func TakenOver(level scenarios.Level) Story {
	steps := workload(level, 10, scenarios.SetWeight(10), scenarios.Pause(1))
	return Story{
		Name: "takeover", Level: level, Title: "first deployment, taking over a Deployment", Mark: Migration, Cold: true,
		Workload: func(router scenarios.Router) scenarios.Workload {
			w := steps(router)
			w.From = v1alpha1.ScaleDownOnSuccess
			return w
		},
		Play: func(ctx context.Context, p *Performance) error {
			// One pod after the other, so that there is a time in between.
			if err := p.Gate.Delay(v1alpha1.DefaultRolloutUniqueLabelKey, 2*time.Second); err != nil {
				return err
			}
			if err := p.Load(ctx); err != nil {
				return err
			}
			if err := p.Begin(ctx); err != nil {
				return err
			}
			if err := p.Migrate(ctx, Migration); err != nil {
				return err
			}
			if _, err := p.AwaitPhase(ctx, Migration, "Healthy"); err != nil {
				return err
			}
			return p.AwaitDeploymentPods(ctx, 0)
		},
	}
}

// Reverted is a GitOps tool that puts the VirtualService back, again and again, in
// mid-canary.
func Reverted(level scenarios.Level) Story {
	return Story{
		Name: "gitops", Level: level, Title: "GitOps reverts the VirtualService at 50 %, three times", Mark: Revert,
		Workload: workload(level, 10, scenarios.SetWeight(50), scenarios.Pause(600), scenarios.SetWeight(100)),
		Play: func(ctx context.Context, p *Performance) error {
			if err := p.Deploy(ctx, Upgrade, 2); err != nil {
				return err
			}
			if _, err := resting(ctx, p, 50, ""); err != nil {
				return err
			}
			if err := p.Begin(ctx); err != nil {
				return err
			}
			for range 3 {
				if err := p.RevertVirtualService(ctx, Revert); err != nil {
					return err
				}
				if err := sleep(ctx, 3*time.Second); err != nil {
					return err
				}
			}
			if err := p.Resume(ctx); err != nil {
				return err
			}
			return finished(ctx, p, Upgrade)
		},
	}
}

// upgraded brings a version out and waits for its end.
func upgraded(ctx context.Context, p *Performance, version int) error {
	if err := p.Begin(ctx); err != nil {
		return err
	}
	if err := p.Deploy(ctx, Upgrade, version); err != nil {
		return err
	}
	return finished(ctx, p, Upgrade)
}

// finished waits until a canary is over and nothing is left of what was before.
func finished(ctx context.Context, p *Performance, mark string) error {
	if _, err := p.AwaitPhase(ctx, mark, "Healthy"); err != nil {
		return err
	}
	_, err := p.Await(ctx, "no pod of an old revision", func(st timeline.State) bool {
		for hash, pods := range st.Pods {
			if hash != st.Rollout.PodHash && pods.Size > 0 {
				return false
			}
		}
		return st.CanaryWeight == 0
	})
	return err
}

// rest is how long a canary stands at its pause before anything else happens.
const rest = 2 * time.Second

// resting waits until a canary of another revision than the one given rests at a
// weight, in the pause behind the first step, and returns its hash.
func resting(ctx context.Context, p *Performance, weight int32, not string) (hash string, err error) {
	state, err := p.Await(ctx, "the canary's pause", func(st timeline.State) bool {
		return st.CanaryWeight == weight && st.Rollout.StepIndex == 1 && st.Is("Paused") && st.Rollout.PodHash != not
	})
	if err != nil {
		return "", err
	}
	return state.Rollout.PodHash, sleep(ctx, rest)
}
