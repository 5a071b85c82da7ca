package mesh

import (
	"context"
	"fmt"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

// afterwards is how long the fleet goes on sending when a story is over: what the
// last write does to the mesh belongs to the story.
const afterwards = 3 * time.Second

// Story is something that happens to a workload under load.
type Story struct {
	// Name is a word for commands, Title a line for tables.
	Name, Title string
	// Level is where the traffic is split.
	Level scenarios.Level
	// Workload is what it happens to, for one router.
	Workload func(scenarios.Router) scenarios.Workload
	// Capacity is what a pod can take, in requests a second; 0 is no limit.
	Capacity float64
	// Rate is the load in requests a second; 0 is [fleet.DefaultRate].
	Rate int
	// Cold says that the load does not begin by itself once the Rollout is
	// healthy: Play calls [Performance.Load].
	Cold bool
	// Play is what happens. It calls [Performance.Begin] before what counts.
	Play func(ctx context.Context, p *Performance) error
	// Mark is the moment from which on requests count; empty is the beginning.
	Mark string
	// Forced says that the last pod of a side is taken away: what is lost before
	// anybody can write is no router's doing.
	Forced bool
}

// Performance is a story being played by one router.
type Performance struct {
	*scenarios.Scene
	// Sending is the load.
	Sending *fleet.Fleet

	stage  *Stage
	meet   func(context.Context) error // waits for the other router; nil is alone
	before Cost                        // what istiod had done when it began
}

// Load begins to send, once every client has had an answer.
func (p *Performance) Load(ctx context.Context) error {
	if err := p.Sending.Warm(ctx); err != nil {
		return err
	}
	p.Sending.Start(ctx)
	return nil
}

// Begin is called right before what the story is about. Routers that are compared
// begin together.
func (p *Performance) Begin(ctx context.Context) (err error) {
	if p.meet != nil {
		if err := p.meet(ctx); err != nil {
			return err
		}
	}
	p.before, err = readCost(ctx, p.stage.Istiod)
	return err
}

// perform plays a story from the first deployment to its end.
func (p *Performance) perform(ctx context.Context, story Story) error {
	if !story.Cold {
		if _, err := p.AwaitPhase(ctx, "", "Healthy"); err != nil {
			return fmt.Errorf("first deployment: %w", err)
		}
		if err := p.Load(ctx); err != nil {
			return err
		}
	}
	if err := story.Play(ctx, p); err != nil {
		return err
	}
	return sleep(ctx, afterwards)
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
