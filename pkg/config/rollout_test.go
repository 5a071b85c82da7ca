package config

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"sigs.k8s.io/yaml"
)

// aRollout is a Rollout shop/web with both Services, whose plugin block is given as YAML, then changed as the case needs.
func aRollout(t testing.TB, block string, changes ...func(*v1alpha1.Rollout)) *v1alpha1.Rollout {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(block))
	if err != nil {
		t.Fatalf("the case's YAML: %v", err)
	}
	return withBlock(raw, changes...)
}

// withBlock is aRollout for a block that YAML cannot say.
func withBlock(raw []byte, changes ...func(*v1alpha1.Rollout)) *v1alpha1.Rollout {
	ro := &v1alpha1.Rollout{}
	ro.Namespace, ro.Name = "shop", "web"
	ro.Spec.Strategy.Canary = &v1alpha1.CanaryStrategy{
		CanaryService: "web-canary",
		StableService: "web-stable",
		TrafficRouting: &v1alpha1.RolloutTrafficRouting{
			Plugins: map[string]json.RawMessage{DefaultPluginName: raw},
		},
	}
	for _, change := range changes {
		change(ro)
	}
	return ro
}

func services(canary, stable string) func(*v1alpha1.Rollout) {
	return func(ro *v1alpha1.Rollout) {
		ro.Spec.Strategy.Canary.CanaryService, ro.Spec.Strategy.Canary.StableService = canary, stable
	}
}

func pingPong(ping, pong string, stable v1alpha1.PingPongType) func(*v1alpha1.Rollout) {
	return func(ro *v1alpha1.Rollout) {
		ro.Spec.Strategy.Canary.PingPong = &v1alpha1.PingPongSpec{PingService: ping, PongService: pong}
		ro.Status.Canary.StablePingPong = stable
	}
}

func maxTrafficWeight(weight int32) func(*v1alpha1.Rollout) {
	return func(ro *v1alpha1.Rollout) { ro.Spec.Strategy.Canary.TrafficRouting.MaxTrafficWeight = &weight }
}

func progressDeadlineSeconds(seconds int32) func(*v1alpha1.Rollout) {
	return func(ro *v1alpha1.Rollout) { ro.Spec.ProgressDeadlineSeconds = &seconds }
}

// problems returns each problem of the error as text, the block's own path shortened to "…".
func problems(t testing.TB, err error) []string {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("want an *Error, got %T: %v", err, err)
	}
	var all []string
	for _, p := range e.Problems {
		all = append(all, shorten(p.Error()))
	}
	return all
}
