package virtualservice

import (
	"slices"
	"strconv"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
)

// Set computes the patch after which the routes look like the target: the weights of
// both sides, the destinations of experiments, the managed routes before each http
// route, and the account of the experiments, by the rules in the package comment. It
// names only what differs, and is empty if nothing does. changes has at least one
// entry if the patch has.
//
// The patch is not guarded: it is right only for the version that vs was parsed
// from. routes must come from Select of the same object.
//
// Errors leave nothing half done, and name object, route and remedy. Besides those of
// Select: a weight outside 0..Max (the caller has to clamp), foreign destinations
// that leave nothing of Max, foreign destinations beside weights that were written on
// another scale, whose share would change without anybody's asking, an account of
// experiments that would have to be written and cannot be read, managed routes where
// no http route was selected, and a managed route whose matches cannot be combined
// with those of its source.
func (vs *VirtualService) Set(routes []Route, split Split, target Target) (jsonpatch.Patch, []Change, error) {
	pairs, err := vs.pairs(routes, split, target.sides())
	if err != nil {
		return nil, nil, err
	}
	if err := target.validate(split); err != nil {
		return nil, nil, vs.errorf("%w", err)
	}
	e := edit{
		vs: vs, target: target, ask: target.ask(split.Max),
		// Two weights a route is the usual case, and routes can be hundreds.
		weights: make(jsonpatch.Patch, 0, 2*len(pairs)), changes: make([]Change, 0, len(pairs)),
	}
	if err := e.destinations(pairs, split.Max); err != nil {
		return nil, nil, err
	}
	if err := e.manage(pairs); err != nil {
		return nil, nil, err
	}
	if err := e.account(); err != nil {
		return nil, nil, err
	}
	return e.patch(), e.changes, nil
}

// RemoveManaged computes the patch that removes the http routes with these names,
// wherever they stand, and nothing else. It asks neither for destinations nor for
// other routes, so that it also serves an object that does not fit any more. The
// only error is an object that cannot be read.
func (vs *VirtualService) RemoveManaged(names []string) (jsonpatch.Patch, []Change, error) {
	if vs.Malformed != nil {
		return nil, nil, vs.errorf("it is malformed: %w", vs.Malformed)
	}
	e := edit{vs: vs}
	e.arrange(namesOf(names), nil)
	return e.patch(), e.changes, nil
}

// ExperimentServices are the services whose destinations were added for experiments
// of the Rollout owner ("namespace/name"), sorted, as the annotation tells. It is
// empty where that cannot be read, which is an error once Set would have to write it.
// The caller gives their destinations in Split.Experiments, so that Set can tell
// them from foreign ones.
func (vs *VirtualService) ExperimentServices(owner string) []string {
	names, _ := vs.Experiments.Names(owner)
	return names
}

// Names tells whether any route, of any protocol and managed ones included, has a
// destination of that side, whatever its weight. A side without a host is the subset on
// the host of any pair.
func (vs *VirtualService) Names(side Side, split Split) bool {
	split.Experiments = nil
	find := newFinder(vs, split, []Side{side})
	for _, list := range vs.lists() {
		for i := range list {
			for _, d := range list[i].Destinations {
				if d.Subset == side.Subset && len(find.ownersOf(d.Host).experiments) > 0 {
					return true
				}
			}
		}
	}
	return false
}

// edit collects a patch in the order in which it can be applied: what keeps its
// place first, then lists of destinations from their ends, then the list of routes.
type edit struct {
	vs     *VirtualService
	target Target
	ask    shares
	// shares are what each selected route was given; kept for managed routes only.
	shares []shares

	weights, dropped, added     jsonpatch.Patch // in routes, at their old indices
	replaced, removed, inserted jsonpatch.Patch // of routes
	accounted                   jsonpatch.Patch
	changes                     []Change
}

