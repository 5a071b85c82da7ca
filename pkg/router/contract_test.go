package router

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
)

// mislabelled is a canary v2 with all its pods, whose subset asks for a label.
func mislabelled(t *testing.T, subsetLabel string) (*world, *Router) {
	w := newWorld(t, subsetVirtualService, strings.Replace(subsetDestinationRule,
		"{name: canary, labels: {app: cart}}", "{name: canary, labels: {app: cart, "+subsetLabel+"}}", 1))
	w.pass(time.Minute) // the objects are not new
	w.pods("v1", 20, 20)
	w.sets["v2"] = cluster.ReplicaSet{
		Name: "cart-v2", Available: 20, Size: 20,
		Labels: map[string]string{"app": "cart", "version": "v2", hashLabel: "v2"},
	}
	return w, w.router()
}

func TestACanaryThatItsSubsetCannotReachNeverGetsWeight(t *testing.T) {
	for name, c := range map[string]struct{ label, weights, event string }{
		"another value":        {"version: v1", "100/0", "its subset asks for version=v1, but the pods of ReplicaSet cart-v2 carry version=v2: write that, or remove the label"},
		"no such label":        {"track: canary", "100/0", "its subset asks for track=canary, but the pods of ReplicaSet cart-v2 have no label track (they have app, rollouts-pod-template-hash, version)"},
		"the right value":      {"version: v2", "70/30", ""},
		"a label of the mesh":  {"topology.istio.io/cluster: c1", "70/30", ""},
		"a label of the chart": {"app.kubernetes.io/name: cart", "100/0", "its subset asks for app.kubernetes.io/name=cart, but the pods of ReplicaSet cart-v2 have no label app.kubernetes.io/name"},
		"a foreign hash":       {"rollouts-pod-template-hash: old", "70/30", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := mislabelled(t, c.label)
			ro := rollout(subsetConfig)
			ro.Status.StableRS, ro.Status.CurrentPodHash = "v1", "v2"
			for range 3 {
				mustUpdate(t, r, ro, "v2", "v1")
				if err := setWeight(t, r, ro, 30); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.weights(); got != c.weights {
				t.Errorf("weights %s, want %s", got, c.weights)
			}
			var told []string
			for _, event := range w.eventsSince() {
				if strings.Contains(event, EventSubsetMatchesNoPods) {
					told = append(told, event)
				}
			}
			if (len(told) == 1) != (c.event != "") || c.event != "" && !strings.Contains(told[0], c.event) {
				t.Errorf("told %q, want one with %q", told, c.event)
			}
			if verified, _ := r.VerifyWeight(context.Background(), ro, 30, nil); verified != (c.event == "") {
				t.Errorf("verified %v", verified)
			}
		})
	}
}

func TestAServiceThatDoesNotSelectTheCanaryKeepsItWithoutWeight(t *testing.T) {
	w := hostWorld(t)
	set := w.sets["new"]
	set.Available, set.Labels = 20, map[string]string{"app": "basket", hashLabel: "new"}
	w.sets["new"] = set
	r := w.router()
	if err := setWeight(t, r, rollout(hostConfig), 50); err != nil {
		t.Fatal(err)
	}
	if got := w.weights(); got != "100/0" {
		t.Errorf("weights %s", got)
	}
	if events := strings.Join(w.eventsSince(), "\n"); !strings.Contains(events,
		"the selector of Service shop/cart-canary asks for app=cart, but the pods of ReplicaSet cart-new carry app=basket") {
		t.Errorf("events %s", events)
	}
}

func TestAServiceAndASubsetThatWantDifferentValuesOfOneLabelReachNobody(t *testing.T) {
	w := newWorld(t, subsetVirtualService, strings.ReplaceAll(subsetDestinationRule, "labels: {app: cart}", "labels: {app: basket}"))
	w.services["shop/cart"] = ""
	w.pods("v1", 20, 20)
	w.sets["v2"] = cluster.ReplicaSet{Name: "cart-v2", Available: 20, Size: 20, Labels: map[string]string{"app": "basket", hashLabel: "v2"}}
	w.pass(time.Minute)
	r, ro := w.router(), rollout(subsetConfig)
	ro.Status.StableRS, ro.Status.CurrentPodHash = "v1", "v2"
	mustUpdate(t, r, ro, "v2", "v1")
	mustSet(t, r, ro, 50)
	w.wantWeights(t, "the subset's value is the pods', the Service's is not", "100/0")
	if events := strings.Join(w.eventsSince(), "\n"); !strings.Contains(events,
		"the selector of Service shop/cart asks for app=cart, but the pods of ReplicaSet cart-v2 carry app=basket") {
		t.Errorf("events %s", events)
	}
}

