package inspect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
)

// written adds a writer of these fields, so long ago.
func written(ro *v1alpha1.Rollout, ago time.Duration, subresource, fields string) *v1alpha1.Rollout {
	at := metav1.NewTime(now.Add(-ago))
	ro.ManagedFields = append(ro.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: fmt.Sprintf("writer-%d", len(ro.ManagedFields)), Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "argoproj.io/v1alpha1",
		Subresource: subresource, Time: &at, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	})
	return ro
}

const (
	specFields   = `{"f:spec": {"f:replicas": {}}}`
	statusFields = `{"f:status": {"f:phase": {}}}`
	labelFields  = `{"f:metadata": {"f:labels": {}}}`
)

// lagging is a Rollout whose newest spec the controller does not know.
func lagging() *v1alpha1.Rollout {
	ro := rollout("")
	ro.Generation = 8
	return ro
}

// first is a Rollout whose first revision has no pods yet.
func first() *v1alpha1.Rollout {
	ro := going(rollout(""), 0)
	ro.Status.StableRS, ro.Status.AvailableReplicas, ro.Status.Canary.Weights = "", 0, nil
	return ro
}

// withoutCanary is at its first step, with no available pod of the canary and so many that
// the controller knows, and nothing was told of it.
func withoutCanary(w *world, pods int32) *v1alpha1.Rollout {
	w.objects = without(w.objects, "Event")
	w.routes(0)
	w.pods("new", 2, 0, pods)
	ro := going(rollout(""), 0)
	ro.Status.Canary.Weights.Canary.Weight, ro.Status.UpdatedReplicas = 0, pods
	return ro
}

// atRest is a Rollout whose one revision has all traffic.
func atRest() *v1alpha1.Rollout {
	ro := going(rollout(""), 4)
	ro.Status.StableRS, ro.Status.CurrentPodHash, ro.Status.Phase, ro.Status.Message = "old", "old", v1alpha1.RolloutPhaseHealthy, ""
	ro.Status.Canary.Weights.Canary.Weight = 0
	return ro
}

func lookedAt(t *testing.T, w *world) Report {
	t.Helper()
	seen, err := Look(t.Context(), w, options(), "shop", "web")
	if err != nil {
		t.Fatal(err)
	}
	return Compose(seen)
}

