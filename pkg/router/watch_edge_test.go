package router

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// twoServicesAt20 is a canary at 20 in two VirtualServices.
func twoServicesAt20(t *testing.T) (*world, *Router, *v1alpha1.Rollout) {
	w, r := hostCanary(t, hostVirtualService, strings.Replace(hostVirtualService, "{name: cart}", "{name: second}", 1))
	ro := rollout(`{"virtualServices": [{"name": "cart"}, {"name": "second"}]}`)
	w.rollouts["shop/cart"] = ro
	mustSet(t, r, ro, 20)
	return w, r, ro
}

func TestAfterAPartialWriteTheWatchDoesNotGiveAnAbortedCanaryItsWeightBack(t *testing.T) {
	w, r, ro := twoServicesAt20(t)
	ro.Status.Abort = true
	w.refuse["VirtualService shop/second"] = errors.New("admission webhook denied the request")
	for i := 0; i < 3; i++ {
		if err := setWeight(t, r, ro, 0); err == nil {
			t.Fatal("no error")
		}
		if got := w.weights(); got != "100/0" {
			t.Fatalf("first object %s", got)
		}
		_, err := r.watchLook(context.Background(), ro.UID)
		t.Logf("watch: %v", err)
		if got := w.weights(); got != "100/0" {
			t.Errorf("the controller asked for 0, the watch wrote %s; events %v", got, w.eventsSince())
		}
	}
}

func TestARaiseThatFailsHalfwayIsNotFoughtOver(t *testing.T) {
	w, r, ro := twoServicesAt20(t)
	w.refuse["VirtualService shop/second"] = errors.New("admission webhook denied the request")
	w.writes = nil
	for range 10 {
		_ = setWeight(t, r, ro, 50)
		_, _ = r.watchLook(context.Background(), ro.UID)
		w.pass(time.Second)
	}
	if len(w.writes) > 1 {
		t.Errorf("%d writes in 10 s, events %v", len(w.writes), w.eventsSince()[4:8])
	}
}

func TestALookBetweenTwoCallsOfAPingPongPromotionTurnsNothingRound(t *testing.T) {
	w := newWorld(t, `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec:
  hosts: [cart]
  http:
  - name: primary
    route:
    - {destination: {host: pong}, weight: 100}
    - {destination: {host: ping}, weight: 0}
`)
	w.services["shop/ping"], w.services["shop/pong"] = "new", "old"
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	r := w.router()
	r.Called()
	ro := rollout(hostConfig)
	c := ro.Spec.Strategy.Canary
	c.CanaryService, c.StableService = "", ""
	c.PingPong = &v1alpha1.PingPongSpec{PingService: "ping", PongService: "pong"}
	ro.Status.Canary.StablePingPong = v1alpha1.PPPong
	w.rollouts["shop/cart"] = ro
	mustUpdate(t, r, ro, "new", "old")
	if err := setWeight(t, r, ro, 100); err != nil {
		t.Fatal(err)
	}
	if got := w.weights(); got != "0/100" {
		t.Fatal(got)
	}
	// promoted
	done := ro.DeepCopy()
	done.Status.StableRS, done.Status.Canary.StablePingPong = "new", v1alpha1.PPPing
	w.rollouts["shop/cart"] = done
	mustUpdate(t, r, done, "new", "new")
	_, _ = r.watchLook(context.Background(), ro.UID) // e.g. a pod's event; the turn is free between two calls
	if got := w.weights(); got != "0/100" {
		t.Errorf("pong/ping is %s: everything goes to the old revision; events %v", got, w.eventsSince())
	}
}

func TestALookAfterAChangeOfMaxTrafficWeightKeepsTheShare(t *testing.T) {
	w, r, ro := hostScale(t)
	if got := w.weights(); got != "50/50" {
		t.Fatal(got)
	}
	hundredth := ro.DeepCopy()
	thousand := int32(1000)
	hundredth.Spec.Strategy.Canary.TrafficRouting.MaxTrafficWeight = &thousand
	w.rollouts["shop/cart"] = hundredth
	mustUpdate(t, r, hundredth, "new", "old")
	_, err := r.watchLook(context.Background(), ro.UID)
	if got := w.weights(); got != "50/50" && got != "500/500" {
		t.Errorf("between UpdateHash and SetWeight: %s, %v", got, err)
	}
}

