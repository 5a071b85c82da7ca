package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
)

// explained fails the test unless the Rollout can be explained, and when anything was
// written, sent or changed by it.
func (w *world) explained(t testing.TB, options Options, ro *v1alpha1.Rollout) Explanation {
	t.Helper()
	version, events, before := w.version, len(w.events), ro.DeepCopy()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e, err := explain(ctx, w, options, ro, w.clock)
	if err != nil {
		t.Fatal(err)
	}
	if w.version != version || len(w.events) != events || len(w.writes)+len(w.marks)+len(w.aborts) > 0 {
		t.Errorf("an explanation wrote or told: %v %v %v %v", w.writes, w.events[events:], w.marks, w.aborts)
	}
	if diff := cmp.Diff(before, ro); diff != "" {
		t.Errorf("it changed the Rollout:\n%s", diff)
	}
	return e
}

// at is a Rollout at this step, from 0, with these steps.
func at(config string, step int32, steps ...v1alpha1.CanaryStep) *v1alpha1.Rollout {
	ro := rollout(config)
	ro.Spec.Strategy.Canary.Steps, ro.Status.CurrentStepIndex = steps, &step
	return ro
}

func weight(n int32) v1alpha1.CanaryStep { return v1alpha1.CanaryStep{SetWeight: &n} }

func pause() v1alpha1.CanaryStep { return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}} }

func scaled(n int32) v1alpha1.CanaryStep {
	return v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{Replicas: &n}}
}

func TestWhatTheControllerAsksFor(t *testing.T) {
	recorded := func(ro *v1alpha1.Rollout, canary int32, hash string) {
		ro.Status.Canary.Weights = &v1alpha1.TrafficWeights{Canary: v1alpha1.WeightDestination{Weight: canary, PodTemplateHash: hash}}
	}
	dynamic := func(ro *v1alpha1.Rollout) { ro.Spec.Strategy.Canary.DynamicStableScale = true }
	for sentence, tc := range map[string]struct {
		ro             *v1alpha1.Rollout
		edit           func(*v1alpha1.Rollout)
		canary, stable int32 // available pods
		want           int32
		silent         bool
	}{
		"the weight of the step":                                     {at(subsetConfig, 0, weight(20), pause()), nil, 4, 20, 20, false},
		"the weight of the last step that sets one":                  {at(subsetConfig, 1, weight(20), pause()), nil, 4, 20, 20, false},
		"the weight before, while pods are missing":                  {at(subsetConfig, 2, weight(20), pause(), weight(50)), nil, 9, 20, 20, false},
		"nothing, where there is no weight before":                   {at(subsetConfig, 0, weight(20)), nil, 3, 20, 0, false},
		"all, after the last step":                                   {at(subsetConfig, 1, weight(20)), nil, 20, 20, 100, false},
		"the last weight, after the last step and with pods missing": {at(subsetConfig, 2, weight(20), weight(70)), nil, 2, 20, 70, false},
		"the weight for which a fixed scale has the pods":            {at(subsetConfig, 1, scaled(1), weight(50)), nil, 1, 20, 50, false},
		"the weight that a threshold has the pods for": {at(subsetConfig, 0, weight(50)), func(ro *v1alpha1.Rollout) {
			ro.Spec.Strategy.Canary.ReplicaProgressThreshold = &v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ProgressTypePercentage, Value: 90}
		}, 9, 20, 50, false},
		"the weight before, below the threshold": {at(subsetConfig, 1, weight(10), weight(50)), func(ro *v1alpha1.Rollout) {
			ro.Spec.Strategy.Canary.ReplicaProgressThreshold = &v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ProgressTypePods, Value: 9}
		}, 8, 20, 10, false},
		"nothing, without steps":                                     {at(subsetConfig, 0), nil, 4, 20, 0, false},
		"nothing, without a pod of the canary":                       {at(subsetConfig, 1, weight(20), pause()), nil, 0, 20, 0, false},
		"nothing, once aborted":                                      {at(subsetConfig, 1, weight(20), pause()), func(ro *v1alpha1.Rollout) { ro.Status.Abort = true }, 4, 20, 0, false},
		"nothing, once promoted":                                     {at(subsetConfig, 2, weight(20), pause()), func(ro *v1alpha1.Rollout) { ro.Status.StableRS = "new" }, 20, 0, 0, false},
		"what was recorded, when promoted in full":                   {at(subsetConfig, 1, weight(20), pause()), func(ro *v1alpha1.Rollout) { ro.Status.PromoteFull = true; recorded(ro, 20, "new") }, 9, 20, 20, false},
		"what the pods can bear, when promoted in full and dynamic":  {at(subsetConfig, 1, weight(20), pause()), func(ro *v1alpha1.Rollout) { dynamic(ro); ro.Status.PromoteFull = true }, 9, 20, 45, false},
		"a share on the way back, as long as the stable is small":    {at(subsetConfig, 3, weight(20), weight(50), weight(80)), func(ro *v1alpha1.Rollout) { dynamic(ro); ro.Status.Abort = true; recorded(ro, 80, "new") }, 16, 4, 80, false},
		"the step before, on the way back with enough of the stable": {at(subsetConfig, 3, weight(20), weight(50), weight(80)), func(ro *v1alpha1.Rollout) { dynamic(ro); ro.Status.Abort = true; recorded(ro, 80, "new") }, 16, 10, 50, false},
		"nothing, on the way back with all of the stable":            {at(subsetConfig, 3, weight(20), weight(50), weight(80)), func(ro *v1alpha1.Rollout) { dynamic(ro); ro.Status.Abort = true; recorded(ro, 80, "new") }, 4, 20, 0, false},
		"what the stable cannot take, on the way back to it":         {at(subsetConfig, 1, weight(50)), func(ro *v1alpha1.Rollout) { dynamic(ro); ro.Status.CurrentPodHash = "old"; recorded(ro, 50, "new") }, 10, 12, 50, false},
		"no call, while the stable has too few pods for the rest":    {at(subsetConfig, 0, weight(20), pause()), nil, 4, 15, 20, true},
		"no call, before a revision is stable":                       {at(subsetConfig, 0, weight(20), pause()), func(ro *v1alpha1.Rollout) { ro.Status.StableRS = "" }, 4, 0, 0, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, subsetVirtualService, subsetDestinationRule)
			w.pods("new", tc.canary, 20)
			w.pods("old", tc.stable, 20)
			if tc.edit != nil {
				tc.edit(tc.ro)
			}
			got := w.explained(t, Options{}, tc.ro).Asked
			if got.Weight != tc.want || (got.Silent != "") != tc.silent {
				t.Errorf("%+v, want weight %d", got, tc.want)
			}
		})
	}
}

