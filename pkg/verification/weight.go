package verification

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
)

// CanaryWeight is the highest weight that istiod serves for the canary in any route of
// the plan's hosts, in parts of Max, rounded up; a header route that sends all of its
// requests to the canary counts as Max.
//
// It is for what may only happen once the mesh has taken a weight in, as moving the
// label of a subset. known is false, and nothing follows from weight, while istiod has
// not answered everything, and always where the canary may get requests by routes that
// cannot be seen (see Hidden).
func (p *Plan) CanaryWeight(served mesh.Served) (weight int32, known bool) {
	if p.unseen || len(p.routes) == 0 {
		return 0, false
	}
	for _, check := range p.routes {
		routes, answered := served.Routes[check.host]
		if !answered {
			return 0, false
		}
		for _, route := range routes {
			part, ok := p.canaryPart(route.Clusters)
			if !ok {
				return 0, false
			}
			weight = max(weight, part)
		}
	}
	return weight, true
}

// canaryPart is the canary's share of a route in parts of Max, rounded up. It is 0 for
// a route without clusters; false where all weights are 0 or add up to more than a
// proxy takes, as nobody knows what becomes of the requests then.
func (p *Plan) canaryPart(clusters []mesh.Weighted) (int32, bool) {
	var sum, ours uint64
	for _, c := range clusters {
		sum += uint64(c.Weight)
		if p.isCanary(c.Cluster) {
			ours += uint64(c.Weight)
		}
	}
	if sum == 0 || sum > math.MaxUint32 {
		return 0, len(clusters) == 0
	}
	return int32((ours*uint64(p.most()) + sum - 1) / sum), true
}

// most is maxTrafficWeight.
func (p *Plan) most() int32 { return max(1, p.facts.Max) }

// isCanary tells whether a cluster is a canary's, on whatever port. At host level it
// is, whatever subset of the host it is.
func (p *Plan) isCanary(name string) bool {
	parts := strings.Split(name, "|")
	if len(parts) != 4 || parts[0] != "outbound" {
		return false
	}
	if _, err := strconv.ParseUint(parts[1], 10, 16); err != nil {
		return false
	}
	return slices.ContainsFunc(p.facts.Pairs, func(pair Pair) bool {
		side := pair.Canary
		return p.facts.same(parts[3], "", side.Host) && (side.Subset == "" || side.Subset == parts[2])
	})
}