func TestTheWatchKeepsTheStableLabelThatSetWeightMoved(t *testing.T) {
	w := newWorld(t, subsetVirtualService, subsetDestinationRule)
	w.pods("v1", 20, 20)
	w.pods("v2", 20, 20)
	w.pods("v3", 0, 2)
	r := w.router()
	r.Called()
	ro := rollout(subsetConfig)
	ro.Status.StableRS, ro.Status.CurrentPodHash = "v1", "v2"
	w.rollouts["shop/cart"] = ro
	mustUpdate(t, r, ro, "v2", "v1")
	if err := setWeight(t, r, ro, 100); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Hour)
	r.Called()
	next := ro.DeepCopy() // v2 is promoted, v3 comes at once
	zero := int32(0)
	next.Status.StableRS, next.Status.CurrentPodHash, next.Status.CurrentStepIndex = "v2", "v3", &zero
	w.rollouts["shop/cart"] = next
	if err := setWeight(t, r, next, 0); err != nil {
		t.Fatal(err)
	}
	if got := w.labels() + " " + w.weights(); got != "stable=v2 canary=v2 100/0" {
		t.Fatal(got)
	}
	_, err := r.watchLook(context.Background(), ro.UID) // RoutingChanged of the write itself asks for it
	if got := w.labels(); !strings.Contains(got, "stable=v2") {
		t.Errorf("the watch sends all traffic back to v1: %s (%v); events %v", got, err, w.eventsSince())
	}
}

func TestDriftAndANewerRolloutDoNotKeepAWeightUp(t *testing.T) {
	for name, change := range map[string]func(*world){
		"the status was written, the controller returns early": func(w *world) {
			ro := w.rollouts["shop/cart"].DeepCopy()
			ro.ResourceVersion = "2"
			w.rollouts["shop/cart"] = ro
		},
		"nothing (control)": func(*world) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hostVirtualService)
			w.services["shop/cart-canary"], w.services["shop/cart-stable"] = "new", "old"
			w.pods("old", 20, 20)
			w.pods("new", 20, 20)
			r := w.router()
			r.Called()
			ro := rollout(hostConfig)
			ro.ResourceVersion = "1"
			w.rollouts["shop/cart"] = ro
			if err := setWeight(t, r, ro, 20); err != nil {
				t.Fatal(err)
			}
			change(w)
			w.setWeights("50/50")
			_, _ = r.watchLook(context.Background(), ro.UID)
			w.pods("new", 0, 20)
			for range 12 {
				_, _ = r.watchLook(context.Background(), ro.UID)
			}
			if got := w.weights(); got != "100/0" {
				t.Errorf("%s to a canary without a pod", got)
			}
		})
	}
}

func TestAQuarrelDoesNotKeepAHeaderRouteOnACanaryWithoutPods(t *testing.T) {
	w, r := midCanary(t)
	ro := stepped(hostConfig, 2)
	w.rollouts["shop/cart"] = ro
	w.pods("new", 2, 2)
	if err := r.SetWeight(context.Background(), ro, 0, nil); err != nil {
		t.Fatal(err)
	}
	w.wantRoutes(t, "header phase", "hdr 100, primary 100/0")
	for range 7 {
		w.setWeights("50/50")
		_, _ = r.watchLook(context.Background(), ro.UID)
	}
	w.setWeights("50/50")
	w.pods("new", 0, 2)
	again, err := r.watchLook(context.Background(), ro.UID)
	if got := w.routes(); got != "primary 100/0" {
		t.Errorf("canary without pods for %s (%v): %s", again, err, got)
	}
}

