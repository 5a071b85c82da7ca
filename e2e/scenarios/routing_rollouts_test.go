package scenarios

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// other is the name of a second Rollout beside the scene's own.
const other = "till"

// besides is the Rollout of a workload under the second name, with pods of its own.
func besides(r routed, controller map[string]string) *v1alpha1.Rollout {
	ro := r.rollout(controller)
	ro.Name = other
	ro.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": other}}
	ro.Spec.Template.Labels = maps.Clone(ro.Spec.Template.Labels)
	ro.Spec.Template.Labels["app"] = other
	return ro
}

// addOther applies the second Rollout.
func addOther(r routed) act {
	return func(ctx context.Context, s *Scene) error {
		manifest, err := documents(besides(r, s.labels))
		if err != nil {
			return err
		}
		_, err = s.lab.Apply(ctx, s.Namespace, manifest)
		return err
	}
}

// otherIsHealthy waits until the second Rollout has done all that it was asked.
func otherIsHealthy(ctx context.Context, s *Scene) error {
	return becomes(rolloutsResource, other, func(ro *unstructured.Unstructured) string {
		status, _ := ro.Object["status"].(block)
		switch {
		case fmt.Sprint(status["observedGeneration"]) != fmt.Sprint(ro.GetGeneration()):
			return "its status speaks of an earlier spec"
		case status["phase"] != "Healthy" || status["stableRS"] != status["currentPodHash"]:
			return fmt.Sprintf("it is %v: %v", status["phase"], status["message"])
		}
		return ""
	})(ctx, s)
}

