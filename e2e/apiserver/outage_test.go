package apiserver

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
)

func newProxy(t *testing.T) *lab.Proxy {
	t.Helper()
	proxy, err := shared.Proxy()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy
}

func TestInAnOutageReadsGoOnWritesFailInTimeAndAllIsWellAfterwards(t *testing.T) {
	for what, begin := range map[string]func(*lab.Proxy){
		"the API server is unreachable": (*lab.Proxy).Cut,
		"the API server is silent":      (*lab.Proxy).Hang,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			proxy := newProxy(t)
			s := newStock(t, proxy)
			applyObjects(t, s.Cluster, s.namespace)
			if _, _, err := s.UpdateVirtualService(within(t, 10*time.Second), s.namespace, name, setWeight("first", 20)); err != nil {
				t.Fatal(err)
			}
			begin(proxy)
			failsInTime(t, s)
			if err := s.Ready(within(t, time.Second)); err != nil {
				t.Errorf("a cluster that was ready is no more: %v", err)
			}
			if got := canaryWeight(s.Cluster, s.namespace, "first"); got != 20 {
				t.Errorf("in the outage the weight reads %d", got)
			}
			if _, err := s.DestinationRule(s.namespace, name); err != nil {
				t.Errorf("in the outage: %v", err)
			}
			theirs := meanwhile(t, virtualServices, s.namespace, func(u *unstructured.Unstructured) { weigh(u, "second", 70) })
			proxy.Restore()
			worksAgain(t, s, theirs)
		})
	}
}

func failsInTime(t *testing.T, s stock) {
	t.Helper()
	const deadline = 2 * time.Second
	began := time.Now()
	_, changed, err := s.UpdateVirtualService(within(t, deadline), s.namespace, name, setWeight("first", 30))
	if took := time.Since(began); took > deadline+time.Second {
		t.Errorf("the write came back after %s, the deadline was %s", took, deadline)
	}
	if changed || err == nil || !strings.Contains(err.Error(), "VirtualService "+s.namespace+"/"+name) {
		t.Errorf("changed %t, %v, want an error that names the object", changed, err)
	}
}

// worksAgain checks that a change of others in the outage is seen, and kept by
// the next write, which is tried as often as the controller would.
func worksAgain(t *testing.T, s stock, theirs *unstructured.Unstructured) {
	t.Helper()
	eventually(t, time.Minute, "a write", func() bool {
		_, _, err := s.UpdateVirtualService(within(t, 2*time.Second), s.namespace, name, setWeight("first", 40))
		return err == nil
	})
	left := stored(t, virtualServices, s.namespace)
	for route, want := range map[string]int64{"first": 40, "second": 70} {
		if got := inList(left, "http", route)["route"].([]any)[1].(map[string]any)["weight"]; got != want {
			t.Errorf("route %s has weight %v, want %d", route, got, want)
		}
	}
	eventually(t, time.Minute, "the change of the others", func() bool {
		return canaryWeight(s.Cluster, s.namespace, "second") == 70
	})
}

func TestAStartInAnOutageAnswersInTimeAndSucceedsAfterwards(t *testing.T) {
	for what, tc := range map[string]struct {
		begin func(*lab.Proxy)
		want  string
	}{
		"the API server is unreachable": {(*lab.Proxy).Cut, "asking the API server"},
		"the API server is silent":      {(*lab.Proxy).Hang, "asking the API server"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			proxy := newProxy(t)
			a := newAccount(t)
			a.grant(t, stockRole(t).Rules)
			tc.begin(proxy)
			c := newCluster(t, a.config(t, proxy), cluster.Options{})
			const deadline, workers = 2 * time.Second, 10
			call := func() {
				began := time.Now()
				err := c.Ready(within(t, deadline))
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("Ready says %v, want %q", err, tc.want)
				}
				if took := time.Since(began); took > deadline+time.Second {
					t.Errorf("Ready came back after %s, the deadline was %s", took, deadline)
				}
			}
			var calls []func()
			for range workers {
				calls = append(calls, call)
			}
			every(calls...)
			proxy.Restore()
			makeReady(t, c, time.Minute)
		})
	}
}
