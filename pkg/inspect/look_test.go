package inspect

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

func TestWhatCannotBeToldSaysWhy(t *testing.T) {
	for want, change := range map[string]func(*world){
		"Rollout shop/web: there is no such Rollout in this cluster: -n names another namespace": func(w *world) { w.objects = nil },
		"spec.strategy.canary is not set": func(w *world) {
			ro := rollout("")
			ro.Spec.Strategy.Canary = nil
			w.store(ro)
		},
		"spec.strategy.canary.trafficRouting is not set": func(w *world) {
			ro := rollout("")
			ro.Spec.Strategy.Canary.TrafficRouting = nil
			w.store(ro)
		},
		"plugins has other/router and not argoproj-labs/istio: --plugin-name says": func(w *world) {
			ro := rollout("")
			plugins := ro.Spec.Strategy.Canary.TrafficRouting.Plugins
			plugins["other/router"] = plugins["argoproj-labs/istio"]
			delete(plugins, "argoproj-labs/istio")
			w.store(ro)
		},
		"trafficRouting.istio is the native router's": func(w *world) {
			ro := rollout("")
			ro.Spec.Strategy.Canary.TrafficRouting = &v1alpha1.RolloutTrafficRouting{Istio: &v1alpha1.IstioTrafficRouting{}}
			w.store(ro)
		},
		"trafficRouting.plugins is not set": func(w *world) {
			ro := rollout("")
			ro.Spec.Strategy.Canary.TrafficRouting.Plugins = nil
			w.store(ro)
		},
		"missing right: get rollouts.argoproj.io in namespace shop (docs/cli.md has a Role": func(w *world) { w.refuse["rollouts"] = forbidden("rollouts") },
		"the cluster does not serve rollouts.argoproj.io in v1alpha1 (kubectl api-resources --api-group=argoproj.io shows what it serves): is this the right cluster (--context)? Install Argo Rollouts": func(w *world) {
			w.refuse["rollouts"] = unserved()
		},
		"the server is away": func(w *world) { w.refuse["virtualservices"] = errors.New("the server is away") },
		"is not as its definition has it": func(w *world) {
			w.apply("{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web}, spec: {replicas: many}}")
		},
	} {
		t.Run(want, func(t *testing.T) {
			w := running(t)
			change(w)
			if _, err := Look(t.Context(), w, options(), "shop", "web"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "web") {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

func TestWhatMayNotBeReadIsNoted(t *testing.T) {
	for resource, want := range map[string]string{
		"pods": "pods of namespace shop could not be read: their labels", "services": "Service shop/web could not be read: what it selects",
		"endpointslices": "endpoints of Service shop/web could not be read", "events": "Events of namespace shop could not be read",
	} {
		w := running(t)
		w.refuse[resource] = forbidden(resource)
		seen, err := Look(t.Context(), w, options(), "shop", "web")
		if err != nil {
			t.Fatal(err)
		}
		r := Compose(seen)
		if !slices.ContainsFunc(r.Notes, func(note string) bool {
			return strings.HasPrefix(note, want) && strings.Contains(note, "missing right")
		}) {
			t.Errorf("%s: %q", resource, r.Notes)
		}
		if r.Weights.Applied == nil || *r.Weights.Applied != 20 || r.Weights.Allowed != 20 {
			t.Errorf("%s: %+v", resource, r.Weights)
		}
	}
}

func TestEachMissingRightAndKindIsNamed(t *testing.T) {
	for want, change := range map[string]func(*world){
		"missing right: get virtualservices.networking.istio.io in namespace shop":  func(w *world) { w.refuse["virtualservices"] = forbidden("virtualservices") },
		"missing right: get destinationrules.networking.istio.io in namespace shop": func(w *world) { w.refuse["destinationrules"] = forbidden("destinationrules") },
		"missing right: list replicasets.apps in namespace shop":                    func(w *world) { w.refuse["replicasets"] = forbidden("replicasets") },
		"missing right: get services in namespace shop": func(w *world) {
			hostLevel(w, nil)
			w.refuse["services"] = forbidden("services")
		},
		"the cluster does not serve virtualservices.networking.istio.io in v1, v1beta1, v1alpha3 (": func(w *world) { w.refuse["virtualservices"] = unserved() },
		"(its base chart); objects of a mesh in another cluster are not seen from here":             func(w *world) { w.refuse["destinationrules"] = unserved() },
		"cannot be told: missing right: get destinationrules.networking.istio.io in namespace shop (docs/cli.md has a Role with all that inspect needs, to be bound to you): " +
			`destinationrules is forbidden: User "jane" has no such right; missing right: get virtualservices.networking.istio.io`: func(w *world) {
			w.refuse["virtualservices"], w.refuse["destinationrules"] = forbidden("virtualservices"), forbidden("destinationrules")
		},
	} {
		w := running(t)
		change(w)
		seen, err := Look(t.Context(), w, options(), "shop", "web")
		if err != nil {
			t.Fatal(err)
		}
		r := Compose(seen)
		if !strings.Contains(r.Waiting, want) || r.Unread == "" || r.Worst() != lint.Error || r.Weights != nil || len(r.Events) != 2 || r.Rollout.Step != 2 {
			t.Errorf("%s\nwant %s\n%+v", r.Waiting, want, r)
		}
	}
}

func TestEverythingIsReadOnceAndNothingIsListedThatIsNotNeeded(t *testing.T) {
	w := running(t)
	if _, err := Look(t.Context(), w, options(), "shop", "web"); err != nil {
		t.Fatal(err)
	}
	slices.Sort(w.reads)
	want := []string{
		"get destinationrules", "get rollouts", "get services", "get virtualservices",
		"list endpointslices", "list events", "list pods", "list replicasets",
	}
	if !slices.Equal(w.reads, want) {
		t.Errorf("%q, want %q", w.reads, want)
	}
}

func TestPodsCountByTheLabelsThatTheyHave(t *testing.T) {
	w := running(t)
	w.apply(`
apiVersion: v1
kind: Pod
metadata:
  name: web-new-0
  labels: {app: shop, rollouts-pod-template-hash: new}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-new, uid: rs-new, controller: true}]
`)
	seen, err := Look(t.Context(), w, options(), "shop", "web")
	if err != nil {
		t.Fatal(err)
	}
	if r := Compose(seen); r.Weights.Allowed != 15 || r.Sides[0].Available != 3 || *r.Sides[0].Endpoints != 4 {
		t.Errorf("%+v, %+v", r.Weights, r.Sides[0])
	}
}

func TestEventsOfBothGenerationsAreRead(t *testing.T) {
	at := func(seconds int) metav1.MicroTime {
		return metav1.NewMicroTime(now.Add(time.Duration(seconds) * time.Second))
	}
	for sentence, tc := range map[string]struct {
		event corev1.Event
		last  int
		count int32
	}{
		"an old one":       {corev1.Event{LastTimestamp: metav1.NewTime(at(-5).Time), FirstTimestamp: metav1.NewTime(at(-9).Time), Count: 3}, -5, 3},
		"a new one":        {corev1.Event{EventTime: at(-7)}, -7, 1},
		"a series":         {corev1.Event{EventTime: at(-70), Series: &corev1.EventSeries{Count: 4, LastObservedTime: at(-6)}}, -6, 4},
		"one without time": {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(-8).Time)}}, -8, 1},
	} {
		got := eventOf(tc.event)
		if !got.Last.Equal(now.Add(time.Duration(tc.last)*time.Second)) || got.Count != tc.count {
			t.Errorf("%s: %+v", sentence, got)
		}
	}
}

func TestEventsAreBoundedAndOfThisRollout(t *testing.T) {
	w := running(t)
	for i := range 9 {
		w.event(time.Duration(i)*time.Minute, 1, "Normal", "Reason", strings.Repeat("x", i))
	}
	w.apply(`
apiVersion: v1
kind: Event
metadata: {name: of-the-one-before}
involvedObject: {kind: Rollout, name: web, uid: another}
lastTimestamp: "2026-03-04T15:16:17Z"
message: of a Rollout of the same name
`)
	seen, err := Look(t.Context(), w, options(), "shop", "web")
	if err != nil {
		t.Fatal(err)
	}
	shown := Compose(seen).Events
	if len(seen.Events) != 11 || len(shown) != 5 || shown[0].Message != "" || shown[1].Message != "x" {
		t.Errorf("%+v", shown)
	}
}
