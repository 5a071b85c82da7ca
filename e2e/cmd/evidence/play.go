package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

// patience bounds one story.
const patience = 6 * time.Minute

// levels are the two at which Istio splits traffic.
var levels = []scenarios.Level{scenarios.Subset, scenarios.Host}

// costly are the stories whose cost is measured.
var costly = []string{"plain", "incident"}

// chosen are the stories of those names at both levels, all of them when none is
// named.
func chosen(names []string) ([]mesh.Story, error) {
	var stories []mesh.Story
	known := map[string]bool{}
	for _, level := range levels {
		for _, story := range mesh.Stories(level) {
			known[story.Name] = true
			if len(names) == 0 || slices.Contains(names, story.Name) {
				stories = append(stories, story)
			}
		}
	}
	for _, name := range names {
		if !known[name] {
			return nil, fmt.Errorf("--only %s: there is no such story", name)
		}
	}
	return stories, nil
}

// pair is a story as both routers played it.
type pair struct{ native, plugin mesh.Row }

// played is everything that goes into the tables.
type played struct {
	times int
	pairs []pair
	costs []cost
}

// cost is what a story of one router cost istiod.
type cost struct {
	row mesh.Row
	mesh.Cost
}

// play plays everything and tells how it goes.
func play(ctx context.Context, stage *mesh.Stage, o options, out io.Writer) (played, error) {
	stories, err := chosen(o.only)
	if err != nil {
		return played{}, err
	}
	p := played{times: o.times}
	for _, story := range stories {
		pair, err := compare(ctx, stage, story, o.times, out)
		if err != nil {
			return p, err
		}
		p.pairs = append(p.pairs, pair)
	}
	for _, story := range stories {
		if story.Level != scenarios.Subset || !slices.Contains(costly, story.Name) {
			continue
		}
		for _, router := range []scenarios.Router{scenarios.Native, scenarios.Plugin} {
			c, err := alone(ctx, stage, story, router, out)
			if err != nil {
				return p, err
			}
			p.costs = append(p.costs, c)
		}
	}
	return p, nil
}

// compare plays a story with both routers at the same time, as often as asked.
func compare(ctx context.Context, stage *mesh.Stage, story mesh.Story, times int, out io.Writer) (pair, error) {
	var sum pair
	for n := range times {
		ctx, cancel := context.WithTimeout(ctx, patience)
		native, plugin, err := stage.Both(ctx, story)
		cancel()
		if err != nil {
			return sum, err
		}
		fmt.Fprintf(out, "%s\n%s\n", native.Row(), plugin.Row())
		if err := plugin.WriteLost(out); err != nil {
			return sum, err
		}
		if n == 0 {
			sum = pair{native.Row(), plugin.Row()}
			continue
		}
		sum.native.Add(native.Row())
		sum.plugin.Add(plugin.Row())
	}
	return sum, nil
}

// alone plays a story while nothing else is played.
func alone(ctx context.Context, stage *mesh.Stage, story mesh.Story, router scenarios.Router, out io.Writer) (cost, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result, err := stage.Play(ctx, story, router)
	if err != nil {
		return cost{}, err
	}
	fmt.Fprintf(out, "alone: %s\n", result.Row())
	return cost{row: result.Row(), Cost: result.Cost}, nil
}
