package router

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
)

// FuzzHistories is the model check with histories that a fuzzer looks for.
func FuzzHistories(f *testing.F) {
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, data []byte) {
		rapid.MakeFuzz(func(rt *rapid.T) {
			level := rapid.SampledFrom([]string{"subset", "host"}).Draw(rt, "level")
			m := newModel(t, rt, level)
			rt.Repeat(m.actions())
		})(t, data)
	})
}

// FuzzCalls gives every call a Rollout, a VirtualService and a DestinationRule
// made of anything. Whatever they hold, a call answers; what it writes is still
// an object, and a second call with the same has nothing left to write.
func FuzzCalls(f *testing.F) {
	configs := []string{
		hostConfig, subsetConfig, twoRulesConfig,
		strings.TrimSuffix(subsetConfig, "}") + `, "verify": {"level": "Mesh", "proxies": true}, "healthGate": {"provider": {"prometheus": {}}}}`,
		strings.TrimSuffix(hostConfig, "}") + `, "verify": {"level": "Endpoints", "onUnavailable": "Hold"}}`,
	}
	for _, config := range configs {
		ro, err := json.Marshal(stepped(config, 3))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(ro, hostVirtualService, subsetDestinationRule, int32(20))
		f.Add(ro, subsetVirtualService, subsetDestinationRule, int32(100))
		f.Add(ro, subsetVirtualService, hostVirtualService, int32(-140))
	}
	f.Add([]byte(`{}`), "{}", "{}", int32(200))
	f.Fuzz(func(t *testing.T, rolloutJSON []byte, vs, dr string, weight int32) {
		ro := &v1alpha1.Rollout{}
		if json.Unmarshal(rolloutJSON, ro) != nil {
			return
		}
		w := newWorld(t, edgeVirtualService, edgeRule)
		w.ports = map[string][]cluster.ServicePort{"shop/cart": {{Port: 80, Name: "http"}}}
		w.slices = map[string][]cluster.Endpoint{"shop/cart": append(endpoints("old", 20), endpoints("new", 5)...)}
		w.put("VirtualService", vs)
		w.put("DestinationRule", dr)
		w.pods("old", 20, 20)
		w.pods("new", 5, 20)
		w.templates["ha"] = 1
		w.rollouts["shop/cart"] = ro
		r, i := w.router(), &istiod{followed: map[types.UID]mesh.Want{}}
		i.serves(20, endpoints("old", 20), endpoints("new", 5))
		r.options.Mesh, r.options.Health = i, &clinic{}
		r.options.Config.Prometheus.Default = "http://prometheus:9090"
		r.Called()
		callAll(r, ro, weight)
		weigh(r, ro, weight)
		before := len(w.writes)
		weigh(r, ro, weight)
		if len(w.writes) > before {
			t.Errorf("with nothing new it wrote %v", w.writes[before:])
		}
	})
}

// callAll is a whole reconcile, whatever the calls answer.
func callAll(r *Router, ro *v1alpha1.Rollout, weight int32) {
	ctx := context.Background()
	_ = r.RemoveManagedRoutes(ctx, ro)
	if canary := ro.Spec.Strategy.Canary; canary != nil {
		for i := range canary.Steps {
			_ = r.SetHeaderRoute(ctx, ro, canary.Steps[i].SetHeaderRoute)
			_ = r.SetMirrorRoute(ctx, ro, canary.Steps[i].SetMirrorRoute)
		}
	}
	weigh(r, ro, weight)
}

// weigh is the part of a reconcile that comes every time.
func weigh(r *Router, ro *v1alpha1.Rollout, weight int32) {
	ctx := context.Background()
	additional := []v1alpha1.WeightDestination{share("exp-a", "ha", 15), share("", "hb", 7)}
	_ = r.UpdateHash(ctx, ro, "new", "old", additional)
	_ = r.SetWeight(ctx, ro, weight, additional)
	_, _ = r.VerifyWeight(ctx, ro, weight, additional)
	_, _ = r.watchLook(ctx, ro.UID)
}

// put stores anything as that object, if it is an object at all.
func (w *world) put(kind, text string) {
	var content map[string]any
	if yaml.Unmarshal([]byte(text), &content) != nil || content == nil {
		return
	}
	u := &unstructured.Unstructured{Object: content}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	metadata["namespace"], metadata["name"] = "shop", "cart"
	content["kind"], content["apiVersion"] = kind, "networking.istio.io/v1"
	u.SetNamespace("shop")
	w.store(u)
}
