package oracle

import (
	"math"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/utils/defaults"
	replicasetutil "github.com/argoproj/argo-rollouts/utils/replicaset"
	appsv1 "k8s.io/api/apps/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// leastCases is what each comparison has to look at, whatever rapid is told on the command line.
const leastCases = 20_000

// compare runs a property until leastCases have been drawn, and then makes sure that the features met in those cases are
// all that were asked for: an oracle that never asks proves nothing.
func compare(t *testing.T, features []string, property func(t *rapid.T, met func(feature string))) {
	cases, met := 0, map[string]int{}
	for cases < leastCases && !t.Failed() {
		rapid.Check(t, func(t *rapid.T) {
			cases++
			property(t, func(feature string) { met[feature]++ })
		})
	}
	for _, feature := range features {
		if met[feature] == 0 {
			t.Errorf("none of %d cases met %q", cases, feature)
		}
	}
	t.Logf("%d cases: %v", cases, met)
}

// podsOf is what the plugin sees of a ReplicaSet; of one that does not exist it sees no pods.
func podsOf(rs *appsv1.ReplicaSet) guard.Pods {
	if rs == nil {
		return guard.Pods{}
	}
	return guard.Pods{Available: rs.Status.AvailableReplicas, Size: *rs.Spec.Replicas}
}

// tell names the features that a Rollout shows.
func tell(ro *v1alpha1.Rollout, met func(string)) {
	canary, status := ro.Spec.Strategy.Canary, ro.Status
	for feature, shown := range map[string]bool{
		"abort":                           status.Abort,
		"abort with dynamicStableScale":   status.Abort && canary.DynamicStableScale,
		"abort that keeps setCanaryScale": status.Abort && canary.AbortScaleDownDelaySeconds != nil && *canary.AbortScaleDownDelaySeconds == 0 && replicasetutil.UseSetCanaryScale(ro) != nil,
		"promoteFull":                     status.PromoteFull,
		"first deployment":                status.StableRS == "",
		"return to the stable":            status.CurrentPodHash == status.StableRS,
		"setCanaryScale":                  replicasetutil.UseSetCanaryScale(ro) != nil,
		"minPodsPerReplicaSet":            canary.MinPodsPerReplicaSet != nil,
		"maxTrafficWeight":                canary.TrafficRouting != nil && canary.TrafficRouting.MaxTrafficWeight != nil,
		"without traffic routing":         canary.TrafficRouting == nil,
		"after the last step":             status.CurrentStepIndex != nil && int(*status.CurrentStepIndex) >= len(canary.Steps),
		"recorded weights":                status.Canary.Weights != nil,
		"replicas missing":                ro.Spec.Replicas == nil,
		"replicas 0":                      ro.Spec.Replicas != nil && *ro.Spec.Replicas == 0,
	} {
		if shown {
			met(feature)
		}
	}
}

var features = []string{
	"abort", "abort with dynamicStableScale", "abort that keeps setCanaryScale", "promoteFull", "first deployment",
	"return to the stable", "setCanaryScale", "minPodsPerReplicaSet", "maxTrafficWeight", "without traffic routing",
	"after the last step", "recorded weights", "replicas missing", "replicas 0",
}

func show(ro *v1alpha1.Rollout) string {
	out, err := yaml.Marshal(ro)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func TestIntendedCanaryReplicasIsWhatTheControllerCalculates(t *testing.T) {
	compare(t, append(features, "without the canary's ReplicaSet", "without the stable's ReplicaSet"), func(t *rapid.T, met func(string)) {
		ro, canary, stable := anyRollout(t), anyReplicaSet(t, "c2"), anyReplicaSet(t, "s1")
		// On an abort with dynamicStableScale the controller asks for weight 0 as soon as one ReplicaSet is missing,
		// and a guard has nothing to cap: the plugin does not tell a missing one from one without pods.
		if !ro.Status.Abort || !ro.Spec.Strategy.Canary.DynamicStableScale {
			switch anyOf(t, "missing", "", "", "", "canary", "stable") {
			case "canary":
				canary = nil
				met("without the canary's ReplicaSet")
			case "stable":
				stable = nil
				met("without the stable's ReplicaSet")
			}
		}
		tell(ro, met)
		want, _ := replicasetutil.CalculateReplicaCountsForTrafficRoutedCanary(ro, canary, stable, ro.Status.Canary.Weights)
		if got := guard.IntendedCanaryReplicas(ro, podsOf(canary), podsOf(stable)); got != want {
			t.Fatalf("the plugin reckons with %d canary replicas, the controller with %d, for canary %+v, stable %+v and\n%s",
				got, want, podsOf(canary), podsOf(stable), show(ro))
		}
	})
}

// The controller's own way to the count, when it scales the new ReplicaSet: it finds the stable by its label.
func TestIntendedCanaryReplicasIsWhatTheControllerScalesTo(t *testing.T) {
	compare(t, features, func(t *rapid.T, met func(string)) {
		ro, canary, stable := anyRollout(t), anyReplicaSet(t, "c2"), anyReplicaSet(t, "s1")
		if ro.Spec.Strategy.Canary.TrafficRouting == nil {
			met("without traffic routing") // Scaled by other rules, and of no concern to a traffic router.
			return
		}
		if ro.Status.CurrentPodHash == "s1" {
			canary = stable
		}
		tell(ro, met)
		if ro.Status.StableRS == "" && ro.Status.Abort {
			return // No stable ReplicaSet is found; see above.
		}
		all := []*appsv1.ReplicaSet{stable, canary}
		want, err := replicasetutil.NewRSNewReplicas(ro, all, canary, ro.Status.Canary.Weights)
		if err != nil {
			t.Fatal(err)
		}
		if got := guard.IntendedCanaryReplicas(ro, podsOf(canary), podsOf(stable)); got != want {
			t.Fatalf("the plugin reckons with %d canary replicas, the controller scales to %d, for canary %+v, stable %+v and\n%s",
				got, want, podsOf(canary), podsOf(stable), show(ro))
		}
	})
}

// A guard that releases the canary later than the controller finishes the step would hold it for no reason; one that
// releases it earlier than a threshold says would not be the controller's threshold.
func TestTheThresholdReleasesWhenTheControllerIsContent(t *testing.T) {
	wanted := []string{"percent met", "percent not met", "pods met", "pods not met", "no threshold", "negative threshold"}
	compare(t, wanted, func(t *rapid.T, met func(string)) {
		rs := anyReplicaSet(t, "c2")
		rs.Status.AvailableReplicas = max(1, rs.Status.AvailableReplicas) // With none, rule 3 decides.
		need := rapid.OneOf(rapid.Int32Range(1, 35), rapid.Int32Range(1, 5000)).Draw(t, "need")
		threshold := anyThreshold(t, need)
		want := replicasetutil.ReplicaProgressThresholdMet(threshold, rs, need)
		if threshold == nil || threshold.Value < 0 {
			// The controller waits until its ReplicaSet has neither fewer nor more pods. Surplus pods are no reason
			// to cap.
			want = rs.Status.AvailableReplicas >= need
		}
		got := releases(threshold, rs.Status.AvailableReplicas, need)
		if got != want {
			t.Fatalf("%d of %d available with threshold %+v: released %v, the controller is content: %v",
				rs.Status.AvailableReplicas, need, threshold, got, want)
		}
		met(class(threshold, want))
	})
}

// releases asks the guard by way of a decision in which only rule 4 can release: the stable is so large that equal load
// gives the canary nothing.
func releases(threshold *v1alpha1.ReplicaProgressThreshold, available, need int32) bool {
	return guard.Decide(guard.Facts{
		Desired: 100, Max: 100, Replicas: need, Intended: need, Threshold: threshold,
		Canary: guard.Pods{Available: available, Size: need}, Stable: guard.Pods{Available: 1 << 30, Size: 1 << 30},
	}).Reason == guard.ReasonEnoughPods
}

// anyThreshold draws one that can be met: the guard never asks for more than the need, where the controller would.
func anyThreshold(t *rapid.T, need int32) *v1alpha1.ReplicaProgressThreshold {
	switch anyOf(t, "threshold", "none", "negative", "percent", "percent", "percent", "pods", "pods", "untyped") {
	case "none":
		return nil
	case "negative":
		return &v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ProgressTypePercentage, Value: rapid.Int32Range(-100, -1).Draw(t, "value")}
	case "percent":
		return &v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ProgressTypePercentage, Value: rapid.Int32Range(0, 100).Draw(t, "value")}
	case "pods":
		return &v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ProgressTypePods, Value: rapid.Int32Range(0, need).Draw(t, "value")}
	default:
		return &v1alpha1.ReplicaProgressThreshold{Value: rapid.Int32Range(0, need).Draw(t, "value")}
	}
}

