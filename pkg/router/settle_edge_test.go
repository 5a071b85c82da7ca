package router

import (
	"fmt"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAClockAheadDoesNotSwitchSettleOff(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"equal clocks": 0, "the API server's is 5 s ahead": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, subsetVirtualService, subsetDestinationRule)
			w.afterWrite = func() {
				for _, u := range w.objects {
					mf := u.GetManagedFields()
					for i := range mf {
						mf[i].Time = &metav1.Time{Time: w.clock.Now().Add(ahead).Truncate(time.Second)}
					}
					u.SetManagedFields(mf)
				}
			}
			w.pods("v1", 20, 20)
			w.pods("v2", 20, 20)
			w.pods("v3", 0, 2)
			r := w.router()
			ro := rollout(subsetConfig)
			ro.Status.StableRS, ro.Status.CurrentPodHash = "v1", "v2"
			mustUpdate(t, r, ro, "v2", "v1")
			if err := setWeight(t, r, ro, 20); err != nil {
				t.Fatal(err)
			}
			w.pass(time.Hour)
			ro.Status.CurrentPodHash = "v3"
			if err := setWeight(t, r, ro, 0); err != nil {
				t.Fatal(err)
			}
			w.pass(10 * time.Millisecond)
			if err := updateHash(r, ro, "v3", "v1"); err == nil {
				t.Errorf("the canary's label moved to a hash without pods 10 ms after its weight was lowered: %s", w.labels())
			}
		})
	}
}

// supersededAtZero is a canary v2 that v3, without a pod, supersedes: its weight of
// 20 has just been taken away.
func supersededAtZero(t *testing.T) (*world, *Router, *v1alpha1.Rollout) {
	w := newWorld(t, subsetVirtualService, subsetDestinationRule)
	w.pods("v1", 20, 20)
	w.pods("v2", 20, 20)
	w.pods("v3", 0, 2)
	r := w.router()
	ro := rollout(subsetConfig)
	ro.Status.StableRS, ro.Status.CurrentPodHash = "v1", "v2"
	mustUpdate(t, r, ro, "v2", "v1")
	mustSet(t, r, ro, 20)
	w.pass(time.Minute) // only what comes now can be waited for
	ro.Status.CurrentPodHash = "v3"
	mustSet(t, r, ro, 0)
	return w, r, ro
}

func TestABusyVirtualServiceDoesNotKeepALabelFromMoving(t *testing.T) {
	w, r, ro := supersededAtZero(t)
	var err error
	for i := 0; i < 300; i++ {
		w.pass(time.Second)
		// another Rollout's route in the same object, an annotation, a GitOps loop: not our weights
		u := w.objects["VirtualService shop/cart"].DeepCopy()
		u.SetAnnotations(map[string]string{"touched": fmt.Sprint(i)})
		w.byHand(u)
		w.store(u)
		if err = updateHash(r, ro, "v3", "v1"); err == nil {
			return
		}
	}
	t.Errorf("five minutes after the weight went to 0: %v", err)
}

func TestALabelMovesOneSettleAfterItsWeight(t *testing.T) {
	w, r, ro := supersededAtZero(t)
	w.pass(900 * time.Millisecond)
	if err := updateHash(r, ro, "v3", "v1"); err == nil {
		t.Errorf("moved before settle: %s", w.labels())
	}
	w.pass(100 * time.Millisecond)
	mustUpdate(t, r, ro, "v3", "v1")
}

func TestALabelWaitsAfterAnotherProcessTookAwayAWeightThatThisOneNeverSaw(t *testing.T) {
	w, r, ro := subsetCanaryAt(t, 0)
	w.pods("c3", 0, 2)
	ro.Status.CurrentPodHash = "c3"
	former := w.calledRouter()
	mustSet(t, former, ro, 0)
	w.pass(time.Hour)
	mustSet(t, r, ro, 0)
	w.setWeights("50/50") // by hand, and gone before r looks again
	mustSet(t, former, ro, 0)
	wantError(t, updateHash(r, ro, "c3", "s1"), "canary subset still names c2, not c3", "to reach the proxies")
	w.pass(2 * time.Second)
	mustUpdate(t, r, ro, "c3", "s1")
}
