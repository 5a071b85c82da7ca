package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
)

// IgnoreAnnotation on an object suppresses the findings about it whose codes it
// lists, with commas between them. On a Rollout it holds for all that is found on its
// behalf.
const IgnoreAnnotation = "istio.argoproj-labs.io/lint-ignore"

// Options say how to judge. The zero value works.
type Options struct {
	// PluginName is the name under which the plugin is registered; empty is
	// config.DefaultPluginName.
	PluginName string
	// CrossNamespace is what the operator allows with --allow-cross-namespace.
	CrossNamespace config.CrossNamespace
	// Prometheus is what the operator allows with --prometheus-address and
	// --allow-prometheus-addresses; nil, as files do not say it: every healthGate may ask
	// whom it names.
	Prometheus *config.PrometheusAddresses
	// ClusterDomain is the cluster's DNS domain; empty is cluster.local.
	ClusterDomain string
	// Complete tells of a kind, as in VirtualService, that all of a namespace's objects
	// are in the input, so that one that is not there does not exist. Nil: none is
	// complete, and what is not there is noted.
	Complete func(kind, namespace string) bool
	// Ignore are codes that are suppressed everywhere.
	Ignore []string
	// Only is the name of the one Rollout to judge; empty: all of them. OnlyIn is the
	// namespace that it is of; empty: those of that name in all namespaces.
	Only, OnlyIn string
}

// wants tells whether a Rollout is one of those to judge.
func (o Options) wants(rollout *object) bool {
	return (o.Only == "" || rollout.Name == o.Only) && (o.OnlyIn == "" || rollout.Namespace == o.OnlyIn)
}

// Run judges the Rollouts of the input. It always gives a report: whatever is wrong
// with the input is in it.
func Run(in Input, o Options) Report {
	w := newWorld(in, o)
	for _, s := range w.subjects {
		if !o.wants(s.o) {
			continue
		}
		w.report.Rollouts++
		w.used[s.o.key] = true
		w.judge(s)
	}
	for _, s := range w.strays {
		if o.wants(s.o) {
			w.judgeFields(s)
		}
	}
	for _, f := range in.findings {
		w.keep(f)
	}
	for _, double := range in.doubles {
		switch {
		case double.groupKind != rolloutKind && !w.used[double.key]:
		case double.note != "":
			w.note("%s", double.note)
		default:
			w.keep(double.finding)
		}
	}
	for _, note := range in.notes {
		w.note("%s", note)
	}
	w.report.Findings = sorted(w.report.Findings)
	slices.Sort(w.report.Notes)
	return w.report
}

// mostOthers is how many findings a bounded check makes for one Rollout. Thousands that
// share a host would have millions, and nobody to read them.
const mostOthers = 20

// judge asks every check about one Rollout.
func (w *world) judge(s *subject) {
	for _, c := range Checks() {
		if c.judge != nil && (c.native || !s.native) {
			c.judge(s, w.teller(c, s))
		}
	}
}

// judgeFields asks only the checks of the fields themselves.
func (w *world) judgeFields(s *subject) {
	for _, c := range Checks() {
		if c.fields {
			c.judge(s, w.teller(c, s))
		}
	}
}

// teller keeps what one check finds for one Rollout.
func (w *world) teller(c *Check, s *subject) tell {
	told := 0
	return func(o *object, field, format string, args ...any) bool {
		if c.bounded && told == mostOthers {
			if !w.ignored(c.Code, o, s.o) {
				w.note("%s: %s has more findings than the %d that stand here", s.o, c.Code, mostOthers)
			}
			return false
		}
		told++
		w.keep(c.finding(o.String(), o.file, o.line(field), field, fmt.Sprintf(format, args...)), o, s.o)
		return true
	}
}

// keep adds a finding unless it is suppressed, everywhere or by one of the objects.
func (w *world) keep(f Finding, objects ...*object) {
	if w.ignored(f.Code, objects...) {
		w.report.Ignored++
		return
	}
	w.report.Findings = append(w.report.Findings, f)
}

func (w *world) ignored(code string, objects ...*object) bool {
	if slices.Contains(w.options.Ignore, code) {
		return true
	}
	return slices.ContainsFunc(objects, func(o *object) bool { return slices.Contains(w.ignoredBy(o), code) })
}

// ignoredBy are the codes that an object's annotation lists.
func (w *world) ignoredBy(o *object) []string {
	var codes []string
	for code := range strings.SplitSeq(labelsOf(o.at("metadata", "annotations"))[IgnoreAnnotation], ",") {
		if code = strings.ToUpper(strings.TrimSpace(code)); code == "" {
			continue
		}
		if _, known := Lookup(code); !known {
			w.note("%s: its annotation %s names %q, which is no code", o, IgnoreAnnotation, cut(code))
		}
		codes = append(codes, code)
	}
	return codes
}
