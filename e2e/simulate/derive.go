package simulate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// Plan is one Rollout made ready for the lab.
type Plan struct {
	// Rollout is "Rollout namespace/name" as in the files, File and Line its place.
	Rollout, File string
	Line          int
	// Native and Plugin are the same Rollout with the one router and with the other.
	Native, Plugin Variant
	Notes          Notes

	// name is that of the Rollout, replicas its size, steps those that are played.
	name     string
	replicas int32
	steps    []v1alpha1.CanaryStep
	// window is rollbackWindow.revisions, nil where it is not set.
	window *int32
	// history is revisionHistoryLimit, nil for the controller's default.
	history *int32
	// enforced is whether the plugin's guard caps weights, pingPong whether the sides
	// change roles: the guard's rule is then not what the weights are held against.
	enforced, pingPong bool
}

// Variant is what is applied for one router.
type Variant struct {
	// Objects have no namespace; the Rollout is the last.
	Objects []map[string]any
	// Subject says what of it is recorded, without the namespace.
	Subject timeline.Subject
}

// deriver is one derivation under way.
type deriver struct {
	settings Settings
	sources  []lint.Source
	source   lint.Source // the Rollout
	notes    Notes

	content map[string]any // the Rollout, cleaned, without a router
	ro      v1alpha1.Rollout
	found   routers
	config  config.Config
	// applied are the sources of objects that are applied, for the places of findings.
	applied []lint.Source
}

// Derive makes the two variants of the Rollout that the input holds. It changes nothing
// of the input. The error is a [Refusal] where the input is to blame.
func Derive(in lint.Input, s Settings) (Plan, error) {
	sources := in.Sources()
	// What cannot be read may be the Rollout itself, so it comes first.
	unread := lint.Run(in, lint.Options{Only: "\x00"})
	if err := refusal(problemsOf(unread)); err != nil {
		return Plan{}, err
	}
	source, err := choose(sources, s.Rollout)
	if err != nil {
		return Plan{}, err
	}
	if err := served(source); err != nil {
		return Plan{}, err
	}
	d := &deriver{settings: s, sources: sources, source: source}
	if err := d.judge(in); err != nil {
		return Plan{}, err
	}
	if err := d.clean(); err != nil {
		return Plan{}, err
	}
	if err := d.route(); err != nil {
		return Plan{}, err
	}
	return d.plan()
}

// judge refuses what the controller or the plugin would not take, as it was written.
func (d *deriver) judge(in lint.Input) error {
	options := lint.Options{PluginName: d.settings.PluginName, Only: d.source.Name(), CrossNamespace: everywhere()}
	report := lint.Run(in, options)
	report.Findings = slices.DeleteFunc(report.Findings, d.ofNamesake)
	if err := refusal(problemsOf(report)); err != nil {
		return err
	}
	count := map[lint.Severity]int{}
	for _, f := range report.Findings {
		count[f.Severity]++
	}
	if count[lint.Error]+count[lint.Warning] > 0 {
		d.notes.Lint = fmt.Sprintf("lint -f has more to say about these files (errors: %d, warnings: %d)", count[lint.Error], count[lint.Warning])
	}
	return nil
}

// ofNamesake tells a finding in the namespace of another Rollout of the same name: the
// linter chooses by the name alone. What of it concerns this Rollout as well is found
// when the variant is judged.
func (d *deriver) ofNamesake(f lint.Finding) bool {
	_, name, _ := strings.Cut(f.Object, " ")
	namespace, _, _ := strings.Cut(name, "/")
	return namespace != d.source.Namespace() && slices.ContainsFunc(d.sources, func(s lint.Source) bool {
		return s.Is(argoGroup, "Rollout") && s.Name() == d.source.Name() && s.Namespace() == namespace
	})
}

// everywhere allows each namespace: in the lab all objects are in one.
func everywhere() config.CrossNamespace {
	all, err := config.ParseCrossNamespace("*")
	if err != nil {
		panic(err) // the flag's own word for it
	}
	return all
}

