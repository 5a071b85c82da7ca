package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// compare is an experiment of 15 s with two templates that get 15 each. Their pods
// carry a label by which they can be held back. Their Services have names of their
// own: where the controller makes up the name it may lose it from the Experiment's
// status, when it writes that from an old copy, and never finds it again.
func compare() v1alpha1.CanaryStep {
	share := int32(15)
	template := func(name string, spec v1alpha1.ReplicaSetSpecRef) v1alpha1.RolloutExperimentTemplate {
		return v1alpha1.RolloutExperimentTemplate{
			Name: name, SpecRef: spec, Weight: &share, Service: &v1alpha1.TemplateService{Name: "service-of-" + name},
			Metadata: v1alpha1.PodTemplateMetadata{Labels: map[string]string{"part": "experiment"}},
		}
	}
	return v1alpha1.CanaryStep{Experiment: &v1alpha1.RolloutExperimentStep{Duration: "15s", Templates: []v1alpha1.RolloutExperimentTemplate{
		template("baseline", v1alpha1.StableSpecRef), template("candidate", v1alpha1.CanarySpecRef),
	}}}
}

// experimentPods limits how many pods of each template become ready.
func experimentPods(limit int) act {
	return func(_ context.Context, s *Scene) error { return s.Gate.Limit("part=experiment", limit) }
}

func TestAnExperimentHasItsShareWhileItsPodsAreReady(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		var web, rule snapshot
		w := canary(level, SetWeight(10), stop(), compare(), stop())
		w.Edit = withPort
		objects := append(around(level), w.virtualService())
		acts := []act{
			deployed, experimentPods(0), deploy("upgrade", 2), pausedAt(1), weighed(10), web.take(virtualServices, name),
			goOn, experimentStarted, mark("held back"), wait(3 * time.Second), mark("released"), experimentPods(-1),
			becomes(virtualServices, name, weighs("primary", 60, 10, 15, 15)),
			experimentFails(true), becomes(virtualServices, name, weighs("primary", 90, 10)),
			experimentFails(false), becomes(virtualServices, name, weighs("primary", 60, 10, 15, 15)),
			pausedAt(3), becomes(virtualServices, name, web.same),
		}
		if level == Subset {
			acts = slices.Insert(acts, 6, rule.take(destinationRules, name))
			acts = append(acts, becomes(destinationRules, name, rule.same))
		}
		recorded := playRouted(t, controller(t, lab.DefaultVersion), routed{Workload: w, objects: objects},
			append(acts, goOn, promotedAfter("upgrade"))...)
		hold(t, recorded, limits("upgrade", "Healthy", patience))
		endsPromoted(t, recorded)
		for _, s := range between(t, recorded, "held back", "released") {
			if s.StableWeight != 90 || s.CanaryWeight != 10 {
				t.Errorf("at %s stable/canary were %d/%d before a pod of the experiment was ready", s.At, s.StableWeight, s.CanaryWeight)
			}
		}
		destinationsKeepTheirOrder(t, recorded)
		verifiedWithShares(t, recorded)
	})
}

// experimentFails makes the experiment's pods fail their readiness probe, or pass
// it again. The controller goes on to ask for their share.
func experimentFails(unready bool) act {
	return func(ctx context.Context, s *Scene) error {
		_, err := s.lab.SetUnready(ctx, s.Namespace, "part=experiment", unready)
		return err
	}
}

// withPort gives the pods a port: for a template without one the controller makes
// no Service, and so there is nowhere to send its share.
func withPort(ro *v1alpha1.Rollout) {
	ro.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
}

func TestAnExperimentWithoutServicesGetsNothingAndStopsNothing(t *testing.T) {
	t.Parallel()
	w := canary(Host, SetWeight(10), compare(), stop())
	recorded := playRouted(t, controller(t, lab.DefaultVersion), routed{Workload: w, objects: append(around(Host), w.virtualService())},
		deployed, deploy("upgrade", 2), pausedAt(2), goOn, promotedAfter("upgrade"))
	hold(t, recorded, limits("upgrade", "Healthy", time.Minute))
	endsPromoted(t, recorded)
	if !says(recorded, "TrafficWeightUpdated", "additional: [{15  } {15  }]") {
		t.Error("the controller never asked for a share without a Service, so nothing was tried")
	}
	for _, e := range versions(recorded, timeline.KindVirtualService, name) {
		if list := destinationsOf(e.Object); len(list) != 2 {
			t.Errorf("at %s the destinations are %v", e.At, list)
		}
	}
}

func TestAnExperimentLosesItsShareWithItsPodsWhileTheControllerStandsStill(t *testing.T) {
	t.Parallel()
	c := ownController(t, lab.ControllerOptions{InstanceID: "experiment"})
	w := canary(Subset, SetWeight(10), compare(), stop())
	w.Edit = withPort
	signal := func(signal syscall.Signal) act {
		return func(context.Context, *Scene) error { return c.Signal(signal) }
	}
	t.Cleanup(func() { _ = c.Signal(syscall.SIGCONT) })
	playRouted(t, c, routed{Workload: w, objects: append(around(Subset), w.virtualService())},
		deployed, deploy("upgrade", 2), becomes(virtualServices, name, weighs("primary", 60, 10, 15, 15)),
		signal(syscall.SIGSTOP), experimentFails(true), becomes(virtualServices, name, weighs("primary", 90, 10)),
		signal(syscall.SIGCONT), experimentFails(false), pausedAt(2))
}

// experimentStarted waits for the templates' pods to exist.
func experimentStarted(ctx context.Context, s *Scene) error {
	return lab.Until(ctx, "the experiment's pods", func(ctx context.Context) (bool, error) {
		pods, err := s.pods(ctx, "part=experiment")
		return pods == 2, err
	})
}

// destinationsKeepTheirOrder: in all versions the destinations of the route stand
// as in the longest list that was written.
func destinationsKeepTheirOrder(t *testing.T, recorded timeline.Timeline) {
	t.Helper()
	var longest []string
	var all [][]string
	for _, e := range versions(recorded, timeline.KindVirtualService, name) {
		list := destinationsOf(e.Object)
		all = append(all, list)
		if len(list) > len(longest) {
			longest = list
		}
	}
	if len(longest) != 4 {
		t.Errorf("the longest list of destinations is %v, want stable, canary and two of the experiment", longest)
	}
	for _, list := range all {
		ordered := slices.DeleteFunc(slices.Clone(longest), func(d string) bool { return !slices.Contains(list, d) })
		if diff := cmp.Diff(ordered, list); diff != "" {
			t.Errorf("order of the destinations:\n%s", diff)
		}
	}
}

func destinationsOf(vs *unstructured.Unstructured) []string {
	var list []string
	for _, d := range listOf(routeOf(vs, "primary"), "route") {
		destination, _ := d["destination"].(block)
		list = append(list, strings.TrimSuffix(fmt.Sprintf("%v %v", destination["host"], destination["subset"]), " <nil>"))
	}
	return list
}

// verifiedWithShares: the status said that the weights were in place while the
// experiment had its share.
func verifiedWithShares(t *testing.T, recorded timeline.Timeline) {
	t.Helper()
	for _, s := range recorded.States() {
		if s.StableWeight == 60 && s.CanaryWeight == 10 && s.Rollout.StepIndex == 2 && s.Rollout.Verified != nil && *s.Rollout.Verified {
			return
		}
	}
	t.Error("while the experiment had its share no status said verified")
}
