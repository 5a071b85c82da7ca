package mesh

import (
	"context"
	"sync"
)

// meeting lets several go on at the same moment: that of the last to arrive.
type meeting struct {
	mu      sync.Mutex
	missing int
	all     chan struct{} // closed once nobody is missing
}

func newMeeting(n int) *meeting { return &meeting{missing: n, all: make(chan struct{})} }

// arrive waits for the others. It is called once by each.
func (m *meeting) arrive(ctx context.Context) error {
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
