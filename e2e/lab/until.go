package lab

import (
	"context"
	"fmt"
	"time"
)

// pollEvery is the time between two looks at a condition. The API server is
// local and a look is cheap.
const pollEvery = 50 * time.Millisecond

// Until looks at a condition every 50 ms until it holds, fails or ctx ends. A
// condition that cannot be judged yet returns false and no error. The error
// says what was waited for; after the end of ctx it also wraps ctx's error.
func Until(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		ok, err := holds(ctx)
		// An error after the end of ctx is of the client that ctx interrupted.
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if ok && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
}
