package lint

import "slices"

// deployers are Applications or HelmReleases: by name, by "namespace_name", and by the
// namespace into which they deploy.
type deployers struct {
	named, full map[string][]*object
	into        map[string]deployment
	ignores     func(o *object, kind string) bool
}

// deployment are the deployers of one Rollout, of which at least one has a rule for the
// ruled kinds.
type deployment struct {
	by    []*object
	ruled map[string]bool
}

func deployersOf(all []*object, target func(*object) string, ignores func(*object, string) bool) deployers {
	d := deployers{named: map[string][]*object{}, full: map[string][]*object{}, into: map[string]deployment{}, ignores: ignores}
	into := map[string][]*object{}
	for _, o := range all {
		full, namespace := o.Namespace+"_"+o.Name, target(o)
		d.named[o.Name] = append(d.named[o.Name], o)
		d.full[full] = append(d.full[full], o)
		into[namespace] = append(into[namespace], o)
	}
	for namespace, by := range into {
		d.into[namespace] = d.of(by)
	}
	return d
}

func (d deployers) of(by []*object) deployment {
	ruled := map[string]bool{}
	for _, kind := range []string{virtualServiceKind.kind, destinationRuleKind.kind} {
		ruled[kind] = slices.ContainsFunc(by, func(o *object) bool { return d.ignores(o, kind) })
	}
	return deployment{by, ruled}
}

// tracked are the deployers of an object that says who deployed it: by a name with or
// without the namespace before it, and by a name in a label. Either may be empty.
func (d deployers) tracked(name, label string) deployment {
	var by []*object
	for _, list := range [][]*object{d.named[name], d.full[name], d.named[label]} {
		for _, o := range list {
			if !slices.Contains(by, o) {
				by = append(by, o)
			}
		}
	}
	return d.of(by)
}