// TestAnExplanationSaysWhatTheNextCallWrites holds the two against each other: what a new
// process writes when it is called is what was explained.
func TestAnExplanationSaysWhatTheNextCallWrites(t *testing.T) {
	rapid.Check(t, func(t2 *rapid.T) {
		w := newWorld(t, subsetVirtualService, subsetDestinationRule)
		config := subsetConfig
		if rapid.Bool().Draw(t2, "hosts") {
			w, config = newWorld(t, hostVirtualService), hostConfig
			w.services["shop/cart-canary"], w.services["shop/cart-stable"] = "new", "old"
		}
		count := rapid.Int32Range(0, 20)
		w.pods("new", count.Draw(t2, "canary"), 20)
		w.pods("old", count.Draw(t2, "stable"), 20)
		written := rapid.IntRange(0, 100).Draw(t2, "written")
		w.setWeights(fmt.Sprintf("%d/%d", 100-written, written))
		ro := at(config, rapid.Int32Range(0, 4).Draw(t2, "step"), weight(5), pause(), weight(60), pause())
		ro.Spec.Strategy.Canary.DynamicStableScale = rapid.Bool().Draw(t2, "dynamic")
		ro.Status.Abort = rapid.Bool().Draw(t2, "abort")
		if rapid.Bool().Draw(t2, "pin") {
			ro.Annotations = map[string]string{PinAnnotation: rapid.StringMatching("[0-9]{1,3}").Draw(t2, "weight")}
		}
		if config == subsetConfig {
			mustUpdateLabels(w, "new", "old")
		}
		w.pass(time.Hour)
		e := w.explained(t, Options{}, ro)
		_ = w.calledRouter().SetWeight(context.Background(), ro, e.Asked.Weight, nil) // an answer may be an error, and the weight is written all the same
		if got, want := w.weights(), fmt.Sprintf("%d/%d", 100-e.Next, e.Next); got != want {
			t2.Errorf("it wrote %s, and %s was explained: %+v", got, want, e)
		}
		if after := w.after(ro, e); !after.AsDecided || after.Written != e.Next {
			t2.Errorf("after the call: %+v", after)
		}
	})
}

