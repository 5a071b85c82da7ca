package guard_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

func TestAnswerUnseen(t *testing.T) {
	const maxHold, missing = 10 * time.Minute, "istiod still serves 10 of 100"
	for sentence, tc := range map[string]struct {
		change func(*guard.Facts)
		waited time.Duration
		want   guard.Answers
	}{
		"a part of the traffic is asked for: the step waits, everything else goes on": {
			change: func(f *guard.Facts) { f.Desired = 70 },
		},
		"a part is asked for and the wait has been too long: the reason is shown": {
			change: func(f *guard.Facts) { f.Desired = 70 }, waited: maxHold,
			want: guard.Answers{VerifyErr: missing},
		},
		"all is asked for, and nothing is left to scale: the controller has to come back by itself": {},
		"all is asked for, and the canary has yet to be scaled up: the reason lets the reconcile go on": {
			change: func(f *guard.Facts) { f.Canary.Size = 2 },
			want:   guard.Answers{VerifyErr: missing},
		},
		"all is asked for, and the wait has been too long: deadline and abort act": {
			waited: maxHold, want: guard.Answers{VerifyErr: missing},
		},
		"dynamicStableScale, all asked for: the stable keeps its pods": {
			change: func(f *guard.Facts) { f.DynamicStableScale = true },
		},
		"dynamicStableScale, all asked for, and the wait has been too long": {
			change: func(f *guard.Facts) { f.DynamicStableScale = true }, waited: maxHold,
			want: guard.Answers{VerifyErr: missing},
		},
		"dynamicStableScale, and the canary has yet to be scaled up: that must not be stopped": {
			change: func(f *guard.Facts) { f.DynamicStableScale, f.Canary.Size = true, 2 },
			want:   guard.Answers{VerifyErr: missing},
		},
		"dynamicStableScale, and the traffic is on its way back": {
			change: func(f *guard.Facts) { f.DynamicStableScale, f.Returning = true, true },
			want:   guard.Answers{VerifyErr: missing},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := rollback(2)
			if tc.change != nil {
				tc.change(&f)
			}
			got := guard.AnswerUnseen(f, guard.Decide(f), missing, tc.waited, maxHold)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error("answers (-want +got):\n" + diff)
			}
		})
	}
}

