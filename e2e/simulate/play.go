package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

const (
	// calm is how long nothing happens before a story begins: the controller has then
	// put away what came before.
	calm = time.Second
	// after is how long is recorded beyond the end, to see that it stays.
	after = 2 * time.Second
	// lateness is how long one router is waited for when the other has come to its end,
	// beyond the time that this one took.
	lateness = 20 * time.Second
	// lookEvery is the time between two looks whether a story is over.
	lookEvery = 200 * time.Millisecond
	// closing bounds what is done after the end.
	closing = 20 * time.Second
)

// What the two are called while they are played.
const nativeName, pluginName = "native", "plugin"

// Stage is where is played: a lab, and in it a controller with the plugin.
type Stage struct {
	Lab        *lab.Lab
	Controller *lab.Controller
	// Progress is told how both routers stand, every few seconds.
	Progress io.Writer
}

// Played is a scenario as it was played. In JSON it can be kept, and judged and shown
// again; without the guard's rule then, see [timeline.Timeline.MarshalJSON].
type Played struct {
	Scenario Scenario
	// Native and Plugin begin with the story: at the same moment, or where it begins in
	// the middle of a canary, each when it has come there.
	Native, Plugin timeline.Timeline
	// Failing is whether some pods never became ready, Revisions how far a rollback goes
	// back.
	Failing   bool
	Revisions int
}

// Play plays one scenario with both routers at the same time. A router that does not
// come to an end is no error: its timeline shows it. The error tells why the story could
// not be begun, or not be told; at the end of ctx it wraps ctx's error.
func Play(ctx context.Context, stage Stage, plan Plan, scenario Scenario, s Settings) (Played, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	p := &player{stage: stage, plan: plan, scenario: scenario, settings: s, meeting: scenarios.NewMeeting(2)}
	played := Played{Scenario: scenario, Failing: p.failing(), Revisions: s.Revisions}
	watched := timeline.NewProgress(stage.Progress, string(scenario), [2]string{nativeName, pluginName})
	stop := watched.Start()
	defer stop()
	group, groupCtx := errgroup.WithContext(ctx)
	// What each took, for the other, which may never come to an end.
	nativeTook, pluginTook := make(chan time.Duration, 1), make(chan time.Duration, 1)
	for _, one := range []part{
		{nativeName, plan.Native, &played.Native, nativeTook, pluginTook}, {pluginName, plan.Plugin, &played.Plugin, pluginTook, nativeTook},
	} {
		group.Go(func() (err error) {
			*one.recorded, err = p.perform(groupCtx, one, watched)
			if err != nil {
				err = fmt.Errorf("play %s with the %s router: %w", scenario, one.router, err)
			}
			return err
		})
	}
	err := group.Wait()
	if err != nil && !errors.Is(err, context.Canceled) { // who interrupts it knows why
		err = fmt.Errorf("%w\n%s", err, stage.Controller.Tail(15))
	}
	return played, err
}

// part is what one of the two routers plays.
type part struct {
	router      string
	variant     Variant
	recorded    *timeline.Timeline
	took, other chan time.Duration
}

// player plays one scenario.
type player struct {
	stage    Stage
	plan     Plan
	scenario Scenario
	settings Settings
	meeting  *scenarios.Meeting
}

// failing tells whether the story can end without being Healthy.
func (p *player) failing() bool { return p.settings.Failing.of(p.plan.replicas) > 0 }

// perform plays one variant from an empty namespace to its end.
func (p *player) perform(ctx context.Context, one part, watched *timeline.Progress) (timeline.Timeline, error) {
	s, err := open(ctx, p.stage.Lab, one.router, one.variant)
	if err != nil {
		return timeline.Timeline{}, err
	}
	watched.Follow(one.router, s.now)
	err = p.act(ctx, s, one)
	watched.Follow(one.router, nil)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	recorded := s.close(last)
	if err != nil {
		return recorded, err
	}
	return recorded.Since(p.scenario.beginning())
}

// act prepares, meets the other router, begins the story and waits for its end.
func (p *player) act(ctx context.Context, s *scene, one part) error {
	old, err := p.prepare(ctx, s)
	if err != nil {
		return fmt.Errorf("before the story: %w", err)
	}
	// Pods become ready as long as the story lasts.
	story, end := context.WithCancel(ctx)
	defer end()
	if err := p.meeting.Arrive(ctx); err != nil {
		return err
	}
	if err := p.begin(story, s, old); err != nil {
		return err
	}
	return p.awaitEnd(ctx, s, one.took, one.other)
}

// prepare brings the Rollout to rest under its router, for a rollback with as many
// revisions as it goes back. It returns the hash of the first.
func (p *player) prepare(ctx context.Context, s *scene) (string, error) {
	healthy, err := s.await(ctx, "the first deployment", timeline.Healthy)
	if err != nil {
		return "", err
	}
	first := healthy.Rollout.PodHash
	if p.scenario == Rollback {
		for revision := 2; revision <= p.settings.Revisions+1; revision++ {
			if err := p.bringOut(ctx, s, revision); err != nil {
				return "", fmt.Errorf("revision %d: %w", revision, err)
			}
		}
	}
	if err := s.adopt(ctx); err != nil {
		return "", err
	}
	_, err = s.await(ctx, "the router has taken over", func(st timeline.State) bool {
		pinned := st.CanaryHash == st.Rollout.PodHash && st.StableHash == st.Rollout.PodHash
		return timeline.Healthy(st) && st.CanaryWeight == 0 && (pinned || p.plan.pingPong)
	})
	if err != nil || p.scenario != Rollback {
		return first, errors.Join(err, sleep(ctx, calm))
	}
	return first, p.breakNewest(ctx, s)
}

