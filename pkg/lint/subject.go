package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubejson "sigs.k8s.io/json"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/managedroute"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// The places in a Rollout that most findings are about.
const (
	canaryPath  = "spec.strategy.canary"
	routingPath = canaryPath + ".trafficRouting"
	stepsPath   = canaryPath + ".steps"
)

// subject is one Rollout and what its routing is made of.
type subject struct {
	w  *world
	o  *object
	ro *v1alpha1.Rollout
	// unknown are fields that the Rollout's type does not have, malformed is why it
	// cannot be read; ro is empty but for its name then.
	unknown   []string
	malformed error
	// native: it has the native router's block and not ours; both: it has both.
	native, both bool
	// block is the path of the plugin's entry.
	block string
	// cfg is the entry as the plugin reads it, with every namespace allowed; problems
	// are why it cannot, foreign what only the operator can allow.
	cfg               config.Config
	problems, foreign field.ErrorList
	// omitted counts problems beyond those that one report of config holds.
	omitted int

	services []*routed
	rules    []ruled
	// split is known if all DestinationRules are.
	split   virtualservice.Split
	managed []string
}

// routed is a VirtualService that the Rollout names.
type routed struct {
	want config.VirtualService
	at   string // the path of the entry that names it
	o    *object
	vs   *virtualservice.VirtualService
	all  *routes
	// outcomes say of each entry of a list, or of the choice without one, what it
	// selects; routes are all that were selected, and handled the same by place.
	outcomes []outcome
	routes   []virtualservice.Route
	handled  map[place]bool
	// unshared is why no weight can be written into each of the routes; see patchErrors.
	unshared []error
}

// ruled is a DestinationRule that the Rollout names.
type ruled struct {
	want config.DestinationRule
	at   string
	o    *object
	dr   *destinationrule.DestinationRule
}

// subjectOf is nil for a Rollout that Istio does not route.
func (w *world) subjectOf(o *object) *subject {
	s := &subject{w: w, o: o, ro: &v1alpha1.Rollout{}}
	routing := o.at("spec", "strategy", "canary", "trafficRouting")
	entry, ours := at(routing, "plugins", w.options.PluginName), false
	if plugins, ok := at(routing, "plugins").(map[string]any); ok {
		_, ours = plugins[w.options.PluginName]
		if !ours && len(plugins) > 0 {
			w.note("%s names other plugins than %q: it was not checked (--plugin-name)", o, cut(w.options.PluginName))
		}
	}
	if isPatch(o) {
		w.note("%s (%s) has no spec.strategy: it was taken for a patch and not checked; render it first", o, o.place())
	}
	native := at(routing, "istio") != nil
	if !ours && !native {
		if s.decode(); s.malformed != nil || len(s.unknown) > 0 {
			w.strays = append(w.strays, s)
		}
		return nil
	}
	s.native, s.both = native && !ours, native && ours
	s.block = fmt.Sprintf("%s.plugins[%q]", routingPath, w.options.PluginName)
	if s.decode(); s.malformed != nil || s.native {
		return s
	}
	s.configure()
	if len(s.problems) == 0 {
		s.look(entry)
	}
	return s
}

// decode reads the Rollout as the controller's own type, and notes what it does not
// have.
func (s *subject) decode() {
	raw, err := json.Marshal(s.o.content)
	if err != nil {
		s.malformed = err
		return
	}
	ro := &v1alpha1.Rollout{}
	strict, err := kubejson.UnmarshalStrict(raw, ro)
	if err != nil {
		s.malformed = err
		return
	}
	for _, problem := range strict {
		s.unknown = append(s.unknown, problem.Error())
	}
	s.ro = ro
}

// anyPrometheus stands for the operator's flags where they are not known.
var anyPrometheus = config.PrometheusAddresses{Default: "http://prometheus.example:9090", Any: true}

// configure reads the block twice: as if every namespace and server were allowed, which
// tells what the routing is, and with those that are.
func (s *subject) configure() {
	ro := s.ro.DeepCopy()
	ro.Spec.Strategy.Canary.TrafficRouting.Istio = nil // that both are there is a finding of its own
	everywhere, _ := config.ParseCrossNamespace("*")
	options := config.Options{PluginName: s.w.options.PluginName, CrossNamespace: everywhere, Prometheus: anyPrometheus}
	cfg, err := config.FromRollout(ro, options)
	s.problems, s.omitted = problemsOf(err)
	options.CrossNamespace = s.w.options.CrossNamespace
	if s.w.options.Prometheus != nil {
		options.Prometheus = *s.w.options.Prometheus
	}
	_, err = config.FromRollout(ro, options)
	now, _ := problemsOf(err)
	for _, problem := range now {
		if !slices.ContainsFunc(s.problems, func(p *field.Error) bool { return p.Error() == problem.Error() }) {
			s.foreign = append(s.foreign, problem)
		}
	}
	s.cfg, s.managed = cfg, managedroute.Names(ro)
}

