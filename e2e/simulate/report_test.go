package simulate

import (
	"bytes"
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// aPlan is one whose guard is not judged: timelines made by hand have no Rollout to ask.
func aPlan() Plan {
	return Plan{
		Rollout: "Rollout shop/web", File: "web.yaml", Line: 3, replicas: 20, window: 3,
		Notes: Notes{
			MadeUp:  []string{"Service web, as it is not in the files"},
			Changed: []string{"spec.strategy.canary.steps[1].pause: 1h0m0s, played with 3s"},
			LeftOut: []string{"spec.strategy.canary.analysis: the lab has no metrics"},
			Lint:    "lint -f has more to say about these files (errors: 0, warnings: 1)",
		},
	}
}

func aRollback() Played {
	return Played{Scenario: Rollback, Native: nativeRollback(), Plugin: pluginRollback(), Revisions: 1}
}

func TestTheTableOfARollback(t *testing.T) {
	var out bytes.Buffer
	if err := WriteNotes(&out, aPlan()); err != nil {
		t.Fatal(err)
	}
	if err := WriteResult(&out, Judge(aPlan(), aRollback())); err != nil {
		t.Fatal(err)
	}
	fitsAScreen(t, out.String())
	golden(t, "rollback.txt", out.String())
}

func TestTheJSONOfARollback(t *testing.T) {
	var out bytes.Buffer
	if err := WriteJSON(&out, aPlan(), []Result{Judge(aPlan(), aRollback())}); err != nil {
		t.Fatal(err)
	}
	golden(t, "rollback.json", out.String())
}

func TestThePictureOfARollback(t *testing.T) {
	var out bytes.Buffer
	if err := WriteSVG(&out, Judge(aPlan(), aRollback())); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "Native Istio router", "This plugin"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the picture", want)
		}
	}
}

func TestTheVerdictIsOneSentenceAboutBothRouters(t *testing.T) {
	calm := func() timeline.Timeline {
		return newTape().at(0.5).phase("Progressing").at(2).pods(canaryHash, 20).weight(100).at(9).phase("Healthy").timeline(10)
	}
	endless := func() timeline.Timeline { return newTape().at(0.5).phase("Progressing").timeline(40) }
	for name, c := range map[string]struct {
		native, plugin timeline.Timeline
		want           string
	}{
		"the incident": {nativeRollback(), pluginRollback(),
			"With the native router your rollback sends up to 100 % of the requests to 2 of 20 pods, and more than the pods can take for 6 s " +
				"(of that 1 s to no pod at all); with the plugin never more than the pods can take."},
		"both are calm": {calm(), calm(),
			"With neither router your rollback sends more requests to the pods than they can take; it is Healthy after 9 s with the native router and it is Healthy after 9 s with the plugin."},
		"the native router has no end": {endless(), calm(),
			"With neither router your rollback sends more requests to the pods than they can take; it comes to no end within 40 s with the native router and it is Healthy after 9 s with the plugin."},
		"no praise for a plugin that overloads its pods as well": {nativeRollback(), nativeRollback(),
			"With the native router your rollback sends up to 100 % of the requests to 2 of 20 pods, and more than the pods can take for 6 s (of that 1 s to no pod at all); " +
				"with the plugin up to 100 % of the requests to 2 of 20 pods, and more than the pods can take for 6 s (of that 1 s to no pod at all)."},
	} {
		t.Run(name, func(t *testing.T) {
			r := Judge(aPlan(), Played{Scenario: Rollback, Native: c.native, Plugin: c.plugin, Revisions: 1})
			if r.Verdict != c.want {
				t.Errorf("got\n%s\nwant\n%s", r.Verdict, c.want)
			}
		})
	}
}

func TestWhatNoSplitCouldSpareIsNotBlamed(t *testing.T) {
	// Of 20 pods 4 are left on the stable side and 2 have come on the other: a third of
	// the traffic is the canary's share of them.
	for weight, blamed := range map[int32]bool{33: false, 50: true, 0: true} {
		tl := newTape().at(1).pods(stableHash, 4).pods(canaryHash, 2).weight(weight).timeline(3)
		if got := worst(tl) != nil && worst(tl).At == 1 && worst(tl).Seconds > 1; got != blamed {
			t.Errorf("weight %d: blamed %t, want %t (%+v)", weight, got, blamed, worst(tl))
		}
	}
}

func TestAPluginWithoutAnEndIsBroken(t *testing.T) {
	endless := newTape().at(0.5).phase("Progressing").timeline(40)
	r := Judge(aPlan(), Played{Scenario: Canary, Native: nativeRollback(), Plugin: endless})
	if len(r.Broken) != 1 || !strings.Contains(r.Broken[0], "no end within 40 s") {
		t.Errorf("broken: %q", r.Broken)
	}
	if r := Judge(aPlan(), aRollback()); len(r.Broken) != 0 {
		t.Errorf("a good play is broken: %q", r.Broken)
	}
}

func TestAPluginThatBreaksAnInvariantIsBroken(t *testing.T) {
	plan := aPlan()
	if r := Judge(plan, Played{Scenario: Rollback, Native: nativeRollback(), Plugin: nativeRollback()}); len(r.Broken) != 0 {
		t.Errorf("a guard that is off was held against its rule: %q", r.Broken)
	}
	plan.enforced = true
	r := Judge(plan, Played{Scenario: Rollback, Native: nativeRollback(), Plugin: nativeRollback()})
	if len(r.Broken) == 0 {
		t.Error("all traffic on too few pods is not called broken")
	}
}

func TestARollbackThatTakesAllStepsIsExplained(t *testing.T) {
	plan := aPlan()
	played := aRollback()
	played.Revisions = 4
	want := "spec.rollbackWindow is 3 and the rollback goes 4 back: it takes all steps, as any other revision does."
	if r := Judge(plan, played); r.Remark != want {
		t.Errorf("remark %q, want %q", r.Remark, want)
	}
	if r := Judge(plan, aRollback()); r.Remark != "" {
		t.Errorf("one within the window is remarked on: %q", r.Remark)
	}
}
