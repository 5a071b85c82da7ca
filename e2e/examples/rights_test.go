package examples

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// installed is install for a test; what the controller said is printed should the
// test fail.
func installed(t *testing.T, overlay string, edits map[string]string) *installation {
	t.Helper()
	i, err := install(t.Context(), overlay, overlay, edits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the controller of %s:\n%s", overlay, i.Tail(60, "error", "warn"))
		}
	})
	return i
}

// applyRollout applies a Rollout of the examples for an installation, with further
// fields in its block.
func (e *example) applyRollout(i *installation, name string, block map[string]any) {
	e.Helper()
	content, err := os.ReadFile(file(name))
	if err != nil {
		e.Fatal(err)
	}
	ro := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(content, &ro.Object); err != nil {
		e.Fatal(err)
	}
	ro.SetLabels(i.Labels())
	for field, value := range block {
		path := []string{"spec", "strategy", "canary", "trafficRouting", "plugins", lab.DefaultPluginName, field}
		if err := unstructured.SetNestedField(ro.Object, value, path...); err != nil {
			e.Fatal(err)
		}
	}
	text, err := yaml.Marshal(ro.Object)
	if err != nil {
		e.Fatal(err)
	}
	if _, err := shared.Apply(e.ctx, e.subject.Namespace, text); err != nil {
		e.Fatal(err)
	}
}

// event waits for an Event on the Rollout whose message has all the texts.
func (e *example) event(texts ...string) corev1.Event {
	e.Helper()
	var found corev1.Event
	selector := fields.OneTermEqualSelector("involvedObject.name", e.subject.Rollout).String()
	err := lab.Until(e.ctx, fmt.Sprintf("an Event with %q", texts), func(ctx context.Context) (bool, error) {
		events, err := shared.Client.CoreV1().Events(e.subject.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return false, err
		}
		at := slices.IndexFunc(events.Items, func(event corev1.Event) bool {
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(event.Reason+": "+event.Message, text) })
		})
		if at >= 0 {
			found = events.Items[at]
		}
		return at >= 0, nil
	})
	if err != nil {
		e.Fatal(err)
	}
	return found
}

// without are rules that lack some verbs on a resource.
func without(rules []rbacv1.PolicyRule, resource string, verbs ...string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, one := range rule.Resources {
			single := *rule.DeepCopy()
			single.Resources = []string{one}
			if one == resource {
				single.Verbs = slices.DeleteFunc(single.Verbs, func(verb string) bool { return slices.Contains(verbs, verb) })
			}
			if len(single.Verbs) > 0 {
				out = append(out, single)
			}
		}
	}
	return out
}

func TestNamespacedInstallation(t *testing.T) {
	t.Parallel()
	i := installed(t, "namespaced", map[string]string{
		installedPath: plugin, "--namespace=shop": "--namespace=" + controllerNamespace + "-namespaced",
	})
	stock := mustTyped[rbacv1.Role](t, i.manifests, "Role", account).Rules

	t.Run("without the right to patch VirtualServices the canary gets nothing and an Event names the right; once granted it goes on", func(t *testing.T) {
		t.Parallel()
		if err := i.setRules(t.Context(), without(stock, "virtualservices", "patch", "update")); err != nil {
			t.Fatal(err)
		}
		subject := subsetLevel("demo-subset-level")
		subject.Namespace = i.Namespace
		e := openIn(t, subject, "subset-level/service.yaml", "subset-level/destination-rule.yaml", "subset-level/virtual-service.yaml")
		e.applyRollout(i, "subset-level/rollout.yaml", nil)
		e.healthy("")
		e.setImage("argoproj/rollouts-demo:red")
		e.event("writing VirtualService "+i.Namespace+"/demo-subset-level", `cannot patch resource "virtualservices"`,
			"system:serviceaccount:"+i.Namespace+":"+account)
		if now := e.await("the present", func(timeline.State) bool { return true }); now.CanaryWeight != 0 {
			t.Errorf("the canary has %d", now.CanaryWeight)
		}
		if err := i.setRules(e.ctx, stock); err != nil {
			t.Fatal(err)
		}
		e.pauseAt(1, 10)
		e.promote()
		e.pauseAt(3, 50)
		e.promote()
		e.await("the end", func(s timeline.State) bool {
			return s.Rollout.Phase == "Healthy" && s.StableHash == s.Rollout.PodHash && s.StableWeight == s.Max
		})
	})

	t.Run("verify.level Endpoints waits, an Event names the rights; once granted it goes on", func(t *testing.T) {
		t.Parallel()
		subject := hostLevel("demo-host-level")
		subject.Namespace = i.Namespace
		e := openIn(t, subject, "host-level/services.yaml", "host-level/virtual-service.yaml")
		e.applyRollout(i, "host-level/rollout.yaml", map[string]any{
			"verify": map[string]any{"level": "Endpoints", "onUnavailable": "Hold"},
		})
		e.healthy("")
		e.setImage(yellow)
		e.event(`cannot list resource "endpointslices"`, `in the namespace "`+i.Namespace+`"`, "grant them")
		rights, err := os.ReadFile(file("install/features/endpoints/namespaced/rights.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shared.Apply(e.ctx, i.Namespace, rights); err != nil {
			t.Fatal(err)
		}
		e.pauseAt(1, 10)
		e.promote()
		e.pauseAt(3, 50)
		e.promote()
		e.await("the end", func(s timeline.State) bool {
			return s.Rollout.Phase == "Healthy" && s.StableHash == s.Rollout.PodHash && s.StableWeight == s.Max
		})
	})
}

// sick is a Prometheus for which half of a canary's requests fail.
func sick(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := "100"
		if query := r.FormValue("query"); strings.Contains(query, "errors") {
			number = map[bool]string{true: "50", false: "0"}[strings.Contains(query, "canary")]
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[0,%q]}]}}`, number)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// freePort is an address on loopback that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestCompleteInstallationPullsBackASickCanaryThatEndpointsHaveShown(t *testing.T) {
	t.Parallel()
	metrics := freePort(t)
	i := installed(t, "complete", map[string]string{
		installedPath: plugin, "http://prometheus.monitoring:9090": sick(t), ":8082": metrics,
	})
	e := open(t, subsetLevel("demo-subset-level"),
		"subset-level/service.yaml", "subset-level/destination-rule.yaml", "subset-level/virtual-service.yaml")
	e.applyRollout(i, "subset-level/rollout.yaml", map[string]any{
		"verify": map[string]any{"level": "Endpoints", "onUnavailable": "Hold"},
		"healthGate": map[string]any{
			"interval": "10s", "minRequests": int64(10), "maxLatencyFactor": "0",
			"provider": map[string]any{"prometheus": map[string]any{"queries": map[string]any{
				"requests": `sum(increase(requests{side="{{side}}"}[{{window}}]))`,
				"errors":   `sum(increase(errors{side="{{side}}"}[{{window}}]))`,
			}}},
		},
	})
	e.healthy("")
	e.setImage(yellow)
	e.await("the canary's weight", func(s timeline.State) bool { return s.CanaryWeight == 10 })
	e.await("the abort", func(s timeline.State) bool {
		return s.Rollout.Abort && s.CanaryWeight == 0 && s.StableWeight == s.Max
	})
	event := e.event("CanaryRolledBack", "rolled back from 10: 5xx 50")
	if got, want := event.Source.Component, "rollouts-plugin-trafficrouter-istio"; got != want {
		t.Errorf("the Event is of %s, want %s", got, want)
	}
	answer, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the metrics answer %s", answer.Status)
	}
}
