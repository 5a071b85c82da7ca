package main

import (
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline/tape"
)

// nativeStory sends all traffic to 2 pods, and for a second to none.
func nativeStory() timeline.Timeline {
	t := tape.New("cart").At(0.5).Phase("Progressing").At(2).Pods(tape.Canary, 2).Weight(100)
	t.At(4).Pods(tape.Canary, 0).At(5).Pods(tape.Canary, 2)
	return t.At(8).Pods(tape.Canary, 20).At(30).Phase("Healthy").Timeline(31)
}

// pluginStory lets the weight follow the pods, and ends at a time.
func pluginStory(end float64) timeline.Timeline {
	t := tape.New("cart").At(0.5).Phase("Progressing").At(2).Pods(tape.Canary, 2).Weight(10)
	t.At(8).Pods(tape.Canary, 20).Weight(100)
	return t.At(end).Phase("Healthy").Timeline(end + 1)
}

// endless never becomes Healthy.
func endless() timeline.Timeline {
	return tape.New("cart").At(0.5).Phase("Progressing").Timeline(9)
}

// nativeFlaps leaves the weight as it is, pod or no pod.
func nativeFlaps() timeline.Timeline {
	t := tape.Halfway("cart")
	for second := 0.0; second < 4; second += 2 {
		t.At(second).Pods(tape.Canary, 9).At(second+1).Pods(tape.Canary, 10)
	}
	return t.Timeline(4)
}

// pluginFlaps lets the weight follow the pod within 20 ms.
func pluginFlaps() timeline.Timeline {
	t := tape.Halfway("cart")
	for second := 0.0; second < 4; second += 2 {
		t.At(second).Pods(tape.Canary, 9).At(second + 0.02).Weight(45)
		t.At(second+1).Pods(tape.Canary, 10).At(second + 1.02).Weight(50)
	}
	return t.Timeline(4)
}
