package lint

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// index finds the few objects that can matter to one Rollout, so that the work grows
// with the number of Rollouts and not with its square. All lists are in the order of
// the objects' names, whatever the order of the input.
type index struct {
	// sends are the destinations that get requests, by hostKey; bare those without a
	// subset.
	sends, bare map[string][]sending
	// hosts are the VirtualServices for sidecars.
	hosts map[exported][]*object
	// subsets are those of all DestinationRules.
	subsets map[subsetKey][]subsetPlace
	// own are the same subsets by their DestinationRule.
	own map[ownSubset][]int
	// selectors are the Services that get requests, by the rarest of the labels that they
	// ask for.
	selectors map[label][]*object
	// entries are the hosts of ServiceEntries by hostKey; names as they are written, in
	// lower case, and suffixes what stands behind a "*".
	entries, names, suffixes map[string]bool
	// scalers are the autoscalers by the Rollout that they name.
	scalers map[key][]*object
	// backends are the rules of HTTPRoutes by each Service that they name.
	backends             map[key][]httpRule
	applications, charts deployers
}

// sending is a destination that gets requests.
type sending struct {
	o     *object
	route *virtualservice.Route
	to    *virtualservice.Destination
}

// exported is a host and the namespace whose clients have it; "*" are all, and
// anywhere stands for every VirtualService of the host.
type exported struct{ host, scope string }

const anywhere = ""

type subsetKey struct{ namespace, host, name string }

type subsetPlace struct {
	o     *object
	index int
}

type ownSubset struct {
	o    *object
	name string
}

// label is one label that a Service of the namespace asks for.
type label struct{ namespace, name, value string }

func newIndex(w *world) *index {
	x := &index{
		sends: map[string][]sending{}, bare: map[string][]sending{}, hosts: map[exported][]*object{},
		subsets: map[subsetKey][]subsetPlace{}, own: map[ownSubset][]int{}, selectors: map[label][]*object{},
		entries: map[string]bool{}, names: map[string]bool{}, suffixes: map[string]bool{},
		scalers: map[key][]*object{}, backends: map[key][]httpRule{},
	}
	for _, o := range w.inOrder(virtualServiceKind) {
		x.addSends(w, o)
		x.addHosts(w, o)
	}
	for _, o := range w.inOrder(destinationRuleKind) {
		x.addSubsets(w, o)
	}
	for _, o := range w.inOrder(serviceEntryKind) {
		x.addEntry(w, o)
	}
	for _, o := range w.inOrder(autoscalerKind, scaledObjectKind) {
		if target := o.labels("spec", "scaleTargetRef"); target["kind"] == rolloutKind.kind {
			named := key{rolloutKind, o.Namespace, target["name"]}
			x.scalers[named] = append(x.scalers[named], o)
		}
	}
	for _, o := range w.inOrder(httpRouteKind) {
		x.addBackends(o)
	}
	x.addSelectors(slices.DeleteFunc(w.inOrder(serviceKind), func(o *object) bool {
		return len(x.sends[w.keyOf(o.Name, o.Namespace)]) == 0
	}))
	x.applications = deployersOf(w.inOrder(applicationKind, applicationSetKind), applicationTarget, applicationIgnores)
	x.charts = deployersOf(slices.DeleteFunc(w.inOrder(helmReleaseKind), drifts), releaseTarget, driftIgnores)
	return x
}

// inOrder are the objects of these kinds by their names.
func (w *world) inOrder(kinds ...groupKind) []*object {
	var all []*object
	for _, kind := range kinds {
		all = append(all, w.byKind[kind]...)
	}
	slices.SortFunc(all, func(a, b *object) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.kind, b.kind))
	})
	return all
}

