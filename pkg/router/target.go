package router

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// target is what the routes are to look like with this canary weight, in parts of
// max: everything else follows from the situation.
func (r *Router) target(s *situation, canary int32) virtualservice.Target {
	return virtualservice.Target{
		Owner: s.owner(), Canary: canary,
		Experiments: r.servable(s), Managed: s.wantedRoutes(), ManagedNames: s.managed,
	}
}

// writeRoutes brings every VirtualService to what it should look like with this
// canary weight.
func (r *Router) writeRoutes(ctx context.Context, s *situation, m *memory, canary int32) error {
	return r.writeTarget(ctx, s, m, r.target(s, canary))
}

// writeTarget brings the VirtualServices to a target and remembers it as what the
// watch keeps up. Where not all of it could be written the watch keeps up nothing,
// and only takes what pods cannot serve, until a call succeeds.
//
// A weight that has to go down does not wait for a managed route that cannot be
// made. It is written without them, and the error comes afterwards.
func (r *Router) writeTarget(ctx context.Context, s *situation, m *memory, target virtualservice.Target) error {
	if r.anotherWrote(s, target) {
		if err := r.upToDate(ctx, s); err != nil {
			return err
		}
	}
	m.applied = nil
	failed := s.check(target)
	if failed != nil {
		bare := *withoutManaged(&target)
		if len(target.Managed) == 0 || !s.takes(target.Canary) || s.check(bare) != nil {
			return failed
		}
		target = bare
	}
	if err := r.writeAll(ctx, s, m, target); err != nil {
		return errors.Join(failed, err)
	}
	if s.broken == nil {
		target.Lower = false // what is kept up is the weight itself
		m.applied = &target
	}
	r.lookAfterSettle(s)
	return failed
}

// writeAll writes one VirtualService after the other; check has shown that all
// patches can be computed. One that cannot be written ends it, unless the canary is
// to have less: then the others do not wait for it.
func (r *Router) writeAll(ctx context.Context, s *situation, m *memory, target virtualservice.Target) error {
	var written []string
	var failed error
	for i := range s.services {
		changed, err := r.writeOne(ctx, s, i, target)
		switch {
		case err != nil && !s.takes(target.Canary):
			// What was written counts, and so may what was not answered.
			m.noteWrite(s, target, r.clock.Now())
			return partly(err, written, servicesNamed(s.wants[i+1:]))
		case err != nil:
			failed = errors.Join(failed, err)
		case changed:
			written = append(written, fmt.Sprintf("VirtualService %s/%s", s.wants[i].Namespace, s.wants[i].Name))
		}
	}
	if len(written) > 0 || failed != nil {
		m.noteWrite(s, target, r.clock.Now())
	}
	if failed != nil {
		return partly(failed, written, nil)
	}
	return nil
}

// upToDate refuses a call with a Rollout that has changed since. It costs a request
// and is asked only before what another process of the plugin wrote is changed, as
// after a restart or a change of the leader: a controller that has stood still goes
// on with what it knew, until it learns that it is not the leader any more.
func (r *Router) upToDate(ctx context.Context, s *situation) error {
	ro, err := r.cluster.Rollout(ctx, s.ref.Namespace, s.ref.Name)
	if err != nil {
		return fmt.Errorf("reading Rollout %s/%s before another process's write is changed: %w", s.ref.Namespace, s.ref.Name, err)
	}
	if ro != nil && ro.UID == s.ref.UID && ro.ResourceVersion != s.ref.ResourceVersion {
		return fmt.Errorf("the call is about an older version of Rollout %s/%s (%s, it has %s by now), and another process of the plugin has written for it: nothing was changed, the next call decides",
			s.ref.Namespace, s.ref.Name, s.ref.ResourceVersion, ro.ResourceVersion)
	}
	return nil
}

