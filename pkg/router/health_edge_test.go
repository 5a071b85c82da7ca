package router

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// What a hostile reader of the gate, of verification and of first requests has found.

func fullAndHeld(t *testing.T) (*world, *Router, *clinic, *v1alpha1.Rollout) {
	t.Helper()
	w, r, c, ro := gatedCanary(t, "")
	end := int32(1)
	ro.Status.CurrentStepIndex = &end
	mustSet(t, r, ro, 100)
	wantVerified(t, "the window is open", r, ro, 100, false)
	window(t, w, r, c)
	return w, r, c, ro
}

func TestARollbackSendsNothingToAStableWithoutPods(t *testing.T) {
	w, r, c, _ := fullAndHeld(t)
	w.pods("s1", 0, 20) // its node pool is gone, and the canary has all of the traffic
	watched(t, r)
	w.wantWeights(t, "before", "0/100")
	c.answers(42, nil) // 4.2 % of the requests fail
	watched(t, r)
	w.wantWeights(t, "4.2 % is better than all", "0/100")
}

func TestBrakeAndRescueDoNotFight(t *testing.T) {
	w, r, c, ro := fullAndHeld(t)
	w.pods("s1", 0, 20)
	c.answers(42, nil)
	w.abortErr = errors.New("the API server is away for Rollouts")
	writes := len(w.writes)
	for range 10 {
		_, _ = r.watchLook(t.Context(), "uid-1")
	}
	if n := len(w.writes) - writes; n > 1 {
		t.Errorf("%d writes in 10 looks at one moment", n)
	}
	w.abortErr = nil
	watched(t, r)
	writes = len(w.writes)
	for range 5 {
		_ = setWeight(t, r, ro, 100) // the controller has not heard of the abort yet
		_, _ = r.watchLook(t.Context(), "uid-1")
	}
	if n := len(w.writes) - writes; n > 1 {
		t.Errorf("%d writes in 5 reconciles with a look after each", n)
	}
}

func TestASecondRollbackWithTheSameNumbersIsCarriedOut(t *testing.T) {
	w, r, c, ro := gatedCanary(t, "")
	wantVerified(t, "the window is open", r, ro, 20, false)
	window(t, w, r, c)
	c.answers(1000, nil)
	watched(t, r)
	wantEqual(t, "aborted", strings.Join(w.aborts, " "), "c2")
	text := "rolled back from 20: 5xx 100 % over 1 %"
	aborted := ro.DeepCopy()
	aborted.ResourceVersion, aborted.Status.Abort = "7", true
	aborted.Annotations = map[string]string{gate.Annotation: "c2 aborted: " + text}
	mustSet(t, r, aborted, 0)
	wantVerified(t, "aborted", r, aborted, 0, true)
	// A person retries; the canary is as sick as before.
	retried := aborted.DeepCopy()
	retried.ResourceVersion, retried.Status.Abort = "8", false
	mustSet(t, r, retried, 20)
	wantVerified(t, "a new window", r, retried, 20, false)
	gone := retried.DeepCopy()
	gone.ResourceVersion, gone.Annotations = "9", nil
	mustSet(t, r, gone, 20)
	wantVerified(t, "a new window", r, gone, 20, false)
	window(t, w, r, c)
	c.answers(1000, nil)
	watched(t, r)
	watched(t, r)
	wantEqual(t, "aborted", strings.Join(w.aborts, " "), "c2 c2")
	w.wantWeights(t, "rolled back again", "100/0")
}