// plan puts the two variants together, and holds the plugin's against the linter once
// more: only now all objects are there, and a Rollout that was native has its block.
func (d *deriver) plan() (Plan, error) {
	around := d.around()
	for _, s := range d.applied {
		if err := served(s); err != nil {
			return Plan{}, err
		}
	}
	d.notApplied()
	native := d.variant(d.nativeRouting(around), d.nativeSteps(), around)
	native.Subject.MaxWeight = 0
	plugin := d.variant(d.pluginRouting(), nil, around)
	if err := d.judgeVariant(plugin); err != nil {
		return Plan{}, err
	}
	file, line := d.source.Place("")
	var window *int32
	if d.ro.Spec.RollbackWindow != nil {
		window = &d.ro.Spec.RollbackWindow.Revisions
	}
	return Plan{
		Rollout: d.source.String(), File: file, Line: line, Native: native, Plugin: plugin, Notes: d.notes,
		name: d.source.Name(), replicas: replicasOf(&d.ro), steps: d.ro.Spec.Strategy.Canary.Steps, window: window, history: d.ro.Spec.RevisionHistoryLimit,
		enforced: d.config.Guard.Mode == config.Enforce, pingPong: d.ro.Spec.Strategy.Canary.PingPong != nil,
	}, nil
}

func replicasOf(ro *v1alpha1.Rollout) int32 {
	if ro.Spec.Replicas == nil {
		return 1
	}
	return *ro.Spec.Replicas
}

// variant is the Rollout with a router, and with other steps unless those are nil.
func (d *deriver) variant(routing map[string]any, steps []any, around surroundings) Variant {
	rollout := runtime.DeepCopyJSON(d.content)
	canary := fields(rollout, "spec", "strategy", "canary")
	canary["trafficRouting"] = routing
	if steps != nil {
		canary["steps"] = steps
	}
	objects := append(around.copies(), rollout)
	return Variant{Objects: objects, Subject: around.subject}
}

// judgeVariant maps what is found back to the files.
func (d *deriver) judgeVariant(v Variant) error {
	in := lint.Input{Namespace: d.source.Namespace()}
	for _, object := range v.Objects {
		in.Add(runtime.DeepCopyJSON(object))
	}
	complete := func(kind, _ string) bool { return kind == "VirtualService" || kind == "DestinationRule" }
	report := lint.Run(in, lint.Options{Only: d.source.Name(), Complete: complete})
	for i, f := range report.Findings {
		source := d.sourceOf(f.Object)
		report.Findings[i].Object, report.Findings[i].Field = source.String(), d.asWritten(f.Field)
		report.Findings[i].File, report.Findings[i].Line = source.Place(report.Findings[i].Field)
	}
	return refusal(problemsOf(report))
}

// sourceOf is where an object comes from. What was made up has no fault but that of the
// Rollout, which asks for it.
func (d *deriver) sourceOf(object string) lint.Source {
	kind, _, _ := strings.Cut(object, " ")
	for _, s := range d.applied {
		if strings.HasPrefix(s.String(), kind+" ") && strings.HasSuffix(object, "/"+s.Name()) {
			return s
		}
	}
	return d.source
}

// asWritten is the path in the files of a field of the plugin's block, which may stand
// there as the native router's, or under another name.
func (d *deriver) asWritten(field string) string {
	rest, is := strings.CutPrefix(field, fmt.Sprintf("%s.plugins[%q]", routingPath, lab.DefaultPluginName))
	if !is {
		return field
	}
	return d.found.path + rest
}

// fields is the mapping at a path, made where it is missing. What stands in its way is
// replaced: the linter has refused that before.
func fields(content map[string]any, path ...string) map[string]any {
	for _, name := range path {
		below, ok := content[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			content[name] = below
		}
		content = below
	}
	return content
}

// at is the value at a path, nil where there is none.
func at(value any, path ...string) any {
	for _, name := range path {
		below, _ := value.(map[string]any)
		value = below[name]
	}
	return value
}

// read brings content into its Go type.
func read(content map[string]any, into any) error {
	raw, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