// after is the explanation once the call has been made.
func (w *world) after(ro *v1alpha1.Rollout, _ Explanation) Explanation {
	w.writes, w.events = nil, nil
	return w.explained(w.t, Options{}, ro)
}

// mustUpdateLabels lets the subsets name these hashes, as a person would.
func mustUpdateLabels(w *world, canary, stable string) {
	text := strings.Replace(subsetDestinationRule, "{name: stable, labels: {app: cart}}", "{name: stable, labels: {app: cart, rollouts-pod-template-hash: "+stable+"}}", 1)
	w.apply(strings.Replace(text, "{name: canary, labels: {app: cart}}", "{name: canary, labels: {app: cart, rollouts-pod-template-hash: "+canary+"}}", 1))
}

func TestAnExplanationTellsOfSidesAndRoutes(t *testing.T) {
	w := newWorld(t, strings.Replace(subsetVirtualService, "weight: 0}", "weight: 0}\n    - {destination: {host: legacy}, weight: 0}", 1))
	mustUpdateLabels(w, "new", "old")
	w.pods("new", 3, 4)
	w.pods("old", 20, 20)
	w.services["shop/cart"] = ""
	w.slices = map[string][]cluster.Endpoint{"shop/cart": append(endpoints("old", 20), endpoints("new", 2)...)}
	e := w.explained(t, Options{}, at(subsetConfig, 0, weight(20), pause()))
	four, twenty := int32(4), int32(20)
	want := []ExplainedSide{
		{Canary: true, Kind: "DestinationRule", Namespace: "shop", Name: "cart", Subset: "canary", Hash: "new", Wanted: "new", ReplicaSet: "cart-new", Available: 3, Size: 4, Intended: &four, Ready: 2},
		{Kind: "DestinationRule", Namespace: "shop", Name: "cart", Subset: "stable", Hash: "old", Wanted: "old", ReplicaSet: "cart-old", Available: 20, Size: 20, Intended: &twenty, Ready: 20},
	}
	if diff := cmp.Diff(want, e.Sides); diff != "" {
		t.Error(diff)
	}
	var roles []string
	for _, d := range e.Services[0].Routes[0].Destinations {
		roles = append(roles, d.Role)
	}
	if !slices.Equal(roles, []string{"stable", "canary", "foreign"}) {
		t.Errorf("%v", roles)
	}
}

func TestALabelThatMovesIsExplainedByThePlan(t *testing.T) {
	w := newWorld(t, subsetVirtualService)
	mustUpdateLabels(w, "older", "old")
	w.setWeights("80/20")
	w.pods("older", 4, 4)
	w.pods("new", 0, 4)
	w.pods("old", 20, 20)
	e := w.explained(t, Options{}, at(subsetConfig, 0, weight(20), pause()))
	if side := e.Sides[0]; side.Hash != "older" || side.Wanted != "new" || side.Waits == "" {
		t.Errorf("%+v", side)
	}
}

func TestABegunRollbackOfTheHealthGateIsExplained(t *testing.T) {
	w := newWorld(t, subsetVirtualService)
	mustUpdateLabels(w, "new", "old")
	w.setWeights("80/20")
	w.pods("new", 4, 4)
	w.pods("old", 20, 20)
	ro := at(strings.TrimSuffix(subsetConfig, "}")+`, "healthGate": {"provider": {"prometheus": {"address": "http://prometheus:9090"}}}}`, 0, weight(20), pause())
	ro.Annotations = map[string]string{gate.Annotation: "new aborting: rolled back from 20"}
	options := Options{}
	options.Config.Prometheus.Any = true
	e := w.explained(t, options, ro)
	if !e.Braked || e.Next != 0 || e.Mark.Text != "rolled back from 20" || e.Place != gate.Step {
		t.Errorf("%+v", e)
	}
}