func TestDriftIsPutBackWhileTheControllerOnlyNotesPodsInTheStatus(t *testing.T) {
	w, r := drifting(t)
	paused := w.rollouts["shop/cart"].DeepCopy()
	paused.ResourceVersion = "2" // the status (availableReplicas) was written while the stable lacks pods: no call of the plugin
	_ = paused
	w.rollouts["shop/cart"] = paused
	w.apply(subsetDestinationRule)
	w.setWeights("0/100")
	for range 30 {
		_, _ = r.watchLook(context.Background(), "uid-1")
		w.pass(time.Second)
	}
	if got := w.weights() + " " + w.labels(); got != "80/20 stable=old canary=new" {
		t.Errorf("30 s later: %s", got)
	}
}

func TestAfterARestartANewerRolloutDoesNotKeepAWeightUp(t *testing.T) {
	for name, version := range map[string]string{"the status moved on": "2", "control": "1"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hostVirtualService)
			w.services["shop/cart-canary"], w.services["shop/cart-stable"] = "new", "old"
			w.pods("old", 20, 20)
			w.pods("new", 20, 20)
			ro := rollout(hostConfig)
			ro.ResourceVersion = "1"
			w.rollouts["shop/cart"] = ro
			if err := setWeight(t, w.router(), ro, 20); err != nil {
				t.Fatal(err)
			}
			r := w.router() // a restart
			r.Called()
			if err := setWeight(t, r, ro, 20); err != nil {
				t.Fatal(err)
			}
			moved := ro.DeepCopy()
			moved.ResourceVersion = version
			w.rollouts["shop/cart"] = moved
			w.pods("new", 0, 20)
			var err error
			for range 12 {
				_, err = r.watchLook(context.Background(), ro.UID)
				w.pass(time.Second)
			}
			if got := w.weights(); got != "100/0" {
				t.Errorf("%s to a canary without a pod: %v", got, err)
			}
		})
	}
}

func TestAnAnnotationAndANewerRolloutDoNotKeepAWeightUp(t *testing.T) {
	w := newWorld(t, hostVirtualService)
	w.services["shop/cart-canary"], w.services["shop/cart-stable"] = "new", "old"
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	ro := rollout(hostConfig)
	ro.ResourceVersion = "1"
	w.rollouts["shop/cart"] = ro
	r := w.router()
	r.Called()
	if err := setWeight(t, r, ro, 20); err != nil {
		t.Fatal(err)
	}
	u := w.objects["VirtualService shop/cart"].DeepCopy() // f:http stays the plugin's
	u.SetAnnotations(map[string]string{"team": "shop"})
	w.store(u)
	moved := ro.DeepCopy()
	moved.ResourceVersion = "2"
	w.rollouts["shop/cart"] = moved
	w.pods("new", 0, 20)
	var err error
	for range 12 {
		_, err = r.watchLook(context.Background(), ro.UID)
	}
	if got := w.weights(); got != "100/0" {
		t.Errorf("%s to a canary without a pod: %v", got, err)
	}
}

func TestAfterARestartAChangeByHandToOneOfTwoVirtualServicesIsPutBack(t *testing.T) {
	second := strings.Replace(hostVirtualService, "{name: cart}", "{name: second}", 1)
	w := newWorld(t, hostVirtualService, second)
	w.services["shop/cart-canary"], w.services["shop/cart-stable"] = "new", "old"
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	ro := rollout(`{"virtualServices": [{"name": "cart"}, {"name": "second"}]}`)
	w.rollouts["shop/cart"] = ro
	if err := setWeight(t, w.router(), ro, 20); err != nil {
		t.Fatal(err)
	}
	r := w.router() // a restart
	r.Called()
	if err := setWeight(t, r, ro, 20); err != nil { // nothing to write
		t.Fatal(err)
	}
	w.setWeights("0/100") // a person, in one of the two
	_, _ = r.watchLook(context.Background(), ro.UID)
	if got := w.weights(); got != "80/20" {
		t.Errorf("drift is not corrected: %s", got)
	}
	w.pods("new", 0, 20)
	_, _ = r.watchLook(context.Background(), ro.UID)
	if got := w.weights(); got != "100/0" {
		t.Errorf("no pod of the canary is left, and the guard's own watch does nothing: %s", got)
	}
}