func TestACallThatFindsNoTurnDoesNotPromote(t *testing.T) {
	_, r, _, ro := gatedCanary(t, "")
	end := int32(1)
	ro.Status.CurrentStepIndex = &end
	mustSet(t, r, ro, 100)
	// The watch is at work with a slow API server: it carries a rollback out.
	m := r.memories.known("uid-1")
	must(t, m.turn.Acquire(t.Context(), 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the call's deadline is over
	verified, err := r.VerifyWeight(ctx, ro, 100, nil)
	m.turn.Release(1)
	if verified || err != nil {
		t.Errorf("verified %t, error %v: the controller goes on beside an error, and promotes", verified, err)
	}
}

func TestAnObjectThatGoesDuringAReconcileDoesNotPromote(t *testing.T) {
	w, r, _, ro := gatedCanary(t, "")
	end := int32(1)
	ro.Status.CurrentStepIndex = &end
	mustUpdate(t, r, ro, "c2", "s1")
	mustSet(t, r, ro, 100)
	delete(w.objects, "DestinationRule shop/cart")
	verified, err := r.VerifyWeight(t.Context(), ro, 100, nil)
	if verified || err != nil {
		t.Errorf("verified %t, error %v: the controller goes on beside an error, and promotes", verified, err)
	}
}

func TestAnExperimentWithTheHashOfThePodlessCanaryGetsItsShare(t *testing.T) {
	w := newWorld(t, hostVirtualService)
	w.services["shop/cart-stable"], w.services["shop/cart-canary"] = "old", "old"
	w.pods("old", 20, 20)
	w.pods("new", 0, 0)
	r, ro := w.calledRouter(), rollout(hostConfig)
	index := int32(0)
	ro.Status.CurrentStepIndex = &index
	exp := []v1alpha1.WeightDestination{share("exp-a", "new", 15)}
	must(t, r.SetWeight(t.Context(), ro, 0, exp))
	w.templates["new"] = 1
	var err error
	for range 30 {
		w.pass(10 * time.Second)
		err = r.SetWeight(t.Context(), ro, 0, exp)
	}
	if err != nil {
		t.Errorf("five minutes after the pod came: %v", err)
	}
	w.wantRoutes(t, "its share", "primary 85/0/15")
}

func TestAMarkThatWasLeftBehindDoesNotAbortTheSameTemplateLater(t *testing.T) {
	w, r, _, ro := gatedCanary(t, "")
	ro3 := ro.DeepCopy()
	ro3.ResourceVersion = "7"
	ro3.Status.CurrentPodHash = "c3"
	// The rollback of c2 was marked; a person pushed c3 before the abort.
	ro3.Annotations = map[string]string{gate.Annotation: "c2 aborting: rolled back from 20: 5xx 4.2 % over 1 %"}
	w.pods("c3", 20, 20)
	mustSet(t, r, ro3, 0)
	w.pass(3 * time.Second)
	mustUpdate(t, r, ro3, "c3", "s1")
	mustSet(t, r, ro3, 20)
	wantVerified(t, "c3's window", r, ro3, 20, false)
	watched(t, r)
	if len(w.marks) == 0 {
		t.Error("the stale mark stays")
	}
	// c3 goes; much later c2 is deployed again.
	w.pass(time.Hour)
	again := ro3.DeepCopy()
	again.ResourceVersion, again.Status.CurrentPodHash = "8", "c2"
	again.Annotations = nil // as the watch has written it
	wantEqual(t, "the last mark", w.marks[len(w.marks)-1], gate.Annotation+"=")
	r.Called()
	mustSet(t, r, again, 0)
	w.pass(3 * time.Second)
	mustUpdate(t, r, again, "c2", "s1")
	mustSet(t, r, again, 20)
	w.wantWeights(t, "no window has judged it", "80/20")
	watched(t, r)
	if len(w.aborts) > 0 {
		t.Error("aborted at once, without any number")
	}
}

func TestTheMarkOfAPromotedRevisionGoes(t *testing.T) {
	w, r, _, ro := gatedCanary(t, "")
	full := ro.DeepCopy()
	full.ResourceVersion, full.Status.PromoteFull = "7", true
	full.Annotations = map[string]string{gate.Annotation: "c2 aborting: rolled back from 20: 5xx 4.2 % over 1 %"}
	mustSet(t, r, full, 20)
	wantVerified(t, "promoted by a person", r, full, 20, true)
	watched(t, r)
	done := full.DeepCopy()
	done.ResourceVersion, done.Status.PromoteFull, done.Status.StableRS = "8", false, "c2"
	mustUpdate(t, r, done, "c2", "c2")
	mustSet(t, r, done, 0)
	watched(t, r)
	if len(w.marks) == 0 {
		t.Error("the mark of the stable revision stays")
	}
}

func TestAHoldAfterTheLastStepIsNotForEver(t *testing.T) {
	w, r, c, ro := gatedCanary(t, "")
	weight, end := int32(50), int32(1)
	ro.Spec.Strategy.Canary.Steps[0].SetWeight, ro.Status.CurrentStepIndex = &weight, &end
	mustSet(t, r, ro, 100)
	wantVerified(t, "the window at 100 is open", r, ro, 100, false)
	// The stable loses five pods that the quota does not let it make again: the
	// controller goes back to the last setWeight.
	w.pods("s1", 15, 20)
	var err error
	for range 60 {
		w.pass(10 * time.Second)
		r.Called()
		if err = setWeight(t, r, ro, 50); err == nil {
			_, _ = r.VerifyWeight(t.Context(), ro, 50, nil)
		}
		watched(t, r)
		if len(c.asked) > 0 && c.answer == nil {
			c.answers(0, nil)
		}
	}
	if err != nil {
		t.Errorf("after ten minutes of health, %d questions asked: %v", len(c.asked), err)
	}
}

func TestALookThatFindsIstiodLateDoesNotThrowTheWindowAway(t *testing.T) {
	w := newWorld(t, subsetVirtualService, subsetDestinationRule)
	w.pods("old", 20, 20)
	w.pods("canary1", 20, 20)
	w.ports = map[string][]cluster.ServicePort{"shop/cart": {{Port: 80, Name: "http"}}}
	w.slices = map[string][]cluster.Endpoint{"shop/cart": append(endpoints("old", 20), endpoints("canary1", 20)...)}
	i := &istiod{followed: nil}
	i.followed = map[types.UID]mesh.Want{}
	i.serves(20, endpoints("old", 20), endpoints("canary1", 20))
	r, c := w.calledRouter(), &clinic{}
	r.options.Mesh, r.options.Health = i, c
	r.options.Config.Prometheus = config.PrometheusAddresses{Default: "http://prometheus:9090"}
	ro := rollout(strings.TrimSuffix(subsetConfig, "}") + `, "verify": {"level": "Mesh"}, "healthGate": {"provider": {"prometheus": {}}, "interval": "10s"}}`)
	ro.Status.StableRS, ro.Status.CurrentPodHash = "old", "canary1"
	weight, index := int32(20), int32(0)
	ro.Spec.Strategy.Canary.Steps[0].SetWeight, ro.Status.CurrentStepIndex = &weight, &index
	mustUpdate(t, r, ro, "canary1", "old")
	mustSet(t, r, ro, 20)
	r.patience = 30 * time.Second
	wantVerified(t, "in effect; the window is open", r, ro, 20, false)
	w.pass(9 * time.Second)
	// A pod of the stable is not known to istiod for an instant, 50 ms.
	i.serves(20, endpoints("old", 19), endpoints("canary1", 20))
	time.AfterFunc(50*time.Millisecond, func() { i.serves(20, endpoints("old", 20), endpoints("canary1", 20)) })
	wantVerified(t, "seen within the call", r, ro, 20, false)
	w.pass(3 * time.Second)
	watched(t, r)
	if len(c.asked) != 1 {
		t.Errorf("12 s after the weight came into effect %d questions are asked", len(c.asked))
	}
}

func TestARefusedVirtualServiceDoesNotKeepTheRolloutFromBeingAborted(t *testing.T) {
	w, r, c, ro := gatedCanary(t, "")
	wantVerified(t, "the window is open", r, ro, 20, false)
	window(t, w, r, c)
	c.answers(42, nil)
	w.refuse["VirtualService shop/cart"] = errors.New("failed calling webhook rev.validation.istio.io")
	for range 5 {
		_, _ = r.watchLook(t.Context(), "uid-1")
		w.pass(10 * time.Second)
	}
	if len(w.aborts) == 0 {
		t.Error("not aborted")
	}
}

func TestASickCanaryIsPulledWhereAnotherVirtualServiceIsGone(t *testing.T) {
	w, _, c, ro := gatedCanary(t, "")
	w.apply(strings.Replace(subsetVirtualService, "{name: cart}", "{name: second}", 1))
	text := string(ro.Spec.Strategy.Canary.TrafficRouting.Plugins["argoproj-labs/istio"])
	ro.Spec.Strategy.Canary.TrafficRouting.Plugins["argoproj-labs/istio"] = []byte(strings.Replace(text, `"virtualService": {"name": "cart"}`, `"virtualServices": [{"name": "cart"}, {"name": "second"}]`, 1))
	r := w.calledRouter()
	r.options.Health = c
	r.options.Config.Prometheus.Default = "http://prometheus:9090"
	mustUpdate(t, r, ro, "c2", "s1")
	mustSet(t, r, ro, 20)
	wantVerified(t, "the window is open", r, ro, 20, false)
	window(t, w, r, c)
	delete(w.objects, "VirtualService shop/second")
	c.answers(1000, nil)
	for range 3 {
		_, err := r.watchLook(t.Context(), "uid-1")
		t.Log(err)
		t.Log(setWeight(t, r, ro, 20))
	}
	w.wantWeights(t, "every request fails", "100/0")
}

func TestWhatWasUnseenBeforeACapDoesNotCountAfterIt(t *testing.T) {
	w, r, i, ro := verified(t, `{"level": "Mesh"}`)
	ro.Spec.Strategy.Canary.DynamicStableScale = true
	mustSet(t, r, ro, 100)
	wantVerified(t, "not yet", r, ro, 100, false)
	w.pods("canary1", 15, 20)
	_ = setWeight(t, r, ro, 100)
	_, _ = r.VerifyWeight(t.Context(), ro, 100, nil)
	w.pass(601 * time.Second)
	i.serves(75, endpoints("old", 20), endpoints("canary1", 20))
	w.pods("canary1", 20, 20)
	mustSet(t, r, ro, 100)
	wantVerified(t, "written this moment", r, ro, 100, false)
}

func TestAProcessThatIsNotCalledAnyMoreRollsNothingBack(t *testing.T) {
	w, r, c, ro := gatedCanary(t, "")
	wantVerified(t, "the window is open", r, ro, 20, false)
	window(t, w, r, c)
	// The new leader's controller and plugin: a person has pinned the canary meanwhile.
	now := ro.DeepCopy()
	now.ResourceVersion = "99"
	now.Status.PromoteFull = true
	w.rollouts["shop/cart"] = now
	w.pass(30 * time.Second)
	c.answers(1000, nil)
	_, _ = r.watchLook(t.Context(), "uid-1")
	if len(w.aborts) > 0 || len(w.marks) > 0 {
		t.Errorf("aborted %v, marks %v although a person promotes in full", w.aborts, w.marks)
	}
}

func TestInObserveTheDeadlineIsAskedAfterMaxHold(t *testing.T) {
	w, r, _, ro := gatedCanary(t, `}, "guard": {"mode": "Observe"`)
	end := int32(1)
	ro.Status.CurrentStepIndex = &end
	w.pods("c2", 10, 20)
	mustSet(t, r, ro, 100)
	wantVerified(t, "held", r, ro, 100, false)
	w.pass(601 * time.Second)
	r.Called()
	_, err := r.VerifyWeight(t.Context(), ro, 100, nil)
	if err == nil {
		t.Error("after maxHold nothing lets deadline and abort act")
	}
}

func TestWithALongSettleTheMeshStillHasTheLastWord(t *testing.T) {
	w, r, i, ro := verified(t, `{"level": "Mesh"}, "guard": {"settle": "60s"}`)
	w.pods("canary1", 0, 20)
	w.slices["shop/cart"] = endpoints("old", 20)
	mustSet(t, r, ro, 0)
	w.pods("canary1", 20, 20)
	mustSet(t, r, ro, 0)
	w.slices["shop/cart"] = append(endpoints("old", 20), endpoints("canary1", 20)...)
	i.serves(0, endpoints("old", 20), endpoints("canary1", 20))
	mustSet(t, r, ro, 0)
	w.pass(31 * time.Second) // the step before ends
	if err := setWeight(t, r, ro, 20); err != nil {
		t.Errorf("istiod has had the pods for half a minute: %v", err)
	}
}

func TestARolloutThatTurnsToLevelObjectIsNotFollowedAnyMore(t *testing.T) {
	_, r, i, ro := verified(t, `{"level": "Mesh"}`)
	mustSet(t, r, ro, 0)
	plain := rollout(subsetConfig)
	plain.ResourceVersion = "9"
	plain.Status = ro.Status
	mustSet(t, r, plain, 0)
	if len(i.followed) > 0 {
		t.Errorf("still followed")
	}
}
