package matrix

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// patience bounds one play.
const patience = 3 * time.Minute

// Cell is one story at one level.
type Cell struct {
	Story Story
	Level scenarios.Level
}

// Cells are the stories at both levels.
func Cells(stories ...Story) []Cell {
	var cells []Cell
	for _, story := range stories {
		for _, level := range []scenarios.Level{scenarios.Host, scenarios.Subset} {
			cells = append(cells, Cell{story, level})
		}
	}
	return cells
}

// Outcome is what became of a cell on a ground.
type Outcome struct {
	Ground Ground
	Cell   Cell
	// Lacking says that the release is known to be unable to do it: that it was
	// played as far as it goes.
	Lacking bool
	// Took is how long the play took, from the first object on.
	Took time.Duration
	// Faults has a sentence for each thing that was wrong; none when all was well.
	Faults []string
	// Timeline is what was recorded, Log the end of what the controller and the
	// plugin said of it.
	Timeline timeline.Timeline
	Log      string
}

// Play plays the cells side by side on one ground. The outcomes are in the order of
// the cells; the error is about the ground.
func Play(ctx context.Context, ground Ground, plugin string, progress io.Writer, cells ...Cell) ([]Outcome, error) {
	s, err := open(ctx, ground, plugin, progress)
	if err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(cells))
	var playing sync.WaitGroup
	for i, cell := range cells {
		playing.Go(func() { outcomes[i] = s.play(ctx, cell) })
	}
	playing.Wait()
	return outcomes, errors.Join(ctx.Err(), s.close())
}

func (s *stage) play(ctx context.Context, cell Cell) Outcome {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w := cell.Story.workload(cell.Level)
	w.IstioVersion = s.ground.Istio
	script, judge := cell.Story.play, cell.Story.judge
	lacks, lacking := cell.Story.lacks[s.ground.Controller]
	if lacking {
		script, judge = lacks.play, lacks.judge
	}
	began := time.Now()
	recorded, err := scenarios.Play(ctx, s.lab, s.controller, w, script)
	o := Outcome{Ground: s.ground, Cell: cell, Lacking: lacking, Took: time.Since(began), Timeline: recorded}
	if err != nil {
		o.Faults = append(o.Faults, err.Error())
	} else {
		o.Faults = judge(recorded)
	}
	if len(o.Faults) > 0 {
		o.Log = s.controller.Tail(40, recorded.Subject.Namespace)
	}
	return o
}
