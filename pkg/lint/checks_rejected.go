package lint

import (
	"slices"
	"strings"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// rejected follows pkg/apis/rollouts/validation of Argo Rollouts, which is too heavy to
// be called here: it brings the API server's own validation along.
func rejected(s *subject, tell tell) {
	if s.malformed != nil {
		return // ARI0006
	}
	spec := s.ro.Spec
	if spec.Replicas != nil && *spec.Replicas < 0 {
		tell(s.o, "spec.replicas", "replicas is %d, below 0", *spec.Replicas)
	}
	if spec.Strategy.BlueGreen != nil {
		tell(s.o, "spec.strategy.blueGreen", "the strategy is both canary and blueGreen")
	}
	s.tellSelector(tell)
	s.tellServices(tell)
	for i, step := range s.canary().Steps {
		kinds := kindsOf(step)
		switch {
		case len(kinds) == 0:
			tell(s.o, stepPath(i, ""), "the step is empty")
		case len(exclusive(kinds)) > 1:
			tell(s.o, stepPath(i, ""), "the step is %s at once: write them as steps of their own", strings.Join(exclusive(kinds), " and "))
		}
		if step.Pause != nil && step.Pause.DurationSeconds() < 0 {
			tell(s.o, stepPath(i, ".pause.duration"), "%q is no duration from 0 up: write seconds, or as in 30s, 5m, 1h", cut(step.Pause.Duration.String()))
		}
	}
}

// tellSelector compares the selector with the labels of the pod template. With a
// workloadRef the controller takes both from there.
func (s *subject) tellSelector(tell tell) {
	if ref := s.ro.Spec.WorkloadRef; ref != nil {
		if _, missing := s.w.find(deploymentKind, s.o.Namespace, ref.Name); missing && ref.Kind == deploymentKind.kind {
			tell(s.o, "spec.workloadRef.name", "Deployment %s/%s does not exist", s.o.Namespace, cut(ref.Name))
		}
		return
	}
	selector := s.ro.Spec.Selector
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		tell(s.o, "spec.selector", "the selector is empty")
		return
	}
	pods, err := metav1.LabelSelectorAsSelector(selector)
	switch {
	case err != nil:
		tell(s.o, "spec.selector", "%s", cut(err.Error()))
	case !pods.Matches(labels.Set(s.ro.Spec.Template.Labels)):
		tell(s.o, "spec.selector", "the selector (%s) does not match the labels of the template (%s)", cut(pods.String()), labelled(s.ro.Spec.Template.Labels))
	}
}

func labelled(pods map[string]string) string {
	if len(pods) == 0 {
		return "none"
	}
	return cut(labels.Set(pods).String())
}

// kindsOf are the kinds of step that one step is.
func kindsOf(step v1alpha1.CanaryStep) []string {
	var kinds []string
	for _, kind := range []struct {
		name string
		is   bool
	}{
		{"setWeight", step.SetWeight != nil}, {"pause", step.Pause != nil}, {"experiment", step.Experiment != nil}, {"analysis", step.Analysis != nil},
		{"setCanaryScale", step.SetCanaryScale != nil}, {"setHeaderRoute", step.SetHeaderRoute != nil}, {"setMirrorRoute", step.SetMirrorRoute != nil}, {"plugin", step.Plugin != nil},
	} {
		if kind.is {
			kinds = append(kinds, kind.name)
		}
	}
	return kinds
}

// exclusive are those of which the controller takes one; it says nothing about others.
func exclusive(kinds []string) []string {
	return slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool {
		return !slices.Contains([]string{"setWeight", "pause", "experiment", "analysis"}, kind)
	})
}
