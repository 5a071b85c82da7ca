package apiserver

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

func deleteObject(t *testing.T, resource schema.GroupVersionResource, namespace string) {
	t.Helper()
	if err := shared.Dynamic.Resource(resource).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAReadAfterAWriteSeesTheWrite(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	ctx := within(t, time.Minute)
	written, read := make(chan int64), make(chan int64)
	defer close(written)
	go func() {
		for range written {
			read <- canaryWeight(s.Cluster, s.namespace, "first")
		}
	}()
	for weight := int64(1); weight <= 50; weight++ {
		vs, changed, err := s.UpdateVirtualService(ctx, s.namespace, name, setWeight("first", weight))
		if err != nil || !changed {
			t.Fatalf("weight %d: changed %t, %v", weight, changed, err)
		}
		if got := vs.HTTP[0].Destinations[1].Weight; got != weight {
			t.Errorf("the write of %d returned %d", weight, got)
		}
		if got := canaryWeight(s.Cluster, s.namespace, "first"); got != weight {
			t.Errorf("after writing %d the same goroutine reads %d", weight, got)
		}
		written <- weight
		if got := <-read; got != weight {
			t.Errorf("after writing %d another goroutine reads %d", weight, got)
		}
	}
}

func TestReadsFollowWhatOthersWriteAndCostNoRequest(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	applyObjects(t, s.Cluster, s.namespace)
	other := newStock(t, nil)
	eventually(t, time.Minute, "the objects in the other's caches", func() bool {
		return canaryWeight(other.Cluster, s.namespace, "first") == 0
	})
	before := countRequests(t, s.account)
	if _, _, err := other.UpdateVirtualService(within(t, 10*time.Second), s.namespace, name, setWeight("first", 60)); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the other's weight", func() bool {
		return canaryWeight(s.Cluster, s.namespace, "first") == 60
	})
	for range 1000 {
		if _, err := s.ReplicaSets("no-such-rollout"); err != nil {
			t.Fatal(err)
		}
		_ = s.ServiceSelector(s.namespace, name)
		_, _ = s.DestinationRule(s.namespace, name)
	}
	if after := countRequests(t, s.account); after != before {
		t.Errorf("reads made %d requests", after-before)
	}
}

// countRequests counts what an account has sent so far, watches included.
func countRequests(t *testing.T, a account) int {
	t.Helper()
	requests, err := shared.Requests(func(r lab.Request) bool { return r.User == a.Name })
	if err != nil {
		t.Fatal(err)
	}
	return len(requests)
}