func problemsOf(err error) (problems field.ErrorList, omitted int) {
	var e *config.Error
	if errors.As(err, &e) {
		return e.Problems, e.Omitted
	}
	return nil, 0
}

// look finds the objects, the sides and the routes.
func (s *subject) look(entry any) {
	for i, want := range s.cfg.DestinationRules {
		r := ruled{want: want, at: entryAt(s.block, entry, "destinationRule", i)}
		if r.o, _ = s.w.find(destinationRuleKind, want.Namespace, want.Name); r.o != nil {
			r.dr = s.w.rules[r.o]
		}
		s.rules = append(s.rules, r)
	}
	known := s.lookAtSides()
	for i, want := range s.cfg.VirtualServices {
		x := &routed{want: want, at: entryAt(s.block, entry, "virtualService", i), handled: map[place]bool{}}
		if x.o, _ = s.w.find(virtualServiceKind, want.Namespace, want.Name); x.o != nil {
			x.vs, x.all = s.w.services[x.o], s.w.routesOf(x.o)
			if known {
				s.choose(x)
			}
		}
		s.services = append(s.services, x)
	}
}

// entryAt is the path of the i-th entry of a list, or of the form without one.
func entryAt(block string, entry any, name string, i int) string {
	if at(entry, name+"s") != nil {
		return fmt.Sprintf("%s.%ss[%d]", block, name, i)
	}
	return block + "." + name
}

// lookAtSides follows the plugin: two Services, or two subsets of each rule's host.
func (s *subject) lookAtSides() bool {
	s.split = virtualservice.Split{Max: s.max(), ClusterDomain: s.w.options.ClusterDomain}
	if len(s.rules) == 0 {
		s.split.Stable.Host = s.w.canonical(s.cfg.StableService, s.o.Namespace)
		s.split.Canary.Host = s.w.canonical(s.cfg.CanaryService, s.o.Namespace)
		return true
	}
	for i, r := range s.rules {
		if r.dr == nil || r.dr.Malformed != nil || r.dr.Host == "" {
			return false
		}
		host := s.w.canonical(r.dr.Host, r.dr.Namespace)
		pair := virtualservice.Pair{
			Stable: virtualservice.Side{Host: host, Subset: r.want.StableSubsetName},
			Canary: virtualservice.Side{Host: host, Subset: r.want.CanarySubsetName},
		}
		if i == 0 {
			s.split.Stable, s.split.Canary = pair.Stable, pair.Canary
		} else {
			s.split.More = append(s.split.More, pair)
		}
		for _, other := range s.rules[:i] {
			if _, shared := s.w.sharedSide(r, other); shared {
				return false // ARI0309
			}
		}
	}
	return true
}

// sides are all sides between which weight moves.
func (s *subject) sides() []virtualservice.Side {
	sides := []virtualservice.Side{s.split.Stable, s.split.Canary}
	for _, pair := range s.split.More {
		sides = append(sides, pair.Stable, pair.Canary)
	}
	return sides
}

func (s *subject) max() int32 { return guard.RolloutFacts(s.ro).Max }

// canary is the strategy; never nil, so that checks need not ask.
func (s *subject) canary() *v1alpha1.CanaryStrategy {
	if s.ro.Spec.Strategy.Canary == nil {
		return &v1alpha1.CanaryStrategy{}
	}
	return s.ro.Spec.Strategy.Canary
}

// atStep is the Rollout as the controller sends it in the middle of a canary. It shares
// its spec with the subject's.
func (s *subject) atStep(i int) *v1alpha1.Rollout {
	ro, index := *s.ro, int32(i)
	ro.Status = v1alpha1.RolloutStatus{StableRS: "stable", CurrentPodHash: "canary", CurrentStepIndex: &index}
	return &ro
}

func stepPath(i int, below string) string {
	return fmt.Sprintf("%s[%d]%s", stepsPath, i, below)
}
