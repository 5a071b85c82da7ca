package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DefaultPluginName is the name under which the documentation registers the
// plugin. Any other name works too.
const DefaultPluginName = "argoproj-labs/istio"

// Options are what the plugin's process knows and a Rollout does not say. The zero
// value works: one entry under plugins is then taken as ours, and no other
// namespace than the Rollout's may be named.
type Options struct {
	// PluginName is the registered name, from --plugin-name. Empty: found by
	// ExecutablePath, or by being the only one.
	PluginName string
	// ExecutablePath is the path of this binary. The controller installs a plugin
	// as plugin-bin/<registered name>, so the last two path elements tell the
	// name.
	ExecutablePath string
	// CrossNamespace says which other namespaces a Rollout may name, from
	// --allow-cross-namespace.
	CrossNamespace CrossNamespace
	// Prometheus says which servers a Rollout's healthGate may ask, from
	// --prometheus-address and --allow-prometheus-addresses.
	Prometheus PrometheusAddresses
}

// Config is one Rollout's checked configuration. It shares no memory with the
// Rollout.
type Config struct {
	// PluginName is the key under plugins that was read.
	PluginName string
	// VirtualServices has at least one entry, in the order given, no object twice.
	VirtualServices []VirtualService
	// DestinationRules are in the order given, no object twice; none means host-level
	// routing.
	DestinationRules []DestinationRule
	// CanaryService and StableService are the hosts of host-level routing, after
	// ping-pong has been resolved. They are both set when there is no DestinationRule,
	// and may both be empty otherwise.
	CanaryService, StableService string
	// Guard is complete: defaults are filled in.
	Guard Guard
	// Verify is complete, too.
	Verify Verify
	// HealthGate is complete, too, or nil: then nobody has opted in.
	HealthGate *HealthGate
}

// VirtualService names one VirtualService and the routes in it that carry the
// canary. With no list at all the only route of its kind is meant.
type VirtualService struct {
	Namespace, Name string
	// Routes are names of http routes.
	Routes []string
	// TLSRoutes and TCPRoutes have no names in Istio; they are told by what they
	// match.
	TLSRoutes []TLSRoute
	TCPRoutes []TCPRoute
	// AllMatchingRoutes means every route that holds both the canary and the
	// stable destination. The lists are empty then.
	AllMatchingRoutes bool
}

// TLSRoute tells a tls route by port, by its exact set of SNI hosts, or by both.
type TLSRoute struct {
	// Port is 1 to 65535, or 0 when only the SNI hosts count.
	Port int64
	// SNIHosts is empty when only the port counts.
	SNIHosts []string
}

// TCPRoute tells a tcp route by its port, 1 to 65535.
type TCPRoute struct {
	Port int64
}

// DestinationRule names the DestinationRule whose two subsets get the pod-template
// hashes.
type DestinationRule struct {
	Namespace, Name                    string
	CanarySubsetName, StableSubsetName string
	// AdditionalSubsetNames is accepted so that a native block can be moved as it
	// is. Foreign subsets are never touched, listed or not.
	AdditionalSubsetNames []string
}

// FromRollout decodes and checks the plugin's block of the Rollout. It is safe for
// concurrent use and does not change the Rollout.
//
// An error is always an *Error and lists everything that is wrong. Repeating the
// call cannot help: the Rollout, or for a refused namespace the plugin's flags,
// must change first, and until then nothing may be written.
func FromRollout(ro *v1alpha1.Rollout, o Options) (Config, error) {
	if ro == nil {
		problem := field.Required(field.NewPath("spec"), "the call carries no Rollout")
		return Config{}, &Error{Problems: field.ErrorList{problem}}
	}
	c := &checker{}
	cfg := c.rollout(ro, o)
	if len(c.problems) > 0 {
		return Config{}, &Error{Namespace: ro.Namespace, Name: ro.Name, Problems: c.problems, Omitted: c.omitted}
	}
	return cfg, nil
}

