package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// server is an API server with one path for each list, in pages of one.
func server(t *testing.T, objects map[string][]string) (*httptest.Server, *[]string) {
	t.Helper()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.Header.Get("User-Agent"))
		w.Header().Set("Content-Type", "application/json")
		documents, there := objects[r.URL.Path]
		if !there {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			return
		}
		at := 0
		if token := r.URL.Query().Get("continue"); token != "" {
			fmt.Sscan(token, &at)
		}
		answer := map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": []any{}}
		if at < len(documents) {
			answer["items"] = []any{decode(t, documents[at])}
		}
		if at+1 < len(documents) {
			answer["metadata"] = map[string]any{"continue": fmt.Sprint(at + 1)}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s, &asked
}

func decode(t *testing.T, document string) (content any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(document), &content); err != nil {
		t.Error(err)
	}
	return content
}

// kubeconfig has two contexts, of which the second has the server and a namespace.
func kubeconfig(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	put(t, path, `{"apiVersion":"v1","kind":"Config","current-context":"away",
"clusters":[{"name":"away","cluster":{"server":"http://127.0.0.1:1"}},{"name":"here","cluster":{"server":"`+url+`"}}],
"contexts":[{"name":"away","context":{"cluster":"away"}},{"name":"here","context":{"cluster":"here","namespace":"shop"}}]}`)
	return path
}

func TestARealServerIsRead(t *testing.T) {
	s, asked := server(t, map[string][]string{
		"/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts":                {part(t, "web.yaml", 0)},
		"/apis/networking.istio.io/v1beta1/namespaces/shop/virtualservices":  {part(t, "web.yaml", 3), strings.ReplaceAll(part(t, "web.yaml", 3), "web", "cart")},
		"/apis/networking.istio.io/v1beta1/namespaces/shop/destinationrules": {strings.ReplaceAll(part(t, "web.yaml", 2), "web", "cart"), part(t, "web.yaml", 2)},
		"/api/v1/namespaces/shop/services":                                   {part(t, "web.yaml", 1)},
		"/apis/networking.istio.io/v1beta1/namespaces/shop/serviceentries":   {},
		"/apis/helm.toolkit.fluxcd.io/v2/namespaces/shop/helmreleases":       {},
	})
	got := running(t, nil, "lint", "--kubeconfig", kubeconfig(t, s.URL), "--context", "here", "web", "--failure-threshold", "info")
	if got.code != exitFine || got.err != "" || got.out != "1 Rollout checked: 0 errors, 0 warnings, 0 info\n" {
		t.Errorf("%+v\n%s", got, strings.Join(*asked, "\n"))
	}
	for _, request := range *asked {
		if !strings.HasSuffix(request, " rollouts-plugin-trafficrouter-istio") {
			t.Errorf("%s does not say who asks", request)
		}
	}
}

func TestAServerThatIsAwayOrSilentEndsTheRun(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	for want, args := range map[string][]string{
		"connection refused":                        {"lint", "--kubeconfig", kubeconfig(t, silent.URL)},
		"no answer within 50ms (--request-timeout)": {"lint", "--kubeconfig", kubeconfig(t, silent.URL), "--context", "here", "--request-timeout", "50ms"},
		`context "there" does not exist`:            {"lint", "--kubeconfig", kubeconfig(t, silent.URL), "--context", "there"},
	} {
		got := running(t, nil, args...)
		if got.code != exitFailed || !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
}