func TestWhatMayNeverComeSaysWhatToLookAt(t *testing.T) {
	const remedy = "; if that lasts, see the controller's log: it may not know the plugin argoproj-labs/istio (no such name under trafficRouterPlugins of ConfigMap argo-rollouts-config, or one that was written after the controller's start), or get no answer from it."
	const lags = "Waits for the controller to take in the newest spec (generation 8; it knows 7)"
	for sentence, tc := range map[string]struct {
		make func(w *world) *v1alpha1.Rollout
		want string
	}{
		"a spec of which nobody knows since when": {func(*world) *v1alpha1.Rollout { return lagging() }, lags + remedy},
		"a spec of just now":                      {func(*world) *v1alpha1.Rollout { return written(lagging(), 119*time.Second, "", specFields) }, lags + "."},
		"a spec of two minutes ago":               {func(*world) *v1alpha1.Rollout { return written(lagging(), 2*time.Minute, "", specFields) }, lags + remedy},
		"an old spec, and a label of just now": {func(*world) *v1alpha1.Rollout {
			return written(written(lagging(), time.Hour, "", specFields), time.Second, "", labelFields)
		}, lags + remedy},
		"an old spec, and an autoscaler of just now": {func(*world) *v1alpha1.Rollout {
			return written(written(lagging(), time.Hour, "", specFields), time.Second, "scale", specFields)
		}, lags + "."},
		"fields that are none, which say nothing": {func(*world) *v1alpha1.Rollout { return written(lagging(), time.Second, "", `["f:spec"]`) }, lags + remedy},
		"a Rollout that was never taken in, and new": {func(*world) *v1alpha1.Rollout {
			ro := first()
			ro.Generation, ro.Status.ObservedGeneration, ro.CreationTimestamp = 1, "", metav1.NewTime(now.Add(-time.Second))
			return ro
		}, "Waits for the controller to take in the newest spec (generation 1; it knows none)."},
		"a Rollout that was never taken in, and old": {func(*world) *v1alpha1.Rollout {
			ro := first()
			ro.Generation, ro.Status.ObservedGeneration, ro.CreationTimestamp = 1, "", metav1.NewTime(now.Add(-time.Hour))
			return ro
		}, "Waits for the controller to take in the newest spec (generation 1; it knows none)" + remedy},
		"two plugins, of which either may be missing": {func(*world) *v1alpha1.Rollout {
			ro := lagging()
			ro.Spec.Strategy.Canary.TrafficRouting.Plugins["other/router"] = []byte("{}")
			return ro
		}, "it may not know the plugin argoproj-labs/istio or other/router ("},
		"a first revision without pods, and quiet": {func(w *world) *v1alpha1.Rollout { w.objects = without(w.objects, "Event"); return first() },
			"Waits for the first revision to become stable: 0 of 20 replicas are available" + remedy},
		"a first revision without pods, and an Event of just now": {func(*world) *v1alpha1.Rollout { return first() },
			"Waits for the first revision to become stable: 0 of 20 replicas are available."},
		"a first revision with pods, and quiet": {func(w *world) *v1alpha1.Rollout {
			w.objects = without(w.objects, "Event")
			ro := first()
			ro.Status.HPAReplicas = 1
			return ro
		}, "Waits for the first revision to become stable: 0 of 20 replicas are available."},
		"a first revision of no replicas, and quiet": {func(w *world) *v1alpha1.Rollout {
			w.objects = without(w.objects, "Event")
			ro := first()
			ro.Spec.Replicas = new(int32)
			return ro
		}, "Waits for the first revision to become stable: 0 of 0 replicas are available."},
		"a canary without pods, and quiet": {func(w *world) *v1alpha1.Rollout { return withoutCanary(w, 0) },
			"Waits for the canary's pods, for step 1 of 4 (setWeight 20): 0 of 4 replicas available" + remedy},
		"a canary with pods that are not available, and quiet": {func(w *world) *v1alpha1.Rollout { return withoutCanary(w, 1) },
			"Waits for the canary's pods, for step 1 of 4 (setWeight 20): 0 of 4 replicas available."},
		"a weight to write, and quiet": {func(w *world) *v1alpha1.Rollout {
			w.objects = without(w.objects, "Event")
			w.routes(60)
			return going(rollout(""), 0)
		}, "Waits for the plugin's next call, which writes 20 of 100 for the canary (it has 60)" + remedy},
		"a label to move, and quiet": {func(w *world) *v1alpha1.Rollout {
			w.objects = without(w.objects, "Event")
			w.rule("older", "old")
			w.pods("older", 2, 4, 4)
			return going(rollout(""), 0)
		}, "Waits for the plugin's next call, which lets subset canary name new (it names older)" + remedy},
		"a weight to write, and a status of just now": {func(w *world) *v1alpha1.Rollout {
			w.objects = without(w.objects, "Event")
			w.routes(60)
			return written(going(rollout(""), 0), time.Second, "status", statusFields)
		}, "Waits for the plugin's next call, which writes 20 of 100 for the canary (it has 60)."},
		"a weight to write, and a condition of just now": {func(w *world) *v1alpha1.Rollout {
			w.objects = without(w.objects, "Event")
			w.routes(60)
			ro := going(rollout(""), 0)
			ro.Status.Conditions = []v1alpha1.RolloutCondition{{Type: v1alpha1.RolloutProgressing, LastUpdateTime: metav1.NewTime(now)}}
			return ro
		}, "Waits for the plugin's next call, which writes 20 of 100 for the canary (it has 60)."},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := running(t)
			w.store(tc.make(w))
			if r := lookedAt(t, w); !strings.Contains(r.Waiting, tc.want) {
				t.Errorf("%s\nwant\n%s", r.Waiting, tc.want)
			}
		})
	}
}