func TestAChangeByHandToHTTPIsPutBackWhereWeStillOwnTLS(t *testing.T) {
	both := hostVirtualService + `  tls:
  - match: [{port: 443, sniHosts: [a.example]}]
    route:
    - {destination: {host: cart-stable}, weight: 100}
    - {destination: {host: cart-canary}, weight: 0}
`
	w := newWorld(t, both)
	w.services["shop/cart-canary"], w.services["shop/cart-stable"] = "new", "old"
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	ro := rollout(hostConfig)
	w.rollouts["shop/cart"] = ro
	r := w.router()
	r.Called()
	if err := setWeight(t, r, ro, 20); err != nil {
		t.Fatal(err)
	}
	w.setWeights("0/100")
	// as the API server keeps it: the person owns http, we still own tls
	u := w.objects["VirtualService shop/cart"]
	u.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "kubectl-edit", Operation: "Update", Time: &metav1.Time{Time: w.clock.Now()}, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:http":{}}}`)}},
		{Manager: cluster.FieldManager, Operation: "Update", Time: &metav1.Time{Time: w.clock.Now()}, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:tls":{}}}`)}},
	})
	_, _ = r.watchLook(context.Background(), ro.UID)
	if got := w.weights(); got != "80/20" {
		t.Errorf("drift is not corrected: %s", got)
	}
	w.pods("new", 0, 20)
	_, _ = r.watchLook(context.Background(), ro.UID)
	if got := w.weights(); got != "100/0" {
		t.Errorf("nor is the weight lowered with the last pod: %s", got)
	}
}

func TestLabelsThatDriftDuringAQuarrelArePutBackAfterIt(t *testing.T) {
	w, r := drifting(t)
	for range 7 {
		w.apply(subsetDestinationRule)
		_, _ = r.watchLook(context.Background(), "uid-1")
	}
	var again time.Duration
	for range 20 {
		again, _ = r.watchLook(context.Background(), "uid-1")
		if again <= 0 {
			break
		}
		w.pass(again)
		r.Called()
	}
	if got := w.labels(); got != "stable=old canary=new" {
		t.Errorf("labels are %q and the watch will not look again (again=%s): both subsets select every pod", got, again)
	}
}

func TestLabelsThatWaitDoNotKeepWeightsFromBeingPutBack(t *testing.T) {
	w, r := drifting(t)
	w.pods("old", 8, 20) // the controller returns early: 8 of the 16 that 80 need
	w.apply(subsetDestinationRule)
	w.apply(strings.Replace(strings.Replace(subsetVirtualService, "weight: 100", "weight: 50", 1), "canary}, weight: 0", "canary}, weight: 50", 1))
	if w.weights() != "50/50" {
		t.Fatal(w.weights())
	}
	for range 15 {
		_, err := r.watchLook(context.Background(), "uid-1")
		w.pass(time.Second)
		t.Log(err)
	}
	if got := w.weights() + " " + w.labels(); !strings.HasPrefix(got, "80/20") {
		t.Errorf("weights are not put back: %s", got)
	}
}

func TestNothingIsLoweredForARolloutThatMovedToTheNativeRouter(t *testing.T) {
	w, r := hostCanary(t, hostVirtualService)
	ro := rollout(hostConfig)
	ro.ResourceVersion = "1"
	w.rollouts["shop/cart"] = ro
	if err := setWeight(t, r, ro, 20); err != nil {
		t.Fatal(err)
	}
	native := ro.DeepCopy()
	native.ResourceVersion = "2"
	native.Spec.Strategy.Canary.TrafficRouting.Plugins = nil
	w.rollouts["shop/cart"] = native
	w.setWeights("60/40") // the native router goes on
	_, _ = r.watchLook(context.Background(), ro.UID)
	w.setWeights("80/20") // and back, as on another rollout
	w.writes = nil
	w.pods("new", 2, 20)
	_, _ = r.watchLook(context.Background(), ro.UID)
	if len(w.writes) != 0 {
		t.Errorf("writes for a Rollout of the native router: %v, weights %s", w.writes, w.weights())
	}
}

