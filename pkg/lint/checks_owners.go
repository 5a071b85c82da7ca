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
	for _, o := range s.w.index.scalers[s.o.key] {
		tell(s.o, "spec.replicas", "%s scales the Rollout as well (%s)", o, o.place())
	}
}

func argoWithoutIgnore(s *subject, tell tell) {
	s.tellWithoutRule(s.applications(), tell, func(o *object) string {
		return strings.Join(applicationSpec(o), ".") + ".ignoreDifferences"
	})
}

// applicationSpec is where an Application's spec stands.
func applicationSpec(o *object) []string {
	if o.groupKind == applicationSetKind {
		return []string{"spec", "template", "spec"}
	}
	return []string{"spec"}
}

// applicationTarget is the namespace into which an Application deploys.
func applicationTarget(o *object) string {
	namespace, _ := at(o.at(applicationSpec(o)...), "destination", "namespace").(string)
	return namespace
}

// tellWithoutRule reports each written kind for which none of the deployers has a rule:
// in files it is not known which of them deploys the Rollout. field is where a rule
// would stand.
func (s *subject) tellWithoutRule(d deployment, tell tell, field func(*object) string) {
	for _, kind := range s.writtenKinds() {
		if d.ruled[kind] || len(d.by) == 0 {
			continue
		}
		others := ""
		if more := len(d.by) - 1; more > 0 {
			others = fmt.Sprintf(", nor in the %d others for its namespace", more)
		}
		tell(d.by[0], field(d.by[0]), "no rule for %s, of which the plugin changes fields for %s%s", kind, s.o, others)
	}
}

// writtenKinds are the kinds that the plugin writes for the Rollout.
func (s *subject) writtenKinds() []string {
	if len(s.rules) == 0 {
		return []string{virtualServiceKind.kind}
	}
	return []string{virtualServiceKind.kind, destinationRuleKind.kind}
}

// applications are those that deploy the Rollout's routing. Argo CD marks what it
// deploys; in files only the namespace tells.
func (s *subject) applications() deployment {
	all := s.w.index.applications
	for _, x := range s.services {
		if x.o != nil && x.o.live() {
			tracking := x.o.labels("metadata", "annotations")["argocd.argoproj.io/tracking-id"]
			name, _, _ := strings.Cut(tracking, ":")
			return all.tracked(name, x.o.labels("metadata", "labels")["app.kubernetes.io/instance"])
		}
	}
	if s.o.live() {
		return deployment{}
	}
	return all.into[s.o.Namespace]
}

// applicationIgnores tells whether there is any rule for the kind: what exactly it names
// is the user's to say.
func applicationIgnores(o *object, kind string) bool {
	rules, _ := at(o.at(applicationSpec(o)...), "ignoreDifferences").([]any)
	return slices.ContainsFunc(rules, func(rule any) bool {
		named, _ := at(rule, "kind").(string)
		return named == kind || named == "*"
	})
}

func fluxWithoutIgnore(s *subject, tell tell) {
	s.tellWithoutRule(s.charts(), tell, func(*object) string { return "spec.driftDetection.ignore" })
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

// charts are the HelmReleases that deploy the Rollout's routing: by the label that Flux
// leaves, or in files by the namespace.
func (s *subject) charts() deployment {
	for _, o := range s.written() {
		if o.live() {
			return s.w.index.charts.tracked("", o.labels("metadata", "labels")["helm.toolkit.fluxcd.io/name"])
		}
	}
	if s.o.live() {
		return deployment{}
	}
	return s.w.index.charts.into[s.o.Namespace]
}

// releaseTarget is the namespace into which a HelmRelease deploys.
func releaseTarget(o *object) string {
	if target := o.text("spec", "targetNamespace"); target != "" {
		return target
	}
	return o.Namespace
}

// drifts tells a HelmRelease that leaves alone what others write.
func drifts(o *object) bool { return o.text("spec", "driftDetection", "mode") != "enabled" }

func driftIgnores(release *object, kind string) bool {
	return slices.ContainsFunc(release.list("spec", "driftDetection", "ignore"), func(rule any) bool {
		named, _ := at(rule, "target", "kind").(string)
		return named == kind || named == ""
	})
}

func noWaypoint(s *subject, tell tell) {
	namespace := s.w.byKey[key{namespaceKind, "", s.o.Namespace}]
	if namespace == nil || !s.ambient(namespace) || !s.routesMesh() {
		return
	}
	services := s.serviceSelections()
	if len(services) == 0 || slices.ContainsFunc(services, func(x selection) bool { return namesWaypoint(x.o, namespace) }) {
		return
	}
	if namesWaypoint(namespace, nil) {
		tell(services[0].o, "metadata.labels", "the namespace of %s is ambient and names a waypoint, and its Services want none", s.o)
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

// namesWaypoint tells whether an object has a waypoint: what it says itself counts, and
// what its namespace says only if it says nothing.
func namesWaypoint(o, namespace *object) bool {
	waypoint, said := o.labels("metadata", "labels")["istio.io/use-waypoint"]
	if !said && namespace != nil {
		return namesWaypoint(namespace, nil)
	}
	return waypoint != "" && waypoint != "none"
}

// routesMesh tells whether a VirtualService of the Rollout is for clients in the mesh.
func (s *subject) routesMesh() bool {
	return slices.ContainsFunc(s.services, func(x *routed) bool {
		return x.o != nil && forSidecars(x.o) && len(x.routes) > 0 && x.routes[0].Protocol == virtualservice.HTTP
	})
}
