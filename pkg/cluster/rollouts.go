package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

var rolloutResource = v1alpha1.SchemeGroupVersion.WithResource("rollouts")

// Rollout reads one Rollout from the API server; it is nil where there is none. It
// costs a request each time: the controller gives the plugin the Rollout that a
// call is about, so this is for the rare question about another one.
func (c *Cluster) Rollout(ctx context.Context, namespace, name string) (*v1alpha1.Rollout, error) {
	u, err := c.dynamic.Resource(rolloutResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Rollout %s/%s: %w", namespace, name, err)
	}
	document, err := u.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("reading Rollout %s/%s: %w", namespace, name, err)
	}
	rollout := &v1alpha1.Rollout{}
	if err := json.Unmarshal(document, rollout); err != nil {
		return nil, fmt.Errorf("Rollout %s/%s is not as its definition has it: %w", namespace, name, err)
	}
	return rollout, nil
}
