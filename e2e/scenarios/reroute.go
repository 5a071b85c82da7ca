package scenarios

import "context"

// Reroute moves the block of the Rollout from one router to another, marks the moment
// and returns at once. Nothing else of the Rollout changes.
func (s *Scene) Reroute(ctx context.Context, mark string, router Router) error {
	s.workload.Router = router
	s.Mark(mark)
	return s.patch(ctx, "", []map[string]any{
		{"op": "replace", "path": "/spec/strategy/canary/trafficRouting", "value": s.workload.routing()},
	})
}
