package lab

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAReplicaSetThatWasWaitedForIsYoungerThanAllOthers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	namespace, err := shared.Namespace(ctx, "younger")
	if err != nil {
		t.Fatal(err)
	}
	var before metav1.Time
	for i := range 3 { // the second time at the latest begins within a second of the first
		if err := shared.AwaitOlderReplicaSets(ctx, namespace); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("cart-%d", i)
		createReplicaSet(ctx, t, namespace, name, 0, nil)
		set, err := shared.Client.AppsV1().ReplicaSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !before.Before(&set.CreationTimestamp) {
			t.Errorf("ReplicaSet %s was created at %s, the one before it at %s", name, set.CreationTimestamp, before)
		}
		before = set.CreationTimestamp
	}
}
