package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/destinationrule"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/podlabel"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

const hashLabel = v1alpha1.DefaultRolloutUniqueLabelKey

var labelChecks = []*Check{
	{
		Code: "ARI0301", Severity: Error, Title: "A DestinationRule that does not exist", judge: missingDestinationRule,
		Happens: stops, Instead: "Correct the name, or create the DestinationRule.",
		Not:       "Offline an object that is not in the input is a note, unless --complete says that all are there.",
		Elsewhere: "Istio IST0101",
	},
	{
		Code: "ARI0302", Severity: Error, Title: "A subset that does not exist, or twice", judge: missingSubsets,
		Happens: stops, Instead: "Give the DestinationRule one subset of each of the two names.",
		Elsewhere: "Istio IST0101, Kiali KIA1107",
	},
	{
		Code: "ARI0303", Severity: Error, Title: "A subset whose labels the pods do not have", judge: subsetLabels,
		Happens:   "The subset selects no pod: its requests fail with 503, and the plugin gives the canary no weight.",
		Instead:   "Leave only labels that the pod template has; the plugin adds the one that tells the revisions apart.",
		Not:       "Labels of canaryMetadata and stableMetadata, and those that Istio or Kubernetes add to pods, are left out. Without the pod template (workloadRef to an object that is not in the input) nothing is compared.",
		Elsewhere: "Istio IST0173, Kiali KIA0203",
	},
	{
		Code: "ARI0304", Severity: Error, Title: "A Service whose selector the pods do not match", judge: serviceSelectors,
		Happens: "The Service has no endpoints: requests fail with 503, and the plugin gives the canary no weight.",
		Instead: "Select by labels that the pod template has.",
		Not:     "As for ARI0303; a Service without a selector is not judged.",
	},
	{
		Code: "ARI0305", Severity: Error, Title: "A version label that pins a subset to another version", judge: versionLabels,
		Happens:   "The subset stays with the version that it names: with the next one it selects no pod, and its requests fail with 503.",
		Instead:   "Remove the label from the subset or selector. Both sides are told apart by the label rollouts-pod-template-hash, which the plugin adds.",
		Not:       "A version label whose value is that of the pod template selects its pods, and is not reported.",
		Elsewhere: "Istio IST0173, Kiali KIA0203",
	},
	{
		Code: "ARI0306", Severity: Warning, Title: "The hash label written by hand", judge: pinnedHash,
		Happens: "Each time that the file is applied, requests go to the pods of that old hash, if there are any, until the plugin has put its own value back.",
		Instead: "Leave rollouts-pod-template-hash out; see docs/gitops.md for tools that write it again.",
		Not:     "Not for objects read from a cluster (with a uid or resourceVersion), where the label belongs to the plugin.",
	},
	{
		Code: "ARI0307", Severity: Warning, Title: "Another DestinationRule with the same subsets", judge: sameSubsets, bounded: true,
		Happens:   "Istio takes the subset of the older DestinationRule: if that is not ours, its label does not move, and the weights mean nothing.",
		Instead:   "Keep each subset in one DestinationRule.",
		Not:       "Only DestinationRules of one namespace and host are compared. Of one Rollout 20 are told; a note says that there are more.",
		Elsewhere: "Kiali KIA0201",
	},
	{
		Code: "ARI0308", Severity: Warning, Title: "The native router's annotation is left", judge: nativeAnnotation,
		Happens: "The controller takes the hash labels of such a DestinationRule away at the rule's next event; until the plugin has put them back, both subsets select the pods of both versions.",
		Instead: "Remove the annotation " + v1alpha1.ManagedByRolloutsKey + ", and move the block only at rest; see docs/migration.md.",
		Not:     "In a cluster the plugin removes it at the controller's next call.",
	},
	{
		Code: "ARI0309", Severity: Error, Title: "Two DestinationRules of one Rollout with the same subset", judge: sharedSides,
		Happens: stops, Instead: "Give each DestinationRule a host or subsets of its own, or name only one of them.",
	},
}