// rollout walks the Rollout from top to bottom. What it returns is only meaningful
// when no problem was found.
func (c *checker) rollout(ro *v1alpha1.Rollout, o Options) Config {
	if ro.Namespace == "" {
		// An empty namespace would turn every later request into one across all
		// namespaces.
		c.add(field.Required(field.NewPath("metadata", "namespace"), "a Rollout without a namespace cannot be handled"))
	}
	at := field.NewPath("spec", "strategy", "canary")
	canary := ro.Spec.Strategy.Canary
	if canary == nil {
		c.add(field.Required(at, "only a canary strategy has traffic routing"))
		return Config{}
	}
	routingAt := at.Child("trafficRouting")
	if canary.TrafficRouting == nil {
		c.add(field.Required(routingAt, "add plugins with this plugin's configuration"))
		return Config{}
	}
	if canary.TrafficRouting.Istio != nil {
		c.add(field.Forbidden(routingAt.Child("istio"),
			"the native router and this plugin would both write the same objects: move the block under plugins and remove it here"))
	}
	maxWeight := c.maxWeight(canary.TrafficRouting, routingAt)
	name, raw, ok := c.entry(canary.TrafficRouting.Plugins, o, routingAt.Child("plugins"))
	if !ok {
		return Config{}
	}
	cfg := c.block(raw, entryPath(routingAt.Child("plugins"), name), scope{
		namespace: ro.Namespace,
		cross:     o.CrossNamespace,
		maxWeight: maxWeight,
		deadline:  progressDeadline(ro),

		prometheus: o.Prometheus,
	})
	c.managedApart(canary.TrafficRouting.ManagedRoutes, cfg.VirtualServices, routingAt.Child("managedRoutes"))
	cfg.PluginName = name
	cfg.CanaryService, cfg.StableService = c.services(ro, at, len(cfg.DestinationRules) == 0)
	return cfg
}

// managedApart refuses a name under both managedRoutes and routes: the plugin makes
// and removes the routes of the first, and must not remove one of the second.
func (c *checker) managedApart(managed []v1alpha1.MangedRoutes, services []VirtualService, at *field.Path) {
	for i, route := range managed {
		for _, vs := range services {
			if route.Name != "" && slices.Contains(vs.Routes, route.Name) {
				c.add(field.Invalid(at.Index(i).Child("name"), show(route.Name),
					fmt.Sprintf("is one of the routes of VirtualService %s/%s too, and managed routes are removed: remove it from one of the lists", vs.Namespace, vs.Name)))
			}
		}
	}
}

// scope is what a block's fields are measured against.
type scope struct {
	namespace string
	cross     CrossNamespace
	// maxWeight is at least 1.
	maxWeight int32
	deadline  time.Duration

	prometheus PrometheusAddresses
}

// block reads the plugin's own block. There are no DestinationRules in the answer only
// when the block does not have any, so that a faulty one does not bring complaints
// about missing Services on top.
func (c *checker) block(raw []byte, at *field.Path, s scope) Config {
	root, err := parse(raw)
	if err != nil {
		c.add(field.Invalid(at, show(string(raw)), err.Error()))
		return Config{DestinationRules: []DestinationRule{{}}}
	}
	o, ok := c.object(root, at, blockFields)
	if !ok {
		return Config{DestinationRules: []DestinationRule{{}}}
	}
	return Config{
		VirtualServices:  c.virtualServices(o, s),
		DestinationRules: c.destinationRules(o, s),
		Guard:            c.guard(o, s),
		Verify:           c.verify(o),
		HealthGate:       c.healthGate(o, s),
	}
}

// maxWeight returns maxTrafficWeight, which defaults to 100. The controller
// divides by it unchecked; we do not.
func (c *checker) maxWeight(routing *v1alpha1.RolloutTrafficRouting, at *field.Path) int32 {
	const ordinary = 100
	if routing.MaxTrafficWeight == nil {
		return ordinary
	}
	if given := *routing.MaxTrafficWeight; given > 0 {
		return given
	}
	c.add(field.Invalid(at.Child("maxTrafficWeight"), *routing.MaxTrafficWeight,
		"must be at least 1: remove the field for 100, or write 1000 for tenths of a percent"))
	return ordinary
}
