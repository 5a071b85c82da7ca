package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// source is a kind that is read from a cluster, in the first version that it serves.
type source struct {
	kind     string
	group    string
	versions []string
	resource string
	// needed: without it nothing can be said. Others are noted and left out.
	needed bool
	// listed in the chosen namespace; others are read when a Rollout asks for one.
	listed bool
}

var sources = []source{
	{kind: "Rollout", group: "argoproj.io", versions: []string{"v1alpha1"}, resource: "rollouts", needed: true, listed: true},
	{kind: "VirtualService", group: "networking.istio.io", versions: istioVersions, resource: "virtualservices", needed: true, listed: true},
	{kind: "DestinationRule", group: "networking.istio.io", versions: istioVersions, resource: "destinationrules", needed: true, listed: true},
	{kind: "Service", versions: []string{"v1"}, resource: "services", listed: true},
	{kind: "ServiceEntry", group: "networking.istio.io", versions: istioVersions, resource: "serviceentries", listed: true},
	{kind: "HTTPRoute", group: "gateway.networking.k8s.io", versions: []string{"v1", "v1beta1"}, resource: "httproutes", listed: true},
	{kind: "HelmRelease", group: "helm.toolkit.fluxcd.io", versions: []string{"v2", "v2beta2"}, resource: "helmreleases", listed: true},
	{kind: "Namespace", versions: []string{"v1"}, resource: "namespaces"},
	{kind: "Deployment", group: "apps", versions: []string{"v1"}, resource: "deployments"},
	{kind: "Application", group: "argoproj.io", versions: []string{"v1alpha1"}, resource: "applications"},
}

var istioVersions = []string{"v1", "v1beta1", "v1alpha3"}

// gathering reads from one cluster what a lint needs.
type gathering struct {
	p      *Program
	reader reader
	in     lint.Input
	// unread are the kinds and namespaces that could not be read, with the reason.
	unread map[[2]string]string
	asked  map[lint.Ref]bool
}

// judgeCluster lists the chosen namespace, then fetches what Rollouts name elsewhere,
// until nothing more is asked for.
func (p *Program) judgeCluster(ctx context.Context, t clusterFlags, options lint.Options) (lint.Report, error) {
	open := p.connect
	if open == nil {
		open = connect
	}
	t.UserAgent = strings.ReplaceAll(CommandName(p.Name), " ", "-")
	t.Else = ", or give files with -f"
	from, err := open(t)
	if err != nil {
		return lint.Report{}, err
	}
	g := &gathering{p: p, reader: from, unread: map[[2]string]string{}, asked: map[lint.Ref]bool{}}
	if err := g.list(ctx); err != nil {
		return lint.Report{}, err
	}
	const rounds = 4 // a Rollout names a rule, which names a host
	for range rounds {
		if more, err := g.fetch(ctx, lint.Run(g.in, options).Missing); err != nil || !more {
			if err != nil {
				return lint.Report{}, err
			}
			break
		}
	}
	options.Complete = func(kind, namespace string) bool { return g.unread[[2]string{kind, namespace}] == "" }
	report := p.run(g.in, options)
	report.Notes = append(report.Notes, g.notes()...)
	slices.Sort(report.Notes)
	return report, nil
}

// notes are what could not be read, and why.
func (g *gathering) notes() []string {
	var notes []string
	for key, reason := range g.unread {
		what := key[0] + " of namespace " + key[1]
		if key[1] == "" {
			what = key[0]
		}
		notes = append(notes, fmt.Sprintf("%s: could not be read, and was not checked: %s", what, reason))
	}
	return notes
}

// list reads the chosen namespace.
func (g *gathering) list(ctx context.Context) error {
	namespace := g.reader.Namespace()
	for _, s := range sources {
		if !s.listed {
			continue
		}
		what := fmt.Sprintf("reading %s of namespace %s", s.resource, namespace)
		if err := g.p.during(what, func() error { return g.listOne(ctx, s, namespace) }); err != nil {
			return err
		}
	}
	_, err := g.fetch(ctx, append(g.trackers(), lint.Ref{Kind: "Namespace", Name: namespace}))
	return err
}

func (g *gathering) listOne(ctx context.Context, s source, namespace string) error {
	items, err := inVersions(s, func(resource schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
		return g.reader.List(ctx, resource, namespace)
	})
	if err != nil {
		return g.failed(s, namespace, err)
	}
	for _, item := range items {
		g.in.Add(item.Object)
	}
	return nil
}

// inVersions asks for each version until the cluster has one.
func inVersions[T any](s source, read func(schema.GroupVersionResource) (T, error)) (answer T, err error) {
	for _, version := range s.versions {
		answer, err = read(schema.GroupVersionResource{Group: s.group, Version: version, Resource: s.resource})
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	return answer, err
}

// failed decides whether the lint can go on: without a kind that the cluster does not
// have there is nothing to check, and what may not be read is noted.
func (g *gathering) failed(s source, namespace string, err error) error {
	switch {
	case s.needed && apierrors.IsNotFound(err):
		return fmt.Errorf("the cluster has no %s (%s): is this the right cluster?", s.resource, s.group)
	case s.needed:
		return err
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		g.unread[[2]string{s.kind, namespace}] = err.Error()
		return nil
	}
	return err
}

// fetch reads single objects, each once, and tells whether there was any new one.
func (g *gathering) fetch(ctx context.Context, refs []lint.Ref) (more bool, err error) {
	for _, ref := range refs {
		at := slices.IndexFunc(sources, func(s source) bool { return s.kind == ref.Kind && s.group == ref.Group })
		if at < 0 || g.asked[ref] || sources[at].listed && ref.Namespace == g.reader.Namespace() {
			continue
		}
		g.asked[ref] = true
		found, err := g.fetchOne(ctx, sources[at], ref)
		if err != nil {
			return false, err
		}
		more = more || found
	}
	return more, nil
}

func (g *gathering) fetchOne(ctx context.Context, s source, ref lint.Ref) (bool, error) {
	var o *unstructured.Unstructured
	err := g.p.during(fmt.Sprintf("reading %s %s/%s", ref.Kind, ref.Namespace, ref.Name), func() (err error) {
		o, err = inVersions(s, func(resource schema.GroupVersionResource) (*unstructured.Unstructured, error) {
			return g.reader.Get(ctx, resource, ref.Namespace, ref.Name)
		})
		return err
	})
	switch {
	case err == nil:
		g.in.Add(o.Object)
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		g.unread[[2]string{s.kind, ref.Namespace}] = err.Error()
		return false, nil
	}
	return false, err
}

// trackers are the Argo CD Applications that the listed objects say they come from.
func (g *gathering) trackers() []lint.Ref {
	var refs []lint.Ref
	for _, id := range g.in.Annotations("argocd.argoproj.io/tracking-id") {
		name, _, _ := strings.Cut(id, ":")
		namespace := "argocd"
		if before, after, found := strings.Cut(name, "_"); found {
			namespace, name = before, after
		}
		if name != "" {
			refs = append(refs, lint.Ref{Group: "argoproj.io", Kind: "Application", Namespace: namespace, Name: name})
		}
	}
	return refs
}
