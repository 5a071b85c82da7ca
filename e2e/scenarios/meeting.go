package scenarios

import (
	"context"
	"sync"
)

// Meeting lets several scripts go on at the same moment: that of the last to arrive.
type Meeting struct {
	mu      sync.Mutex
	missing int
	all     chan struct{} // closed once nobody is missing
}

// NewMeeting is a meeting of n.
func NewMeeting(n int) *Meeting { return &Meeting{missing: n, all: make(chan struct{})} }

// Arrive waits for the others. It is called once by each.
func (m *Meeting) Arrive(ctx context.Context) error {
	m.mu.Lock()
	if m.missing--; m.missing == 0 {
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
