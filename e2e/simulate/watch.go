package simulate

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// glanceEvery is the time between two lines of progress.
const glanceEvery = 5 * time.Second

// watch tells people that wait how both routers stand. Its methods may be called from
// any goroutine.
type watch struct {
	out      io.Writer
	scenario Scenario
	began    time.Time

	mu     sync.Mutex
	scenes map[string]*scene
}

func newWatch(out io.Writer, scenario Scenario) *watch {
	return &watch{out: out, scenario: scenario, began: time.Now(), scenes: map[string]*scene{}}
}

// set makes a router's scene the one that is looked at; nil when it is over.
func (w *watch) set(router string, s *scene) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scenes[router] = s
}

// start writes a line now and then, until stop is called.
func (w *watch) start() (stop func()) {
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
				fmt.Fprintf(w.out, "  %s [%3.0f s] %s\n", w.scenario, time.Since(w.began).Seconds(),
					strings.TrimRight(fmt.Sprintf("native: %-46s plugin: %s", w.glance("native"), w.glance("plugin")), " "))
			}
		}
	}()
	return func() { close(end); <-ended }
}

func (w *watch) glance(router string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch s, begun := w.scenes[router]; {
	case !begun:
		return "being created"
	case s == nil:
		return "over"
	default:
		return glance(s.now())
	}
}

// glance is a state in a few words: the revision that is asked for, its traffic and its
// pods.
func glance(s timeline.State) string {
	r := s.Rollout
	if r.PodHash == "" {
		return "being created"
	}
	return fmt.Sprintf("%s, %.0f %% on %d of %d pods", r.Phase, s.Toward(r.PodHash), s.Pods[r.PodHash].Available, r.Replicas)
}