func class(threshold *v1alpha1.ReplicaProgressThreshold, met bool) string {
	switch {
	case threshold == nil:
		return "no threshold"
	case threshold.Value < 0:
		return "negative threshold"
	case threshold.Type == v1alpha1.ProgressTypePercentage && met:
		return "percent met"
	case threshold.Type == v1alpha1.ProgressTypePercentage:
		return "percent not met"
	case met:
		return "pods met"
	default:
		return "pods not met"
	}
}

// A percentage is compared in whole numbers here and in floating point with a tolerance there. Every pair of a small
// need and a percentage, at the boundary, where the two could differ.
func TestEveryPercentageAtItsBoundary(t *testing.T) {
	for need := int32(1); need <= 400; need++ {
		for value := int32(0); value <= 100; value++ {
			boundary := (value*need + 99) / 100
			for available := max(1, boundary-1); available <= boundary+1; available++ {
				threshold := &v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ProgressTypePercentage, Value: value}
				rs := &appsv1.ReplicaSet{}
				rs.Spec.Replicas, rs.Status.AvailableReplicas = &need, available
				want := replicasetutil.ReplicaProgressThresholdMet(threshold, rs, need)
				if got := releases(threshold, available, need); got != want {
					t.Errorf("%d of %d at %d %%: released %v, the controller is content: %v", available, need, value, got, want)
				}
			}
		}
	}
}