func missingDestinationRule(s *subject, tell tell) {
	for _, r := range s.rules {
		if r.o != nil {
			continue
		}
		if _, missing := s.w.find(destinationRuleKind, r.want.Namespace, r.want.Name); missing {
			tell(s.o, r.at+".name", "there is no DestinationRule %s/%s", r.want.Namespace, r.want.Name)
		}
	}
}

func missingSubsets(s *subject, tell tell) {
	for _, r := range s.rules {
		if r.dr == nil || r.dr.Malformed != nil {
			continue
		}
		for _, subset := range r.subsets() {
			if found := s.w.subsetsOf(r, subset[1]); len(found) == 1 && found[0].Malformed == nil {
				continue // what Hash would say after a look at all others
			}
			if _, err := r.dr.Hash(subset[1]); err != nil {
				tell(s.o, r.at+"."+subset[0], "%s", err)
			}
		}
	}
}

// subsets are the two names, each behind the field that gives it.
func (r ruled) subsets() [2][2]string {
	return [2][2]string{{"canarySubsetName", r.want.CanarySubsetName}, {"stableSubsetName", r.want.StableSubsetName}}
}

// podLabels are those of the pod template; false where the template is elsewhere.
func (s *subject) podLabels() (map[string]string, bool) {
	ref := s.ro.Spec.WorkloadRef
	if ref == nil {
		return s.ro.Spec.Template.Labels, true
	}
	if ref.Kind != deploymentKind.kind {
		return nil, false
	}
	o, _ := s.w.find(deploymentKind, s.o.Namespace, ref.Name)
	if o == nil {
		return nil, false
	}
	return o.labels("spec", "template", "metadata", "labels"), true
}