func TestWhatIstiodServesIsExplainedAtEveryLevel(t *testing.T) {
	for level, waited := range map[string]bool{"Object": false, "Mesh": true} {
		w, _, i, ro := verified(t, `{"level": "`+level+`"}`)
		w.setWeights("80/20")
		w.writes, w.events = nil, nil
		index := int32(0)
		ro.Status.CurrentStepIndex, ro.Spec.Strategy.Canary.Steps = &index, []v1alpha1.CanaryStep{weight(20), pause()}
		e := w.explained(t, Options{Mesh: i}, ro)
		if e.Mesh == nil || !strings.Contains(e.Mesh.Waiting, "istiod still serves canary 0 where 20 is written") || (e.Unverified != "") != waited {
			t.Errorf("%s: %+v, unverified %q", level, e.Mesh, e.Unverified)
		}
		i.serves(20, endpoints("old", 20), endpoints("canary1", 20))
		if e := w.explained(t, Options{Mesh: i}, ro); e.Mesh.Waiting != "" || e.Unverified != "" || len(e.Mesh.Want.Clusters) != 2 {
			t.Errorf("%s: %+v, unverified %q", level, e.Mesh, e.Unverified)
		}
		if e := w.explained(t, Options{}, ro); e.Mesh != nil || e.UnverifiedKnown == waited {
			t.Errorf("%s without istiod: %+v", level, e)
		}
	}
}

func TestAnIstiodThatIsAwayIsExplainedAndNobodyIsTold(t *testing.T) {
	for handling, waited := range map[string]bool{"Proceed": false, "Hold": true} {
		w, _, i, ro := verified(t, `{"level": "Mesh", "onUnavailable": "`+handling+`"}`)
		w.setWeights("80/20")
		w.writes, w.events = nil, nil
		index := int32(0)
		ro.Status.CurrentStepIndex, ro.Spec.Strategy.Canary.Steps = &index, []v1alpha1.CanaryStep{weight(20), pause()}
		i.err = mesh.ErrUnavailable
		if e := w.explained(t, Options{Mesh: i}, ro); e.Mesh == nil || e.Mesh.Err == nil || (e.Unverified != "") != waited {
			t.Errorf("%s: %+v, unverified %q", handling, e.Mesh, e.Unverified)
		}
	}
}

// silent is an istiod that never answers.
type silent struct{ istiod }

func (*silent) Served(types.UID) (mesh.Served, error) { return mesh.Served{}, nil }

func TestAnIstiodThatDoesNotAnswerIsWaitedForAsLongAsTheCallerDoes(t *testing.T) {
	w, _, _, ro := verified(t, `{}`)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	e, err := explain(ctx, w, Options{Mesh: &silent{istiod{followed: map[types.UID]mesh.Want{}}}}, ro, w.clock)
	if err != nil || e.Mesh == nil || e.Mesh.Err == nil || e.Mesh.Waiting != "" {
		t.Errorf("%+v, %v", e.Mesh, err)
	}
}

func TestARolloutThatCannotBeHandledIsAnError(t *testing.T) {
	w := newWorld(t)
	for want, ro := range map[string]*v1alpha1.Rollout{
		"virtualservices \"cart\" not found": rollout(hostConfig),
		"virtualService":                     rollout(`{}`),
	} {
		if _, err := Explain(t.Context(), w, Options{}, ro); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestAnOnlookerRefusesToWrite is the last line: nothing on the way of an explanation gets
// there.
func TestAnOnlookerRefusesToWrite(t *testing.T) {
	w := newWorld(t, subsetVirtualService, subsetDestinationRule)
	var c Cluster = onlooker{w}
	_, _, vs := c.UpdateVirtualService(t.Context(), "shop", "cart", nil)
	_, _, dr := c.UpdateDestinationRule(t.Context(), "shop", "cart", nil)
	_, ro := c.Rollout(t.Context(), "shop", "cart")
	ref := referenceTo(rollout(subsetConfig))
	for what, err := range map[string]error{
		"VirtualService": vs, "DestinationRule": dr, "Rollout": ro,
		"mark": c.MarkRollout(t.Context(), ref, "new", "a", "b"), "abort": c.AbortRollout(t.Context(), ref, "new"),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	c.Event(ref, true, "Reason", "message")
	if len(w.writes)+len(w.marks)+len(w.aborts)+len(w.events) > 0 {
		t.Errorf("%v %v %v %v", w.writes, w.marks, w.aborts, w.events)
	}
}