// With dynamicStableScale a held reconcile keeps the stable's pods. Where the guard sees no need to hold it, the
// controller must not be about to scale the stable down, once it has recorded the weight that it asked for.
func TestWhereNothingIsHeldTheStableKeepsItsSize(t *testing.T) {
	compare(t, []string{"held", "not held", "minPodsPerReplicaSet"}, func(t *rapid.T, met func(string)) {
		ro := underwayWithDynamicScale(t)
		canary, stable := anyReplicaSet(t, "c2"), anyReplicaSet(t, "s1")
		f := guard.RolloutFacts(ro)
		f.Desired = rapid.Int32Range(1, f.Max).Draw(t, "desired")
		stable.Spec.Replicas = ptr(rapid.Int32Range(0, f.Replicas+1).Draw(t, "stable size"))
		canary.Spec.Replicas = ro.Spec.Replicas
		canary.Status.AvailableReplicas = rapid.Int32Range(0, f.Replicas-1).Draw(t, "canary available")
		f.Canary, f.Stable, f.Intended = podsOf(canary), podsOf(stable), math.MaxInt32
		d := guard.Decide(f)
		if !d.Capped() {
			return
		}
		if guard.Answer(f, d, 0, time.Minute).SetWeightErr != "" {
			met("held")
			return
		}
		met("not held")
		tell(ro, met)
		recorded := &v1alpha1.TrafficWeights{
			Canary: v1alpha1.WeightDestination{Weight: f.Desired}, Stable: v1alpha1.WeightDestination{Weight: f.Max - f.Desired},
		}
		if _, size := replicasetutil.CalculateReplicaCountsForTrafficRoutedCanary(ro, canary, stable, recorded); size < f.Stable.Size {
			t.Fatalf("at %d of %d the controller scales the stable from %d to %d, and the guard lets it:\n%s",
				f.Desired, f.Max, f.Stable.Size, size, show(ro))
		}
	})
}

// underwayWithDynamicScale draws a Rollout that is going forward and has some replicas.
func underwayWithDynamicScale(t *rapid.T) *v1alpha1.Rollout {
	ro := anyRollout(t)
	ro.Spec.Replicas = ptr(rapid.Int32Range(1, 30).Draw(t, "replicas above 0"))
	ro.Spec.Strategy.Canary.DynamicStableScale = true
	if ro.Spec.Strategy.Canary.TrafficRouting == nil {
		ro.Spec.Strategy.Canary.TrafficRouting = &v1alpha1.RolloutTrafficRouting{}
	}
	ro.Status.Abort, ro.Status.CurrentPodHash, ro.Status.StableRS = false, "c2", "s1"
	return ro
}

func ptr[T any](v T) *T { return &v }

func TestRolloutFactsHasTheControllersDefaults(t *testing.T) {
	compare(t, features, func(t *rapid.T, met func(string)) {
		ro := anyRollout(t)
		tell(ro, met)
		f := guard.RolloutFacts(ro)
		if want := defaults.GetReplicasOrDefault(ro.Spec.Replicas); f.Replicas != want {
			t.Fatalf("replicas %d, want %d", f.Replicas, want)
		}
		if want := ro.Status.Abort || ro.Status.StableRS != "" && ro.Status.StableRS == ro.Status.CurrentPodHash; f.Returning != want {
			t.Fatalf("returning %v, want %v", f.Returning, want)
		}
	})
}