// deployOther brings a version of the second Rollout out, and waits until it is.
func deployOther(ctx context.Context, s *Scene, version int) error {
	body := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"till:%d"}]`, version)
	if _, err := s.rollouts.Patch(ctx, other, types.JSONPatchType, body, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch Rollout %s/%s: %w", s.Namespace, other, err)
	}
	return otherIsHealthy(ctx, s)
}

// sharing is a Rollout with its own route and its own two subsets.
func sharing(route, stable, canary string) routed {
	w := Workload{Level: Subset, Router: Plugin, Replicas: 4, Steps: []v1alpha1.CanaryStep{SetWeight(50), Pause(1)}}
	w.Edit = func(ro *v1alpha1.Rollout) {
		ro.Spec.Template.Labels = map[string]string{"app": name, "tier": "shop"}
		ro.Spec.RollbackWindow = nil
	}
	return routed{Workload: w, config: block{
		"virtualService":  block{"name": name, "routes": []any{route}},
		"destinationRule": block{"name": name, "stableSubsetName": stable, "canarySubsetName": canary},
	}}
}

// sharedObjects are one VirtualService and one DestinationRule for two Rollouts.
func sharedObjects() []any {
	route := func(route, stable, canary string) block {
		return block{"name": route, "match": []any{block{"uri": block{"prefix": "/" + route}}}, "route": []any{
			block{"destination": block{"host": name, "subset": stable}, "weight": 100},
			block{"destination": block{"host": name, "subset": canary}, "weight": 0},
		}}
	}
	var subsets []any
	for _, subset := range []string{"stable", "canary", "till-stable", "till-canary"} {
		subsets = append(subsets, block{"name": subset, "labels": block{"tier": "shop"}})
	}
	rule := block{
		"apiVersion": "networking.istio.io/v1", "kind": "DestinationRule", "metadata": block{"name": name},
		"spec": block{"host": name, "subsets": subsets},
	}
	both := service(name)
	both.Spec.Selector = map[string]string{"tier": "shop"}
	web := virtualServiceOf(name, block{"hosts": []any{name}, "http": []any{
		route("primary", "stable", "canary"), route(other, "till-stable", "till-canary"),
	}})
	return []any{both, rule, web}
}

// upgradesOfEach is how often each of two Rollouts is brought out.
const upgradesOfEach = 3

func TestTwoRolloutsOnOneVirtualServiceLoseNothingOfEachOther(t *testing.T) {
	t.Parallel()
	mine, theirs := sharing("primary", "stable", "canary"), sharing(other, "till-stable", "till-canary")
	mine.objects = sharedObjects()
	var rule snapshot
	recorded := playRouted(t, controller(t, lab.DefaultVersion), mine,
		addOther(theirs), deployed, otherIsHealthy, rule.take(destinationRules, name),
		mark("both"), bothAtOnce,
		becomes(virtualServices, name, weighs("primary", 100, 0)), becomes(virtualServices, name, weighs(other, 100, 0)),
		becomes(destinationRules, name, sameButHashes(&rule)))
	hold(t, recorded, limits("", "", 0))
	cut, err := recorded.Since("both")
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range []string{"primary", other} {
		// A lost update would set a weight back that was written already.
		if got, want := risesOf(cut, route), upgradesOfEach; got != want {
			t.Errorf("the canary weight of route %s rose from 0 %d times, want %d", route, got, want)
		}
		if n := setbacksOf(cut, route); n > 0 {
			t.Errorf("the canary weight of route %s fell %d times to something else than 0", route, n)
		}
	}
}

// bothAtOnce brings out versions of both Rollouts, each at its own pace.
func bothAtOnce(ctx context.Context, s *Scene) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for i := range upgradesOfEach {
			upgrade := fmt.Sprintf("upgrade %d", i)
			if err := perform(ctx, s, deploy(upgrade, 2+i), promotedAfter(upgrade)); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error {
		for i := range upgradesOfEach {
			if err := deployOther(ctx, s, 2+i); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// canaryWeightsOf are the weights of a route's second destination, without repetitions.
func canaryWeightsOf(recorded timeline.Timeline, route string) []int64 {
	var weights []int64
	for _, e := range versions(recorded, timeline.KindVirtualService, name) {
		weights = append(weights, weightsOf(routeOf(e.Object, route))[1])
	}
	return slices.Compact(weights)
}

func risesOf(recorded timeline.Timeline, route string) int {
	rises := 0
	weights := canaryWeightsOf(recorded, route)
	for i := 1; i < len(weights); i++ {
		if weights[i-1] == 0 {
			rises++
		}
	}
	return rises
}

func setbacksOf(recorded timeline.Timeline, route string) int {
	setbacks := 0
	weights := canaryWeightsOf(recorded, route)
	for i := 1; i < len(weights); i++ {
		if weights[i] < weights[i-1] && weights[i] != 0 {
			setbacks++
		}
	}
	return setbacks
}

// sameButHashes says how a DestinationRule differs from the kept one in anything
// but hash labels, and which subset has none.
func sameButHashes(k *snapshot) func(*unstructured.Unstructured) string {
	return func(now *unstructured.Unstructured) string {
		for _, subset := range listOf(now.Object["spec"], "subsets") {
			if labels, _ := subset["labels"].(block); labels[v1alpha1.DefaultRolloutUniqueLabelKey] == nil {
				return fmt.Sprintf("subset %v has no hash", subset["name"])
			}
		}
		return cmp.Diff(withoutOurs(k.object), withoutOurs(now))
	}
}

func TestOfTwoRolloutsOnOneRouteTheYoungerIsRefused(t *testing.T) {
	t.Parallel()
	mine := sharing("primary", "stable", "canary")
	mine.objects = sharedObjects()
	recorded := playRouted(t, controller(t, lab.DefaultVersion), mine,
		deployed, wait(time.Second), // so that the younger is younger by a second
		addOther(mine), otherIsRefused,
		deploy("upgrade", 2), promotedAfter("upgrade"), otherIsRefused)
	hold(t, recorded, limits("upgrade", "Healthy", time.Minute))
	endsPromoted(t, recorded)
	upgrade, err := recorded.Since("upgrade")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := weightsSeen(upgrade), []int32{50, 100, 0}; !timeline.FollowSteps(got, want) {
		t.Errorf("canary weights were %v, want %v", got, want)
	}
	if n := told(recorded, "ConfigurationInvalid"); n > 0 {
		t.Errorf("%d Events ConfigurationInvalid on the older Rollout", n)
	}
}

// otherIsRefused waits for the Event on the second Rollout that names the first,
// the route, and the subset.
func otherIsRefused(ctx context.Context, s *Scene) error {
	first := " is handled by Rollout " + s.Namespace + "/" + name
	return perform(ctx, s,
		refused(s.Namespace, other, `route http "primary"`+first), refused(s.Namespace, other, `subset "canary"`+first))
}

// refused waits for an Event ConfigurationInvalid on a Rollout that holds a text.
func refused(namespace, rollout, text string) act {
	return func(ctx context.Context, s *Scene) error {
		var got []string
		err := lab.Until(ctx, "an Event ConfigurationInvalid that says "+text, func(ctx context.Context) (bool, error) {
			events, err := s.lab.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
				FieldSelector: "involvedObject.kind=Rollout,involvedObject.name=" + rollout,
			})
			if err != nil {
				return false, err
			}
			got = nil
			for _, event := range events.Items {
				if event.Reason == "ConfigurationInvalid" {
					got = append(got, event.Message)
				}
			}
			return slices.ContainsFunc(got, func(message string) bool { return strings.Contains(message, text) }), nil
		})
		if err != nil {
			return fmt.Errorf("%w; it was told %q", err, got)
		}
		return nil
	}
}
