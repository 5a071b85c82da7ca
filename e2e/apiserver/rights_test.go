package apiserver

import (
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
)

// without are rules that lack a verb on a resource.
func without(rules []rbacv1.PolicyRule, verbs []string, resource string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range rules {
		if !slices.Contains(rule.Resources, resource) {
			out = append(out, rule)
			continue
		}
		others := *rule.DeepCopy()
		others.Resources = slices.DeleteFunc(others.Resources, func(r string) bool { return r == resource })
		if len(others.Resources) > 0 {
			out = append(out, others)
		}
		rest := *rule.DeepCopy()
		rest.Resources = []string{resource}
		rest.Verbs = slices.DeleteFunc(rest.Verbs, func(v string) bool { return slices.Contains(verbs, v) })
		if len(rest.Verbs) > 0 {
			out = append(out, rest)
		}
	}
	return out
}

// remedy is what is said where all namespaces are watched, and only there.
const remedy = "grant the right, or start the plugin with --namespace=NAMESPACE if the controller serves only one"

func TestARightThatIsMissingAtTheStartIsNamedAndNeedsNoRestartOnceGranted(t *testing.T) {
	for what, tc := range map[string]struct {
		resource string
		verbs    []string
		own      bool // watches its own namespace only
		want     []string
	}{
		"VirtualServices in all namespaces": {
			resource: "virtualservices", verbs: []string{"list", "watch"},
			want: []string{"cannot watch virtualservices.networking.istio.io", `cannot list resource "virtualservices"`, "at the cluster scope", remedy},
		},
		"DestinationRules in one namespace": {
			resource: "destinationrules", verbs: []string{"list", "watch"}, own: true,
			want: []string{"cannot watch destinationrules.networking.istio.io", `cannot list resource "destinationrules"`, `in the namespace "NAMESPACE"`},
		},
		"ReplicaSets in all namespaces": {
			resource: "replicasets", verbs: []string{"list", "watch"},
			want: []string{"cannot watch replicasets.apps", `cannot list resource "replicasets"`, "at the cluster scope", remedy},
		},
		"pods in all namespaces": {
			resource: "pods", verbs: []string{"list", "watch"},
			want: []string{"cannot watch pods", `cannot list resource "pods"`, "at the cluster scope", remedy},
		},
		"pods in one namespace": {
			resource: "pods", verbs: []string{"list", "watch"}, own: true,
			want: []string{"cannot watch pods", `cannot list resource "pods"`, `in the namespace "NAMESPACE"`},
		},
		"Services in all namespaces": {
			resource: "services", verbs: []string{"list", "watch"},
			want: []string{"cannot watch services", `cannot list resource "services"`, "at the cluster scope", remedy},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			rules := stockRole(t).Rules
			a.grant(t, without(rules, tc.verbs, tc.resource))
			options := cluster.Options{}
			if tc.own {
				options.Namespace = a.namespace
			}
			c := newCluster(t, a.config(t, nil), options)
			var err error
			// The role itself takes a moment to be known.
			eventually(t, time.Minute, "an error that names the right", func() bool {
				err = c.Ready(within(t, 10*time.Second))
				return err != nil && strings.Contains(err.Error(), "forbidden") && strings.Contains(err.Error(), tc.resource)
			})
			for _, text := range append(tc.want, a.Name) {
				if tc.own {
					text = strings.ReplaceAll(text, "NAMESPACE", a.namespace)
				}
				if !strings.Contains(err.Error(), text) {
					t.Errorf("Ready says %q, which lacks %q", err, text)
				}
			}
			if tc.own && strings.Contains(err.Error(), "--namespace") {
				t.Errorf("Ready says %q to one who has set --namespace", err)
			}
			a.grant(t, rules)
			makeReady(t, c, 90*time.Second)
		})
	}
}

func TestARightToWriteThatIsMissingIsNamedAndNeedsNoRestartOnceGranted(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	rules := stockRole(t).Rules
	a.grant(t, without(rules, []string{"patch"}, "virtualservices"))
	c := newCluster(t, a.config(t, nil), cluster.Options{})
	makeReady(t, c, time.Minute)
	applyObjects(t, c, a.namespace)
	began := time.Now()
	_, changed, err := c.UpdateVirtualService(within(t, 10*time.Second), a.namespace, name, setWeight("first", 20))
	if changed || !apierrors.IsForbidden(err) {
		t.Fatalf("changed %t, %v, want forbidden", changed, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the refusal took %s", took)
	}
	for _, text := range []string{"writing VirtualService " + a.namespace + "/" + name, `cannot patch resource "virtualservices"`, `in the namespace "` + a.namespace + `"`} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %q, which lacks %q", err, text)
		}
	}
	if n := len(a.patches(t, "virtualservices", name)); n != 1 {
		t.Errorf("%d patches were sent, want 1", n)
	}
	a.grant(t, rules)
	eventually(t, time.Minute, "the write", func() bool {
		_, changed, err = c.UpdateVirtualService(within(t, 10*time.Second), a.namespace, name, setWeight("first", 20))
		return err == nil && changed
	})
}
