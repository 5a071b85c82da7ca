package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// What a blinkered Sight may not read, as bits.
const (
	noServices = 1 << iota
	noRules
	noSets
	noPods
	noSelectors
	noEndpoints
	noIstiod
	somewhere // with an istiod
)

var errBlinkered = errors.New("may not be read")

// blinkered is a world of which not all may be read.
type blinkered struct {
	*world
	not byte
}

func (b blinkered) VirtualService(namespace, name string) (*virtualservice.VirtualService, error) {
	if b.not&noServices != 0 {
		return nil, errBlinkered
	}
	return b.world.VirtualService(namespace, name)
}

func (b blinkered) DestinationRule(namespace, name string) (*destinationrule.DestinationRule, error) {
	if b.not&noRules != 0 {
		return nil, errBlinkered
	}
	return b.world.DestinationRule(namespace, name)
}

func (b blinkered) ReplicaSets(rollout types.UID) ([]cluster.ReplicaSet, error) {
	if b.not&noSets != 0 {
		return nil, errBlinkered
	}
	return b.world.ReplicaSets(rollout)
}

func (b blinkered) PodLabels(set types.UID) []cluster.PodGroup {
	if b.not&noPods != 0 {
		return nil
	}
	return b.world.PodLabels(set)
}

func (b blinkered) ServiceSelector(namespace, name string) map[string]string {
	if b.not&noSelectors != 0 {
		return nil
	}
	return b.world.ServiceSelector(namespace, name)
}

func (b blinkered) Endpoints(namespace, service string) ([]cluster.Endpoint, error) {
	if b.not&noEndpoints != 0 {
		return nil, errBlinkered
	}
	return b.world.Endpoints(namespace, service)
}

// explainedWhatever explains whatever there is, and fails the test if that wrote, told or
// changed anything, or if it says more than it can know.
func (w *world) explainedWhatever(t interface{ Errorf(string, ...any) }, not byte, ro *v1alpha1.Rollout) {
	options := Options{}
	options.Config.Prometheus.Default = "http://prometheus:9090"
	if not&somewhere != 0 {
		i := &istiod{followed: map[types.UID]mesh.Want{}}
		if i.serves(20, endpoints("old", 20), endpoints("new", 5)); not&noIstiod != 0 {
			i.err = mesh.ErrUnavailable
		}
		options.Mesh = i
	}
	version, before, objects := w.version, ro.DeepCopy(), w.copies()
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // an istiod that has no answer is not waited for
	e, err := explain(ctx, blinkered{w, not}, options, ro, w.clock)
	if w.version != version || len(w.events)+len(w.writes)+len(w.marks)+len(w.aborts) > 0 {
		t.Errorf("an explanation wrote or told: %v %v %v %v", w.writes, w.events, w.marks, w.aborts)
	}
	if !equality.Semantic.DeepEqual(before, ro) {
		t.Errorf("it changed the Rollout from %+v to %+v", before, ro)
	}
	if diff := cmp.Diff(objects, w.copies()); diff != "" {
		t.Errorf("it changed an object:\n%s", diff)
	}
	for _, side := range e.Sides {
		if side.PodsErr != nil && side.ReplicaSet != "" || side.HashErr != nil && side.Hash != "" {
			t.Errorf("it knows what it cannot read: %+v", side)
		}
	}
	if err == nil {
		if e.Next < 0 || e.Next > e.Max || len(e.Services) == 0 || len(e.Sides) == 0 {
			t.Errorf("%d of %d, %d VirtualServices, %d sides", e.Next, e.Max, len(e.Services), len(e.Sides))
		}
		return
	}
	e.Config, e.Max, e.Services, e.Sides = Explanation{}.Config, 0, nil, nil
	if !reflect.DeepEqual(e, Explanation{}) {
		t.Errorf("with %v it says %+v", err, e)
	}
}

// copies are the objects as JSON.
func (w *world) copies() map[string]string {
	all := map[string]string{}
	for key, o := range w.objects {
		all[key] = fmt.Sprint(o.Object)
	}
	return all
}

