package timeline

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// glanceEvery is the time between two lines of progress: often enough to see the
// stories move, rarely enough to fit on a screen.
const glanceEvery = 5 * time.Second

// Progress tells people that wait how two runs stand that are recorded at the same time.
// Its methods may be called from any goroutine.
type Progress struct {
	out   io.Writer
	story string
	names [2]string
	began time.Time

	mu  sync.Mutex
	now map[string]func() State // nil for what is over
}

// NewProgress is for two runs with these names; the story stands at the beginning of
// each line, and may be empty.
func NewProgress(out io.Writer, story string, names [2]string) *Progress {
	return &Progress{out: out, story: story, names: names, began: time.Now(), now: map[string]func() State{}}
}

// Follow says where the state of a run comes from; nil is that it is over.
func (p *Progress) Follow(name string, now func() State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now[name] = now
}

// Start writes a line now and then, until stop is called, which waits for the last.
func (p *Progress) Start() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(glanceEvery)
		defer ticker.Stop()
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
				fmt.Fprintln(p.out, p.line())
			}
		}
	}()
	return func() { close(end); <-ended }
}

// line is both runs as they are.
func (p *Progress) line() string {
	story := p.story
	if story != "" {
		story += " "
	}
	return fmt.Sprintf("  %s[%3.0f s] %s", story, time.Since(p.began).Seconds(), strings.TrimRight(
		fmt.Sprintf("%s: %-46s %s: %s", p.names[0], p.glance(p.names[0]), p.names[1], p.glance(p.names[1])), " "))
}

func (p *Progress) glance(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch now, begun := p.now[name]; {
	case !begun:
		return "being created"
	case now == nil:
		return "over"
	default:
		return Glance(now())
	}
}

// Glance is a state in a few words: the revision that the Rollout leads to, the traffic
// that it gets, and its pods.
func Glance(s State) string {
	r := s.Rollout
	if r.PodHash == "" {
		return "being created"
	}
	if r.StepIndex < 0 || r.PodHash == r.StableRS {
		return fmt.Sprintf("%s, %d of %d pods", r.Phase, s.Pods[r.PodHash].Available, r.Replicas)
	}
	return fmt.Sprintf("%s, %.0f %% on %d of %d pods", r.Phase, s.Toward(r.PodHash), s.Pods[r.PodHash].Available, r.Replicas)
}
