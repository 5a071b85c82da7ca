package virtualservice

import (
	"fmt"
	"math"
	"strconv"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
)

// Weights are the weights of our two destinations in one route, as written there.
type Weights struct {
	Stable, Canary int64
}

// String is "stable/canary", as in 70/30.
func (w Weights) String() string {
	return fmt.Sprintf("%d/%d", w.Stable, w.Canary)
}

// Change is what a patch does to one route.
type Change struct {
	// Route is the route for people, as Route.String gives it.
	Route string
	// From is what stood in the object, with 0 for an absent weight.
	From, To Weights
}

// String is fit for an event: http[0] "primary" 100/0 -> 70/30.
func (c Change) String() string {
	return fmt.Sprintf("%s %s -> %s", c.Route, c.From, c.To)
}

// CanaryWeight reads which weight the routes give the canary, in parts of Max out of
// what our two destinations have together: 900/100 is 10 of 100, and so is
// 72/8 beside a foreign destination with 20. Fractions are rounded up, so the
// result is never less than what the canary gets, and it is the weight for which
// SetCanaryWeight changes nothing if the route was written by it.
//
// With several routes weight is the highest and uniform tells whether all agree.
// Routes agree if one weight explains them all: beside foreign destinations different
// weights may round to the same parts. known is false if no route says anything,
// because both weights are 0 everywhere; weight is 0 then. Whether a wanted weight
// has been written is better asked by SetCanaryWeight, whose patch is empty then.
//
// routes must come from Select of the same object. The errors are those of Select.
func (vs *VirtualService) CanaryWeight(routes []Route, split Split) (weight int32, known, uniform bool, err error) {
	pairs, err := vs.pairs(routes, split)
	if err != nil {
		return 0, false, false, err
	}
	for _, p := range pairs {
		if part, ok := p.weight(split.Max); ok {
			weight, known = max(weight, part), true
		}
	}
	uniform = known
	for _, p := range pairs {
		uniform = uniform && p.agrees(weight, split.Max)
	}
	return weight, known, uniform, nil
}

// SetCanaryWeight computes the patch after which the routes give the canary that
// weight, in parts of Max (0..Max), by the rule in the package comment. Only weights
// that differ are in it; it is empty if there are none. changes has one entry for
// each route that the patch changes.
//
// The patch is not guarded: it is right only for the version that vs was parsed
// from. routes must come from Select of the same object.
//
// Errors leave nothing half done, and name object, route and remedy. Besides those of
// Select: a weight outside 0..Max (the caller has to clamp), foreign destinations
// that leave nothing of Max, and foreign destinations beside weights that were
// written on another scale, whose share would change without anybody's asking.
func (vs *VirtualService) SetCanaryWeight(routes []Route, split Split, canary int32) (jsonpatch.Patch, []Change, error) {
	pairs, err := vs.pairs(routes, split)
	if err != nil {
		return nil, nil, err
	}
	if canary < 0 || canary > split.Max {
		return nil, nil, vs.errorf("canary weight %d is outside 0..%d", canary, split.Max)
	}
	// Two weights a route is the usual case, and routes can be hundreds.
	patch, changes := make(jsonpatch.Patch, 0, 2*len(pairs)), make([]Change, 0, len(pairs))
	for _, p := range pairs {
		to, err := vs.share(p, split.Max, canary)
		if err != nil {
			return nil, nil, err
		}
		before := len(patch)
		if patch = p.set(patch, to); len(patch) > before {
			changes = append(changes, Change{Route: p.route.String(), From: p.written(), To: to})
		}
	}
	return patch, changes, nil
}

// pairs checks all routes before anything is computed from one of them.
func (vs *VirtualService) pairs(routes []Route, split Split) ([]pair, error) {
	if err := vs.usable(split); err != nil {
		return nil, err
	}
	if len(routes) == 0 {
		return nil, vs.errorf("no route selected")
	}
	find, pairs := newFinder(vs, split), make([]pair, len(routes))
	for i := range routes {
		p, err := find.pairOf(&routes[i])
		if err != nil {
			return nil, err
		}
		pairs[i] = p
	}
	return pairs, nil
}

// share divides what foreign destinations leave.
func (vs *VirtualService) share(p pair, most, canary int32) (Weights, error) {
	rest := int64(most) - p.foreign
	ours := p.sane()
	if p.foreign > 0 && ours.Stable+ours.Canary > int64(most) {
		return Weights{}, vs.errorf("route %s: its weights (%s and %d for other destinations) are on another scale than maxTrafficWeight %d, "+
			"so the share of the other destinations would change: set maxTrafficWeight to %d, or let the weights add up to %d",
			p.route, ours, p.foreign, most, ours.Stable+ours.Canary+p.foreign, most)
	}
	if rest <= 0 {
		return Weights{}, vs.errorf("route %s: destinations that are neither stable nor canary have weight %d of %d, which leaves nothing: "+
			"lower their weights, or raise maxTrafficWeight", p.route, p.foreign, most)
	}
	part := rest * int64(canary) / int64(most)
	return Weights{Stable: rest - part, Canary: part}, nil
}

// written are the weights as they stand in the object.
func (p pair) written() Weights {
	return Weights{Stable: p.stable.Weight, Canary: p.canary.Weight}
}

// sane are the weights as far as they can mean anything: the native router has been
// seen to leave negative ones behind, which are to be healed and not to be refused.
func (p pair) sane() Weights {
	clamp := func(weight int64) int64 { return min(max(weight, 0), math.MaxInt32) }
	return Weights{Stable: clamp(p.stable.Weight), Canary: clamp(p.canary.Weight)}
}

// weight is the canary's part of most, rounded up; false if both weights are 0.
func (p pair) weight(most int32) (int32, bool) {
	w := p.sane()
	ours := w.Stable + w.Canary
	if ours == 0 {
		return 0, false
	}
	return int32((w.Canary*int64(most) + ours - 1) / ours), true
}

// agrees tells whether the route is what the given canary weight looks like there.
func (p pair) agrees(canary, most int32) bool {
	own, ok := p.weight(most)
	if !ok || own == canary {
		return ok
	}
	w := p.sane()
	return w.Canary == (w.Stable+w.Canary)*int64(canary)/int64(most)
}

// set appends the operations for weights that differ. An absent weight is a 0.
func (p pair) set(patch jsonpatch.Patch, to Weights) jsonpatch.Patch {
	if p.stable.Weight != to.Stable {
		patch = append(patch, p.op(p.stable, to.Stable))
	}
	if p.canary.Weight != to.Canary {
		patch = append(patch, p.op(p.canary, to.Canary))
	}
	return patch
}

// op sets one weight. "add" serves a weight that is there as well as one that is not.
func (p pair) op(d *Destination, weight int64) jsonpatch.Op {
	return jsonpatch.Add(jsonpatch.Pointer("spec", string(p.route.Protocol), strconv.Itoa(p.route.Index),
		"route", strconv.Itoa(d.Index), "weight"), weight)
}
