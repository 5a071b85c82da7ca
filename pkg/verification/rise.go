package verification

import (
	"maps"
	"slices"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
)

// JudgeCanary tells whether the canary has, with weight or without, the pods that were
// counted on behind its Service and, unless served is nil, in istiod: whether it may get
// its first request.
func (p *Plan) JudgeCanary(served *mesh.Served, endpoints Endpoints, counted Counts) (ok bool, waiting string) {
	return p.judgeSide(canary, served, endpoints, counted)
}

// JudgeStable is JudgeCanary for the stable.
func (p *Plan) JudgeStable(served *mesh.Served, endpoints Endpoints, counted Counts) (ok bool, waiting string) {
	return p.judgeSide(stable, served, endpoints, counted)
}

func (p *Plan) judgeSide(r role, served *mesh.Served, endpoints Endpoints, counted Counts) (ok bool, waiting string) {
	var out problems
	for _, pair := range p.facts.Pairs {
		p.judgeService(&out, pair.of(r), r, endpoints, counted)
	}
	if served == nil {
		return out.verdict()
	}
	for _, name := range slices.Sorted(maps.Keys(p.clusters)) {
		if check := p.clusters[name]; check.role == r {
			p.judgeCluster(&out, name, check, served.Clusters[name], endpoints, counted)
		}
	}
	return out.verdict()
}
