package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// glanceEvery is the time between two lines of progress: often enough to see
// the stories move, rarely enough to fit on a screen.
const glanceEvery = 5 * time.Second

// watch tells people that wait how both stories go. Methods may be called from
// any goroutine.
type watch struct {
	out   io.Writer
	began time.Time

	mu     sync.Mutex
	scenes map[scenarios.Router]*scenarios.Scene
}

func newWatch(out io.Writer) *watch {
	return &watch{out: out, began: time.Now(), scenes: map[scenarios.Router]*scenarios.Scene{}}
}

// follow makes a script whose scene is watched while it is played.
func (w *watch) follow(router scenarios.Router, play script) script {
	return func(ctx context.Context, s *scenarios.Scene) error {
		w.set(router, s)
		defer w.set(router, nil)
		return play(ctx, s)
	}
}

func (w *watch) set(router scenarios.Router, s *scenarios.Scene) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scenes[router] = s
}

// start writes a line now and then, until stop is called.
func (w *watch) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(glanceEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				w.tell()
			}
		}
	}()
	return func() { cancel(); <-ended }
}

func (w *watch) tell() {
	fmt.Fprintf(w.out, "  [%3.0f s] %s\n", time.Since(w.began).Seconds(), strings.TrimRight(
		fmt.Sprintf("native: %-50s plugin: %s", w.glance(scenarios.Native), w.glance(scenarios.Plugin)), " "))
}

func (w *watch) glance(router scenarios.Router) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch scene, begun := w.scenes[router]; {
	case !begun:
		return "being created"
	case scene == nil:
		return "over"
	default:
		return glance(scene.Now())
	}
}

// glance is a state in a few words: the version that the Rollout leads to, the
// traffic that it gets, and its pods.
func glance(s timeline.State) string {
	r := s.Rollout
	if r.PodHash == "" {
		return "being created"
	}
	if r.StepIndex < 0 || r.PodHash == r.StableRS {
		return fmt.Sprintf("%s, %d of %d pods", r.Phase, s.Pods[r.PodHash].Available, r.Replicas)
	}
	return fmt.Sprintf("%s, %.0f %% on %d of %d pods", r.Phase, s.Toward(r.PodHash), s.Pods[r.PodHash].Available, r.Replicas)
}
