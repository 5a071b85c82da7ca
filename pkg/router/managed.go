package router

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/managedroute"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// SetHeaderRoute puts the header routes of all steps so far in place, that of the
// step included, as soon as the canary can serve them. Where it cannot yet (no
// pod, or its subset still names another revision) the route comes with the next
// SetWeight that finds it can: requests with the header go on as all others.
func (r *Router) SetHeaderRoute(ctx context.Context, ro *v1alpha1.Rollout, step *v1alpha1.SetHeaderRoute) error {
	return r.setManaged(ctx, ro, func(set managedroute.Set) error { return set.Header(step) })
}

// SetMirrorRoute is to mirror routes what SetHeaderRoute is to header routes.
func (r *Router) SetMirrorRoute(ctx context.Context, ro *v1alpha1.Rollout, step *v1alpha1.SetMirrorRoute) error {
	return r.setManaged(ctx, ro, func(set managedroute.Set) error { return set.Mirror(step) })
}

func (r *Router) setManaged(ctx context.Context, ro *v1alpha1.Rollout, take func(managedroute.Set) error) error {
	set, err := managedroute.FromRollout(ro)
	if err != nil {
		return err
	}
	if err := take(set); err != nil {
		return fmt.Errorf("steps of Rollout %s/%s: %w", ro.Namespace, ro.Name, err)
	}
	s, m, release, err := r.beginStep(ctx, ro)
	if err != nil {
		return err
	}
	defer release()
	s.routes = set.Routes()
	if err := s.hasHTTP(); err != nil || !s.known || !s.uniform {
		return err // SetWeight, which follows, says what the weights are to be
	}
	return r.writeRoutes(ctx, s, m, s.written)
}

// hasHTTP refuses a managed route that has nowhere to be: tls and tcp routes know
// no headers.
func (s *situation) hasHTTP() error {
	for i, vs := range s.services {
		routes, err := vs.Select(s.selection(s.wants[i]), s.split)
		if err != nil {
			return err
		}
		for _, route := range routes {
			if route.Protocol == virtualservice.HTTP {
				return nil
			}
		}
	}
	if len(s.routes) == 0 {
		return nil
	}
	return fmt.Errorf("managed route %q: none of the VirtualServices has an http route for it, only tls and tcp routes, which know no headers: remove the step",
		s.routes[0].Name)
}

// RemoveManagedRoutes takes all managed routes away. What is not there needs no
// removal: VirtualServices that are gone, and those that never had one, are no
// error (argo-rollouts#2501, #2526).
func (r *Router) RemoveManagedRoutes(ctx context.Context, ro *v1alpha1.Rollout) error {
	m, release, err := r.memories.take(ctx, ro, r.clock.Now())
	if err != nil {
		return err
	}
	defer release()
	subject, err := r.subjectOf(ro)
	if err != nil {
		return r.refuse(m, ro, err)
	}
	if len(subject.managed) == 0 {
		return nil
	}
	return r.removeAllManaged(ctx, subject, m)
}

func (r *Router) removeAllManaged(ctx context.Context, subject subject, m *memory) error {
	var errs []error
	for _, want := range subject.config.VirtualServices {
		errs = append(errs, r.removeManaged(ctx, subject, m, want.Namespace, want.Name))
	}
	return errors.Join(errs...)
}

// removeManaged leaves out the names that another Rollout has claimed: this one has
// been refused.
func (r *Router) removeManaged(ctx context.Context, subject subject, m *memory, namespace, name string) error {
	var changes []virtualservice.Change
	changed, err := r.update(ctx, namespace, name, func(vs *virtualservice.VirtualService) (patch jsonpatch.Patch, err error) {
		names := slices.DeleteFunc(slices.Clone(subject.managed), func(name string) bool {
			return r.claims.ofAnother(subject.ref.UID, managedThing(vs.Namespace, vs.Name, name))
		})
		patch, changes, err = vs.RemoveManaged(names)
		return patch, err
	})
	if changed {
		m.loweredAt = r.clock.Now() // their requests went to the canary
		m.applied = withoutManaged(m.applied)
		r.reportRoutes(subject, namespace, name, changes)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// wantedRoutes are the managed routes that may be in place now. Their requests go
// to the canary whatever its weight, so the canary has to be the revision that
// the steps speak of, and to have a pod. A pin at 0 keeps all requests away.
//
// A rollback within rollbackWindow has skipped its steps, so nobody asked for
// their routes.
func (s *situation) wantedRoutes() []virtualservice.ManagedRoute {
	pinned := s.pin != nil && *s.pin == 0
	if len(s.routes) == 0 || pinned || s.skippedSteps() {
		return nil
	}
	canary := s.status.canary
	if canary == "" || s.fresh[canary] != "" && !s.hasManaged() || !s.labelledAs(hashes{canary: canary}) || s.podsOf(canarySide, canary).Available <= 0 {
		return nil
	}
	return s.routes
}

// skippedSteps follows the controller's own rule for rollbackWindow: the new
// ReplicaSet is older than the stable one, and fewer than so many lie between.
func (s *situation) skippedSteps() bool {
	if !s.atEnd || s.rollbackWindow <= 0 {
		return false
	}
	canary, stable := s.setOf(s.status.canary), s.setOf(s.status.stable)
	if canary == nil || stable == nil || !canary.Created.Before(stable.Created) {
		return false
	}
	var between int32
	for _, set := range s.sets {
		if set.Created.Before(stable.Created) && canary.Created.Before(set.Created) {
			between++
		}
	}
	return between < s.rollbackWindow
}