func TestAnswerBehind(t *testing.T) {
	held, keeps := guard.Answers{VerifyErr: "held"}, guard.Answers{SetWeightErr: "held, and the stable keeps its size"}
	for sentence, tc := range map[string]struct {
		change    func(*guard.Facts)
		otherwise guard.Answers
		want      guard.Answers
	}{
		"the pods release the canary: after an error nobody would ask again": {otherwise: held},
		"they do not: further pods bring the controller back": {
			change: func(f *guard.Facts) { f.Canary.Available = 19 }, otherwise: held, want: held,
		},
		"the canary has yet to be scaled up: that must not be stopped": {
			change: func(f *guard.Facts) { f.Canary.Size = 2 }, otherwise: held, want: held,
		},
		"the traffic is on its way back": {
			change: func(f *guard.Facts) { f.Returning = true }, otherwise: held, want: held,
		},
		"an error of SetWeight brings it back by itself": {otherwise: keeps, want: keeps},
		"what is verified stays verified":                {otherwise: guard.Answers{Verified: true}, want: guard.Answers{Verified: true}},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := guard.Facts{Desired: 100, Max: 100, Replicas: 20, Intended: 20, Canary: guard.Pods{Available: 10, Size: 20}, Stable: guard.Pods{Available: 20, Size: 20}}
			d := guard.Decide(f)
			f.Canary.Available = 20
			if tc.change != nil {
				tc.change(&f)
			}
			if diff := cmp.Diff(tc.want, guard.AnswerBehind(f, d, tc.otherwise)); diff != "" {
				t.Error("answers (-want +got):\n" + diff)
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	const maxHold = 10 * time.Minute
	const (
		held     = "canary held at 10 of 100: 2 of 20 replicas available"
		heldAt70 = "canary held at 10 of 70: 2 of 14 replicas available"
		keep     = "; until then the stable ReplicaSet keeps its size"
	)
	dynamic := func(f *guard.Facts) { f.DynamicStableScale = true }
	at70 := func(f *guard.Facts) { f.Desired = 70 }
	tooSmall := func(f *guard.Facts) { f.Canary.Size = 2 }

	for sentence, tc := range map[string]struct {
		change []func(*guard.Facts)
		held   time.Duration
		want   guard.Answers
	}{
		// The rows of the table
		"a part of the traffic is asked for: the step waits, everything else goes on": {
			change: []func(*guard.Facts){at70},
			want:   guard.Answers{},
		},
		"all is asked for and the ReplicaSet is too small: the reason lets the controller scale it": {
			change: []func(*guard.Facts){tooSmall},
			want:   guard.Answers{VerifyErr: held},
		},
		"all is asked for and the pods are not there yet: the reason keeps deadline and abort alive": {
			want: guard.Answers{VerifyErr: held},
		},
		"dynamicStableScale, all asked for, pods not there yet: the reconcile is held": {
			change: []func(*guard.Facts){dynamic},
			want:   guard.Answers{SetWeightErr: held + keep},
		},
		"dynamicStableScale, a part asked for, pods not there yet: the reconcile is held": {
			change: []func(*guard.Facts){dynamic, at70},
			want:   guard.Answers{SetWeightErr: heldAt70 + keep},
		},
		"the hold has lasted too long with all asked for: deadline and abort can act": {
			held: maxHold,
			want: guard.Answers{VerifyErr: held},
		},
		"the hold has lasted too long with a part asked for: the reason is shown": {
			change: []func(*guard.Facts){at70},
			held:   maxHold + time.Second,
			want:   guard.Answers{VerifyErr: heldAt70},
		},
		"the hold has lasted too long with dynamicStableScale: the reconcile goes on": {
			change: []func(*guard.Facts){dynamic},
			held:   maxHold,
			want:   guard.Answers{VerifyErr: held},
		},
		"the hold has all but lasted too long: it is still held": {
			change: []func(*guard.Facts){dynamic},
			held:   maxHold - 1,
			want:   guard.Answers{SetWeightErr: held + keep},
		},

		// What the table leaves open
		"a canary that is not capped is verified": {
			change: []func(*guard.Facts){dynamic, func(f *guard.Facts) { f.Canary.Available = 20 }},
			held:   maxHold,
			want:   guard.Answers{Verified: true},
		},
		"dynamicStableScale, a part asked for, the ReplicaSet too small: the controller has to scale it first": {
			change: []func(*guard.Facts){dynamic, at70, tooSmall},
			want:   guard.Answers{},
		},
		"dynamicStableScale, all asked for, the ReplicaSet too small: the reason lets the controller scale it": {
			change: []func(*guard.Facts){dynamic, tooSmall},
			want:   guard.Answers{VerifyErr: held},
		},
		"dynamicStableScale on the way back: a hold would keep the stable from growing": {
			change: []func(*guard.Facts){dynamic, at70, func(f *guard.Facts) { f.Returning = true }},
			want:   guard.Answers{},
		},
		"dynamicStableScale with the stable already scaled down: there is nothing to keep": {
			change: []func(*guard.Facts){dynamic, at70, func(f *guard.Facts) { f.Stable = pods(6, 6) }},
			want:   guard.Answers{VerifyErr: ""},
		},
		"dynamicStableScale with one stable pod more than the weight leaves: that one is kept": {
			change: []func(*guard.Facts){dynamic, at70, func(f *guard.Facts) { f.Stable = pods(60, 7) }},
			want:   guard.Answers{SetWeightErr: heldAt70 + keep},
		},
		"dynamicStableScale with the stable at minPodsPerReplicaSet: there is nothing to keep": {
			change: []func(*guard.Facts){dynamic, at70, func(f *guard.Facts) { f.Stable, f.MinPods = pods(60, 8), 8 }},
			want:   guard.Answers{},
		},
		"dynamicStableScale, all asked for: minPodsPerReplicaSet keeps no stable, so it is held": {
			change: []func(*guard.Facts){dynamic, func(f *guard.Facts) { f.Stable, f.MinPods = pods(60, 8), 8 }},
			want:   guard.Answers{SetWeightErr: held + keep},
		},
		"dynamicStableScale with minPodsPerReplicaSet above the replicas: it counts as the replicas": {
			change: []func(*guard.Facts){dynamic, at70, func(f *guard.Facts) { f.Stable, f.MinPods = pods(60, 21), 50 }},
			want:   guard.Answers{SetWeightErr: heldAt70 + keep},
		},
		"without pods on either side the reason is given too": {
			change: []func(*guard.Facts){func(f *guard.Facts) { f.Canary.Available, f.Stable = 0, pods(0, 20) }},
			want:   guard.Answers{VerifyErr: "canary left at 0 of 100: neither canary nor stable has an available replica"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			facts := rollback(2)
			for _, change := range tc.change {
				change(&facts)
			}
			got := guard.Answer(facts, guard.Decide(facts), tc.held, maxHold)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMaxHoldOfZeroNeverHolds(t *testing.T) {
	facts := with(rollback(2), func(f *guard.Facts) { f.DynamicStableScale = true })
	got := guard.Answer(facts, guard.Decide(facts), 0, 0)
	want := guard.Answers{VerifyErr: "canary held at 10 of 100: 2 of 20 replicas available"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}
