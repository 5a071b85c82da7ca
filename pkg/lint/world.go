package lint

import (
	"fmt"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// world is all objects of the input, read once.
type world struct {
	options  Options
	byKey    map[key]*object
	byKind   map[groupKind][]*object
	services map[*object]*virtualservice.VirtualService
	rules    map[*object]*destinationrule.DestinationRule
	subjects []*subject
	// strays are Rollouts that Istio does not route and whose fields are not all those of
	// a Rollout: it may be for that.
	strays []*subject
	index  *index
	routes map[*object]*routes
	// namespaces are those of which the input has something.
	namespaces map[string]bool
	// used are the objects that a Rollout names.
	used    map[key]bool
	noted   map[string]bool
	missing map[Ref]bool
	owners  map[string]*subject  // by what they handle; see owner
	hosts   map[[2]string]string // canonical names
	report  Report
}

func newWorld(in Input, o Options) *world {
	if o.PluginName == "" {
		o.PluginName = config.DefaultPluginName
	}
	w := &world{
		options: o,
		byKey:   map[key]*object{}, byKind: map[groupKind][]*object{},
		services: map[*object]*virtualservice.VirtualService{}, rules: map[*object]*destinationrule.DestinationRule{},
		routes: map[*object]*routes{}, namespaces: map[string]bool{}, noted: map[string]bool{}, used: map[key]bool{},
		missing: map[Ref]bool{}, hosts: map[[2]string]string{},
	}
	for _, object := range in.objects {
		w.take(object)
	}
	w.index = newIndex(w)
	for _, object := range w.byKind[rolloutKind] {
		if s := w.subjectOf(object); s != nil {
			w.subjects = append(w.subjects, s)
		}
	}
	return w
}

func (w *world) take(o *object) {
	w.byKey[o.key] = o
	w.byKind[o.groupKind] = append(w.byKind[o.groupKind], o)
	w.namespaces[o.Namespace] = true
	switch o.groupKind {
	case virtualServiceKind:
		w.services[o] = virtualservice.Parse(o.unstructured(), "")
	case destinationRuleKind:
		w.rules[o] = destinationrule.Parse(o.unstructured(), "")
	}
}

// find returns the object, or nil and whether that means that it does not exist. If
// it may exist elsewhere that is noted, once.
func (w *world) find(kind groupKind, namespace, name string) (o *object, missing bool) {
	o = w.byKey[key{kind, namespace, name}]
	if o != nil {
		w.used[o.key] = true
		return o, false
	}
	if w.options.Complete != nil && w.options.Complete(kind.kind, namespace) {
		return nil, true
	}
	if ref := (Ref{Group: kind.group, Kind: kind.kind, Namespace: namespace, Name: name}); !w.missing[ref] {
		w.missing[ref] = true
		w.report.Missing = append(w.report.Missing, ref)
	}
	w.note("%s %s/%s is not in the input: what it says was not checked", kind.kind, namespace, name)
	return nil, false
}

func (w *world) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !w.noted[text] {
		w.noted[text] = true
		w.report.Notes = append(w.report.Notes, text)
	}
}

// canonical is a host as the plugin compares it. The same few texts are asked about
// again and again.
func (w *world) canonical(host, namespace string) string {
	asked := [2]string{host, namespace}
	name, known := w.hosts[asked]
	if !known {
		name = hostname.Canonical(host, namespace, w.options.ClusterDomain)
		w.hosts[asked] = name
	}
	return name
}

// hostKey is the same text for exactly those canonical names that hostname.Same takes
// for the same: a name of two labels may be a Service and its namespace.
func (w *world) hostKey(canonical string) string {
	if _, namespace, two := strings.Cut(canonical, "."); two && !strings.Contains(namespace, ".") {
		return w.canonical(canonical, namespace)
	}
	return canonical
}

// keyOf is the hostKey of a host as an object of that namespace says it.
func (w *world) keyOf(host, namespace string) string { return w.hostKey(w.canonical(host, namespace)) }

func (w *world) same(a, b string) bool { return w.hostKey(a) == w.hostKey(b) }