// FuzzExplain explains Rollouts, VirtualServices and DestinationRules made of anything, with
// any part of them out of sight.
func FuzzExplain(f *testing.F) {
	gated := strings.TrimSuffix(subsetConfig, "}") + `, "verify": {"level": "Mesh", "proxies": true}, "healthGate": {"provider": {"prometheus": {}}}}`
	for i, config := range []string{subsetConfig, hostConfig, twoRulesConfig, gated, `{}`} {
		ro, err := json.Marshal(stepped(config, int32(i)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(ro, hostVirtualService, subsetDestinationRule, int32(4), int32(20), byte(0))
		f.Add(ro, subsetVirtualService, subsetDestinationRule, int32(0), int32(20), byte(somewhere))
		for bit := byte(1); bit != 0; bit <<= 1 {
			f.Add(ro, subsetVirtualService, subsetDestinationRule, int32(2), int32(20), bit)
		}
		f.Add(ro, subsetVirtualService, subsetDestinationRule, int32(-3), int32(0), byte(noServices|noRules|noSets))
	}
	f.Add([]byte(`{}`), "{}", "{}", int32(200), int32(-1), byte(255))
	f.Fuzz(func(t *testing.T, rolloutJSON []byte, vs, dr string, canary, stable int32, not byte) {
		ro := &v1alpha1.Rollout{}
		if json.Unmarshal(rolloutJSON, ro) != nil {
			return
		}
		w := newWorld(t)
		w.put("VirtualService", vs)
		w.put("DestinationRule", dr)
		w.pods("new", canary, 20)
		w.pods("old", stable, 20)
		w.ports = map[string][]cluster.ServicePort{"shop/cart": {{Port: 80, Name: "http"}}}
		w.slices = map[string][]cluster.Endpoint{"shop/cart": append(endpoints("old", 20), endpoints("new", 5)...)}
		w.explainedWhatever(t, not, ro)
	})
}

// anyRollout draws a Rollout whose configuration can be read, in any state.
func anyRollout(t *rapid.T) *v1alpha1.Rollout {
	yes, number := rapid.Bool(), rapid.OneOf(rapid.Int32(), rapid.Int32Range(-2, 120))
	level := rapid.SampledFrom([]string{"", `, "verify": {"level": "Endpoints"}`, `, "verify": {"level": "Mesh", "onUnavailable": "Hold"}`, `, "verify": {"level": "Mesh"}, "healthGate": {"provider": {"prometheus": {}}}`, `, "guard": {"mode": "Observe"}`}).Draw(t, "level")
	config := rapid.SampledFrom([]string{subsetConfig, hostConfig, twoRulesConfig}).Draw(t, "config")
	ro := rollout(strings.TrimSuffix(config, "}") + level + "}")
	size, step, weight := number.Draw(t, "replicas"), number.Draw(t, "step"), number.Draw(t, "weight")
	long := rapid.SampledFrom([]intstr.IntOrString{intstr.FromInt32(0), intstr.FromString("10 minutes"), intstr.FromString("1h")}).Draw(t, "duration")
	ro.Spec.Replicas, ro.Status.CurrentStepIndex = &size, &step
	canary := ro.Spec.Strategy.Canary
	canary.Steps = rapid.SliceOfN(rapid.SampledFrom([]v1alpha1.CanaryStep{
		{}, {SetWeight: &weight}, {Pause: &v1alpha1.RolloutPause{}}, {Pause: &v1alpha1.RolloutPause{Duration: &long}}, {SetCanaryScale: &v1alpha1.SetCanaryScale{}},
		{SetCanaryScale: &v1alpha1.SetCanaryScale{Replicas: &size}}, {SetCanaryScale: &v1alpha1.SetCanaryScale{Weight: &weight}}, {SetCanaryScale: &v1alpha1.SetCanaryScale{MatchTrafficWeight: true}},
		{Analysis: &v1alpha1.RolloutAnalysis{}}, {Experiment: &v1alpha1.RolloutExperimentStep{}}, {SetHeaderRoute: headerStep("hdr", true)}, {SetMirrorRoute: mirrorStep("mir", false)},
	}), 0, 5).Draw(t, "steps")
	if yes.Draw(t, "managed routes") {
		canary.TrafficRouting.ManagedRoutes = []v1alpha1.MangedRoutes{{Name: "hdr"}, {Name: "mir"}}
	}
	if yes.Draw(t, "another max") {
		most := number.Draw(t, "max")
		canary.TrafficRouting.MaxTrafficWeight = &most
	}
	canary.DynamicStableScale = yes.Draw(t, "dynamic")
	if yes.Draw(t, "min pods") {
		canary.MinPodsPerReplicaSet = &weight
	}
	if yes.Draw(t, "window") {
		ro.Spec.RollbackWindow = &v1alpha1.RollbackWindowSpec{Revisions: number.Draw(t, "revisions")}
	}
	ro.Annotations = map[string]string{}
	if yes.Draw(t, "pin") {
		ro.Annotations[PinAnnotation] = rapid.SampledFrom([]string{"", "5", "-1", "five", "1000"}).Draw(t, "pinned")
	}
	if yes.Draw(t, "mark") {
		ro.Annotations[gate.Annotation] = rapid.SampledFrom([]string{"", "new", "new aborting: no", "old aborted: yes", ": :"}).Draw(t, "marked")
	}
	hash := rapid.SampledFrom([]string{"", "new", "old", "gone"})
	ro.Status.CurrentPodHash, ro.Status.StableRS = hash.Draw(t, "canary"), hash.Draw(t, "stable")
	ro.Status.Abort, ro.Status.PromoteFull = yes.Draw(t, "abort"), yes.Draw(t, "full")
	if yes.Draw(t, "weights") {
		ro.Status.Canary.Weights = &v1alpha1.TrafficWeights{
			Canary: v1alpha1.WeightDestination{Weight: number.Draw(t, "recorded"), PodTemplateHash: hash.Draw(t, "weighed")}, Stable: v1alpha1.WeightDestination{Weight: weight},
			Additional: []v1alpha1.WeightDestination{share("exp-a", "ha", number.Draw(t, "share"))},
		}
	}
	ro.Status.PauseConditions = []v1alpha1.PauseCondition{{StartTime: metav1.NewTime(time.Unix(int64(weight), 0))}}
	return ro
}

func TestWhateverThereIsCanBeExplained(t *testing.T) { rapid.Check(t, explainsAnything(t)) }

func FuzzWhateverThereIsCanBeExplained(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) { rapid.MakeFuzz(explainsAnything(t))(t, data) })
}

