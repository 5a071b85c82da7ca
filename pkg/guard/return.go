package guard

import "fmt"

// Return is what SetWeight has to know about the stable's label before it gives traffic back to the stable side.
type Return struct {
	// Label is the hash that the stable subset names now; "" where it names none, as at host level.
	Label string
	// Stable is status.stableRS and Current status.currentPodHash.
	Stable, Current string
}

// PlanReturn says whether a lower weight for the canary has to wait for the stable's label (argo-rollouts#1734, #1718).
// After a promotion the stable subset names the old revision until UpdateHash has moved it. Were the weight lowered
// before, all traffic would go back to the old revision, which with dynamicStableScale has no pods any more.
//
// With keep, SetWeight writes nothing and answers err, or success if err is empty. err is set at the promotion itself,
// where SetWeight can only come first because UpdateHash failed. It is empty when another revision has already followed:
// the controller then calls SetWeight before UpdateHash, with the same weight, and once more after it. An error at the
// first call would keep it from ever reaching UpdateHash.
//
// It does not concern a canary that has lost its pods: that one's weight is lowered whatever the label says.
func PlanReturn(f Facts, r Return) (keep bool, err string) {
	v := see(f)
	stale := r.Label != "" && r.Stable != "" && r.Label != r.Stable
	lowers := f.WrittenKnown && v.desired < v.written
	if !stale || !lowers || v.canary.available == 0 {
		return false, ""
	}
	if r.Stable == r.Current {
		err = fmt.Sprintf("canary left at %d, not lowered to %d: the stable subset still names %s, and has to name %s first",
			v.written, v.desired, r.Label, r.Stable)
	}
	return true, err
}
