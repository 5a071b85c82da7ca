package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// keepWritten notes every change of a VirtualService or DestinationRule in the
// folder that timeline.WrittenObjects names, for Istio's own validation: the
// object before and after it, one pair a line. It returns what ends it.
func keepWritten(ctx context.Context) (stop func() error, err error) {
	folder := os.Getenv(timeline.WrittenObjects)
	if folder == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(filepath.Join(folder, fmt.Sprintf("apiserver-%d.jsonl", os.Getpid())))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var writers sync.WaitGroup
	var mu sync.Mutex
	for _, resource := range []string{"virtualservices", "destinationrules"} {
		gvr := schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: resource}
		writers.Go(func() {
			for pair := range pairs(follow(ctx, gvr)) {
				mu.Lock()
				writePair(file, pair)
				mu.Unlock()
			}
		})
	}
	return func() error {
		cancel()
		writers.Wait()
		return file.Close()
	}, nil
}

// follow watches until ctx ends. A watch ends with its definition, which one of
// the tests takes away.
func follow(ctx context.Context, gvr schema.GroupVersionResource) func(func(watch.Event) bool) {
	return func(yield func(watch.Event) bool) {
		for ctx.Err() == nil {
			changes, err := shared.Dynamic.Resource(gvr).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			for event := range changes.ResultChan() {
				if !yield(event) {
					changes.Stop()
					return
				}
			}
		}
	}
}

// pair is one change.
type pair struct {
	Before *unstructured.Unstructured `json:"before"`
	After  *unstructured.Unstructured `json:"after"`
}

// pairs are the changes among the events; what was created or deleted is none.
func pairs(events func(func(watch.Event) bool)) func(func(pair) bool) {
	known := map[string]*unstructured.Unstructured{}
	return func(yield func(pair) bool) {
		for event := range events {
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			key := u.GetNamespace() + "/" + u.GetName()
			before := known[key]
			known[key] = u
			if event.Type == watch.Modified && before != nil && !yield(pair{before, u}) {
				return
			}
		}
	}
}

// writePair panics rather than lose a line in silence.
func writePair(out io.Writer, p pair) {
	line, err := json.Marshal(p)
	if err == nil {
		_, err = out.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
}
