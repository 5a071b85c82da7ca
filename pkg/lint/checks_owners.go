package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

var ownerChecks = []*Check{
	{
		Code: "ARI0501", Severity: Warning, Title: "An autoscaler and spec.replicas", judge: twoScalers, native: true,
		Happens: "Each time that the file is applied the Rollout is scaled to spec.replicas, and back by the autoscaler: in a canary, pods that carry traffic may go.",
		Instead: "Remove spec.replicas from the file.",
		Not:     "Not for objects read from a cluster, where the autoscaler itself writes the field.",
	},
	{
		Code: "ARI0502", Severity: Warning, Title: "Argo CD without its two ignore rules", judge: argoWithoutIgnore,
		Happens: "Argo CD shows the application as OutOfSync during a canary, and a sync writes git's weights and labels back; the plugin corrects them, again and again.",
		Instead: "Add the ignoreDifferences of docs/gitops.md to the Application, one for VirtualServices and, with subsets, one for DestinationRules.",
		Not:     "An Application is taken to be the Rollout's if its tracking label or annotation says so or, in files, if it deploys into the Rollout's namespace; of several that do, one with the rules is enough. Rules in argocd-cm cannot be seen here: ignore the code then.",
	},
	{
		Code: "ARI0503", Severity: Warning, Title: "Flux without its ignore rules", judge: fluxWithoutIgnore,
		Happens: "Flux writes git's weights and labels back during a canary; the plugin corrects them, again and again.",
		Instead: "Add the rules of docs/gitops.md to the HelmRelease; for a Kustomization, the annotation kustomize.toolkit.fluxcd.io/ssa: IfNotPresent on the two objects.",
		Not:     "Not for a HelmRelease without driftDetection.mode: enabled; of several for one namespace in files, one with the rules is enough. And a Kustomization is recognised only by the labels that it leaves on objects in a cluster.",
	},
	{
		Code: "ARI0504", Severity: Warning, Title: "Ambient mode without a waypoint", judge: noWaypoint,
		Happens: "ztunnel balances connections over all pods of the Service and knows no routes: for clients in the mesh the weights have no effect.",
		Instead: "Deploy a waypoint, and label the namespace or the Service with istio.io/use-waypoint.",
		Not:     "Not where every VirtualService is for gateways only, which route by themselves, and not without the Namespace in the input.",
	},
}

func templatePath(step, template int) string {
	return stepPath(step, fmt.Sprintf(".experiment.templates[%d]", template))
}

func twoScalers(s *subject, tell tell) {
	if s.o.at("spec", "replicas") == nil || s.o.live() {
		return
	}
	for _, o := range slices.Concat(s.w.byKind[autoscalerKind], s.w.byKind[scaledObjectKind]) {
		target := o.labels("spec", "scaleTargetRef")
		if o.Namespace == s.o.Namespace && target["kind"] == rolloutKind.kind && target["name"] == s.o.Name {
			tell(s.o, "spec.replicas", "%s scales the Rollout as well (%s)", o, o.place())
		}
	}
}

func argoWithoutIgnore(s *subject, tell tell) {
	var deployers []*object
	for _, o := range slices.Concat(s.w.byKind[applicationKind], s.w.byKind[applicationSetKind]) {
		if s.deployedBy(o, at(o.content, applicationSpec(o)...)) {
			deployers = append(deployers, o)
		}
	}
	s.tellWithoutRule(deployers, tell, func(o *object, kind string) (string, bool) {
		path := applicationSpec(o)
		return strings.Join(path, ".") + ".ignoreDifferences", ignores(at(o.content, path...), kind)
	})
}

// applicationSpec is where an Application's spec stands.
func applicationSpec(o *object) []string {
	if o.groupKind == applicationSetKind {
		return []string{"spec", "template", "spec"}
	}
	return []string{"spec"}
}

// tellWithoutRule reports each written kind for which none of the deployers has a rule:
// in files it is not known which of them deploys the Rollout. has returns where a rule
// would stand, and whether there is one.
func (s *subject) tellWithoutRule(deployers []*object, tell tell, has func(*object, string) (string, bool)) {
	for _, kind := range s.writtenKinds() {
		ruled := slices.ContainsFunc(deployers, func(o *object) bool { _, is := has(o, kind); return is })
		if ruled || len(deployers) == 0 {
			continue
		}
		first, others := deployers[0], ""
		if more := len(deployers) - 1; more > 0 {
			others = fmt.Sprintf(", nor in the %d others for its namespace", more)
		}
		field, _ := has(first, kind)
		tell(first, field, "no rule for %s, of which the plugin changes fields for %s%s", kind, s.o, others)
	}
}

// writtenKinds are the kinds that the plugin writes for the Rollout.
func (s *subject) writtenKinds() []string {
	if len(s.rules) == 0 {
		return []string{virtualServiceKind.kind}
	}
	return []string{virtualServiceKind.kind, destinationRuleKind.kind}
}

