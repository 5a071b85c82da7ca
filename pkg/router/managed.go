package router

import (
	"context"
	"fmt"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// SetHeaderRoute succeeds only where there is nothing to do: a step without a
// match removes a route, and this version has never made one.
func (r *Router) SetHeaderRoute(_ context.Context, _ *v1alpha1.Rollout, step *v1alpha1.SetHeaderRoute) error {
	if step == nil || len(step.Match) == 0 {
		return nil
	}
	return notSupported("setHeaderRoute", step.Name)
}

// SetMirrorRoute succeeds only where there is nothing to do, as SetHeaderRoute.
func (r *Router) SetMirrorRoute(_ context.Context, _ *v1alpha1.Rollout, step *v1alpha1.SetMirrorRoute) error {
	if step == nil || len(step.Match) == 0 {
		return nil
	}
	return notSupported("setMirrorRoute", step.Name)
}

func notSupported(step, route string) error {
	return fmt.Errorf("step %s (route %q) is not supported by this version of the plugin: nothing was written; remove the step", step, route)
}

// RemoveManagedRoutes succeeds where no route carries the name of a managed one,
// which is so unless somebody made it by hand or the native router left it.
func (r *Router) RemoveManagedRoutes(_ context.Context, ro *v1alpha1.Rollout) error {
	if canary := ro.Spec.Strategy.Canary; canary == nil || canary.TrafficRouting == nil {
		_, err := r.subjectOf(ro) // says what is missing
		return err
	}
	managed := map[string]bool{}
	for _, route := range ro.Spec.Strategy.Canary.TrafficRouting.ManagedRoutes {
		managed[route.Name] = true
	}
	if len(managed) == 0 {
		return nil
	}
	s, err := r.look(ro)
	if err != nil {
		return err
	}
	for _, vs := range s.services {
		for _, route := range vs.HTTP {
			if managed[route.Name] {
				return fmt.Errorf("VirtualService %s/%s has the managed route %q, and managed routes are not supported by this version of the plugin: remove the route",
					vs.Namespace, vs.Name, route.Name)
			}
		}
	}
	return nil
}
