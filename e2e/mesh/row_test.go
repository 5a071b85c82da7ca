package mesh

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
)

func TestTwoPlaysOfAStoryAreSummedAndTheWorseOfBothIsKept(t *testing.T) {
	row := Row{Sent: 100, Lost: 2, Raced: 1, Reasons: map[string]int{"a": 2}, Worst: fleet.Second{Sent: 10, Lost: 2}, Off: 1, Judged: 1, Took: 3 * time.Second, Finished: true}
	row.Add(Row{Sent: 50, Lost: 4, Reasons: map[string]int{"a": 1, "b": 3}, Worst: fleet.Second{Sent: 10, Lost: 4}, Off: 2, Judged: 2, Took: time.Second, Finished: true})
	want := Row{Sent: 150, Lost: 6, Raced: 1, Reasons: map[string]int{"a": 3, "b": 3}, Worst: fleet.Second{Sent: 10, Lost: 4}, Off: 2, Judged: 3, Took: 3 * time.Second, Finished: true}
	if diff := cmp.Diff(want, row); diff != "" {
		t.Error(diff)
	}
	row.Add(Row{})
	if row.Finished {
		t.Error("one play never finished, and the sum did")
	}
	if text := row.String(); !strings.Contains(text, "3 × a; 3 × b") || !strings.Contains(text, " 40 %") {
		t.Errorf("told as %q", text)
	}
}
