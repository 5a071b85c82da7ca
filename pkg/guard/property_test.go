package guard_test

import (
	"math"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// anyCount is mostly a count as seen in life, sometimes one as seen in bad input.
func anyCount(t *rapid.T, name string) int32 {
	return rapid.OneOf(
		rapid.Int32Range(0, 30),
		rapid.Int32Range(0, 30),
		rapid.SampledFrom([]int32{-140, -1, 200, 1000, math.MinInt32, math.MaxInt32 - 1, math.MaxInt32}),
	).Draw(t, name)
}

func anyPods(t *rapid.T, name string) guard.Pods {
	return guard.Pods{Available: anyCount(t, name+".available"), Size: anyCount(t, name+".size")}
}

func anyThreshold(t *rapid.T) *v1alpha1.ReplicaProgressThreshold {
	if rapid.Bool().Draw(t, "without threshold") {
		return nil
	}
	kind := rapid.SampledFrom([]v1alpha1.ProgressType{
		v1alpha1.ProgressTypePercentage, v1alpha1.ProgressTypePods, "",
	}).Draw(t, "threshold.type")
	value := rapid.OneOf(rapid.Int32Range(0, 110), rapid.Int32()).Draw(t, "threshold.value")
	return &v1alpha1.ReplicaProgressThreshold{Type: kind, Value: value}
}

func anyFacts(t *rapid.T) guard.Facts {
	f := guard.Facts{
		Desired:            rapid.OneOf(rapid.Int32Range(-5, 110), rapid.Int32()).Draw(t, "desired"),
		Max:                rapid.SampledFrom([]int32{100, 100, 1000, 7, 1, 0, -1, math.MaxInt32}).Draw(t, "max"),
		Replicas:           anyCount(t, "replicas"),
		Intended:           anyCount(t, "intended"),
		MinPods:            anyCount(t, "minPods"),
		Canary:             anyPods(t, "canary"),
		Stable:             anyPods(t, "stable"),
		Threshold:          anyThreshold(t),
		Written:            anyCount(t, "written"),
		WrittenKnown:       rapid.Bool().Draw(t, "writtenKnown"),
		DynamicStableScale: rapid.Bool().Draw(t, "dynamicStableScale"),
		Returning:          rapid.Bool().Draw(t, "returning"),
		SameHash:           rapid.IntRange(0, 9).Draw(t, "sameHash") == 0,
	}
	if f.SameHash {
		f.Canary = f.Stable
	}
	return f
}

// clamped is what a weight asked for amounts to.
func clamped(f guard.Facts) int64 {
	limit := int64(f.Max)
	if limit <= 0 {
		limit = 100
	}
	return max(0, min(int64(f.Desired), limit))
}

// checkDecision holds a decision against all that is promised about it.
func checkDecision(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, f guard.Facts) guard.Decision {
	t.Helper()
	d := guard.Decide(f)
	if int64(d.Desired) != clamped(f) {
		t.Fatalf("%v: Desired is %d, want %d", d, d.Desired, clamped(f))
	}
	if d.Weight < 0 || d.Weight > d.Desired || d.Desired > d.Max || d.Max <= 0 {
		t.Fatalf("%v: not 0 ≤ weight ≤ desired ≤ max", d)
	}
	if d.Enough < 1 || d.Enough > d.Need {
		t.Fatalf("%v: not 1 ≤ enough (%d) ≤ need (%d)", d, d.Enough, d.Need)
	}
	if f.Canary.Available <= 0 && f.Stable.Available > 0 && d.Weight != 0 && !f.SameHash {
		t.Fatalf("%v: a canary without pods gets traffic while the stable has pods", d)
	}
	if f.Canary.Available >= d.Enough && d.Capped() {
		t.Fatalf("%v: capped with enough pods", d)
	}
	if bears := f.Canary.Available > 0 && f.Replicas > 0 && !f.SameHash; bears && !withinLoad(f, d) {
		t.Fatalf("%v: a canary pod bears more than at full size and more than a stable pod", d)
	}
	return d
}

// withinLoad compares the load per canary pod at the decided weight with that at full size and with that of a stable pod.
// In whole numbers it needs no unit of rounding: weights are rounded down. Products of two int32 fit into int64.
func withinLoad(f guard.Facts, d guard.Decision) bool {
	// What is enough for the user at full weight bounds the load where there is a threshold.
	full := int64(d.Need)
	if f.Canary.Available >= d.Enough {
		full = int64(d.Enough)
	}
	available, stable := int64(f.Canary.Available), max(0, int64(f.Stable.Available))
	return int64(d.Weight)*full <= int64(d.Desired)*available ||
		int64(d.Weight)*stable <= int64(d.Max-d.Weight)*available
}

func TestDecisionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkDecision(t, anyFacts(t)) })
}

func TestMoreCanaryPodsNeverMeanLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFacts(t)
		f.SameHash = false
		less := guard.Decide(f)
		more := f
		more.Canary.Available = rapid.Int32Range(f.Canary.Available, math.MaxInt32).Draw(t, "more")
		if d := guard.Decide(more); d.Weight < less.Weight {
			t.Fatalf("%d pods: %v\n%d pods: %v", f.Canary.Available, less, more.Canary.Available, d)
		}
	})
}

func TestTheWeightNeverDependsOnSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFacts(t)
		other := f
		other.Canary.Size, other.Stable.Size = anyCount(t, "canary"), anyCount(t, "stable")
		if a, b := guard.Decide(f), guard.Decide(other); a.Weight != b.Weight || a.Reason != b.Reason {
			t.Fatalf("a ReplicaSet's size carries no traffic: %v, %v", a, b)
		}
	})
}

func TestNextWeightProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := guard.Decide(anyFacts(t))
		written := rapid.Int32().Draw(t, "written")
		known := rapid.Bool().Draw(t, "known")
		raise := rapid.OneOf(rapid.Int32Range(-1, 10), rapid.Int32()).Draw(t, "minRaise")
		next := guard.NextWeight(written, known, d, raise)
		if next < 0 || next > d.Weight {
			t.Fatalf("next weight %d is outside of 0 to %d", next, d.Weight)
		}
		if next != d.Weight && next != written {
			t.Fatalf("next weight %d is neither the decision's %d nor the written %d", next, d.Weight, written)
		}
		if again := guard.NextWeight(next, true, d, raise); again != next {
			t.Fatalf("a second call would write again: %d, then %d", next, again)
		}
		capped := d.Capped()
		d.Weight = next
		if d.Capped() != capped {
			t.Fatalf("writing %d turns capped from %v into %v", next, capped, d.Capped())
		}
	})
}

func TestAnswerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFacts(t)
		d := guard.Decide(f)
		maxHold := time.Duration(rapid.Int64Range(-1, 5).Draw(t, "maxHold"))
		held := time.Duration(rapid.Int64Range(0, 6).Draw(t, "held"))
		a := guard.Answer(f, d, held, maxHold)
		if a.Verified == d.Capped() {
			t.Fatalf("%v: verified is %v", d, a.Verified)
		}
		if a.Verified && (a.SetWeightErr != "" || a.VerifyErr != "") {
			t.Fatalf("%v: verified with an error: %+v", d, a)
		}
		if stops := a.SetWeightErr != ""; stops && (held >= maxHold || !f.DynamicStableScale || f.Returning) {
			t.Fatalf("%v: the reconcile is stopped where nothing is gained by it: %+v", d, a)
		}
		// NotVerified without an error at full weight would keep the controller from scaling the canary for ever.
		if d.Capped() && d.Desired == d.Max && a.SetWeightErr == "" && a.VerifyErr == "" {
			t.Fatalf("%v: a deadlock: %+v", d, a)
		}
	})
}

// FuzzDecide looks for a panic, an overflow or a broken promise in facts of any kind. Each argument but the flags is
// taken as it is.
func FuzzDecide(f *testing.F) {
	f.Add(int32(100), int32(100), int32(20), int32(2), int32(20), int32(20), int32(20), int32(20), int32(0), int32(-1), uint8(0))
	f.Add(int32(-140), int32(0), int32(-1), int32(-1), int32(0), int32(-1), int32(0), int32(0), int32(-9), int32(0), uint8(255))
	f.Add(int32(200), int32(math.MaxInt32), int32(math.MaxInt32), int32(math.MaxInt32), int32(1), int32(math.MaxInt32), int32(1),
		int32(math.MaxInt32), int32(math.MaxInt32), int32(math.MaxInt32), uint8(3))
	f.Fuzz(func(t *testing.T, desired, weight, replicas, ca, cs, sa, ss, intended, written, threshold int32, flags uint8) {
		facts := guard.Facts{
			Desired: desired, Max: weight, Replicas: replicas, Intended: intended,
			Canary: guard.Pods{Available: ca, Size: cs}, Stable: guard.Pods{Available: sa, Size: ss},
			Written: written, WrittenKnown: flags&1 != 0,
			DynamicStableScale: flags&2 != 0, Returning: flags&4 != 0,
		}
		if flags&8 != 0 {
			facts.SameHash, facts.Canary = true, facts.Stable
		}
		if flags&16 != 0 {
			kind := v1alpha1.ProgressTypePods
			if flags&32 != 0 {
				kind = v1alpha1.ProgressTypePercentage
			}
			facts.Threshold = &v1alpha1.ReplicaProgressThreshold{Type: kind, Value: threshold}
		}
		d := checkDecision(t, facts)
		if d.Message() == "" || d.Reason == "" {
			t.Fatalf("%+v does not say why", d)
		}
		guard.Answer(facts, d, time.Duration(written), time.Duration(threshold))
		_ = guard.NextWeight(written, flags&1 != 0, d, threshold)
	})
}
