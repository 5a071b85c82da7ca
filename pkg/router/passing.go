package router

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// The controller meets an error with a back-off that doubles from a millisecond, and an
// Event each time; what it is told of right after the last failure waits for as long as
// another failure would have. What is over by itself within seconds, the time that
// proxies get to learn of a first pod or of a lower weight, would cost a Rollout a dozen
// failures and as many seconds again. So the call that has found it returns when it is
// over, still with the error: the next one comes a millisecond later and brings the
// Rollout of that moment. Nothing is written for a Rollout that is seconds old, which may
// have been aborted or pinned meanwhile.

const (
	// passingPatience is how long such a call stays; twice the default of guard.settle,
	// and some more.
	passingPatience = 3 * time.Second
	passingPoll     = 25 * time.Millisecond
	// seats is how many calls of SetWeight and UpdateHash, and as many of VerifyWeight,
	// may stay at once. Each keeps one of the controller's workers, of which there are
	// ten by default; with many canaries at once, or a mesh that does not take weights,
	// the others are sent back.
	seats = 3
)

// seated calls stay if one of the seats is free.
func seated(taken chan struct{}, stay func()) {
	select {
	case taken <- struct{}{}:
		defer func() { <-taken }()
		stay()
	default:
	}
}

// passing is an answer that will be over by itself, whatever the controller does.
type passing string

func (p passing) Error() string { return string(p) }

// outlast returns err: at once, or, where it is a passing one, when it is over, but not
// later than r.staying allows. One that is wrapped, or joined with another error, is not
// waited for. over looks again, in a turn of its own: it is free meanwhile, as the watch
// must be able to lower the weight. Where it cannot look, it is for the controller to
// call again.
func (r *Router) outlast(ctx context.Context, err error, over func(context.Context) bool) error {
	if _, passes := err.(passing); !passes {
		return err
	}
	seated(r.waiting, func() {
		_ = wait.PollUntilContextTimeout(ctx, passingPoll, r.staying, false, func(ctx context.Context) (bool, error) {
			return over(ctx), nil
		})
	})
	return err
}
