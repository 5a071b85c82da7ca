package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// WriteNotes writes what is played and how it differs from the files.
func WriteNotes(w io.Writer, plan Plan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s:%d), %s\n", plan.Rollout, plan.File, plan.Line, counted(plan.replicas, "replica"))
	fmt.Fprintf(&b, "In the lab from the files: %s, and nothing else, of whatever kind (PodDisruptionBudget, AnalysisTemplate, policies)\n",
		strings.Join(append([]string{"the Rollout"}, plan.Notes.Applied...), ", "))
	for _, part := range []struct {
		name  string
		items []string
	}{{"Made up", plan.Notes.MadeUp}, {"Changed", plan.Notes.Changed}, {"Left out", plan.Notes.LeftOut}, {"Of no effect", plan.Notes.NoEffect}} {
		if len(part.items) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s:\n", part.name)
		for _, item := range part.items {
			fmt.Fprintf(&b, "  - %s\n", item)
		}
	}
	if plan.Notes.Lint != "" {
		fmt.Fprintf(&b, "%s\n", plan.Notes.Lint)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// counted is a number of things.
func counted(n int32, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// WriteResult writes one scenario: both routers side by side, what was measured, and
// the verdict.
func WriteResult(w io.Writer, r Result) error {
	if _, err := fmt.Fprintf(w, "\n%s: %s\n\n", strings.ToUpper(string(r.Scenario)), r.Scenario.About()); err != nil {
		return err
	}
	titles := [2]string{"native Istio router, controller " + lab.DefaultVersion, "this plugin, same controller"}
	if err := timeline.SideBySide(w, r.played.Native, r.played.Plugin, titles); err != nil {
		return err
	}
	var b strings.Builder
	if waits := waiting(r.played.Plugin); waits != "" {
		fmt.Fprintf(&b, "\n%s is the controller's word for each time that the plugin does not set a weight yet; the first reason: %s\n", waitEvent, waits)
	}
	fmt.Fprintf(&b, "\n%s\n", r.Verdict)
	if r.Remark != "" {
		fmt.Fprintf(&b, "%s\n", r.Remark)
	}
	for _, broken := range r.Broken {
		fmt.Fprintf(&b, "BROKEN by the plugin: %s\n", broken)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// waitEvent is the reason of the Event that the controller makes of an answer that is not
// yes, as the plugin gives one while the weight has to wait.
const waitEvent = "TrafficRoutingError"

// waiting is what the plugin said first when it did not set a weight; empty if it always
// did.
func waiting(t timeline.Timeline) string {
	for _, e := range t.Entries {
		if event, is := e.Fact.(timeline.Event); is && event.Reason == waitEvent {
			return strings.Join(strings.Fields(event.Message), " ")
		}
	}
	return ""
}

// WriteJSON writes everything at once.
func WriteJSON(w io.Writer, plan Plan, results []Result) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Rollout  string   `json:"rollout"`
		File     string   `json:"file"`
		Line     int      `json:"line"`
		Replicas int32    `json:"replicas"`
		Notes    Notes    `json:"notes"`
		Results  []Result `json:"results"`
	}{plan.Rollout, plan.File, plan.Line, plan.replicas, plan.Notes, results})
}

// WriteSVG draws both routers of one scenario.
func WriteSVG(w io.Writer, r Result) error {
	return timeline.WriteSVG(w, r.played.Native, r.played.Plugin)
}
