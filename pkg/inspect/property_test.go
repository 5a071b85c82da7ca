package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
)

// anySeen draws what no cluster may ever show: every part is whatever it is.
func anySeen(t *rapid.T) Seen {
	text, number, yes := rapid.String(), rapid.Int32(), rapid.Bool()
	fault := func(name string) error {
		if yes.Draw(t, name) {
			return errors.New(text.Draw(t, name))
		}
		return nil
	}
	seen := Seen{At: now, Rollout: anyRollout(t), Refused: fault("refused"), Part: anyPart(t), Shown: rapid.IntRange(-1, 4).Draw(t, "shown"), Notes: rapid.SliceOfN(text, 0, 2).Draw(t, "notes")}
	reason := rapid.SampledFrom([]string{"", "WeightVerifyError", router.EventCanaryHeldByHealthGate, router.EventCanaryWeightCapped, router.EventConfigurationInvalid})
	for range rapid.IntRange(0, 3).Draw(t, "events") {
		seen.Events = append(seen.Events, Event{Last: now.Add(time.Duration(number.Draw(t, "ago")) * time.Second), Count: number.Draw(t, "count"), Reason: reason.Draw(t, "reason"), Message: text.Draw(t, "message")})
	}
	if yes.Draw(t, "no explanation") {
		if yes.Draw(t, "unread") {
			seen.Unread = errors.New("missing right: " + text.Draw(t, "unread"))
		}
		return seen
	}
	pin := number.Draw(t, "pin")
	e := &router.Explanation{
		Max: number.Draw(t, "max"), Written: number.Draw(t, "written"), Known: yes.Draw(t, "known"), Uniform: yes.Draw(t, "uniform"),
		Asked:    router.Asked{Weight: number.Draw(t, "asked"), Silent: rapid.SampledFrom([]string{"", "why\nnot"}).Draw(t, "silent")},
		Enforced: yes.Draw(t, "enforced"), Next: number.Draw(t, "next"), FirstRequest: text.Draw(t, "first"), PinErr: fault("pin"), Broken: fault("broken"),
		StepsErr: fault("steps"), Mismatch: text.Draw(t, "mismatch"), AsDecided: yes.Draw(t, "as decided"), Unverified: text.Draw(t, "unverified"),
		Braked: yes.Draw(t, "braked"), SkippedSteps: yes.Draw(t, "skipped"), Intended: number.Draw(t, "intended"),
		Mark: gate.Mark{Phase: rapid.SampledFrom([]gate.Phase{"", gate.Aborting, gate.Aborted}).Draw(t, "mark"), Text: text.Draw(t, "mark's text")},
		Decision: guard.Decide(guard.Facts{Desired: number.Draw(t, "desired"), Max: number.Draw(t, "of"), Replicas: number.Draw(t, "replicas"),
			Canary: guard.Pods{Available: number.Draw(t, "canary")}, Stable: guard.Pods{Available: number.Draw(t, "stable")}, Intended: number.Draw(t, "intends")}),
		Sides:    []router.ExplainedSide{{Canary: yes.Draw(t, "side"), Subset: text.Draw(t, "subset"), Hash: text.Draw(t, "hash"), Wanted: text.Draw(t, "wanted"), Waits: text.Draw(t, "waits"), EndpointsErr: fault("endpoints")}},
		Services: []router.ExplainedService{{Name: text.Draw(t, "vs"), Routes: []router.ExplainedRoute{{Route: text.Draw(t, "route"), Destinations: []router.ExplainedDestination{{Role: "foreign", Host: text.Draw(t, "host")}}}}}},
	}
	if yes.Draw(t, "pinned") {
		e.Pin, e.Pinned = &pin, &pin
	}
	if yes.Draw(t, "mesh") {
		e.Mesh = &router.ExplainedMesh{Err: fault("istiod"), Waiting: text.Draw(t, "mesh waits"), Want: mesh.Want{Clusters: []string{text.Draw(t, "cluster")}}}
	}
	if yes.Draw(t, "gate") {
		e.Config.HealthGate, e.Place = &config.HealthGate{}, gate.Step
	}
	e.Config.Verify.Level = rapid.SampledFrom([]config.Level{config.Object, config.Mesh, ""}).Draw(t, "level")
	e.Config.Guard.Mode = rapid.SampledFrom([]config.Mode{config.Enforce, config.Observe}).Draw(t, "mode")
	seen.Explanation = e
	return seen
}

