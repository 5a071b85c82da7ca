package scenarios

import (
	"context"
	"encoding/json"
)

// RevertVirtualService puts the VirtualService back to its manifest, all weight on
// the stable side, as a GitOps tool does that knows of no exception for weights.
func (s *Scene) RevertVirtualService(ctx context.Context, mark string) error {
	patch, err := json.Marshal(map[string]any{"spec": s.workload.virtualService()["spec"]})
	if err != nil {
		return err
	}
	s.Mark(mark)
	return s.Merge(ctx, s.workload.istio().WithResource("virtualservices"), name, string(patch))
}
