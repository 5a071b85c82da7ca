package scenarios

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// edge is a namespace of the operator's gateways, for one test.
func edge(t *testing.T) string {
	t.Helper()
	namespace, err := shared.Namespace(t.Context(), "edge")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.DeleteNamespace(context.WithoutCancel(t.Context()), namespace) })
	return namespace
}

// across is a Rollout with one VirtualService of its own namespace and two of
// another, one named as the native router does and one with a dot in its name.
func across(edge string) routed {
	w := canary(Host, SetWeight(30), stop())
	return routed{
		Workload: w, objects: append(around(Host), w.virtualService()),
		config: block{"virtualServices": []any{
			block{"name": name, "routes": []any{"primary"}},
			block{"name": "gateway." + edge, "routes": []any{"shop"}},
			block{"name": "mesh.v1", "namespace": edge},
		}},
	}
}

// inEdge applies the VirtualServices of the other namespace, whose destinations
// have to be written out.
func inEdge(edge string) act {
	return func(ctx context.Context, s *Scene) error {
		to := func(service string, weight int) block {
			return block{"destination": block{"host": service + "." + s.Namespace + ".svc.cluster.local"}, "weight": weight}
		}
		var all []any
		for vs, route := range map[string]string{"gateway": "shop", "mesh.v1": "only"} {
			all = append(all, virtualServiceOf(vs, block{
				"hosts": []any{vs + ".example.com"},
				"http": []any{block{
					"name": route, "timeout": "3s", "route": []any{to(name+"-stable", 100), to(name+"-canary", 0)},
				}},
			}))
		}
		manifests, err := documents(all...)
		if err != nil {
			return err
		}
		_, err = s.lab.Apply(ctx, edge, manifests)
		return err
	}
}

// inEdgeWeigh waits until both VirtualServices of the other namespace have these weights.
func inEdgeWeigh(edge string, want ...int64) act {
	return func(ctx context.Context, s *Scene) error {
		amiss := ""
		err := lab.Until(ctx, "the VirtualServices of "+edge, func(ctx context.Context) (bool, error) {
			list, err := s.lab.Dynamic.Resource(virtualServices).Namespace(edge).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			amiss = ""
			for i := range list.Items {
				if diff := cmp.Diff(want, weightsOf(httpOf(&list.Items[i])[0])); diff != "" {
					amiss = fmt.Sprintf("%s: %s", list.Items[i].GetName(), diff)
				}
			}
			return amiss == "" && len(list.Items) == 2, nil
		})
		if err != nil {
			return fmt.Errorf("%w: %s", err, amiss)
		}
		return nil
	}
}

func TestVirtualServicesOfAnotherNamespaceFollowWhereTheOperatorAllowsIt(t *testing.T) {
	t.Parallel()
	gateways := edge(t)
	c := ownController(t, lab.ControllerOptions{InstanceID: "across", PluginArgs: []string{"--allow-cross-namespace=" + gateways}})
	recorded := playRouted(t, c, across(gateways),
		inEdge(gateways), deployed, deploy("upgrade", 2), pausedAt(1),
		becomes(virtualServices, name, weighs("primary", 70, 30)), inEdgeWeigh(gateways, 70, 30),
		goOn, promotedAfter("upgrade"), inEdgeWeigh(gateways, 100, 0))
	hold(t, recorded, limits("upgrade", "Healthy", time.Minute))
	endsPromoted(t, recorded)
}

func TestVirtualServicesOfAnotherNamespaceAreRefusedWithoutTheFlag(t *testing.T) {
	t.Parallel()
	gateways := edge(t)
	var own snapshot
	playRouted(t, controller(t, lab.DefaultVersion), across(gateways),
		inEdge(gateways), own.take(virtualServices, name),
		func(ctx context.Context, s *Scene) error {
			return perform(ctx, s,
				refused(s.Namespace, name, "--allow-cross-namespace="+gateways),
				refused(s.Namespace, name, "virtualServices[1]"), refused(s.Namespace, name, "virtualServices[2]"))
		},
		wait(2*time.Second), inEdgeWeigh(gateways, 100, 0),
		keeps(t, virtualServices, name, func(now *unstructured.Unstructured) string {
			return cmp.Diff(own.object.GetResourceVersion(), now.GetResourceVersion())
		}))
}