// check computes all patches and throws them away.
func (s *situation) check(target virtualservice.Target) error {
	var errs []error
	for i := range s.services {
		_, _, err := s.patch(i, target)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s *situation) patch(i int, target virtualservice.Target) (jsonpatch.Patch, []virtualservice.Change, error) {
	return s.patchOf(s.services[i], i, target)
}

// patchOf is the patch for a version of the i-th VirtualService. A managed route
// that has no place in it may have one in another.
func (s *situation) patchOf(vs *virtualservice.VirtualService, i int, target virtualservice.Target) (jsonpatch.Patch, []virtualservice.Change, error) {
	routes, err := vs.Select(s.selection(s.wants[i]), s.split)
	if err != nil {
		return nil, nil, err
	}
	if !anyHTTP(routes) {
		target.Managed = nil
	}
	patch, changes, err := vs.Set(routes, s.split, target)
	if errors.Is(err, virtualservice.ErrNoPlace) && len(s.services) > 1 {
		target.Managed = s.withPlace(vs, i, target)
		return vs.Set(routes, s.split, target)
	}
	return patch, changes, err
}

// withPlace are the managed routes without those that have a place in another of
// the VirtualServices only.
func (s *situation) withPlace(vs *virtualservice.VirtualService, i int, target virtualservice.Target) []virtualservice.ManagedRoute {
	fits := func(vs *virtualservice.VirtualService, i int, route virtualservice.ManagedRoute) bool {
		alone := target
		alone.Managed = []virtualservice.ManagedRoute{route}
		routes, err := vs.Select(s.selection(s.wants[i]), s.split)
		if err == nil {
			_, _, err = vs.Set(routes, s.split, alone)
		}
		return !errors.Is(err, virtualservice.ErrNoPlace)
	}
	return slices.DeleteFunc(slices.Clone(target.Managed), func(route virtualservice.ManagedRoute) bool {
		if fits(vs, i, route) {
			return false
		}
		for j, other := range s.services {
			if j != i && fits(other, j, route) {
				return true
			}
		}
		return false
	})
}

func anyHTTP(routes []virtualservice.Route) bool {
	for _, route := range routes {
		if route.Protocol == virtualservice.HTTP {
			return true
		}
	}
	return false
}

// holds reports whether every VirtualService is as the target wants it, to the
// letter: the patch that would bring it there is empty.
func (s *situation) holds(target virtualservice.Target) bool {
	for i := range s.services {
		patch, _, err := s.patch(i, target)
		if err != nil || len(patch) > 0 {
			return false
		}
	}
	return true
}

// writeOne writes one VirtualService and tells of it.
func (r *Router) writeOne(ctx context.Context, s *situation, i int, target virtualservice.Target) (bool, error) {
	var changes []virtualservice.Change
	want := s.wants[i]
	changed, err := r.update(ctx, want.Namespace, want.Name,
		func(vs *virtualservice.VirtualService) (patch jsonpatch.Patch, err error) {
			patch, changes, err = s.patchOf(vs, i, target)
			return patch, err
		})
	if changed {
		r.reportRoutes(s.subject, want.Namespace, want.Name, changes)
	}
	return changed, err
}

// update is the one way in which the router writes a VirtualService: it keeps the
// version that this process wrote last, by which another process is recognised.
func (r *Router) update(ctx context.Context, namespace, name string, edit cluster.Edit[*virtualservice.VirtualService]) (bool, error) {
	vs, changed, err := r.cluster.UpdateVirtualService(ctx, namespace, name, edit)
	if changed {
		r.own.note("VirtualService", namespace, name, vs.ResourceVersion)
	}
	return changed, err
}

// partly says what a failed write leaves behind.
func partly(err error, written, notTried []string) error {
	if len(written) == 0 && len(notTried) == 0 {
		return err
	}
	return fmt.Errorf("%w (already written: %s; not tried: %s; the next call writes what is missing)",
		err, orNone(written), orNone(notTried))
}

func servicesNamed(all []config.VirtualService) []string {
	var names []string
	for _, vs := range all {
		names = append(names, fmt.Sprintf("VirtualService %s/%s", vs.Namespace, vs.Name))
	}
	return names
}

// keptIn is the target as far as it still makes sense in this situation: a
// template whose experiment has ended is no part of it any more.
func keptIn(s *situation, applied virtualservice.Target) virtualservice.Target {
	applied.Experiments = slices.DeleteFunc(slices.Clone(applied.Experiments), func(e virtualservice.Experiment) bool {
		return !slices.ContainsFunc(s.templates, func(t template) bool { return t.service == e.Service })
	})
	return applied
}

// withoutManaged is the target after its managed routes were taken away; nil stays nil.
func withoutManaged(applied *virtualservice.Target) *virtualservice.Target {
	if applied == nil {
		return nil
	}
	out := *applied
	out.Managed = nil
	return &out
}
