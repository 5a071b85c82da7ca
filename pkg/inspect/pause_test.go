package inspect

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// TestAPauseLastsAsLongAsTheControllerSays follows RolloutPause.DurationSeconds and
// CompletedCanaryPauseStep of argo-rollouts v1.10.
func TestAPauseLastsAsLongAsTheControllerSays(t *testing.T) {
	const refuses = "Waits for a correction, as the controller refuses the spec and does nothing: spec.strategy.canary.steps[1].pause.duration is "
	for sentence, tc := range map[string]struct {
		duration *intstr.IntOrString // nil for none
		begun    time.Duration       // ago
		step     string
		waits    string
	}{
		"none waits for a person":                      {nil, time.Hour, "pause until somebody promotes it", "Waits for a person to promote it: the pause of step 2 of 4 has no duration."},
		"0 is over at once":                            {v1alpha1.DurationFromInt(0), 0, "pause 0s", "Waits for the controller's next reconcile."},
		"a text 0 is over at once":                     {v1alpha1.DurationFromString("0"), 0, "pause 0s", "Waits for the controller's next reconcile."},
		"a number is seconds":                          {v1alpha1.DurationFromInt(90), time.Minute, "pause 90s", "Waits for the pause of step 2 of 4 of 1m30s to end, at 2026-03-04 15:16:47Z."},
		"a text without a unit is seconds":             {v1alpha1.DurationFromString("10"), 3 * time.Second, "pause 10s", "Waits for the pause of step 2 of 4 of 10s to end, at 2026-03-04 15:16:24Z."},
		"a text with a unit is that":                   {v1alpha1.DurationFromString("1h"), time.Minute, "pause 1h", "Waits for the pause of step 2 of 4 of 1h0m0s to end, at 2026-03-04 16:15:17Z."},
		"parts of seconds are not counted":             {v1alpha1.DurationFromString("1.9s"), 0, "pause 1.9s (1s for the controller)", "Waits for the pause of step 2 of 4 of 1s to end, at 2026-03-04 15:16:18Z."},
		"at its end it is over":                        {v1alpha1.DurationFromString("1h"), time.Hour, "pause 1h", "Waits for the controller's next reconcile."},
		"what is no duration is refused":               {v1alpha1.DurationFromString("10 minutes"), time.Minute, `pause "10 minutes", which the controller does not accept`, refuses + `"10 minutes": write seconds, as 600, or a number with a unit, as 10m; not below 0.`},
		"an empty text is refused":                     {v1alpha1.DurationFromString(""), time.Minute, `pause "", which the controller does not accept`, refuses + `"": write`},
		"less than nothing is refused":                 {v1alpha1.DurationFromInt(-5), time.Minute, `pause "-5", which the controller does not accept`, refuses + `"-5": write`},
		"more seconds than a number holds are refused": {v1alpha1.DurationFromString("3000000000"), time.Minute, `pause "3000000000", which the controller does not accept`, refuses + `"3000000000": write`},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, ro := running(t), rollout("")
			ro.Spec.Strategy.Canary.Steps[1].Pause.Duration = tc.duration
			ro.Status.PauseConditions[0].StartTime = metav1.NewTime(now.Add(-tc.begun))
			w.store(ro)
			seen, err := Look(t.Context(), w, options(), "shop", "web")
			if err != nil {
				t.Fatal(err)
			}
			r := Compose(seen)
			if r.Rollout.StepText != tc.step || !strings.HasPrefix(r.Waiting, tc.waits) {
				t.Errorf("%s\n%s\nwant\n%s\n%s", r.Rollout.StepText, r.Waiting, tc.step, tc.waits)
			}
			if refused := strings.HasPrefix(tc.waits, refuses); (r.Worst() == lint.Error) != refused {
				t.Errorf("%+v", r.Findings)
			}
		})
	}
}

// TestTheControllersOwnWordsAboutAPauseAreNotRepeated: it says -1 whatever was written.
func TestTheControllersOwnWordsAboutAPauseAreNotRepeated(t *testing.T) {
	w, ro := running(t), rollout("")
	ro.Spec.Strategy.Canary.Steps[3].Pause.Duration = v1alpha1.DurationFromString("ten")
	ro.Status.Conditions = []v1alpha1.RolloutCondition{{Type: v1alpha1.InvalidSpec, Status: "True", Message: "Invalid value: -1: Duration needs to be greater than 0"}}
	w.store(ro)
	seen, err := Look(t.Context(), w, options(), "shop", "web")
	if err != nil {
		t.Fatal(err)
	}
	if r := Compose(seen); !strings.Contains(r.Waiting, `steps[3].pause.duration is "ten"`) || strings.Contains(r.Waiting, "-1") {
		t.Error(r.Waiting)
	}
}