// deployedBy tells whether an Application deploys the Rollout's routing. Argo CD
// marks what it deploys; in files only the namespace tells.
func (s *subject) deployedBy(app *object, spec any) bool {
	for _, x := range s.services {
		if x.o != nil && x.o.live() {
			tracking := x.o.labels("metadata", "annotations")["argocd.argoproj.io/tracking-id"]
			name, _, _ := strings.Cut(tracking, ":")
			return name == app.Name || name == app.Namespace+"_"+app.Name || x.o.labels("metadata", "labels")["app.kubernetes.io/instance"] == app.Name
		}
	}
	namespace, _ := at(spec, "destination", "namespace").(string)
	return namespace == s.o.Namespace && !s.o.live()
}

// ignores tells whether there is any rule for the kind: what exactly it names is the
// user's to say.
func ignores(spec any, kind string) bool {
	rules, _ := at(spec, "ignoreDifferences").([]any)
	return slices.ContainsFunc(rules, func(rule any) bool {
		named, _ := at(rule, "kind").(string)
		return named == kind || named == "*"
	})
}

func fluxWithoutIgnore(s *subject, tell tell) {
	var releases []*object
	for _, o := range s.w.byKind[helmReleaseKind] {
		if o.text("spec", "driftDetection", "mode") == "enabled" && s.releasedBy(o) {
			releases = append(releases, o)
		}
	}
	s.tellWithoutRule(releases, tell, func(o *object, kind string) (string, bool) {
		return "spec.driftDetection.ignore", driftIgnores(o, kind)
	})
	for _, o := range s.written() {
		name := o.labels("metadata", "labels")["kustomize.toolkit.fluxcd.io/name"]
		how := strings.ToLower(o.labels("metadata", "annotations")["kustomize.toolkit.fluxcd.io/ssa"])
		if name != "" && !slices.Contains([]string{"ifnotpresent", "ignore"}, how) && !disabled(o) {
			tell(o, "metadata.annotations", "the Kustomization %q writes this object, and its annotation kustomize.toolkit.fluxcd.io/ssa does not keep it off", name)
		}
	}
}

func disabled(o *object) bool {
	return strings.EqualFold(o.labels("metadata", "annotations")["kustomize.toolkit.fluxcd.io/reconcile"], "disabled")
}

// written are the objects that the plugin writes for the Rollout.
func (s *subject) written() []*object {
	var all []*object
	for _, x := range s.services {
		if x.o != nil {
			all = append(all, x.o)
		}
	}
	for _, r := range s.rules {
		if r.o != nil {
			all = append(all, r.o)
		}
	}
	return all
}

// releasedBy tells whether a HelmRelease deploys the Rollout's routing: by the label
// that Flux leaves, or in files by the namespace.
func (s *subject) releasedBy(release *object) bool {
	for _, o := range s.written() {
		if o.live() {
			return o.labels("metadata", "labels")["helm.toolkit.fluxcd.io/name"] == release.Name
		}
	}
	target := release.text("spec", "targetNamespace")
	if target == "" {
		target = release.Namespace
	}
	return target == s.o.Namespace && !s.o.live()
}

func driftIgnores(release *object, kind string) bool {
	return slices.ContainsFunc(release.list("spec", "driftDetection", "ignore"), func(rule any) bool {
		named, _ := at(rule, "target", "kind").(string)
		return named == kind || named == ""
	})
}

func noWaypoint(s *subject, tell tell) {
	namespace := s.w.byKey[key{namespaceKind, "", s.o.Namespace}]
	if namespace == nil || !s.ambient(namespace) || namesWaypoint(namespace) || !s.routesMesh() {
		return
	}
	services := s.serviceSelections()
	if len(services) == 0 || slices.ContainsFunc(services, func(x selection) bool { return namesWaypoint(x.o) }) {
		return
	}
	tell(namespace, "metadata.labels", "the namespace of %s is ambient, and neither it nor its Services name a waypoint", s.o)
}

// ambient tells whether the Rollout's pods are served by ztunnel.
func (s *subject) ambient(namespace *object) bool {
	pods, _ := s.podLabels()
	mode := pods["istio.io/dataplane-mode"]
	if mode == "" {
		mode = namespace.labels("metadata", "labels")["istio.io/dataplane-mode"]
	}
	return mode == "ambient" && pods["sidecar.istio.io/inject"] != "true"
}

func namesWaypoint(o *object) bool {
	waypoint := o.labels("metadata", "labels")["istio.io/use-waypoint"]
	return waypoint != "" && waypoint != "none"
}

// routesMesh tells whether a VirtualService of the Rollout is for clients in the mesh.
func (s *subject) routesMesh() bool {
	return slices.ContainsFunc(s.services, func(x *routed) bool {
		return x.o != nil && forSidecars(x.o) && len(x.routes) > 0 && x.routes[0].Protocol == virtualservice.HTTP
	})
}
