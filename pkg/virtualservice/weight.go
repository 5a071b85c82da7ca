package virtualservice

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Weights are the weights of our two destinations in one route, as written there.
type Weights struct {
	Stable, Canary int64
}

// String is "stable/canary", as in 70/30.
func (w Weights) String() string {
	return fmt.Sprintf("%d/%d", w.Stable, w.Canary)
}

// CanaryWeight reads which weight the routes give the canary, in parts of Max out of
// what our destinations have together, those of experiments in split included:
// 900/100 is 10 of 100, and so is 72/8 beside a foreign destination with 20.
// Fractions are rounded up, so the result is never less than what the canary gets,
// and it is the weight for which Set changes nothing if the route was written by it.
//
// With several routes weight is the highest and uniform tells whether all agree.
// Routes agree if one weight explains them all: beside foreign destinations different
// weights may round to the same parts. known is false if no route says anything,
// because both weights are 0 everywhere; weight is 0 then. Whether a wanted weight
// has been written is better asked by Set, whose patch is empty then.
//
// routes must come from Select of the same object. The errors are those of Select.
func (vs *VirtualService) CanaryWeight(routes []Route, split Split) (weight int32, known, uniform bool, err error) {
	pairs, err := vs.pairs(routes, split, nil)
	if err != nil {
		return 0, false, false, err
	}
	for i := range pairs {
		if part, ok := pairs[i].weight(split.Max); ok {
			weight, known = max(weight, part), true
		}
	}
	uniform = known
	for i := range pairs {
		uniform = uniform && pairs[i].agrees(weight, split.Max)
	}
	return weight, known, uniform, nil
}

// pairs checks all routes before anything is computed from one of them.
func (vs *VirtualService) pairs(routes []Route, split Split, wanted []Side) ([]pair, error) {
	if err := vs.usable(split); err != nil {
		return nil, err
	}
	if len(routes) == 0 {
		return nil, vs.errorf("no route selected")
	}
	find, pairs := newFinder(vs, split, wanted), make([]pair, len(routes))
	for i := range routes {
		p, err := find.pairOf(&routes[i])
		if err != nil {
			return nil, err
		}
		pairs[i] = p
	}
	return pairs, nil
}

// shares are the weights that our destinations of one route are to have.
type shares struct {
	Weights
	// experiments are in the order of Target.Experiments.
	experiments []int64
}

// share divides what foreign destinations leave, by the rule in the package comment.
// ask adds up to no more than most; the stable gets what the others do not.
func (vs *VirtualService) share(p *pair, most int32, ask shares) (shares, error) {
	if err := vs.sameScale(p, most); err != nil {
		return shares{}, err
	}
	rest := int64(most) - p.foreign
	if rest <= 0 {
		return shares{}, vs.errorf("route %s: destinations that are neither stable nor canary have weight %d of %d, which leaves nothing: "+
			"lower their weights, or raise maxTrafficWeight", p.route, p.foreign, most)
	}
	part := shares{Weights: Weights{Canary: rest * ask.Canary / int64(most)}}
	part.Stable = rest - part.Canary
	for _, weight := range ask.experiments {
		weight = rest * weight / int64(most)
		part.experiments = append(part.experiments, weight)
		part.Stable -= weight
	}
	return part, nil
}

// sameScale refuses to give foreign weights another meaning.
func (vs *VirtualService) sameScale(p *pair, most int32) error {
	if p.foreign == 0 {
		return nil
	}
	ours := p.sane()
	if sum := ours.sum(); sum > int64(most) {
		return vs.errorf("route %s: its weights (%s and %d for other destinations) are on another scale than maxTrafficWeight %d, "+
			"so the share of the other destinations would change: set maxTrafficWeight to %d, or let the weights add up to %d",
			p.route, ours, p.foreign, most, sum+p.foreign, most)
	}
	return nil
}

func (s shares) sum() int64 {
	sum := s.Stable + s.Canary
	for _, weight := range s.experiments {
		sum += weight
	}
	return sum
}

// String is stable/canary and then the experiments, as in 70/15/15.
func (s shares) String() string {
	text := s.Weights.String()
	for _, weight := range s.experiments {
		text += "/" + strconv.FormatInt(weight, 10)
	}
	return text
}

// written are the weights as they stand in the object.
func (p *pair) written() Weights {
	return Weights{Stable: p.stable.Weight, Canary: p.canary.Weight}
}

// sane are the weights as far as they can mean anything: the native router has been
// seen to leave negative ones behind, which are to be healed and not to be refused.
// The experiments are all that are there, be they wanted or not.
func (p *pair) sane() shares {
	clamp := func(weight int64) int64 { return min(max(weight, 0), math.MaxInt32) }
	own := shares{Weights: Weights{Stable: clamp(p.stable.Weight), Canary: clamp(p.canary.Weight)}}
	for _, d := range slices.Concat(p.wanted, p.leftover) {
		if d != nil {
			own.experiments = append(own.experiments, clamp(d.Weight))
		}
	}
	return own
}

// weight is the canary's part of most, rounded up; false if both weights are 0.
func (p *pair) weight(most int32) (int32, bool) {
	w := p.sane()
	ours := w.sum()
	if ours == 0 {
		return 0, false
	}
	return int32((w.Canary*int64(most) + ours - 1) / ours), true
}

// atMost is the canary's part of most, rounded down: Set, which may write it on another
// scale, gives the canary no more for it than it has. It is false if both weights are 0.
func (p *pair) atMost(most int32) (int32, bool) {
	w := p.sane()
	ours := w.sum()
	if ours == 0 {
		return 0, false
	}
	return int32(w.Canary * int64(most) / ours), true
}

// agrees tells whether the route is what the given canary weight looks like there.
func (p *pair) agrees(canary, most int32) bool {
	own, ok := p.weight(most)
	if !ok || own == canary {
		return ok
	}
	w := p.sane()
	return w.Canary == w.sum()*int64(canary)/int64(most)
}
