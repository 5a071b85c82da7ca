package gate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// atEnd is a canary of 20 complete pods that gets everything.
func atEnd() guard.Facts {
	whole := guard.Pods{Available: 20, Size: 20}
	return guard.Facts{Desired: 100, Max: 100, Replicas: 20, Canary: whole, Stable: whole, Intended: 20}
}

func TestAnswers(t *testing.T) {
	const (
		why     = "health gate: 12 of at least 50 requests on the canary in 1m0s"
		capped  = "canary held at 10 of 100: 2 of 20 replicas available"
		missing = "istiod still serves 10 of 100"
	)
	held := gate.Decision{Verdict: gate.Hold, Reason: gate.ReasonQuiet, Message: why}
	rollBack := gate.Decision{Verdict: gate.RollBack, Message: "rolled back from 100: 5xx 4.2 % over 1 %"}
	verified := guard.Answers{Verified: true}
	for sentence, tc := range map[string]struct {
		change    func(*guard.Facts)
		otherwise guard.Answers
		spent     bool
		place     gate.Place
		decision  gate.Decision
		want      guard.Answers
	}{
		"a healthy window: the step is done": {
			otherwise: verified, place: gate.End, decision: gate.Decision{Verdict: gate.Pass}, want: verified,
		},
		"the gate is off": {
			otherwise: verified, place: gate.End, decision: gate.Decision{Verdict: gate.Off}, want: verified,
		},
		"the canary is watched at a pause: nothing waits": {
			otherwise: verified, place: gate.Between, decision: gate.Decision{Verdict: gate.Watching, Message: why}, want: verified,
		},
		"a step of a part of the traffic waits, and the reconcile goes on": {
			change:    func(f *guard.Facts) { f.Desired = 25 },
			otherwise: verified, place: gate.Step, decision: held, want: guard.Answers{},
		},
		"a step of a part of the traffic is capped beyond maxHold: the guard's reason stays": {
			change:    func(f *guard.Facts) { f.Desired, f.Canary.Available = 25, 1 },
			otherwise: guard.Answers{VerifyErr: capped}, spent: true, place: gate.Step, decision: held,
			want: guard.Answers{VerifyErr: capped},
		},
		"the step of all of the traffic waits: the reconcile ends, which also brings the controller back": {
			otherwise: verified, place: gate.Step, decision: held, want: guard.Answers{},
		},
		"after the steps with all of the traffic: nothing but the end of the reconcile keeps it from promoting": {
			otherwise: verified, place: gate.End, decision: held, want: guard.Answers{},
		},
		"the canary has yet to be scaled up: the reason lets the controller do it": {
			change:    func(f *guard.Facts) { f.Canary = guard.Pods{Available: 2, Size: 2} },
			otherwise: guard.Answers{VerifyErr: capped}, place: gate.End, decision: held,
			want: guard.Answers{VerifyErr: capped},
		},
		"the canary was scaled down by hand, and nothing caps it: the gate's own reason lets the controller go on": {
			change:    func(f *guard.Facts) { f.Canary = guard.Pods{Available: 20, Size: 2} },
			otherwise: verified, place: gate.End, decision: held,
			want: guard.Answers{VerifyErr: why},
		},
		"the canary is scaled up, and its pods are coming: the controller may know of them first": {
			change:    func(f *guard.Facts) { f.Canary = guard.Pods{Available: 2, Size: 20} },
			otherwise: guard.Answers{VerifyErr: capped}, place: gate.End, decision: held,
			want: guard.Answers{},
		},
		"its pods have not come for maxHold: deadline and abort can act": {
			change:    func(f *guard.Facts) { f.Canary = guard.Pods{Available: 2, Size: 20} },
			otherwise: guard.Answers{VerifyErr: capped}, spent: true, place: gate.End, decision: held,
			want: guard.Answers{VerifyErr: capped},
		},
		"maxHold is long over, and the pods are there: it is the gate that waits": {
			otherwise: verified, spent: true, place: gate.End, decision: held, want: guard.Answers{},
		},
		"replicaProgressThreshold is content with 18 of 20: those promote": {
			change: func(f *guard.Facts) {
				f.Canary = guard.Pods{Available: 18, Size: 18}
				f.Threshold = &v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ProgressTypePercentage, Value: 90}
			},
			otherwise: verified, place: gate.End, decision: held, want: guard.Answers{},
		},
		"the weight is not in the mesh: an error beside NotVerified would promote it": {
			otherwise: guard.Answers{VerifyErr: missing}, place: gate.End, decision: held, want: guard.Answers{},
		},
		"dynamicStableScale holds the reconcile for its own reasons": {
			otherwise: guard.Answers{SetWeightErr: capped}, place: gate.End, decision: held,
			want: guard.Answers{SetWeightErr: capped},
		},
		"after the steps, with a part asked for while pods are coming: everything goes on": {
			change:    func(f *guard.Facts) { f.Desired, f.Canary = 50, guard.Pods{Available: 10, Size: 20} },
			otherwise: verified, place: gate.End, decision: held, want: guard.Answers{},
		},
		"after the steps, with a part asked for and all pods there: SetWeight alone can stop a promotion": {
			change:    func(f *guard.Facts) { f.Desired = 50 },
			otherwise: verified, place: gate.End, decision: held,
			want: guard.Answers{SetWeightErr: why + "; until then the canary is not promoted"},
		},
		"after the steps, with a part asked for and the stable to be scaled: that comes first": {
			change:    func(f *guard.Facts) { f.Desired, f.Stable.Size = 50, 19 },
			otherwise: verified, place: gate.End, decision: held, want: guard.Answers{},
		},
		"after the steps, with a part asked for and a stable that dynamicStableScale keeps small": {
			change:    func(f *guard.Facts) { f.Desired, f.Stable.Size, f.DynamicStableScale = 50, 10, true },
			otherwise: verified, place: gate.End, decision: held,
			want: guard.Answers{SetWeightErr: why + "; until then the canary is not promoted"},
		},
		"aborted, and the controller takes the traffic back by parts: nothing may hold it up": {
			change:    func(f *guard.Facts) { f.Desired, f.DynamicStableScale, f.Returning = 50, true, true },
			otherwise: verified, place: gate.End, decision: rollBack, want: verified,
		},
		"the reason has a percent sign, which the controller would take for a verb": {
			change:    func(f *guard.Facts) { f.Desired = 50 },
			otherwise: verified, place: gate.End, decision: rollBack,
			want: guard.Answers{SetWeightErr: "rolled back from 100: 5xx 4.2 percent over 1 percent; until then the canary is not promoted"},
		},
		"a sick canary after the steps is not promoted": {
			otherwise: verified, place: gate.End, decision: rollBack, want: guard.Answers{},
		},
		"a sick canary at a step": {
			change:    func(f *guard.Facts) { f.Desired = 25 },
			otherwise: verified, place: gate.Step, decision: rollBack, want: guard.Answers{},
		},
		"a sick canary at a pause with all of the traffic: the reconcile goes on": {
			otherwise: verified, place: gate.Between, decision: rollBack,
			want: guard.Answers{VerifyErr: rollBack.Message},
		},
		"a sick canary at a pause": {
			change:    func(f *guard.Facts) { f.Desired = 25 },
			otherwise: verified, place: gate.Between, decision: rollBack, want: guard.Answers{},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := atEnd()
			if tc.change != nil {
				tc.change(&f)
			}
			got := gate.Answers(f, guard.Decide(f), tc.otherwise, tc.spent, tc.place, tc.decision)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

// What the controller does with the answers, as read in its source: whether it goes on
// after the traffic, and so scales and promotes.
func goesOn(desired, max int32, a guard.Answers) bool {
	return a.SetWeightErr == "" && (a.Verified || a.VerifyErr != "" || desired < max)
}

func TestNothingThatIsHeldIsPromotedAndNothingDeadlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := guard.Facts{
			Max:      rapid.SampledFrom([]int32{100, 1000}).Draw(t, "max"),
			Replicas: rapid.Int32Range(1, 20).Draw(t, "replicas"),
			Canary:   anyPods(t, "canary"), Stable: anyPods(t, "stable"),
			DynamicStableScale: rapid.Bool().Draw(t, "dynamicStableScale"),
		}
		f.Intended = f.Replicas
		if rapid.Bool().Draw(t, "threshold") {
			f.Threshold = &v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ProgressTypePercentage, Value: rapid.Int32Range(0, 100).Draw(t, "percent")}
		}
		f.Desired = rapid.SampledFrom([]int32{f.Max / 2, f.Max}).Draw(t, "desired")
		d := guard.Decide(f)
		spent := rapid.Bool().Draw(t, "spent")
		lasted := time.Duration(0)
		if spent {
			lasted = time.Hour
		}
		otherwise := guard.Answer(f, d, lasted, time.Hour)
		held := gate.Decision{Verdict: rapid.SampledFrom([]gate.Verdict{gate.Hold, gate.RollBack}).Draw(t, "verdict"), Message: "why"}
		place := rapid.SampledFrom([]gate.Place{gate.Step, gate.End}).Draw(t, "place")
		got := gate.Answers(f, d, otherwise, spent, place, held)

		if got.Verified {
			t.Fatalf("verified while the gate holds: %+v", got)
		}
		full := f
		full.Desired = f.Max
		enough := guard.Decide(full).Enough
		stableIsWhole := f.DynamicStableScale || f.Stable.Size >= f.Replicas
		if place == gate.End && f.Canary.Size >= enough && f.Canary.Available >= enough && (f.Desired == f.Max || stableIsWhole) && goesOn(f.Desired, f.Max, got) {
			t.Fatalf("the controller would promote: %+v", got)
		}
		if f.Canary.Size < enough && otherwise.SetWeightErr == "" && !goesOn(f.Desired, f.Max, got) {
			t.Fatalf("the canary can never be scaled up: %+v", got)
		}
		if d.Capped() && spent && otherwise.SetWeightErr == "" && f.Canary.Available < enough && !goesOn(f.Desired, f.Max, got) {
			t.Fatalf("the deadline can never act on pods that do not come: %+v", got)
		}
	})
}

func anyPods(t *rapid.T, name string) guard.Pods {
	size := rapid.Int32Range(0, 20).Draw(t, name+" size")
	return guard.Pods{Size: size, Available: rapid.Int32Range(0, size).Draw(t, name+" available")}
}
