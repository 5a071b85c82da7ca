package guard_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

const settle = time.Second

// stays is a label that UpdateHash names as it is.
func stays(hash string, available, weight int32) guard.Label {
	return guard.Label{
		From: hash, To: hash, Weight: weight,
		FromPods: pods(available, available), ToPods: pods(available, available),
	}
}

// goes is a label that UpdateHash wants to change. Both ReplicaSets are as large as 20 replicas, the pods are as given.
func goes(from string, fromAvailable int32, to string, toAvailable int32, weight int32) guard.Label {
	return guard.Label{
		From: from, FromPods: pods(fromAvailable, 20),
		To: to, ToPods: pods(toAvailable, 20), Weight: weight,
	}
}

// lowered says how long ago the label's weight went down.
func lowered(l guard.Label, ago time.Duration) guard.Label {
	l.Lowered, l.LoweredKnown = ago, true
	return l
}

func TestPlanMove(t *testing.T) {
	for sentence, tc := range map[string]struct {
		canary, stable guard.Label
		change         func(*guard.Move)
		want           guard.Plan
	}{
		// No change
		"labels that are right need nothing": {
			canary: stays("c2", 6, 30), stable: stays("s1", 20, 70),
		},
		"empty hashes leave the labels as they are": {
			canary: goes("c2", 6, "", 0, 30), stable: goes("s1", 20, "", 0, 70),
		},
		"a sick stable that does not change lets the canary label move": {
			canary: goes("s1", 3, "c2", 20, 0), stable: stays("s1", 3, 100),
			want: guard.Plan{Canary: guard.MoveLabel},
		},
		"an abort changes no hash, so it needs no gate": {
			canary: stays("c2", 0, 30), stable: stays("s1", 20, 70),
		},
		"an abort during a rollback changes no hash either": {
			canary: stays("c1", 2, 10), stable: stays("s2", 20, 90),
		},

		// A rollout begins
		"a new canary takes the label at weight 0 before it has pods": {
			canary: goes("s1", 20, "c2", 0, 0), stable: stays("s1", 20, 100),
			want: guard.Plan{Canary: guard.MoveLabel},
		},
		"a new canary right after a promotion waits until all proxies have left the canary side": {
			canary: lowered(goes("s1", 20, "c2", 0, 0), 400*time.Millisecond), stable: stays("s1", 20, 100),
			want: guard.Plan{
				Canary: guard.WaitSettle, Remaining: 600 * time.Millisecond,
				Err: "canary subset still names s1, not c2: the weight last written has another 600ms to reach the proxies",
			},
		},
		"a rollback to a ReplicaSet that scaleDownDelay kept whole waits for nothing": {
			canary: lowered(goes("s2", 20, "c1", 20, 0), 1*time.Millisecond), stable: stays("s2", 20, 100),
			want: guard.Plan{Canary: guard.MoveLabel},
		},
		"a rollback to a ReplicaSet that was kept at 2 pods waits for late proxies": {
			canary: lowered(goes("s2", 20, "c1", 2, 0), 0), stable: stays("s2", 20, 100),
			want: guard.Plan{
				Canary: guard.WaitSettle, Remaining: settle,
				Err: "canary subset still names s2, not c1: the weight last written has another 1s to reach the proxies",
			},
		},

		// Supersede: v3 follows v2 at 30 %
		"supersede, 1: the weight goes down before the label leaves the running canary": {
			canary: goes("c2", 6, "c3", 0, 30), stable: stays("s1", 20, 70),
			want: guard.Plan{
				Canary: guard.LowerFirst, Weight: 0,
				Err: "canary subset still names c2, not c3: its weight of 30 has to go down to 0 first, as only 0 replicas of c3 are available",
			},
		},
		"supersede, 2: the controller has lowered the weight itself a moment ago": {
			canary: lowered(goes("c2", 6, "c3", 0, 0), 2*time.Millisecond), stable: stays("s1", 20, 100),
			want: guard.Plan{
				Canary: guard.WaitSettle, Remaining: 998 * time.Millisecond,
				Err: "canary subset still names c2, not c3: the weight last written has another 998ms to reach the proxies",
			},
		},
		"supersede, 3: the proxies have the weight, the label moves without waiting for pods": {
			canary: lowered(goes("c2", 6, "c3", 0, 0), settle), stable: stays("s1", 20, 100),
			want: guard.Plan{Canary: guard.MoveLabel},
		},
		"supersede: a time that is not known is long ago": {
			canary: goes("c2", 6, "c3", 0, 0), stable: stays("s1", 20, 100),
			want: guard.Plan{Canary: guard.MoveLabel},
		},
		"supersede by a ReplicaSet that is whole: the label moves under the weight": {
			canary: goes("c3", 6, "c2", 20, 30), stable: stays("s1", 20, 70),
			want: guard.Plan{Canary: guard.MoveLabel},
		},
		"supersede by a ReplicaSet with 2 of the 6 pods for the weight: it goes down to what they take": {
			canary: goes("c3", 6, "c2", 2, 30), stable: stays("s1", 20, 70),
			want: guard.Plan{
				Canary: guard.LowerFirst, Weight: 10,
				Err: "canary subset still names c3, not c2: its weight of 30 has to go down to 10 first, as only 2 replicas of c2 are available",
			},
		},
		"supersede by a ReplicaSet that is just large enough for the weight waits for late proxies": {
			canary: lowered(goes("c3", 6, "c2", 2, 10), 900*time.Millisecond), stable: stays("s1", 20, 90),
			want: guard.Plan{
				Canary: guard.WaitSettle, Remaining: 100 * time.Millisecond,
				Err: "canary subset still names c3, not c2: the weight last written has another 100ms to reach the proxies",
			},
		},
		"supersede with one pod by setCanaryScale: the intended count is enough": {
			canary: goes("c2", 1, "c3", 1, 50), stable: stays("s1", 20, 50),
			change: func(m *guard.Move) { m.Intended = 1 },
			want:   guard.Plan{Canary: guard.MoveLabel},
		},
		"supersede with half of the pods by setCanaryScale: one write is enough": {
			canary: goes("c2", 2, "c3", 1, 50), stable: stays("s1", 20, 50),
			change: func(m *guard.Move) { m.Intended = 2 },
			want: guard.Plan{
				Canary: guard.LowerFirst, Weight: 5,
				Err: "canary subset still names c2, not c3: its weight of 50 has to go down to 5 first, as only 1 replicas of c3 are available",
			},
		},
		"supersede beside a small stable: the new pods take as much as the stable's": {
			canary: goes("c2", 18, "c3", 3, 90), stable: stays("s1", 1, 10),
			want: guard.Plan{
				Canary: guard.LowerFirst, Weight: 75,
				Err: "canary subset still names c2, not c3: its weight of 90 has to go down to 75 first, as only 3 replicas of c3 are available",
			},
		},
		"supersede of a canary that has lost its pods: they are in nobody's way": {
			canary: lowered(goes("c2", 0, "c3", 0, 0), 0), stable: stays("s1", 20, 100),
			want: guard.Plan{Canary: guard.MoveLabel},
		},
		"supersede of a canary that has lost its pods under weight: the stable gets the traffic first": {
			canary: goes("c2", 0, "c3", 0, 30), stable: stays("s1", 20, 70),
			want: guard.Plan{
				Canary: guard.LowerFirst, Weight: 0,
				Err: "canary subset still names c2, not c3: its weight of 30 has to go down to 0 first, as only 0 replicas of c3 are available",
			},
		},
		"supersede without a pod anywhere: moving is harmless": {
			canary: goes("c2", 0, "c3", 0, 30), stable: stays("s1", 0, 70),
			want: guard.Plan{Canary: guard.MoveLabel},
		},
		"supersede of the only canary that serves: it keeps serving": {
			canary: goes("c2", 6, "c3", 0, 30), stable: stays("s1", 0, 70),
			want: guard.Plan{
				Canary: guard.WaitPods,
				Err:    "canary subset still names c2, not c3: waiting for replicas of c3, 0 of 20 available",
			},
		},
		"supersede with a sick stable by pods that are few: better than none": {
			canary: goes("c2", 6, "c3", 1, 30), stable: stays("s1", 0, 70),
			want: guard.Plan{Canary: guard.MoveLabel},
		},
		"a threshold is as good as a full canary": {
			canary: lowered(goes("c2", 6, "c3", 18, 30), 0), stable: stays("s1", 20, 70),
			change: func(m *guard.Move) { m.Threshold = percent(90) },
			want:   guard.Plan{Canary: guard.MoveLabel},
		},

		// Promotion
		"promotion: the stable label moves at once, before the weight returns": {
			canary: stays("h2", 20, 100), stable: goes("s1", 20, "h2", 20, 0),
			want: guard.Plan{Stable: guard.MoveLabel},
		},
		"promotion right after the weight was raised, one pod short: the traffic is on it already": {
			canary: stays("h2", 19, 100), stable: lowered(goes("s1", 20, "h2", 19, 0), 0),
			want: guard.Plan{Stable: guard.MoveLabel},
		},
		"promotion of both labels to a new hash: they move together": {
			canary: goes("c2", 6, "h3", 20, 30), stable: goes("s1", 20, "h3", 20, 70),
			want: guard.Plan{Canary: guard.MoveLabel, Stable: guard.MoveLabel},
		},
		"promote-full in mid-step: the stable label moves under its weight": {
			canary: stays("h2", 20, 30), stable: goes("s1", 20, "h2", 20, 70),
			want: guard.Plan{Stable: guard.MoveLabel},
		},
		"promote-full in mid-step, one pod short by a threshold: it moves": {
			canary: stays("h2", 19, 30), stable: goes("s1", 20, "h2", 19, 70),
			change: func(m *guard.Move) { m.Threshold = percent(90) },
			want:   guard.Plan{Stable: guard.MoveLabel},
		},
		"promote-full in mid-step, pods lost since: the new hash would have to bear everything": {
			canary: stays("h2", 15, 30), stable: goes("s1", 20, "h2", 15, 70),
			want: guard.Plan{
				Stable: guard.WaitPods,
				Err:    "stable subset still names s1, not h2: waiting for replicas of h2, 15 of 20 available",
			},
		},
		"promotion away from a sick stable: fewer pods than needed are more than it has": {
			canary: stays("h2", 15, 30), stable: goes("s1", 3, "h2", 15, 70),
			want: guard.Plan{Stable: guard.MoveLabel},
		},
		"promotion away from a dead stable: nothing can get worse": {
			canary: stays("h2", 0, 30), stable: goes("s1", 0, "h2", 0, 70),
			want: guard.Plan{Stable: guard.MoveLabel},
		},
		"promotion to a hash that lost all its pods: the old stable serves on": {
			canary: stays("h2", 0, 0), stable: goes("s1", 20, "h2", 0, 100),
			want: guard.Plan{
				Stable: guard.WaitPods,
				Err:    "stable subset still names s1, not h2: waiting for replicas of h2, 0 of 20 available",
			},
		},
		"a stable label without weight waits for late proxies when its new hash has no pods": {
			canary: stays("c3", 20, 100), stable: lowered(goes("s1", 20, "h2", 0, 0), 300*time.Millisecond),
			want: guard.Plan{
				Stable: guard.WaitSettle, Remaining: 700 * time.Millisecond,
				Err: "stable subset still names s1, not h2: the weight last written has another 700ms to reach the proxies",
			},
		},
		"a new revision right behind a promotion: the stable label first, then the weight": {
			canary: goes("h2", 20, "c3", 0, 100), stable: goes("s1", 0, "h2", 20, 0),
			want: guard.Plan{
				Stable: guard.MoveLabel, Canary: guard.LowerFirst, Weight: 0,
				Err: "canary subset still names h2, not c3: its weight of 100 has to go down to 0 first, as only 0 replicas of c3 are available",
			},
		},

		"promotion to a hash that lost all its pods a moment ago waits for late proxies": {
			canary: stays("h2", 0, 100), stable: lowered(goes("s1", 20, "h2", 0, 0), 300*time.Millisecond),
			want: guard.Plan{
				Stable: guard.WaitSettle, Remaining: 700 * time.Millisecond,
				Err: "stable subset still names s1, not h2: the weight last written has another 700ms to reach the proxies",
			},
		},
		"a stable label that moves to few pods beside the canary waits for late proxies": {
			canary: stays("c3", 20, 100), stable: lowered(goes("s1", 20, "h2", 2, 0), 300*time.Millisecond),
			want: guard.Plan{
				Stable: guard.WaitSettle, Remaining: 700 * time.Millisecond,
				Err: "stable subset still names s1, not h2: the weight last written has another 700ms to reach the proxies",
			},
		},

		"a stable label that moves to a whole ReplicaSet waits for nothing": {
			canary: stays("c3", 20, 100), stable: lowered(goes("s1", 20, "h2", 20, 0), 0),
			want: guard.Plan{Stable: guard.MoveLabel},
		},

		// Back to the stable
		"joining a stable that is small moves the same traffic as lowering the weight would": {
			canary: goes("c2", 14, "s1", 5, 70), stable: stays("s1", 5, 30),
			want: guard.Plan{Canary: guard.MoveLabel},
		},
		"dynamic rollback at its end: the canary label joins the stable under weight": {
			canary: goes("c2", 1, "s1", 20, 5), stable: stays("s1", 20, 95),
			want: guard.Plan{Canary: guard.MoveLabel},
		},
		"joining a stable without pods is no way out for a canary that serves": {
			canary: goes("c2", 6, "s1", 0, 30), stable: stays("s1", 0, 70),
			want: guard.Plan{
				Canary: guard.WaitPods,
				Err:    "canary subset still names c2, not s1: waiting for replicas of s1, 0 of 20 available",
			},
		},

		// First deployment and migration from a Deployment: labels absent
		"migration: a subset that serves the Deployment keeps its pods until the Rollout has some": {
			canary: goes("", 0, "h1", 0, 0), stable: goes("", 0, "h1", 0, 100),
			want: guard.Plan{
				Canary: guard.MoveLabel, Stable: guard.WaitPods,
				Err: "stable subset still names no hash, not h1: waiting for replicas of h1, 0 of 20 available",
			},
		},
		"migration: some pods are not enough for the whole traffic": {
			canary: goes("", 0, "", 0, 0), stable: goes("", 20, "h1", 7, 100),
			want: guard.Plan{
				Stable: guard.WaitPods,
				Err:    "stable subset still names no hash, not h1: waiting for replicas of h1, 7 of 20 available",
			},
		},
		"migration: a subset without a hash is taken to serve, even when no pod was counted": {
			canary: goes("", 0, "", 0, 0), stable: goes("", 0, "h1", 7, 100),
			want: guard.Plan{
				Stable: guard.WaitPods,
				Err:    "stable subset still names no hash, not h1: waiting for replicas of h1, 7 of 20 available",
			},
		},
		"migration: a whole ReplicaSet takes both labels at once": {
			canary: goes("", 0, "h1", 20, 0), stable: goes("", 0, "h1", 20, 100),
			want: guard.Plan{Canary: guard.MoveLabel, Stable: guard.MoveLabel},
		},
		"migration with a hand-made weight on the canary: the unlabelled stable takes it": {
			canary: goes("", 0, "c2", 0, 30), stable: stays("", 0, 70),
			want: guard.Plan{
				Canary: guard.LowerFirst, Weight: 0,
				Err: "canary subset still names no hash, not c2: its weight of 30 has to go down to 0 first, as only 0 replicas of c2 are available",
			},
		},
		"an unlabelled stable counts as whole when a canary's weight is measured": {
			canary: goes("c3", 6, "c2", 2, 30), stable: stays("", 0, 70),
			want: guard.Plan{
				Canary: guard.LowerFirst, Weight: 10,
				Err: "canary subset still names c3, not c2: its weight of 30 has to go down to 10 first, as only 2 replicas of c2 are available",
			},
		},

		// Clocks and bad input
		"a time in the near future is another machine's clock": {
			canary: lowered(goes("c2", 6, "c3", 0, 0), -200*time.Millisecond), stable: stays("s1", 20, 100),
			want: guard.Plan{
				Canary: guard.WaitSettle, Remaining: 1200 * time.Millisecond,
				Err: "canary subset still names c2, not c3: the weight last written has another 1.2s to reach the proxies",
			},
		},
		"a time in the far future does not hold up a Rollout": {
			canary: lowered(goes("c2", 6, "c3", 0, 0), -time.Hour), stable: stays("s1", 20, 100),
			want: guard.Plan{Canary: guard.MoveLabel},
		},
		"a settle of 0 trusts the order of the writes": {
			canary: lowered(goes("c2", 6, "c3", 0, 0), 0), stable: stays("s1", 20, 100),
			change: func(m *guard.Move) { m.Settle = 0 },
			want:   guard.Plan{Canary: guard.MoveLabel},
		},
		"spec.replicas 0 with pods of the old hash still there: they keep what they have": {
			canary: stays("h2", 0, 0), stable: goes("h1", 3, "h2", 0, 100),
			change: func(m *guard.Move) { m.Replicas, m.Intended = 0, 0 },
			want: guard.Plan{
				Stable: guard.WaitPods,
				Err:    "stable subset still names h1, not h2: waiting for replicas of h2, 0 of 20 available",
			},
		},
		"spec.replicas 0 and a stable that was not counted leave nothing to divide by": {
			canary: goes("c2", 6, "c3", 0, 30), stable: stays("", 0, 70),
			change: func(m *guard.Move) { m.Replicas, m.Intended = 0, 0 },
			want: guard.Plan{
				Canary: guard.LowerFirst, Weight: 0,
				Err: "canary subset still names c2, not c3: its weight of 30 has to go down to 0 first, as only 0 replicas of c3 are available",
			},
		},
		"negative counts of a stable are read as none": {
			canary: stays("h2", 0, 30), stable: goes("s1", -2, "h2", -3, 70),
			want: guard.Plan{Stable: guard.MoveLabel},
		},
		"negative counts are read as none": {
			canary: goes("c2", -3, "c3", -4, 30), stable: stays("s1", 20, 70),
			want: guard.Plan{
				Canary: guard.LowerFirst, Weight: 0,
				Err: "canary subset still names c2, not c3: its weight of 30 has to go down to 0 first, as only 0 replicas of c3 are available",
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			m := guard.Move{Canary: tc.canary, Stable: tc.stable, Max: 100, Replicas: 20, Intended: 20, Settle: settle}
			if tc.change != nil {
				tc.change(&m)
			}
			if diff := cmp.Diff(tc.want, guard.PlanMove(m)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMoveStepString(t *testing.T) {
	for want, step := range map[string]guard.MoveStep{
		"Nothing": guard.Nothing, "MoveLabel": guard.MoveLabel, "LowerFirst": guard.LowerFirst,
		"WaitSettle": guard.WaitSettle, "WaitPods": guard.WaitPods,
		"MoveStep(9)": 9, "MoveStep(-1)": -1,
	} {
		if got := step.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}