// bringOut deploys a revision, and waits until nothing of those before it is left.
func (p *player) bringOut(ctx context.Context, s *scene, revision int) error {
	before := s.now().Rollout.PodHash
	if err := s.deploy(ctx, revision); err != nil {
		return err
	}
	_, err := s.await(ctx, "it is out", func(st timeline.State) bool {
		r := st.Rollout
		return timeline.Healthy(st) && r.PodHash != before && r.StableRS == r.PodHash && st.Pods[before].Size+st.Pods[before].Available == 0
	})
	return err
}

// breakNewest makes pods fail before the rollback that they are the reason for.
func (p *player) breakNewest(ctx context.Context, s *scene) error {
	newest := s.now().Rollout.PodHash
	n := p.settings.Broken.of(p.plan.replicas)
	if n == 0 {
		return sleep(ctx, calm)
	}
	if err := s.breakPods(ctx, newest, n); err != nil {
		return err
	}
	if _, err := s.await(ctx, "the broken pods are unready", func(st timeline.State) bool {
		return st.Pods[newest].Available <= p.plan.replicas-n
	}); err != nil {
		return err
	}
	return sleep(ctx, calm)
}

// begin is the story itself.
func (p *player) begin(ctx context.Context, s *scene, first string) error {
	switch p.scenario {
	case Rollback:
		return p.ask(ctx, s, 1)
	case Canary:
		return p.ask(ctx, s, 2)
	case Scale:
		return p.inTheMiddle(ctx, s, first, p.settings.ScaleAt, func() error { return s.scale(ctx, p.scaleTo()) })
	case Abort:
		return p.inTheMiddle(ctx, s, first, p.settings.At, func() error { return s.abort(ctx) })
	default:
		return p.inTheMiddle(ctx, s, first, p.settings.At, func() error { return p.startAnother(ctx, s) })
	}
}

// ask asks for a revision, and marks the beginning with it.
func (p *player) ask(ctx context.Context, s *scene, revision int) error {
	if err := s.startUp(ctx, revision, p.settings); err != nil {
		return err
	}
	s.recorder.Mark(p.scenario.beginning())
	return s.deploy(ctx, revision)
}

// startAnother supersedes revision 2. The story has begun.
func (p *player) startAnother(ctx context.Context, s *scene) error {
	if err := s.startUp(ctx, 3, p.settings); err != nil {
		return err
	}
	return s.deploy(ctx, 3)
}

func (p *player) scaleTo() int32 {
	if p.settings.ScaleTo > 0 {
		return p.settings.ScaleTo
	}
	return min(2*p.plan.replicas, MaxReplicas)
}

// inTheMiddle brings a canary to a step and interferes. What comes before belongs to the
// story for a change of size, and not where another revision or none is the outcome.
func (p *player) inTheMiddle(ctx context.Context, s *scene, first string, step int, interfere func() error) error {
	if step < 0 {
		step = p.plan.middle()
	}
	if err := s.startUp(ctx, 2, p.settings); err != nil {
		return err
	}
	if err := s.deploy(ctx, 2); err != nil {
		return err
	}
	state, err := s.await(ctx, fmt.Sprintf("step %d of the canary", step), func(st timeline.State) bool {
		r := st.Rollout
		return r.Current && r.PodHash != first && (timeline.Healthy(st) ||
			int(r.StepIndex) >= step && st.Pods[r.PodHash].Available > 0 && st.Toward(r.PodHash) > 0)
	})
	if err != nil {
		return err
	}
	if timeline.Healthy(state) {
		return fmt.Errorf("the canary was over before step %d could be caught: choose an earlier one, or one that is a pause, with --at or --scale-at", step)
	}
	s.recorder.Mark(p.scenario.beginning())
	return interfere()
}

// middle is the index of the step at which most of the traffic, but not all, has been
// sent to the canary for a while: the last pause after a weight below the whole.
func (p Plan) middle() int {
	step, weighted := 0, false
	for i, s := range p.steps {
		switch {
		case s.SetWeight != nil:
			weighted = *s.SetWeight > 0 && *s.SetWeight < p.Plugin.Subject.Max()
		case s.Pause != nil && weighted:
			step = i
		}
	}
	return step
}

// awaitEnd waits for the end, and when the other router has come to its own, not much
// longer than that has taken. No end is no error: the timeline shows it.
func (p *player) awaitEnd(ctx context.Context, s *scene, own, other chan time.Duration) error {
	began := time.Now()
	patient, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-patient.Done():
		case took := <-other:
			_ = sleep(patient, took+lateness)
			cancel()
		}
	}()
	for {
		t, err := s.recorder.Timeline().Since(p.scenario.beginning())
		if err != nil {
			return err
		}
		if _, _, over := p.scenario.end(t.States(), p.failing()); over {
			own <- time.Since(began)
			return sleep(ctx, after)
		}
		if sleep(patient, lookEvery) != nil {
			break
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return nil
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