// anyPart draws what is told where not all is.
func anyPart(t *rapid.T) router.Explanation {
	text, number := rapid.String(), rapid.Int32()
	side := router.ExplainedSide{Hash: text.Draw(t, "part's hash"), Wanted: text.Draw(t, "part wants"), ReplicaSet: text.Draw(t, "set"), Available: number.Draw(t, "part's pods"), Size: number.Draw(t, "size")}
	if rapid.Bool().Draw(t, "pods unknown") {
		side.PodsErr = errors.New(text.Draw(t, "pods' error"))
	}
	if rapid.Bool().Draw(t, "hash unknown") {
		side.HashErr = errors.New(text.Draw(t, "hash's error"))
	}
	if rapid.Bool().Draw(t, "intended known") {
		side.Intended = &side.Size
	}
	return router.Explanation{Sides: []router.ExplainedSide{side}, Services: []router.ExplainedService{{Name: text.Draw(t, "part's vs")}}}
}

func anyRollout(t *rapid.T) *v1alpha1.Rollout {
	text, number, yes := rapid.String(), rapid.Int32(), rapid.Bool()
	ro := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: int64(rapid.IntRange(0, 2).Draw(t, "generation"))}}
	hash := rapid.SampledFrom([]string{"", "a", "b"})
	n := number.Draw(t, "step")
	ro.Status = v1alpha1.RolloutStatus{
		ObservedGeneration: rapid.SampledFrom([]string{"", "1", "x"}).Draw(t, "observed"), StableRS: hash.Draw(t, "stable"), CurrentPodHash: hash.Draw(t, "canary"),
		Abort: yes.Draw(t, "abort"), PromoteFull: yes.Draw(t, "full"), CurrentStepIndex: &n, Message: text.Draw(t, "message"),
		Phase: rapid.SampledFrom([]v1alpha1.RolloutPhase{"", "Healthy", "Degraded", "Paused"}).Draw(t, "phase"),
	}
	if yes.Draw(t, "paused") {
		reason := rapid.SampledFrom([]v1alpha1.PauseReason{v1alpha1.PauseReasonCanaryPauseStep, v1alpha1.PauseReasonInconclusiveAnalysis})
		ro.Status.PauseConditions = []v1alpha1.PauseCondition{{Reason: reason.Draw(t, "why")}}
	}
	if yes.Draw(t, "weights") {
		ro.Status.Canary.Weights = &v1alpha1.TrafficWeights{Canary: v1alpha1.WeightDestination{Weight: number.Draw(t, "recorded")}}
	}
	if yes.Draw(t, "no strategy") {
		return ro
	}
	long := intstr.FromString(text.Draw(t, "duration"))
	one := rapid.SampledFrom([]v1alpha1.CanaryStep{
		{}, {SetWeight: &n}, {Pause: &v1alpha1.RolloutPause{}}, {Pause: &v1alpha1.RolloutPause{Duration: &long}}, {SetCanaryScale: &v1alpha1.SetCanaryScale{}},
		{Analysis: &v1alpha1.RolloutAnalysis{}}, {Experiment: &v1alpha1.RolloutExperimentStep{}}, {Plugin: &v1alpha1.PluginStep{}},
		{SetHeaderRoute: &v1alpha1.SetHeaderRoute{}}, {SetMirrorRoute: &v1alpha1.SetMirrorRoute{}},
	})
	if yes.Draw(t, "written") {
		written(ro, time.Duration(number.Draw(t, "written ago"))*time.Second, "", specFields)
	}
	ro.Spec.Strategy.Canary = &v1alpha1.CanaryStrategy{Steps: rapid.SliceOfN(one, 0, 3).Draw(t, "steps")}
	if yes.Draw(t, "routed") {
		ro.Spec.Strategy.Canary.TrafficRouting = &v1alpha1.RolloutTrafficRouting{Plugins: map[string]json.RawMessage{text.Draw(t, "plugin"): nil}}
	}
	if index := rapid.Int32Range(-1, 4).Draw(t, "index"); index >= 0 {
		ro.Status.CurrentStepIndex = &index
	}
	return ro
}

