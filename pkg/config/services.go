package config

import (
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// services returns the Services of the canary and of the stable side. For
// host-level routing both have to be there: the controller checks that for its
// native routers, but not for plugins.
func (c *checker) services(ro *v1alpha1.Rollout, at *field.Path, hostLevel bool) (canary, stable string) {
	spec := ro.Spec.Strategy.Canary
	if spec.PingPong != nil && spec.CanaryService == "" && spec.StableService == "" {
		return c.pingPong(ro, at.Child("pingPong"))
	}
	canary, stable = spec.CanaryService, spec.StableService
	canaryOK := c.service(canary, at.Child("canaryService"), "canary", hostLevel)
	stableOK := c.service(stable, at.Child("stableService"), "stable", hostLevel)
	if hostLevel && canaryOK && stableOK && canary == stable {
		c.add(repeated(at.Child("stableService"), stable,
			"is canaryService too: host-level routing needs a Service each; for one host with two subsets add destinationRule"))
	}
	return canary, stable
}

// pingPong resolves the two roles as the controller does: ping is stable only
// where the status says so, which at the very first is nowhere.
func (c *checker) pingPong(ro *v1alpha1.Rollout, at *field.Path) (canary, stable string) {
	spec := ro.Spec.Strategy.Canary.PingPong
	pingOK := c.service(spec.PingService, at.Child("pingService"), "ping", true)
	pongOK := c.service(spec.PongService, at.Child("pongService"), "pong", true)
	if pingOK && pongOK && spec.PingService == spec.PongService {
		c.add(repeated(at.Child("pongService"), spec.PongService, "is pingService too: give each a Service"))
	}
	if ro.Status.Canary.StablePingPong == v1alpha1.PPPing {
		return spec.PongService, spec.PingService
	}
	return spec.PingService, spec.PongService
}

// service tells whether the name can be used for comparisons.
func (c *checker) service(name string, at *field.Path, role string, required bool) bool {
	if name != "" {
		return c.isLabel(name, at, "a Service")
	}
	if required {
		c.add(field.Required(at, "name the Service of the "+role+" pods, as the routing is host-level; for subset-level routing add destinationRule"))
	}
	return false
}