func TestARefusalOfNowIsTheSentence(t *testing.T) {
	old := func(ago time.Duration, reason string) func(w *world) {
		return func(w *world) { w.event(ago, 1, "Normal", reason, "something") }
	}
	nothing := func(*world) {}
	for sentence, tc := range map[string]struct {
		ro   *v1alpha1.Rollout
		more func(w *world)
		told bool
	}{
		"a first revision":                            {first(), nothing, true},
		"a Rollout in the middle of its steps":        {going(rollout(""), 0), nothing, true},
		"a Rollout in a pause":                        {rollout(""), nothing, true},
		"a Rollout at rest":                           {atRest(), nothing, true},
		"a controller that lags behind":               {lagging(), nothing, true},
		"a right that is missing":                     {rollout(""), func(w *world) { w.refuse["virtualservices"] = forbidden("virtualservices") }, true},
		"a VirtualService was written before":         {first(), old(31*time.Second, router.EventVirtualServiceUpdated), true},
		"a VirtualService was written in that second": {first(), old(30*time.Second, router.EventVirtualServiceUpdated), true},
		"a VirtualService was written since":          {first(), old(29*time.Second, router.EventVirtualServiceUpdated), false},
		"a weight was held since":                     {first(), old(29*time.Second, router.EventCanaryWeightCapped), false},
		"the controller has a new weight since":       {first(), old(29*time.Second, "TrafficWeightUpdated"), false},
		"a step was completed since":                  {first(), old(29*time.Second, "RolloutStepCompleted"), false},
		"a ReplicaSet was made since, without a call": {first(), old(29*time.Second, "NewReplicaSetCreated"), true},
		"a spec of before":                            {written(first(), 31*time.Second, "", specFields), nothing, true},
		"a newer spec of just now":                    {written(lagging(), 10*time.Second, "", specFields), nothing, false},
		"a newer spec, which is taken in, at rest":    {written(atRest(), 10*time.Second, "", specFields), nothing, false},
		"a newer label of just now":                   {written(first(), 10*time.Second, "", labelFields), nothing, true},
		"a spec that the controller itself refuses": {func() *v1alpha1.Rollout {
			ro := first()
			ro.Status.Conditions = []v1alpha1.RolloutCondition{{Type: v1alpha1.InvalidSpec, Status: "True", Message: "no such thing"}}
			return ro
		}(), nothing, false},
		"a fault that can be seen from outside": {rollout(`, "guard": {"mode": "Strict"}`), nothing, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := running(t)
			w.store(tc.ro)
			w.event(30*time.Second, 1, "Warning", router.EventConfigurationInvalid, refusal)
			tc.more(w)
			r := lookedAt(t, w)
			found := 0
			for _, f := range r.Findings {
				if strings.Contains(f.Message, refusal) && f.Severity == lint.Error {
					found++
				}
			}
			if told := strings.HasPrefix(r.Waiting, "Waits for a correction, as the plugin refused its calls at 2026-03-04 15:15:47Z, and nothing newer says otherwise: "+refusal); told != tc.told || (found == 1) != tc.told {
				t.Errorf("%s\n%+v", r.Waiting, r.Findings)
			}
		})
	}
}

func TestARefusalOfLongAgoStandsAgainstASpecThatIsNotTakenIn(t *testing.T) {
	paused, taken := rollout(""), going(rollout(""), 0)
	for sentence, tc := range map[string]struct {
		ro   *v1alpha1.Rollout
		told bool
	}{
		"not taken in":                          {lagging(), true},
		"taken in, and at rest":                 {atRest(), false},
		"taken in, and in a pause":              {paused, false},
		"taken in, as a new template always is": {taken, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := running(t)
			w.objects = without(w.objects, "Event")
			w.store(written(tc.ro, 10*time.Minute, "", specFields))
			w.event(20*time.Minute, 1, "Warning", router.EventConfigurationInvalid, refusal)
			if r := lookedAt(t, w); strings.Contains(r.Waiting, "refused its calls at 2026-03-04 14:56:17Z") != tc.told {
				t.Error(r.Waiting)
			}
		})
	}
}

func TestTheNewestRefusalIsTold(t *testing.T) {
	w := running(t)
	w.store(first())
	w.event(30*time.Second, 1, "Warning", router.EventConfigurationInvalid, "the older one")
	w.event(20*time.Second, 1, "Warning", router.EventConfigurationInvalid, "the newer one")
	if r := lookedAt(t, w); !strings.HasSuffix(r.Waiting, "says otherwise: the newer one.") || strings.Contains(fmt.Sprint(r.Findings), "the older one") {
		t.Errorf("%s %+v", r.Waiting, r.Findings)
	}
}

// TestCharactersThatAreNoTextAreReadBack has what random tests once found.
func TestCharactersThatAreNoTextAreReadBack(t *testing.T) {
	for sentence, change := range map[string]func(w *world){
		"a host with a character that YAML does not take": func(w *world) {
			w.apply(`{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web}, spec: {hosts: [web], http: [{name: primary, route: [{destination: {host: web, subset: stable}, weight: 70}, {destination: {host: web, subset: canary}, weight: 20}, {destination: {host: "\x7f"}, weight: 10}]}]}}`)
		},
		"a name that moves the cursor, in a note": func(w *world) {
			w.apply(`{apiVersion: v1, kind: Pod, metadata: {name: "x\n\e[2J\x7f", labels: {rollouts-pod-template-hash: new}}, status: {phase: 0}}`)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := running(t)
			change(w)
			r := lookedAt(t, w)
			if text := fmt.Sprintf("%+v", r); !strings.Contains(text, "\x7f") {
				t.Errorf("it is not in %s", text)
			}
			assertReadable(t, r)
		})
	}
}