func TestACanaryThatTheStablesSubsetCannotReachIsNotPromotedIntoNothing(t *testing.T) {
	w := newWorld(t, subsetVirtualService, strings.Replace(subsetDestinationRule,
		"{name: stable, labels: {app: cart}}", "{name: stable, labels: {app: cart, version: v1}}", 1))
	w.sets["v1"] = cluster.ReplicaSet{Name: "cart-v1", Available: 20, Size: 20, Labels: map[string]string{"app": "cart", "version": "v1", hashLabel: "v1"}}
	w.sets["v2"] = cluster.ReplicaSet{Name: "cart-v2", Available: 20, Size: 20, Labels: map[string]string{"app": "cart", "version": "v2", hashLabel: "v2"}}
	w.pass(time.Minute)
	r, ro := w.router(), rollout(subsetConfig)
	ro.Status.StableRS, ro.Status.CurrentPodHash = "v1", "v2"
	mustUpdate(t, r, ro, "v2", "v1")
	if err := setWeight(t, r, ro, 100); err != nil {
		t.Fatal(err)
	}
	if got := w.weights(); got != "100/0" {
		t.Errorf("weights %s", got)
	}
	if events := strings.Join(w.eventsSince(), "\n"); !strings.Contains(events, "ReplicaSet cart-v2 would get none once promoted") {
		t.Errorf("events %s", events)
	}
}

func TestAnUnreachableStableDoesNotStopTheReconcile(t *testing.T) {
	w := newWorld(t, subsetVirtualService, strings.Replace(subsetDestinationRule,
		"{name: stable, labels: {app: cart}}", "{name: stable, labels: {app: cart, track: stable}}", 1))
	w.pods("v1", 20, 20)
	w.pass(time.Minute)
	r, ro := w.router(), rollout(subsetConfig)
	ro.Status.StableRS, ro.Status.CurrentPodHash = "v1", "v1"
	mustUpdate(t, r, ro, "v1", "v1")
	if events := strings.Join(w.eventsSince(), "\n"); !strings.Contains(events, "SubsetMatchesNoPods") {
		t.Errorf("events %s", events)
	}
}

func TestLabelsThatTheControllerChangesAtAPromotionAreNotJudged(t *testing.T) {
	w := newWorld(t, subsetVirtualService, strings.NewReplacer(
		"{name: stable, labels: {app: cart}}", "{name: stable, labels: {app: cart, role: stable}}",
		"{name: canary, labels: {app: cart}}", "{name: canary, labels: {app: cart, role: canary}}").Replace(subsetDestinationRule))
	w.pods("v1", 20, 20)
	w.pods("v2", 20, 20)
	r, ro := w.router(), rollout(subsetConfig)
	ro.Spec.Strategy.Canary.CanaryMetadata = &v1alpha1.PodTemplateMetadata{Labels: map[string]string{"role": "canary"}}
	ro.Spec.Strategy.Canary.StableMetadata = &v1alpha1.PodTemplateMetadata{Labels: map[string]string{"role": "stable"}}
	ro.Status.StableRS, ro.Status.CurrentPodHash = "v1", "v2"
	mustUpdate(t, r, ro, "v2", "v1")
	if err := setWeight(t, r, ro, 50); err != nil {
		t.Fatal(err)
	}
	if got := w.weights(); got != "50/50" {
		t.Errorf("weights %s", got)
	}
	if events := strings.Join(w.eventsSince(), "\n"); strings.Contains(events, "SubsetMatchesNoPods") {
		t.Errorf("events %s", events)
	}
}

func TestPodsAreCountedByTheirOwnLabels(t *testing.T) {
	group := func(count int32, labels map[string]string) cluster.PodGroup {
		return cluster.PodGroup{Count: count, Labels: labels}
	}
	right := map[string]string{"app": "cart", "version": "v2", hashLabel: "v2"}
	wrong := map[string]string{"app": "cart", "version": "debug", hashLabel: "v2"}
	for sentence, tc := range map[string]struct {
		available int32
		groups    []cluster.PodGroup
		want      string
	}{
		"all as they were made":                         {20, []cluster.PodGroup{group(20, right)}, "0/100"},
		"no pod has been brought yet":                   {20, nil, "0/100"},
		"five were given another label":                 {20, []cluster.PodGroup{group(15, right), group(5, wrong)}, "25/75"},
		"all were":                                      {20, []cluster.PodGroup{group(20, wrong)}, "100/0"},
		"five were, and five are not available":         {15, []cluster.PodGroup{group(15, right), group(5, wrong)}, "50/50"},
		"five were, and only five of all are available": {5, []cluster.PodGroup{group(15, right), group(5, wrong)}, "100/0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, r := mislabelled(t, "version: v2")
			set := w.sets["v2"]
			set.Available = tc.available
			w.sets["v2"], w.podLabels["v2"] = set, tc.groups
			ro := rollout(subsetConfig)
			ro.Status.StableRS, ro.Status.CurrentPodHash = "v1", "v2"
			mustUpdate(t, r, ro, "v2", "v1")
			if err := setWeight(t, r, ro, 100); err != nil {
				t.Fatal(err)
			}
			if got := w.weights(); got != tc.want {
				t.Errorf("weights %s, want %s", got, tc.want)
			}
			told := strings.Contains(strings.Join(w.eventsSince(), "\n"), "version=debug")
			if told != (len(tc.groups) > 0 && tc.groups[len(tc.groups)-1].Labels["version"] == "debug") {
				t.Errorf("told of the label: %v", told)
			}
		})
	}
}
