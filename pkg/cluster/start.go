package cluster

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
)

// startPause is how long a failed start is remembered, so that ten workers that
// call at once do not ask a broken API server ten times.
const startPause = time.Second

// start is something that is begun once, by the first call that can.
type start struct {
	// held by the call that tries. It is a semaphore and not a mutex so that a call
	// that waits for another still ends at its deadline.
	held     *semaphore.Weighted
	done     bool
	failed   error
	failedAt time.Time
}

func newStart() *start { return &start{held: semaphore.NewWeighted(1)} }

// try begins unless that has been done. A failure is remembered for startPause and
// tried anew after that.
func (s *start) try(ctx context.Context, begin func(context.Context) error) error {
	if err := s.held.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("asking the API server: %w", err)
	}
	defer s.held.Release(1)
	if s.done {
		return nil
	}
	if s.failed != nil && time.Since(s.failedAt) < startPause {
		return s.failed
	}
	if err := begin(ctx); err != nil {
		s.failed, s.failedAt = err, time.Now()
		return err
	}
	s.done, s.failed = true, nil
	return nil
}
