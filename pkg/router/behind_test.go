package router

import (
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// counted is a Rollout at full weight whose status has counted so many available pods,
// and so many of the canary's in all; each version is another.
func counted(ro *v1alpha1.Rollout, available, updated int32) {
	ro.Status.AvailableReplicas, ro.Status.UpdatedReplicas = available, updated
	ro.ResourceVersion += "1"
}

// halfHeard is a canary of which this process knows 10 of 20 pods, beside 20 stable ones.
func halfHeard(t *testing.T) (*world, *Router, *v1alpha1.Rollout) {
	t.Helper()
	w := hostWorld(t)
	w.pods("old", 20, 20)
	w.pods("new", 10, 20)
	r, ro := w.router(), rollout(hostConfig)
	counted(ro, 30, 20)
	mustSet(t, r, ro, 100)
	w.wantWeights(t, "10 of 20", "50/50")
	wantVerified(t, "both have counted 30: the next pod brings the controller back", r, ro, 100, false, "canary held at 50 of 100")
	return w, r, ro
}

// As after an outage of the API server: after an error nobody would ask again.
func TestAViewOfThePodsThatIsBehindTheControllersBringsItBack(t *testing.T) {
	w, r, ro := halfHeard(t)
	counted(ro, 40, 20)
	wantVerified(t, "it has counted 40", r, ro, 100, false)
	w.pods("new", 20, 20)
	mustSet(t, r, ro, 100)
	w.wantWeights(t, "heard of", "0/100")
	wantVerified(t, "heard of", r, ro, 100, true)
}

func TestAViewOfWhichTheCanarysSizeIsBehindToo(t *testing.T) {
	w, r, ro := halfHeard(t)
	w.pods("new", 10, 10)
	counted(ro, 40, 20)
	wantVerified(t, "the status knows of 20 canary pods in all", r, ro, 100, false)
}

func TestPodsThatAreNeverHeardOfStopNoReconcileForEver(t *testing.T) {
	w, r, ro := halfHeard(t)
	counted(ro, 40, 20)
	wantVerified(t, "it has counted 40", r, ro, 100, false)
	w.pass(behindMost)
	wantVerified(t, "for a minute", r, ro, 100, false, "canary held at 50 of 100")
	counted(ro, 30, 20)
	wantVerified(t, "they are gone", r, ro, 100, false, "canary held at 50 of 100")
	counted(ro, 40, 20)
	wantVerified(t, "they are there again", r, ro, 100, false)
}

// The status is written at the end of a reconcile, which this answer would end before.
func TestAStatusThatIsOlderThanThePodsStopsNoReconcile(t *testing.T) {
	for sentence, lose := range map[string]func(*world){
		"the canary has lost pods":  func(w *world) { w.pods("new", 17, 20) },
		"the stable has lost pods":  func(w *world) { w.pods("new", 17, 20); w.pods("old", 15, 20) },
		"another revision has gone": func(w *world) { w.pods("new", 17, 20); delete(w.sets, "between") },
	} {
		t.Run(sentence, func(t *testing.T) {
			w := hostWorld(t)
			w.pods("old", 20, 20)
			w.pods("new", 20, 20)
			w.pods("between", 3, 3)
			r, ro := w.router(), rollout(hostConfig)
			counted(ro, 43, 20)
			mustSet(t, r, ro, 100)
			lose(w)
			mustSet(t, r, ro, 100)
			wantVerified(t, "the watch has told of the loss first", r, ro, 100, false, "canary held at 85 of 100")
		})
	}
}

func TestWhatTheWatchHasHeardOfCounts(t *testing.T) {
	w := hostWorld(t)
	w.pods("old", 20, 20)
	w.pods("new", 10, 20)
	r, ro := w.router(), rollout(hostConfig)
	r.Called()
	counted(ro, 30, 20)
	mustSet(t, r, ro, 100)
	for _, available := range []int32{20, 17} {
		w.pods("new", available, 20)
		if _, err := r.watchLook(t.Context(), ro.UID); err != nil {
			t.Fatal(err)
		}
	}
	counted(ro, 40, 20)
	wantVerified(t, "3 of the 40 have been lost since", r, ro, 100, false, "held at")
}

func TestACanaryThatHasYetToBeScaledIsScaledWhateverTheStatusSays(t *testing.T) {
	w := hostWorld(t)
	w.pods("old", 17, 20)
	w.pods("new", 2, 2)
	r, ro := w.router(), rollout(hostConfig)
	counted(ro, 38, 2)
	mustSet(t, r, ro, 100)
	wantVerified(t, "a rollback on two pods, a stable that fails, and an old status", r, ro, 100, false, "2 of 20")
}

func TestWhatWasHeardOfIsForgotten(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var h heard
	h.note(40, now)
	h.note(30, now.Add(heardFor))
	h.compare(40, now.Add(heardFor))
	if h.missing != 0 {
		t.Errorf("%d pods are missing that were heard of", h.missing)
	}
	h.note(30, now.Add(heardFor+time.Second))
	h.compare(40, now.Add(heardFor+time.Second))
	if h.missing != 10 {
		t.Errorf("%d pods are missing, 10 were heard of too long ago", h.missing)
	}
}
