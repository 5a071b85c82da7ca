package lab

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AwaitOlderReplicaSets waits, for a second at most, until each ReplicaSet of a namespace
// is older than one that is made now. Creation times have whole seconds, and by them the
// controller tells a rollback from a new revision: of two revisions that came within one
// second neither is older, and going back from one to the other skips no steps. People
// are never that fast, a script is.
func (l *Lab) AwaitOlderReplicaSets(ctx context.Context, namespace string) error {
	sets, err := l.Client.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the ReplicaSets of namespace %s: %w", namespace, err)
	}
	var newest time.Time
	for i := range sets.Items {
		if created := sets.Items[i].CreationTimestamp.Time; created.After(newest) {
			newest = created
		}
	}
	return Until(ctx, "a second in which no ReplicaSet was created", func(context.Context) (bool, error) {
		return time.Now().Truncate(time.Second).After(newest), nil
	})
}
