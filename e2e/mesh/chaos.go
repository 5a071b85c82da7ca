package mesh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

// Victim is a process that is killed in mid-canary.
type Victim string

// The victims. The plugin dies with its controller, too, as they share a container.
const (
	PluginProcess     Victim = "plugin"
	ControllerProcess Victim = "controller"
	IstiodProcess     Victim = "istiod"
	APIServerProcess  Victim = "API server"
)

// Kill is one SIGKILL: so long after the one before was over, with the process
// away for a time. The plugin is brought back by its controller, whenever that
// needs it.
type Kill struct {
	Victim      Victim
	After, Down time.Duration
}

func (k Kill) String() string {
	return fmt.Sprintf("%s after %.1f s for %.1f s", k.Victim, k.After.Seconds(), k.Down.Seconds())
}

const (
	longestCalm = 3 * time.Second
	longestDown = 2 * time.Second
)

// DrawKills kills every victim once, in an order and at moments that the seed
// decides.
func DrawKills(seed uint64) []Kill {
	lot := rand.New(rand.NewPCG(seed, 0))
	kills := []Kill{{Victim: PluginProcess}, {Victim: ControllerProcess}, {Victim: IstiodProcess}, {Victim: APIServerProcess}}
	lot.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	for i := range kills {
		kills[i].After = time.Duration(lot.Int64N(int64(longestCalm)))
		kills[i].Down = time.Duration(lot.Int64N(int64(longestDown)))
	}
	return kills
}

// Cast is who plays in a chaos: a canary at a level, with a router.
type Cast struct {
	Router scenarios.Router
	Level  scenarios.Level
}

// Chaos plays a plain canary of each cast, all at the same time, and kills while
// they run; of plugins and controllers those of all. Nothing else can be played
// meanwhile. The results are in the order of the casts.
func (s *Stage) Chaos(ctx context.Context, kills []Kill, casts ...Cast) ([]Result, error) {
	controllers := map[*lab.Controller]bool{}
	for _, cast := range casts {
		c, err := s.controllerOf(ctx, cast.Router)
		if err != nil {
			return nil, err
		}
		controllers[c] = true
	}
	audience, meetings := &audience{}, newMeetings(len(casts))
	results := make([]Result, len(casts))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, cast := range casts {
		group.Go(func() (err error) {
			results[i], err = s.Play(groupCtx, chaotic(cast.Level, audience, meetings), cast.Router)
			return err
		})
	}
	group.Go(func() error {
		if err := meetings.deployed.Arrive(groupCtx); err != nil {
			return err
		}
		// Not groupCtx: what was killed is brought back, whatever becomes of the rest.
		if err := s.killAll(ctx, slices.Collect(maps.Keys(controllers)), kills, audience); err != nil {
			return err
		}
		return meetings.over.Arrive(groupCtx)
	})
	err := group.Wait()
	for i := range results {
		results[i].Moments = append(results[i].Moments, audience.moments...)
	}
	return results, err
}

// meetings keep the canaries and who kills together: no canary is over before the
// killing begins, and requests are counted until it ends.
type meetings struct{ begun, deployed, over *scenarios.Meeting }

func newMeetings(casts int) meetings {
	return meetings{scenarios.NewMeeting(casts), scenarios.NewMeeting(casts + 1), scenarios.NewMeeting(casts + 1)}
}

// chaotic is a canary during which somebody else kills: from its deployment on
// nobody in it writes anything, so it needs no API server to go on.
func chaotic(level scenarios.Level, a *audience, m meetings) Story {
	return Story{
		Name: "chaos", Level: level, Title: "SIGKILL of plugin, controller, istiod and API server", Mark: Upgrade,
		Workload: workload(level, 10, scenarios.SetWeight(10), scenarios.Pause(3), scenarios.SetWeight(50), scenarios.Pause(3), scenarios.SetWeight(100)),
		Play: func(ctx context.Context, p *Performance) error {
			if err := p.Begin(ctx); err != nil {
				return err
			}
			a.join(p.Scene)
			if err := m.begun.Arrive(ctx); err != nil {
				return err
			}
			if err := p.Deploy(ctx, Upgrade, 2); err != nil {
				return err
			}
			if err := m.deployed.Arrive(ctx); err != nil {
				return err
			}
			if err := finished(ctx, p, Upgrade); err != nil {
				return err
			}
			return m.over.Arrive(ctx)
		},
	}
}

// audience is told of the kills.
type audience struct {
	mu      sync.Mutex
	scenes  []*scenarios.Scene
	moments []Moment
}

func (a *audience) join(s *scenarios.Scene) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scenes = append(a.scenes, s)
}

func (a *audience) tell(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.moments = append(a.moments, Moment{time.Now(), what})
	for _, scene := range a.scenes {
		scene.Mark(what)
	}
}

// killAll kills one after the other; what was killed is back before the next.
func (s *Stage) killAll(ctx context.Context, controllers []*lab.Controller, kills []Kill, a *audience) error {
	for _, k := range kills {
		if err := sleep(ctx, k.After); err != nil {
			return err
		}
		a.tell("kill " + string(k.Victim))
		group := errgroup.Group{}
		for _, v := range s.victims(k.Victim, controllers) {
			group.Go(func() error { return v.suffer(ctx, k.Down) })
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("kill %s: %w", k.Victim, err)
		}
		a.tell(string(k.Victim) + " is back")
	}
	return nil
}

// mortal is a process that can be killed and, unless others do it, brought back.
type mortal struct {
	kill func() error
	back func(context.Context) error
}

func (s *Stage) victims(which Victim, controllers []*lab.Controller) (found []mortal) {
	for _, c := range controllers {
		switch which {
		case PluginProcess:
			found = append(found, mortal{kill: func() error {
				_, err := c.KillPlugin(syscall.SIGKILL)
				return err
			}})
		case ControllerProcess:
			found = append(found, mortal{c.Kill, c.Start})
		}
	}
	switch which {
	case IstiodProcess:
		found = append(found, mortal{s.Istiod.Kill, s.Istiod.Start})
	case APIServerProcess:
		found = append(found, mortal{s.Lab.KillAPIServer, s.Lab.StartAPIServer})
	}
	return found
}

func (v mortal) suffer(ctx context.Context, down time.Duration) error {
	if err := v.kill(); err != nil || v.back == nil {
		return err
	}
	slept := sleep(ctx, down)
	return errors.Join(slept, v.back(context.WithoutCancel(ctx)))
}
