package inspect

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// Names are those of a namespace's Rollouts that the plugin of this name routes, in order.
// What of them cannot be read as a Rollout is left out. An error is a
// *MissingRightError or *MissingKindError where nobody but the user can help.
func Names(ctx context.Context, reader Reader, namespace, plugin string) ([]string, error) {
	found, err := reader.Select(ctx, rollouts, namespace, "", "")
	switch {
	case apierrors.IsNotFound(err):
		return nil, &MissingKindError{Resource: rollouts.GroupResource(), Versions: []string{rollouts.Version}, Err: err}
	case err != nil:
		return nil, refused(err, "list", rollouts.GroupResource(), namespace)
	}
	var names []string
	for i := range found {
		if ro, err := into[v1alpha1.Rollout](&found[i]); err == nil && ours(ro, plugin) == nil {
			names = append(names, ro.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
