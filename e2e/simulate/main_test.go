package simulate

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline/tape"
)

// screen is how wide a table may be.
const screen = 140

// fitsAScreen is for the tables: sentences may be longer.
func fitsAScreen(t *testing.T, text string) {
	t.Helper()
	for n, line := range strings.Split(text, "\n") {
		if strings.Contains(line, " | ") && utf8.RuneCountInString(line) > screen || strings.TrimRight(line, " \t") != line {
			t.Errorf("line %d is too wide, or has spaces at its end: %q", n+1, line)
		}
	}
}

// nativeRollback sends all traffic to 2 pods, and for a second to none.
func nativeRollback() timeline.Timeline {
	t := tape.New("web").At(0.5).Phase("Progressing").At(2).Pods(tape.Canary, 2).Weight(100)
	t.At(4).Pods(tape.Canary, 0).At(5).Pods(tape.Canary, 2)
	return t.At(8).Pods(tape.Canary, 20).At(30).Phase("Healthy").Timeline(31)
}

// pluginRollback lets the weight follow the pods.
func pluginRollback() timeline.Timeline {
	t := tape.New("web").At(0.5).Phase("Progressing").At(2).Pods(tape.Canary, 2).Weight(10)
	return t.At(8).Pods(tape.Canary, 20).Weight(100).At(20).Phase("Healthy").Timeline(21)
}