func explainsAnything(t *testing.T) func(*rapid.T) {
	return func(rt *rapid.T) {
		w := newWorld(t)
		pods := rapid.OneOf(rapid.Int32(), rapid.Int32Range(-1, 25))
		if vs := rapid.SampledFrom([]string{"", subsetVirtualService, hostVirtualService, edgeVirtualService}).Draw(rt, "VirtualService"); vs != "" {
			w.apply(vs)
		}
		switch rapid.SampledFrom([]string{"", "without hashes", "with hashes", "two"}).Draw(rt, "DestinationRule") {
		case "without hashes":
			w.apply(subsetDestinationRule)
		case "two":
			w.apply(edgeRule)
			fallthrough
		case "with hashes":
			hash := rapid.SampledFrom([]string{"new", "old", "gone"})
			mustUpdateLabels(w, hash.Draw(rt, "canary subset"), hash.Draw(rt, "stable subset"))
		}
		for _, hash := range []string{"new", "old"} {
			if rapid.Bool().Draw(rt, "has "+hash) {
				w.pods(hash, pods.Draw(rt, "available"), pods.Draw(rt, "size"))
			}
		}
		for _, service := range []string{"cart", "cart-canary", "cart-stable"} {
			if rapid.Bool().Draw(rt, service) {
				w.services["shop/"+service] = rapid.SampledFrom([]string{"", "new", "old"}).Draw(rt, "selects")
			}
		}
		w.slices = map[string][]cluster.Endpoint{"shop/cart": append(endpoints("old", 20), endpoints("new", 5)...)}
		w.explainedWhatever(rt, rapid.Byte().Draw(rt, "out of sight"), anyRollout(rt))
	}
}