func (x *index) addSends(w *world, o *object) {
	vs := w.services[o]
	for _, list := range [][]virtualservice.Route{vs.HTTP, vs.TLS, vs.TCP} {
		for i := range list {
			route := &list[i]
			for at := range route.Destinations {
				d := &route.Destinations[at]
				if d.Weight <= 0 && len(route.Destinations) > 1 {
					continue
				}
				host := w.keyOf(d.Host, o.Namespace)
				x.sends[host] = append(x.sends[host], sending{o, route, d})
				if d.Subset == "" {
					x.bare[host] = append(x.bare[host], sending{o, route, d})
				}
			}
		}
	}
}

func (x *index) addHosts(w *world, o *object) {
	if !forSidecars(o) {
		return
	}
	for _, host := range o.texts("spec", "hosts") {
		for _, scope := range append(exportsOf(o), anywhere) {
			at := exported{w.keyOf(host, o.Namespace), scope}
			x.hosts[at] = append(x.hosts[at], o)
		}
	}
}

// rivals are the VirtualServices for a host that some client of o's sees beside it.
func (x *index) rivals(o *object, host string) iter.Seq[*object] {
	scopes := append(exportsOf(o), "*")
	if slices.Contains(scopes[:len(scopes)-1], "*") {
		scopes = []string{anywhere}
	}
	return func(yield func(*object) bool) {
		for _, scope := range scopes {
			for _, other := range x.hosts[exported{host, scope}] {
				if other != o && !yield(other) {
					return
				}
			}
		}
	}
}

func (x *index) addSubsets(w *world, o *object) {
	dr := w.rules[o]
	host := w.keyOf(dr.Host, dr.Namespace)
	for i, subset := range dr.Subsets {
		at := subsetKey{o.Namespace, host, subset.Name}
		x.subsets[at] = append(x.subsets[at], subsetPlace{o, subset.Index})
		x.own[ownSubset{o, subset.Name}] = append(x.own[ownSubset{o, subset.Name}], i)
	}
}

func (x *index) addEntry(w *world, o *object) {
	for _, host := range o.texts("spec", "hosts") {
		x.entries[w.keyOf(host, o.Namespace)] = true
		x.names[strings.ToLower(host)] = true
		if suffix, wild := strings.CutPrefix(host, "*"); wild {
			x.suffixes[suffix] = true
		}
	}
}

// named tells whether a ServiceEntry has the host as it is written.
func (x *index) named(host string) bool {
	if x.names[strings.ToLower(host)] {
		return true
	}
	for at := range len(host) + 1 {
		if len(x.suffixes) > 0 && x.suffixes[host[at:]] {
			return true
		}
	}
	return false
}

// addSelectors puts each Service under the label that the fewest others ask for: of a
// label that all have, a Rollout would find all of them.
func (x *index) addSelectors(services []*object) {
	count := map[label]int{}
	for _, o := range services {
		for name, value := range o.labels("spec", "selector") {
			count[label{o.Namespace, name, value}]++
		}
	}
	for _, o := range services {
		var rarest label
		asked := o.labels("spec", "selector")
		for i, name := range slices.Sorted(maps.Keys(asked)) {
			if this := (label{o.Namespace, name, asked[name]}); i == 0 || count[this] < count[rarest] {
				rarest = this
			}
		}
		if len(asked) > 0 {
			x.selectors[rarest] = append(x.selectors[rarest], o)
		}
	}
}

// selecting are the Services of a namespace that get requests, ask for labels, and ask
// for no others than these pods have.
func (x *index) selecting(namespace string, pods map[string]string) iter.Seq[*object] {
	return func(yield func(*object) bool) {
		for _, name := range slices.Sorted(maps.Keys(pods)) {
			for _, o := range x.selectors[label{namespace, name, pods[name]}] {
				if within(o.labels("spec", "selector"), pods) && !yield(o) {
					return
				}
			}
		}
	}
}

// within tells whether the pods have all labels that are asked for.
func within(asked, pods map[string]string) bool {
	for name, value := range asked {
		if have, there := pods[name]; !there || have != value {
			return false
		}
	}
	return true
}
