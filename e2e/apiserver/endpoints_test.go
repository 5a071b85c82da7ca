package apiserver

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
)

// endpointRights are what the documentation says that verify.level Endpoints needs.
var endpointRights = rbacv1.PolicyRule{
	APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"},
}

// createService makes a Service for all pods of createSet.
func createService(t *testing.T, namespace, name string) {
	t.Helper()
	_, err := shared.Client.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "cart"},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP},
				{Name: "other", Port: 9000, Protocol: corev1.ProtocolUDP, AppProtocol: new("example.com/game")},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// ready counts the pods of a hash that can be reached.
func ready(endpoints []cluster.Endpoint, hash string) int {
	count := 0
	for _, e := range endpoints {
		if e.Ready && e.Labels[hashLabel] == hash {
			count++
		}
	}
	return count
}

func TestEndpointSlicesAreNotAskedForUntilSomebodyWantsThem(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	asked := func() int {
		requests, err := shared.Requests(func(r lab.Request) bool { return r.User == s.Name && r.Resource == "endpointslices" })
		if err != nil {
			t.Fatal(err)
		}
		return len(requests)
	}
	createService(t, s.namespace, "cart")
	createSet(t, s.namespace, createOwner(t, s.namespace, "Rollout", "cart"), "5f8d", 1)
	eventually(t, time.Minute, "the Service's ports", func() bool { return len(s.ServicePorts(s.namespace, "cart")) == 2 })
	if n := asked(); n != 0 {
		t.Fatalf("%d requests for EndpointSlices before anybody asked", n)
	}
	if _, err := s.Endpoints(s.namespace, "cart"); err == nil {
		t.Error("the first question was answered from a cache that cannot have been filled")
	}
	eventually(t, time.Minute, "a request once somebody asked", func() bool { return asked() > 0 })
}

func TestAMissingRightToEndpointSlicesIsNamedAndNeedsNoRestartOnceGranted(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct {
		own  bool
		want string
	}{
		"in all namespaces":    {false, "at the cluster scope"},
		"in its own namespace": {true, `in the namespace "NAMESPACE"`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			rules := stockRole(t).Rules
			a.grant(t, rules)
			options := cluster.Options{}
			if tc.own {
				options.Namespace = a.namespace
			}
			c := newCluster(t, a.config(t, nil), options)
			makeReady(t, c, time.Minute)
			var err error
			eventually(t, time.Minute, "an error that names the right", func() bool {
				_, err = c.Endpoints(a.namespace, "cart")
				return err != nil && strings.Contains(err.Error(), "forbidden")
			})
			for _, text := range []string{"cannot watch endpointslices.discovery.k8s.io", `cannot list resource "endpointslices"`, a.Name, "grant them", strings.ReplaceAll(tc.want, "NAMESPACE", a.namespace)} {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("Endpoints says %q, which lacks %q", err, text)
				}
			}
			if err := c.Ready(within(t, 10*time.Second)); err != nil {
				t.Errorf("nobody else needs the right, but: %v", err)
			}
			a.grant(t, append(slices.Clone(rules), endpointRights))
			eventually(t, 90*time.Second, "the answer once the right is granted", func() bool {
				return c.AwaitEndpoints(within(t, 10*time.Second)) == nil
			})
			if endpoints, err := c.Endpoints(a.namespace, "cart"); err != nil || len(endpoints) != 0 {
				t.Errorf("a Service that does not exist has %v, %v", endpoints, err)
			}
		})
	}
}

func TestTheEndpointsOfAServiceFollowItsPods(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.grant(t, append(slices.Clone(stockRole(t).Rules), endpointRights))
	c := newCluster(t, a.config(t, nil), cluster.Options{})
	makeReady(t, c, time.Minute)
	if err := c.AwaitEndpoints(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	told := &news{}
	c.OnEndpointsChanged(func(namespace, service string) { told.add(namespace, "/", service) })
	createService(t, a.namespace, "cart")
	rollout := createOwner(t, a.namespace, "Rollout", "cart")
	createSet(t, a.namespace, rollout, "5f8d", 2)
	createSet(t, a.namespace, rollout, "7c9b", 1)
	see := func(what string, holds func([]cluster.Endpoint) bool) {
		t.Helper()
		eventually(t, time.Minute, what, func() bool {
			endpoints, err := c.Endpoints(a.namespace, "cart")
			if err != nil {
				t.Fatal(err)
			}
			return holds(endpoints)
		})
	}
	see("three ready pods of two hashes", func(e []cluster.Endpoint) bool { return len(e) == 3 && ready(e, "5f8d") == 2 && ready(e, "7c9b") == 1 })
	if told.count(a.namespace+"/cart") == 0 {
		t.Error("nobody was told")
	}
	endpoints, _ := c.Endpoints(a.namespace, "cart")
	names := podNames(t, a.namespace, "7c9b")
	for _, e := range endpoints {
		if e.Address == "" || !e.Serving || e.Terminating || (e.Labels[hashLabel] == "7c9b") != slices.Contains(names, e.Pod) {
			t.Errorf("endpoint %+v, the pods of 7c9b are %v", e, names)
		}
	}
	// The Service does not select it any more: it may live on, but is not reached.
	relabel(t, a.namespace, names[0], `{"metadata":{"labels":{"app":"apart"}}}`)
	see("the pod that left to be replaced", func(e []cluster.Endpoint) bool {
		return ready(e, "7c9b") == 1 && !slices.ContainsFunc(e, func(e cluster.Endpoint) bool { return e.Pod == names[0] })
	})
	if err := shared.Client.AppsV1().ReplicaSets(a.namespace).Delete(t.Context(), "cart-5f8d", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	see("the pods of the deleted ReplicaSet to be gone", func(e []cluster.Endpoint) bool { return ready(e, "5f8d") == 0 && ready(e, "7c9b") == 1 })
	if err := shared.Client.CoreV1().Services(a.namespace).Delete(t.Context(), "cart", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	see("nothing behind a Service that is gone", func(e []cluster.Endpoint) bool { return len(e) == 0 })
}

func TestThePortsOfAServiceAreThoseThatItHasByNow(t *testing.T) {
	t.Parallel()
	s := newStock(t, nil)
	createService(t, s.namespace, "cart")
	see := func(what string, want ...cluster.ServicePort) {
		t.Helper()
		var last []cluster.ServicePort
		eventually(t, time.Minute, what, func() bool {
			last = s.ServicePorts(s.namespace, "cart")
			return cmp.Equal(want, last)
		})
	}
	see("both ports", cluster.ServicePort{Port: 80, Name: "http"}, cluster.ServicePort{Port: 9000, Name: "other", AppProtocol: "example.com/game", UDP: true})
	patch := []byte(`[{"op":"replace","path":"/spec/ports","value":[{"port":8080,"appProtocol":"http2"}]}]`)
	if _, err := shared.Client.CoreV1().Services(s.namespace).Patch(t.Context(), "cart", types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	see("the one port without a name", cluster.ServicePort{Port: 8080, AppProtocol: "http2"})
	if err := shared.Client.CoreV1().Services(s.namespace).Delete(t.Context(), "cart", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	see("no ports of a Service that is gone")
}