// lacks are the labels, in order, that are asked for and that the pods do not carry.
func (s *subject) lacks(asked map[string]string) []string {
	pods, known := s.podLabels()
	if !known {
		return nil
	}
	var keys []string
	for key, value := range asked {
		have, there := pods[key]
		if key == hashLabel || s.ephemeral(key) || there && have == value || !there && podlabel.AddedLater(key) {
			continue
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// ephemeral tells labels that the controller itself adds to pods.
func (s *subject) ephemeral(key string) bool {
	for _, metadata := range []*v1alpha1.PodTemplateMetadata{s.canary().CanaryMetadata, s.canary().StableMetadata} {
		if metadata != nil {
			if _, there := metadata.Labels[key]; there {
				return true
			}
		}
	}
	return false
}

// versioned tells a label whose value changes with every version.
func versioned(key string) bool {
	_, name, found := strings.Cut(key, "/")
	if !found {
		name = key
	}
	return slices.Contains([]string{"version", "app-version", "revision", "tag", "image-tag", "build", "build-id", "commit", "git-commit", "git-sha", "sha", "chart"}, strings.ToLower(name))
}

// selection is one place that asks for labels of pods.
type selection struct {
	o      *object
	field  string
	labels map[string]string
	what   string
}

// subsetSelections are those of our subsets.
func (s *subject) subsetSelections() []selection {
	var all []selection
	for _, r := range s.rules {
		if r.dr == nil {
			continue
		}
		for _, name := range r.subsets() {
			for _, subset := range s.w.subsetsOf(r, name[1]) {
				all = append(all, selection{r.o, fmt.Sprintf("spec.subsets[%d].labels", subset.Index), subset.Labels, fmt.Sprintf("subset %q", subset.Name)})
			}
		}
	}
	return all
}

// subsetsOf are the subsets of that name.
func (w *world) subsetsOf(r ruled, name string) []destinationrule.Subset {
	var all []destinationrule.Subset
	for _, index := range w.index.own[ownSubset{r.o, name}] {
		all = append(all, r.dr.Subsets[index])
	}
	return all
}

// serviceSelections are those of the Services of both sides.
func (s *subject) serviceSelections() []selection {
	var all []selection
	seen := map[*object]bool{}
	for _, side := range s.sides() {
		if side.Host == "" {
			continue
		}
		service, _ := s.w.serviceOf(side.Host, s.o.Namespace)
		if service != nil && !seen[service] {
			seen[service] = true
			all = append(all, selection{service, "spec.selector", service.labels("spec", "selector"), "the selector"})
		}
	}
	return all
}

func subsetLabels(s *subject, tell tell)     { s.tellLacking(s.subsetSelections(), tell, false) }
func serviceSelectors(s *subject, tell tell) { s.tellLacking(s.serviceSelections(), tell, false) }

func versionLabels(s *subject, tell tell) {
	s.tellLacking(append(s.subsetSelections(), s.serviceSelections()...), tell, true)
}

// tellLacking reports version labels, or all others.
func (s *subject) tellLacking(all []selection, tell tell, version bool) {
	pods, _ := s.podLabels()
	for _, x := range all {
		for _, key := range s.lacks(x.labels) {
			have, there := pods[key]
			pinned := versioned(key) && there
			switch {
			case pinned != version:
			case there:
				tell(x.o, x.field+below(key), "%s asks for %s=%s, and the pods of %s have %s=%s", x.what, key, x.labels[key], s.o, key, have)
			default:
				tell(x.o, x.field+below(key), "%s asks for %s=%s, and the pods of %s have only %s", x.what, key, x.labels[key], s.o, namesIn(pods))
			}
		}
	}
}

// below is a name as the next part of a path: .app, or ["app.example/name"].
func below(name string) string {
	if name == "" || strings.ContainsAny(name, "./[]\"") {
		return fmt.Sprintf("[%q]", name)
	}
	return "." + name
}

func namesIn(labels map[string]string) string {
	if len(labels) == 0 {
		return "no labels"
	}
	return strings.Join(slices.Sorted(maps.Keys(labels)), ", ")
}

func pinnedHash(s *subject, tell tell) {
	for _, x := range append(s.subsetSelections(), s.serviceSelections()...) {
		if hash, there := x.labels[hashLabel]; there && !x.o.live() {
			tell(x.o, x.field+"."+hashLabel, "%s names the hash %s", x.what, hash)
		}
	}
	if hash, there := s.ro.Spec.Template.Labels[hashLabel]; there {
		tell(s.o, "spec.template.metadata.labels."+hashLabel, "the pod template carries the hash %s", hash)
	}
}

func sameSubsets(s *subject, tell tell) {
	for _, r := range s.rules {
		if r.dr == nil {
			continue
		}
		for _, name := range r.subsets() {
			for _, at := range s.w.index.subsets[subsetKey{r.o.Namespace, s.w.keyOf(r.dr.Host, r.dr.Namespace), name[1]}] {
				if s.names(at.o) {
					continue
				}
				if !tell(at.o, fmt.Sprintf("spec.subsets[%d].name", at.index), "subset %q of host %s is in %s too", name[1], s.w.rules[at.o].Host, r.o) {
					return
				}
			}
		}
	}
}

// names tells whether the DestinationRule is one of the Rollout's own.
func (s *subject) names(o *object) bool {
	return slices.ContainsFunc(s.rules, func(r ruled) bool { return r.o == o })
}

func sharedSides(s *subject, tell tell) {
	for i, r := range s.rules {
		for _, other := range s.rules[:i] {
			if side, shared := s.w.sharedSide(r, other); shared {
				tell(s.o, r.at+".name", "%s has the %s of %s", r.o, side, other.o)
			}
		}
	}
}

// sharedSide is a subset that two rules have in common.
func (w *world) sharedSide(a, b ruled) (string, bool) {
	if a.dr == nil || b.dr == nil || !w.same(w.canonical(a.dr.Host, a.dr.Namespace), w.canonical(b.dr.Host, b.dr.Namespace)) {
		return "", false
	}
	for _, subset := range a.subsets() {
		if name := subset[1]; name == b.want.CanarySubsetName || name == b.want.StableSubsetName {
			return fmt.Sprintf("subset %q of host %s", name, a.dr.Host), true
		}
	}
	return "", false
}

func nativeAnnotation(s *subject, tell tell) {
	for _, r := range s.rules {
		if r.dr != nil && r.dr.NativeAnnotation {
			tell(r.o, fmt.Sprintf("metadata.annotations[%q]", v1alpha1.ManagedByRolloutsKey), "the DestinationRule is marked as the native router's")
		}
	}
}
