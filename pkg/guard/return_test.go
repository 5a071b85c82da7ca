package guard_test

import (
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

func TestPlanReturn(t *testing.T) {
	promoted := guard.Return{Label: "s1", Stable: "h2", Current: "h2"}
	followed := guard.Return{Label: "s1", Stable: "h2", Current: "c3"}
	for sentence, tc := range map[string]struct {
		ret    guard.Return
		change func(*guard.Facts)
		keep   bool
		err    string
	}{
		"at the promotion the labels come first": {
			ret: promoted, keep: true,
			err: "canary left at 100, not lowered to 0: the stable subset still names s1, and has to name h2 first",
		},
		"with another revision on its heels UpdateHash comes next, so there is no error": {
			ret: followed, keep: true,
		},
		"with the label in place the weight returns": {
			ret: guard.Return{Label: "h2", Stable: "h2", Current: "h2"},
		},
		"without a label, as at host level, the weight returns": {
			ret: guard.Return{Stable: "h2", Current: "h2"},
		},
		"without a stable revision the weight returns": {
			ret: guard.Return{Label: "s1", Current: "h2"},
		},
		"a canary without pods is left at once": {
			ret: promoted, change: func(f *guard.Facts) { f.Canary.Available = 0 },
		},
		"a weight that does not fall is none of its business": {
			ret: promoted, change: func(f *guard.Facts) { f.Written = 0 },
		},
		"a weight below 0 is read as 0": {
			ret: promoted, change: func(f *guard.Facts) { f.Desired = -140 }, keep: true,
			err: "canary left at 100, not lowered to 0: the stable subset still names s1, and has to name h2 first",
		},
		"an object without weights is written": {
			ret: promoted, change: func(f *guard.Facts) { f.WrittenKnown = false },
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			facts := with(rollback(20), func(f *guard.Facts) { f.Desired, f.Written = 0, 100 })
			if tc.change != nil {
				tc.change(&facts)
			}
			keep, err := guard.PlanReturn(facts, tc.ret)
			if keep != tc.keep || err != tc.err {
				t.Errorf("PlanReturn = %v, %q; want %v, %q", keep, err, tc.keep, tc.err)
			}
		})
	}
}
