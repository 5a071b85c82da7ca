package simulate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/golden"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline/tape"
)

// aPlan is one whose guard is not judged: timelines made by hand have no Rollout to ask.
func aPlan() Plan {
	return Plan{
		Rollout: "Rollout shop/web", File: "web.yaml", Line: 3, replicas: 20, window: new(int32(3)),
		Notes: Notes{
			Applied:  []string{"VirtualService web"},
			MadeUp:   []string{"Service web, as it is not in the files"},
			Changed:  []string{"spec.strategy.canary.steps[1].pause: 1h0m0s, played with 3s"},
			LeftOut:  []string{"spec.strategy.canary.analysis: the lab has no metrics"},
			NoEffect: []string{"spec.template.spec: volumes: nothing is mounted; a Secret, ConfigMap or claim need not be there"},
			Lint:     "lint -f has more to say about these files (errors: 0, warnings: 1)",
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
	golden.Compare(t, "rollback.txt", out.String())
}

func TestTheJSONOfARollback(t *testing.T) {
	var out bytes.Buffer
	if err := WriteJSON(&out, aPlan(), []Result{Judge(aPlan(), aRollback())}); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "rollback.json", out.String())
}

func TestThePictureOfARollback(t *testing.T) {
	var out bytes.Buffer
	if err := WriteSVG(&out, Judge(aPlan(), aRollback())); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "rollback.svg", out.String())
}

func TestTheWordOfTheControllerForAWaitIsExplained(t *testing.T) {
	var out bytes.Buffer
	played := aRollback()
	event := timeline.Event{Type: "Warning", Reason: "TrafficRoutingError", Message: "failed to set weight via plugin:\n held at 10 of 100"}
	played.Plugin.Entries = append(played.Plugin.Entries, timeline.Entry{At: time.Second, Name: "web.1", Fact: event})
	if err := WriteResult(&out, Judge(aPlan(), played)); err != nil {
		t.Fatal(err)
	}
	want := "\nTrafficRoutingError is the controller's word for each time that the plugin does not set a weight yet; the first reason: failed to set weight via plugin: held at 10 of 100\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("%q is not in\n%s", want, &out)
	}
}

func TestTheVerdictIsOneSentenceAboutBothRouters(t *testing.T) {
	calm := func() timeline.Timeline {
		return tape.New("web").At(0.5).Phase("Progressing").At(2).Pods(tape.Canary, 20).Weight(100).At(9).Phase("Healthy").Timeline(10)
	}
	endless := func() timeline.Timeline { return tape.New("web").At(0.5).Phase("Progressing").Timeline(40) }
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
		tl := tape.New("web").At(1).Pods(tape.Stable, 4).Pods(tape.Canary, 2).Weight(weight).Timeline(3)
		if got := worst(tl) != nil && worst(tl).At == 1 && worst(tl).Seconds > 1; got != blamed {
			t.Errorf("weight %d: blamed %t, want %t (%+v)", weight, got, blamed, worst(tl))
		}
	}
}

func TestAPluginWithoutAnEndIsBroken(t *testing.T) {
	endless := tape.New("web").At(0.5).Phase("Progressing").Timeline(40)
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

func TestWhatAnAutoscalerCostsWithEitherRouterIsNotBlamedOnOne(t *testing.T) {
	late := func() timeline.Timeline {
		return tape.New("web").At(1).Scale(40).Phase("Progressing").At(4).Pods(tape.Stable, 40).At(9).Phase("Healthy").Timeline(10)
	}
	early := func() timeline.Timeline {
		return tape.New("web").At(1).Pods(tape.Stable, 40).Scale(40).Phase("Progressing").At(9).Phase("Healthy").Timeline(10)
	}
	for name, c := range map[string]struct {
		plugin timeline.Timeline
		want   bool
	}{"both have too few": {late(), true}, "only the native router has": {early(), false}} {
		r := Judge(aPlan(), Played{Scenario: Scale, Native: late(), Plugin: c.plugin})
		if got := strings.HasPrefix(r.Remark, "Until the pods that are added have started"); got != c.want {
			t.Errorf("%s: remark %q", name, r.Remark)
		}
	}
}

func TestARollbackThatTakesAllStepsIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		window, history *int32
		scenario        Scenario
		want            string
	}{
		"one within the window needs no words": {new(int32(4)), nil, Rollback, ""},
		"another story has no window":          {nil, nil, Canary, ""},
		"a window of fewer revisions":          {new(int32(3)), nil, Rollback, "spec.rollbackWindow.revisions is 3 and the rollback goes 4 back: it takes all steps, as any other revision does."},
		"a window of none":                     {new(int32(0)), nil, Rollback, "spec.rollbackWindow.revisions is 0 and the rollback goes 4 back: it takes all steps, as any other revision does."},
		"a history that does not reach so far": {new(int32(4)), new(int32(2)), Rollback, "spec.revisionHistoryLimit is 2 and the rollback goes 4 back: that ReplicaSet may be gone, and a new one takes all steps."},
		"a history that reaches":               {new(int32(4)), new(int32(4)), Rollback, ""},
		"no window is said to be none":         {nil, nil, Rollback, "spec.rollbackWindow is not set, so that no rollback is told from any other revision: it takes all steps. With one, a rollback to a revision within it skips them and asks for all of the traffic at once."},
	} {
		t.Run(name, func(t *testing.T) {
			plan, played := aPlan(), aRollback()
			plan.window, plan.history, played.Revisions, played.Scenario = c.window, c.history, 4, c.scenario
			if r := Judge(plan, played); r.Remark != c.want {
				t.Errorf("remark\n%s\nwant\n%s", r.Remark, c.want)
			}
		})
	}
}