func TestPinnedTheWatchLeavesWhatTheOperatorTookAway(t *testing.T) {
	w, r := midCanary(t)
	ro := stepped(hostConfig, 2)
	ro.Annotations = map[string]string{PinAnnotation: "5"}
	w.rollouts["shop/cart"] = ro
	if err := r.SetWeight(context.Background(), ro, 10, nil); err != nil {
		t.Fatal(err)
	}
	w.wantRoutes(t, "at first", "hdr 100, primary 95/5")
	w.apply(hostVirtualService) // the operator takes the header route and the weight away by hand
	w.writes = nil
	_, _ = r.watchLook(context.Background(), ro.UID)
	if len(w.writes) != 0 {
		t.Errorf("pinned, and the watch writes: %s", w.routes())
	}
}

func TestAMissingVirtualServiceDoesNotKeepTheWeightOfTheOtherUp(t *testing.T) {
	second := strings.Replace(hostVirtualService, "{name: cart}", "{name: second}", 1)
	w := newWorld(t, hostVirtualService, second)
	w.services["shop/cart-canary"], w.services["shop/cart-stable"] = "new", "old"
	w.pods("old", 20, 20)
	w.pods("new", 20, 20)
	r := w.router()
	r.Called()
	ro := rollout(`{"virtualServices": [{"name": "cart"}, {"name": "second"}]}`)
	w.rollouts["shop/cart"] = ro
	if err := setWeight(t, r, ro, 50); err != nil {
		t.Fatal(err)
	}
	delete(w.objects, "VirtualService shop/second")
	ro.Status.Abort = true
	w.pods("new", 0, 20)
	again, err := r.watchLook(context.Background(), ro.UID)
	if got := w.weights(); got != "100/0" {
		t.Errorf("the watch (again %s, %v) leaves %s on a canary without pods", again, err, got)
	}
	err = setWeight(t, r, ro, 0)
	if got := w.weights(); got != "100/0" {
		t.Errorf("the aborting call leaves %s: %v", got, err)
	}
}

func TestAStepThatCannotBeReadDoesNotKeepAWeightUp(t *testing.T) {
	w, r := midCanary(t)
	ro := stepped(hostConfig, 2)
	if err := r.SetWeight(context.Background(), ro, 10, nil); err != nil {
		t.Fatal(err)
	}
	ro = stepped(hostConfig, 3)
	ro.Spec.Strategy.Canary.Steps[3].SetMirrorRoute.Match[0].Headers = map[string]v1alpha1.StringMatch{"x": {Exact: "a", Prefix: "b"}}
	w.pods("new", 0, 2) // the controller: RemoveManagedRoutes, SetWeight(0)
	if err := r.RemoveManagedRoutes(context.Background(), ro); err != nil {
		t.Errorf("RemoveManagedRoutes: %v", err)
	}
	if err := r.SetWeight(context.Background(), ro, 0, nil); err != nil {
		t.Errorf("SetWeight: %v", err)
	}
	w.wantRoutes(t, "no pods", "primary 100/0")
}

func TestOfTwoOwnWritesTheLaterIsKept(t *testing.T) {
	var own ownWrites
	own.note("VirtualService", "shop", "cart", "6")
	own.note("VirtualService", "shop", "cart", "5")
	if !own.wrote("VirtualService", "shop", "cart", "6") {
		t.Error("the newest own version is not known as own")
	}
}

func hostScale(t *testing.T) (*world, *Router, *v1alpha1.Rollout) {
	w, r := hostCanary(t, hostVirtualService)
	ro := rollout(hostConfig)
	w.rollouts["shop/cart"] = ro
	if err := setWeight(t, r, ro, 50); err != nil {
		t.Fatal(err)
	}
	return w, r, ro
}