func TestWhateverIsSeenThereIsOneSentence(t *testing.T) { rapid.Check(t, oneSentence) }

func FuzzWhateverIsSeenThereIsOneSentence(f *testing.F) { f.Fuzz(rapid.MakeFuzz(oneSentence)) }

func oneSentence(t *rapid.T) { assertReadable(t, Compose(anySeen(t))) }

// assertReadable holds a Report against what every one is: one sentence, once; findings that
// say something; a table that moves no cursor; and the same in all forms.
func assertReadable(t interface{ Errorf(string, ...any) }, r Report) {
	var text bytes.Buffer
	r.Table(&text, Plain)
	if !strings.HasPrefix(r.Waiting, "Waits for ") || !strings.HasSuffix(r.Waiting, ".") || strings.ContainsAny(r.Waiting, "\r\n") || strings.Contains(r.Waiting, ". ") || strings.HasSuffix(r.Waiting, "..") {
		t.Errorf("%q is no sentence", r.Waiting)
	}
	if strings.Count(text.String(), "\n"+printable(r.Waiting)+"\n") != 1 {
		t.Errorf("%q stands %d times in\n%s", r.Waiting, strings.Count(text.String(), r.Waiting), &text)
	}
	if printed := strings.ReplaceAll(text.String(), "\n", ""); printable(printed) != printed {
		t.Errorf("%q moves the cursor", printed)
	}
	for _, f := range r.Findings {
		if f.Severity == 0 || f.Message == "" {
			t.Errorf("%+v is no finding", f)
		}
	}
	if r.Unread != "" && (r.Weights != nil || r.Worst() != lint.Error) {
		t.Errorf("not all could be read, and it says %+v", r)
	}
	assertSameInAllForms(t, r)
}

// readBack is a Report as a script reads it: a severity is a word there.
type readBack struct {
	Report
	Findings []struct{ Severity, Message string } `json:"findings"`
}

// assertSameInAllForms reads a Report back from its JSON and from its YAML.
func assertSameInAllForms(t interface{ Errorf(string, ...any) }, r Report) {
	asJSON, err := json.Marshal(r)
	if err != nil {
		t.Errorf("no JSON: %v", err)
		return
	}
	asYAML, err := yaml.JSONToYAML(asJSON)
	if err != nil {
		t.Errorf("no YAML of %s: %v", asJSON, err)
		return
	}
	var ofJSON, ofYAML readBack
	for _, err := range []error{json.Unmarshal(asJSON, &ofJSON), yaml.UnmarshalStrict(asYAML, &ofYAML)} {
		if err != nil {
			t.Errorf("not to be read back: %v: %s", err, asYAML)
		}
	}
	if diff := cmp.Diff(ofJSON, ofYAML); diff != "" {
		t.Errorf("JSON and YAML differ:\n%s", diff)
	}
	want := r
	want.Findings = nil
	if diff := cmp.Diff(want, ofJSON.Report, cmpopts.EquateEmpty(), cmp.Comparer(sameText)); diff != "" {
		t.Errorf("what was read back differs:\n%s", diff)
	}
	for i, f := range r.Findings {
		if got := ofJSON.Findings[i]; got.Severity != f.Severity.String() || !sameText(got.Message, f.Message) {
			t.Errorf("%+v was read back as %+v", f, got)
		}
	}
}

// sameText is equality but for bytes that are no text, for which JSON has none.
func sameText(a, b string) bool {
	return strings.ToValidUTF8(a, "\uFFFD") == strings.ToValidUTF8(b, "\uFFFD") || !utf8.ValidString(a) || !utf8.ValidString(b)
}