func (e *edit) patch() jsonpatch.Patch {
	if len(e.dropped)+len(e.added)+len(e.replaced)+len(e.removed)+len(e.inserted)+len(e.accounted) == 0 {
		return e.weights
	}
	slices.Reverse(e.removed)
	return slices.Concat(e.weights, e.dropped, e.added, e.replaced, e.removed, e.inserted, e.accounted)
}

// destinations settles the lists of destinations of all selected routes.
func (e *edit) destinations(pairs []pair, most int32) error {
	for i := range pairs {
		p := &pairs[i]
		to, err := e.vs.share(p, most, e.target.askOf(p, most, e.ask))
		if err != nil {
			return err
		}
		e.sides(p, to.Weights)
		e.experiments(p, to.experiments)
		if len(e.target.Managed) > 0 {
			e.shares = append(e.shares, to)
		}
	}
	return nil
}

// sides sets the two weights that differ. An absent weight is a 0.
func (e *edit) sides(p *pair, to Weights) {
	from := p.written()
	if from == to {
		return
	}
	if from.Stable != to.Stable {
		e.weigh(p, p.stable, to.Stable)
	}
	if from.Canary != to.Canary {
		e.weigh(p, p.canary, to.Canary)
	}
	e.changes = append(e.changes, Change{Route: p.route.String(), From: from, To: to})
}

// weigh sets one weight. "add" serves a weight that is there as well as one that is not.
func (e *edit) weigh(p *pair, d *Destination, weight int64) {
	e.weights = append(e.weights, jsonpatch.Add(p.place(strconv.Itoa(d.Index), "/weight"), weight))
}

// place is the pointer to an entry of the route's list of destinations, or to what
// is below it. Nothing in it needs to be escaped, and there may be 1000 of them.
func (p *pair) place(entry, below string) string {
	return "/spec/" + string(p.route.Protocol) + "/" + strconv.Itoa(p.route.Index) + "/route/" + entry + below
}

// experiments sets, adds and removes the destinations of experiments.
func (e *edit) experiments(p *pair, to []int64) {
	for i, d := range p.wanted {
		side := e.target.Experiments[i].Side.on(p.sides)
		switch {
		case d == nil:
			e.added = append(e.added, jsonpatch.Add(p.place("-", ""), p.destination(side, to[i])))
			e.did(p.route.String(), "destination %s added with weight %d", side, to[i])
		case d.Weight != to[i]:
			e.weigh(p, d, to[i])
			e.did(p.route.String(), "destination %s weight %d -> %d", side, d.Weight, to[i])
		}
	}
	for _, d := range slices.Backward(p.leftover) {
		e.dropped = append(e.dropped, jsonpatch.Remove(p.place(strconv.Itoa(d.Index), "")))
		e.did(p.route.String(), "destination %s removed", Side{Host: d.Host, Subset: d.Subset})
	}
}

// destination is a new entry. Its port is that of the stable destination: without
// one, a Service with several ports would be refused or get no requests.
func (p *pair) destination(side Side, weight int64) any {
	where := map[string]any{"host": side.Host}
	if side.Subset != "" {
		where["subset"] = side.Subset
	}
	if p.stable.Port != 0 {
		where["port"] = map[string]any{"number": p.stable.Port}
	}
	return map[string]any{"destination": where, "weight": weight}
}

// account brings the annotation in line with the destinations. One that cannot be
// read stays as it is while there is nothing to say.
func (e *edit) account() error {
	services := e.target.services()
	if e.target.Owner == "" {
		return nil
	}
	if _, err := e.vs.Experiments.Names(e.target.Owner); err != nil && len(services)+len(e.dropped) == 0 {
		return nil
	}
	patch, err := e.vs.Experiments.Set(e.target.Owner, services)
	if err != nil {
		return e.vs.errorf("%w", err)
	}
	if len(patch) > 0 {
		e.accounted = patch
		e.did("annotation "+ownership.Annotation, "now lists [%s] for %s", enumerate(services), e.target.Owner)
	}
	return nil
}
