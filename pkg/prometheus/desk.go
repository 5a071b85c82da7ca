package prometheus

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
)

// patience is how long a question waits for its turn and its answer together. It is below
// what package gate waits for.
const patience = time.Minute

// Source answers a question, as Client does.
type Source interface {
	Numbers(context.Context, gate.Question) (gate.Numbers, error)
}

// Desk asks in the background and keeps the answers. It has no goroutine but one for each
// question that is under way, of which there is at most one for each Rollout. It is safe
// for concurrent use.
type Desk struct {
	source   Source
	answered atomic.Pointer[func(types.UID)]

	mu sync.Mutex
	of map[types.UID]*errand
}

// errand is the last question about one Rollout.
type errand struct {
	question gate.Question
	cancel   context.CancelFunc
	answer   *gate.Answer // nil while it is under way
}

// NewDesk returns a Desk that has not been asked yet.
func NewDesk(source Source) *Desk { return &Desk{source: source} }

// OnAnswered names the function that is told of each Rollout for which there is an answer.
// It is called by many goroutines and must return at once.
func (d *Desk) OnAnswered(f func(rollout types.UID)) { d.answered.Store(&f) }

// Ask begins to ask and returns at once. A question that is under way, or answered, is not
// asked again; another one about the same Rollout takes its place.
func (d *Desk) Ask(q gate.Question) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.of[q.Rollout]
	if before != nil && before.question == q {
		return
	}
	if before != nil {
		before.cancel()
	}
	if d.of == nil {
		d.of = map[types.UID]*errand{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	e := &errand{question: q, cancel: cancel}
	d.of[q.Rollout] = e
	go d.run(ctx, e)
}

// Answer is the answer to the last question about a Rollout, nil while there is none.
func (d *Desk) Answer(rollout types.UID) *gate.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.of[rollout]; e != nil {
		return e.answer
	}
	return nil
}

// Forget drops the question about a Rollout, and its answer.
func (d *Desk) Forget(rollout types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.of[rollout]; e != nil {
		e.cancel()
		delete(d.of, rollout)
	}
}

func (d *Desk) run(ctx context.Context, e *errand) {
	defer e.cancel()
	answer := &gate.Answer{Question: e.question}
	answer.Numbers, answer.Err = d.numbers(ctx, e.question)
	d.mu.Lock()
	current := d.of[e.question.Rollout] == e
	if current {
		e.answer = answer
	}
	d.mu.Unlock()
	if tell := d.answered.Load(); tell != nil && current {
		(*tell)(e.question.Rollout)
	}
}

// numbers keeps a panic over one question from ending the plugin of all Rollouts.
func (d *Desk) numbers(ctx context.Context, q gate.Question) (numbers gate.Numbers, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("internal error while asking, please report it: %v", cause)
		}
	}()
	return d.source.Numbers(ctx, q)
}
