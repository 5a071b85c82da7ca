package lint

import (
	"errors"
	"fmt"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/managedroute"
)

var configChecks = []*Check{
	{
		Code: "ARI0101", Severity: Error, Title: "The plugin's block cannot be used", judge: invalidBlock,
		Happens: "The plugin answers every call with this error: nothing is routed, and the controller scales nothing.",
		Instead: "Correct what the message names; docs/configuration.md lists all fields.",
		Not:     "The routes, labels and steps of such a Rollout are checked once its block can be read.",
	},
	{
		Code: "ARI0102", Severity: Warning, Title: "A namespace or a Prometheus that the operator does not allow", judge: notAllowed,
		Happens: "The plugin refuses it unless its operator allows that namespace or server: every call ends with this error.",
		Instead: "Name an object in the Rollout's own namespace, or have the plugin started with --allow-cross-namespace; for a healthGate, with --prometheus-address or --allow-prometheus-addresses.",
		Not:     "If the operator allows it, give this command the same flags. A healthGate's server is judged only if one of the two flags for it is given.",
	},
	{
		Code: "ARI0103", Severity: Error, Title: "The native block and the plugin's are both there", judge: bothRouters,
		Happens: "The native router and the plugin both write the same objects; the plugin refuses to.",
		Instead: "Remove trafficRouting.istio once its content stands under plugins; see docs/migration.md.",
	},
	{
		Code: "ARI0104", Severity: Error, Title: "A header or mirror step that cannot become a route", judge: brokenSteps,
		Happens: "The controller rejects the Rollout, or the plugin makes no managed route and verifies no weight from that step on.",
		Instead: "List the step's name under trafficRouting.managedRoutes, and give each match one of exact, prefix and regex.",
		Not:     "A step without a match removes the route and needs no entry.",
	},
}

func invalidBlock(s *subject, tell tell) {
	for _, problem := range s.problems {
		tell(s.o, problem.Field, "%s", problem.ErrorBody())
	}
	if s.omitted > 0 {
		tell(s.o, s.block, "there are %d more problems", s.omitted)
	}
}

func notAllowed(s *subject, tell tell) {
	for _, problem := range s.foreign {
		tell(s.o, problem.Field, "%s", problem.ErrorBody())
	}
}

func bothRouters(s *subject, tell tell) {
	if s.both {
		tell(s.o, routingPath+".istio", "trafficRouting has istio and plugins[%q]", s.w.options.PluginName)
	}
}

func brokenSteps(s *subject, tell tell) {
	single := s.singleSteps()
	for i, step := range s.canary().Steps {
		var problem *field.Error
		if errors.As(single(i), &problem) {
			tell(s.o, problem.Field, "%s", problem.ErrorBody())
		}
		if step.SetHeaderRoute == nil {
			continue
		}
		for j, match := range step.SetHeaderRoute.Match {
			if match.HeaderValue == nil || *match.HeaderValue == (v1alpha1.StringMatch{}) {
				tell(s.o, stepPath(i, fmt.Sprintf(".setHeaderRoute.match[%d].headerValue", j)), "set one of exact, prefix and regex: the controller refuses a match without")
			}
		}
	}
}

// singleSteps gives for the i-th step why it cannot be turned into a route, whatever is
// wrong with those before it. Steps can be thousands, so the Rollout is copied once.
func (s *subject) singleSteps() func(i int) error {
	ro, canary := s.atStep(0), *s.canary()
	canary.Steps = make([]v1alpha1.CanaryStep, len(canary.Steps))
	ro.Spec.Strategy.Canary = &canary
	return func(i int) error {
		index := int32(i)
		ro.Status.CurrentStepIndex = &index
		canary.Steps[i] = s.canary().Steps[i]
		defer func() { canary.Steps[i] = v1alpha1.CanaryStep{} }()
		_, err := managedroute.FromRollout(ro)
		return err
	}
}
