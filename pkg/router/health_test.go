package router

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/hashicorp/go-hclog"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
)

// clinic is a source of numbers in memory.
type clinic struct {
	mu     sync.Mutex
	asked  []gate.Question
	answer *gate.Answer
}

func (c *clinic) Ask(q gate.Question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, q)
	c.answer = nil
}

func (c *clinic) Answer(types.UID) *gate.Answer { return c.answer }
func (c *clinic) Forget(types.UID)              { c.asked, c.answer = nil, nil }

// answers says what the last question's window has shown.
func (c *clinic) answers(errors float64, err error) {
	side := gate.Side{Requests: 1000, LatencySum: 1000, LatencyCount: 1000}
	sick := side
	sick.Errors = errors
	c.answer = &gate.Answer{Question: c.asked[len(c.asked)-1], Numbers: gate.Numbers{Canary: sick, Stable: side, Known: true}, Err: err}
}

// gatedCanary is a canary at 20 with all of its pods and a health gate with a window of
// 10 s.
func gatedCanary(t *testing.T, fields string) (*world, *Router, *clinic, *v1alpha1.Rollout) {
	t.Helper()
	w, _, _ := subsetCanary(t, subsetDestinationRule)
	r, c := w.calledRouter(), &clinic{}
	r.options.Health = c
	r.options.Config.Prometheus = config.PrometheusAddresses{Default: "http://prometheus:9090"}
	ro := rollout(strings.TrimSuffix(subsetConfig, "}") + `, "healthGate": {"provider": {"prometheus": {}}, "interval": "10s"` + fields + `}}`)
	ro.Status.StableRS, ro.Status.CurrentPodHash = "s1", "c2"
	weight, index := int32(20), int32(0)
	ro.Spec.Strategy.Canary.Steps[0].SetWeight, ro.Status.CurrentStepIndex = &weight, &index
	w.rollouts["shop/cart"] = ro
	mustUpdate(t, r, ro, "c2", "s1")
	mustSet(t, r, ro, 20)
	return w, r, c, ro
}

// window lets the first window pass and asks about it.
func window(t *testing.T, w *world, r *Router, c *clinic) {
	t.Helper()
	w.pass(15 * time.Second)
	asked := len(c.asked)
	watched(t, r)
	if len(c.asked) != asked+1 {
		t.Fatalf("asked %d times after the window, want once", len(c.asked)-asked)
	}
}

func TestAStepWaitsForAHealthyWindow(t *testing.T) {
	w, r, c, ro := gatedCanary(t, "")
	wantVerified(t, "the window is open", r, ro, 20, false)
	if len(c.asked) > 0 {
		t.Errorf("asked before the window was over: %v", c.asked)
	}
	window(t, w, r, c)
	c.answers(0, nil)
	wantVerified(t, "healthy", r, ro, 20, true)
	mustSet(t, r, ro, 20)
	wantVerified(t, "and stays so", r, ro, 20, true)
	if got := c.asked[0]; got.Stretch.Weight != 20 || got.Stretch.Canary != "c2" || got.To.Sub(got.From) != 10*time.Second {
		t.Errorf("asked %+v", got)
	}
}

func TestASickCanaryLosesItsWeightAndTheRolloutIsAborted(t *testing.T) {
	w, r, c, ro := gatedCanary(t, "")
	wantVerified(t, "the window is open", r, ro, 20, false)
	window(t, w, r, c)
	c.answers(42, nil)
	w.events = nil
	watched(t, r)
	w.wantWeights(t, "rolled back", "100/0")
	text := "rolled back from 20: 5xx 4.2 % over 1 %"
	wantEqual(t, "marks", strings.Join(w.marks, "\n"), gate.Annotation+"=c2 aborting: "+text+"\n"+gate.Annotation+"=c2 aborted: "+text)
	wantEqual(t, "aborted", strings.Join(w.aborts, " "), "c2")
	told := slices.DeleteFunc(w.eventsSince(), func(event string) bool { return !strings.Contains(event, EventCanaryRolledBack) })
	wantEqual(t, "told", strings.Join(told, "; "), "Warning CanaryRolledBack: "+text)

	// A call with the Rollout as it was before the abort does not arm it again.
	mustSet(t, r, ro, 20)
	watched(t, r)
	w.wantWeights(t, "an old call", "100/0")
	if len(w.aborts) != 1 || len(w.marks) != 2 {
		t.Errorf("done again: marks %v, aborts %v", w.marks, w.aborts)
	}
}

func TestARollbackThatCouldNotBeWrittenIsFinished(t *testing.T) {
	for sentence, harm := range map[string]func(*world, error){
		"the mark":  func(w *world, err error) { w.markErr = err },
		"the abort": func(w *world, err error) { w.abortErr = err },
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r, c, ro := gatedCanary(t, "")
			wantVerified(t, "the window is open", r, ro, 20, false)
			window(t, w, r, c)
			c.answers(42, nil)
			harm(w, errors.New("the API server is away"))
			if _, err := r.watchLook(context.Background(), "uid-1"); err == nil {
				t.Error("the watch says that all is done")
			}
			w.wantWeights(t, "the weight does not wait for it", "100/0")
			mustSet(t, r, ro, 20)
			w.wantWeights(t, "nor does a call bring it back", "100/0")
			harm(w, nil)
			watched(t, r)
			if got := w.marks[len(w.marks)-1]; !strings.Contains(got, "c2 aborted: ") {
				t.Errorf("marks %v", w.marks)
			}
		})
	}
}

