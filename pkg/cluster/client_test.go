package cluster

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// asked is one request as a server got it.
type asked struct{ method, path, query, contentType, body string }

// answering is a server that gives the same answer to everything and keeps what it was
// asked.
func answering(t *testing.T, answer string) (*rest.Config, func() []asked) {
	t.Helper()
	var mu sync.Mutex
	var all []asked
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		all = append(all, asked{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), string(body)})
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}, func() []asked {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func TestEachKindIsAskedForAtItsPlace(t *testing.T) {
	seconds := int64(7)
	options := metav1.ListOptions{LabelSelector: "a=b", FieldSelector: "c=d", ResourceVersion: "9", TimeoutSeconds: &seconds}
	const query = "fieldSelector=c%3Dd&labelSelector=a%3Db&resourceVersion=9&timeout=7s&timeoutSeconds=7"
	for path, list := range map[string]func(clients) (runtime.Object, error){
		"/api/v1/services": func(c clients) (runtime.Object, error) {
			return typed[*corev1.ServiceList]{c.core, "", "services", func() *corev1.ServiceList { return &corev1.ServiceList{} }}.List(t.Context(), options)
		},
		"/api/v1/namespaces/shop/secrets": func(c clients) (runtime.Object, error) {
			return typed[*corev1.SecretList]{c.core, "shop", "secrets", func() *corev1.SecretList { return &corev1.SecretList{} }}.List(t.Context(), options)
		},
		"/apis/apps/v1/namespaces/shop/replicasets": func(c clients) (runtime.Object, error) {
			return typed[*appsv1.ReplicaSetList]{c.apps, "shop", "replicasets", func() *appsv1.ReplicaSetList { return &appsv1.ReplicaSetList{} }}.List(t.Context(), options)
		},
		"/apis/discovery.k8s.io/v1/endpointslices": func(c clients) (runtime.Object, error) {
			return typed[*discoveryv1.EndpointSliceList]{c.discovery, "", "endpointslices", func() *discoveryv1.EndpointSliceList { return &discoveryv1.EndpointSliceList{} }}.List(t.Context(), options)
		},
	} {
		t.Run(path, func(t *testing.T) {
			config, got := answering(t, `{"metadata":{"resourceVersion":"11"},"items":[{"metadata":{"name":"cart"}}]}`)
			c, err := newClients(config)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := list(c)
			if err != nil {
				t.Fatal(err)
			}
			if text, _ := json.Marshal(objects); !strings.Contains(string(text), `"name":"cart"`) || !strings.Contains(string(text), `"resourceVersion":"11"`) {
				t.Errorf("read %s", text)
			}
			if want := (asked{method: http.MethodGet, path: path, query: query}); len(got()) != 1 || got()[0] != want {
				t.Errorf("asked %+v, want %+v", got(), want)
			}
		})
	}
}

func TestAWatchSaysSo(t *testing.T) {
	config, got := answering(t, `{"type":"ADDED","object":{"kind":"Service","apiVersion":"v1","metadata":{"name":"cart"}}}`)
	c, err := newClients(config)
	if err != nil {
		t.Fatal(err)
	}
	w, err := typed[*corev1.ServiceList]{client: c.core, resource: "services"}.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if service, ok := (<-w.ResultChan()).Object.(*corev1.Service); !ok || service.Name != "cart" {
		t.Errorf("brought %v", service)
	}
	if all := got(); len(all) != 1 || all[0].query != "watch=true" {
		t.Errorf("asked %+v", all)
	}
}

func TestEventsAreWrittenInTheirOwnNamespace(t *testing.T) {
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart.1"}, Reason: "Told"}
	for name, test := range map[string]struct {
		write func(eventSink) (*corev1.Event, error)
		want  asked
	}{
		"a new one": {func(s eventSink) (*corev1.Event, error) { return s.Create(event) },
			asked{method: http.MethodPost, path: "/api/v1/namespaces/shop/events", contentType: "application/json"}},
		"a changed one": {func(s eventSink) (*corev1.Event, error) { return s.Update(event) },
			asked{method: http.MethodPut, path: "/api/v1/namespaces/shop/events/cart.1", contentType: "application/json"}},
		"one that comes again": {func(s eventSink) (*corev1.Event, error) { return s.Patch(event, []byte(`{"count":2}`)) },
			asked{method: http.MethodPatch, path: "/api/v1/namespaces/shop/events/cart.1", contentType: "application/strategic-merge-patch+json", body: `{"count":2}`}},
	} {
		t.Run(name, func(t *testing.T) {
			config, got := answering(t, `{"kind":"Event","apiVersion":"v1","metadata":{"name":"cart.1","resourceVersion":"3"}}`)
			c, err := newClients(config)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := test.write(eventSink{c.core})
			if err != nil || stored.ResourceVersion != "3" {
				t.Fatalf("stored %v, %v", stored, err)
			}
			all := got()
			if len(all) != 1 {
				t.Fatalf("%d requests", len(all))
			}
			if test.want.body == "" {
				if !strings.Contains(all[0].body, `"reason":"Told"`) {
					t.Errorf("sent %s", all[0].body)
				}
				all[0].body = ""
			}
			if all[0] != test.want {
				t.Errorf("asked %+v, want %+v", all[0], test.want)
			}
		})
	}
}

func TestTheGroupsShareOneLimitOfRequests(t *testing.T) {
	config, _ := answering(t, `{}`)
	config.QPS, config.Burst = 1, 1
	c, err := newClients(config)
	if err != nil {
		t.Fatal(err)
	}
	if c.core.GetRateLimiter() != c.apps.GetRateLimiter() || c.core.GetRateLimiter() != c.discovery.GetRateLimiter() {
		t.Error("each has a limit of its own")
	}
}

// The linker keeps what is named here whole, see client.go.
func TestTheClientsOfAllKindsAreNotInTheProgram(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../../plugin").Output()
	if err != nil {
		t.Fatal(err)
	}
	there := strings.Fields(string(out))
	if len(there) < 300 {
		t.Fatalf("only %d packages are listed", len(there))
	}
	for _, name := range there {
		for _, all := range []string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/discovery", "k8s.io/client-go/informers", "k8s.io/client-go/testing"} {
			if name == all || strings.HasPrefix(name, all+"/") {
				t.Errorf("the program has %s: use what client.go makes", name)
			}
		}
	}
}

func TestThePluginAsksForItsOwnTimeOnly(t *testing.T) {
	config, got := answering(t, `{"major":"1"}`)
	asking, err := newAsking(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := asking.Get().AbsPath("/version").Do(context.Background()).Error(); err != nil {
		t.Fatal(err)
	}
	if all := got(); len(all) != 1 || all[0].path != "/version" || all[0].query != "timeout="+discoveryTimeout.String() {
		t.Errorf("asked %+v", all)
	}
}