func TestANewProcessFinishesARollbackByItsMark(t *testing.T) {
	w, _, c, ro := gatedCanary(t, "")
	ro.Annotations = map[string]string{gate.Annotation: "c2 aborting: rolled back from 20: 5xx 4.2 % over 1 %"}
	r := w.calledRouter()
	r.options.Health, r.options.Config.Prometheus = c, config.PrometheusAddresses{Default: "http://prometheus:9090"}
	mustUpdate(t, r, ro, "c2", "s1")
	mustSet(t, r, ro, 20)
	w.wantWeights(t, "the first call", "100/0")
	watched(t, r)
	wantEqual(t, "aborted", strings.Join(w.aborts, " "), "c2")
}

func TestAPersonsRetryBeginsAnewAndTheMarkGoes(t *testing.T) {
	w, r, _, ro := gatedCanary(t, "")
	retried := ro.DeepCopy()
	retried.ResourceVersion = "7"
	retried.Annotations = map[string]string{gate.Annotation: "c2 aborted: rolled back from 20: 5xx 4.2 % over 1 %"}
	mustSet(t, r, retried, 20)
	wantVerified(t, "a new window", r, retried, 20, false)
	watched(t, r)
	w.wantWeights(t, "the canary has its weight", "80/20")
	wantEqual(t, "marks", strings.Join(w.marks, "; "), gate.Annotation+"=")
}

func TestNoNumbersHoldTheStepAndTakeNothingBack(t *testing.T) {
	w, r, c, ro := gatedCanary(t, "")
	wantVerified(t, "the window is open", r, ro, 20, false)
	window(t, w, r, c)
	c.answers(42, errors.New("connection refused"))
	w.events = nil
	wantVerified(t, "nobody knows", r, ro, 20, false)
	wantVerified(t, "nobody knows", r, ro, 20, false)
	w.wantWeights(t, "nothing is taken back", "80/20")
	told := slices.DeleteFunc(w.eventsSince(), func(event string) bool { return !strings.Contains(event, EventCanaryHeldByHealthGate) })
	if len(told) != 1 || !strings.Contains(told[0], "Warning") || !strings.Contains(told[0], "connection refused") {
		t.Errorf("told: %q", told)
	}
	if len(w.aborts) > 0 {
		t.Error("aborted")
	}
}

func TestAllOfTheTrafficIsNotAPromotionYet(t *testing.T) {
	w, r, c, ro := gatedCanary(t, "")
	end := int32(1)
	ro.Status.CurrentStepIndex = &end
	mustSet(t, r, ro, 100)
	wantVerified(t, "without an error the reconcile ends before the promotion", r, ro, 100, false)
	window(t, w, r, c)
	c.answers(0, nil)
	wantVerified(t, "healthy", r, ro, 100, true)
	w.pods("c2", 10, 10)
	wantVerified(t, "a canary that has to be scaled up must be: with the reason", r, ro, 100, false, "10 of 20")
}

func TestARolloutThatHasNotOptedInIsNeverAskedAbout(t *testing.T) {
	w, r, ro := subsetCanaryAt(t, 20)
	c := &clinic{}
	r.options.Health = c
	wantVerified(t, "no gate", r, ro, 20, true)
	w.pass(time.Hour)
	watched(t, r)
	if len(c.asked) > 0 {
		t.Errorf("asked %v", c.asked)
	}
}

func TestARolloutThatIsGoneIsNotPulledBack(t *testing.T) {
	w, r, c, ro := gatedCanary(t, "")
	wantVerified(t, "the window is open", r, ro, 20, false)
	window(t, w, r, c)
	c.answers(42, nil)
	w.markErr = cluster.ErrSuperseded
	watched(t, r)
	w.wantWeights(t, "another revision", "80/20")
	if len(w.aborts) > 0 {
		t.Error("aborted")
	}
}

// noGate is what the gate adds to a reconcile of a Rollout that has none.
func noGate(tb testing.TB) func() {
	r := newRouter(nil, Options{Health: &clinic{}}, hclog.NewNullLogger(), clock.RealClock{})
	s, m, v := &situation{}, &memory{}, verdict{}
	return func() {
		v = r.braked(s, m, v)
		_ = r.gateAnswers(s, m, v, v.answers)
		if _, err := r.verifyHealth(s, m, v, finding{verified: true}, nil); err != nil {
			tb.Fatal(err)
		}
		if again, err := r.watchHealth(context.Background(), s, m); again != 0 || err != nil {
			tb.Fatal(again, err)
		}
	}
}

func TestAGateThatNobodyAskedForAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(1000, noGate(t)); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNoGate(b *testing.B) {
	reconcile := noGate(b)
	b.ReportAllocs()
	for b.Loop() {
		reconcile()
	}
}
