package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// kubeconfig leads to a server, with a token.
func kubeconfig(server string) string {
	return `{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"` + server + `"}}],
"users":[{"name":"u","user":{"token":"t0psecret"}}],
"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`
}

func secret(name string, data ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "istio-system", Name: name}, Data: map[string][]byte{}}
	for i := 0; i+1 < len(data); i += 2 {
		s.Data[data[i]] = []byte(data[i+1])
	}
	return s
}

func TestOfSeveralKubeconfigsNoneIsChosen(t *testing.T) {
	for sentence, tc := range map[string]struct {
		secrets []*corev1.Secret
		want    []string
		absent  bool
	}{
		"no Secret": {nil, []string{"no Secret", meshSecretLabel, "istio-system", "at every call"}, true},
		"two Secrets": {[]*corev1.Secret{secret("west", "a", "x"), secret("east", "a", "x")},
			[]string{"2 Secrets", meshSecretLabel, "(east, west)", "leave the label on one"}, false},
		"a Secret without data":      {[]*corev1.Secret{secret("east")}, []string{"Secret istio-system/east", "has no data"}, false},
		"a Secret with several keys": {[]*corev1.Secret{secret("east", "two", "x", "one", "y")}, []string{"Secret istio-system/east", "keys one, two"}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := onlyKubeconfig("istio-system", tc.secrets)
			if err == nil || got != (found{}) {
				t.Fatalf("found %v, error %v", got, err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
			if got := errors.As(err, new(absentError)); got != tc.absent {
				t.Errorf("absent: %t, want %t", got, tc.absent)
			}
		})
	}
	got, err := onlyKubeconfig("istio-system", []*corev1.Secret{secret("east", "any", "text")})
	if want := (found{content: "text", origin: "Secret istio-system/east"}); err != nil || got != want {
		t.Errorf("found %v, error %v, want %v", got, err, want)
	}
}

func TestAFileIsReadAsItIsNow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	file := kubeconfigFile(path)
	_, err := file.read()
	if !errors.As(err, new(absentError)) || !strings.Contains(err.Error(), path) {
		t.Errorf("without a file: %v", err)
	}
	for _, content := range []string{"one", "two", "six"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := file.read()
		if err != nil || got.content != content || !strings.Contains(got.origin, path) {
			t.Errorf("read %q from %q, error %v, want %q", got.content, got.origin, err, content)
		}
	}
	if _, err := kubeconfigFile(filepath.Dir(path)).read(); err == nil || errors.As(err, new(absentError)) {
		t.Errorf("a folder in place of a file: %v", err)
	}
}

func TestAKubeconfigThatIsNoneIsSaidToBeSoWithoutItsContent(t *testing.T) {
	for sentence, content := range map[string]string{
		"nothing":            "",
		"no YAML":            "t0psecret: [",
		"text":               "t0psecret",
		"no clusters":        `{"apiVersion":"v1","kind":"Config","users":[{"name":"u","user":{"token":"t0psecret"}}]}`,
		"another kind":       `{"apiVersion":"v1","kind":"Secret","data":{"token":"t0psecret"}}`,
		"no such context":    strings.Replace(kubeconfig("https://east"), `"current-context":"c"`, `"current-context":"other"`, 1),
		"no server":          kubeconfig(""),
		"a file that is not": strings.Replace(kubeconfig("https://east"), `"token":`, `"client-key":"none","client-certificate":"none","token":`, 1),
	} {
		t.Run(sentence, func(t *testing.T) {
			config, err := found{content: content, origin: "Secret istio-system/east"}.config(&rest.Config{})
			if err == nil {
				t.Fatalf("a configuration for %s", config.Host)
			}
			if text := err.Error(); !strings.HasPrefix(text, "Secret istio-system/east") || strings.Contains(text, "t0psecret") {
				t.Errorf("error %q", text)
			}
		})
	}
}

func TestTheConfigurationHasThePluginsLimitsAndTheFilesPaths(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	certificate := filepath.Join(filepath.Dir(path), "ca.crt")
	if err := os.WriteFile(certificate, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	content := strings.Replace(kubeconfig("https://user:t0psecret@east:6443/prefix"), `"server":`, `"certificate-authority":"ca.crt","server":`, 1)
	config, err := found{content: content, origin: "kubeconfig " + path, path: path}.config(&rest.Config{QPS: 50, Burst: 100, UserAgent: "plugin/1"})
	if err != nil {
		t.Fatal(err)
	}
	want := []any{float32(50), 100, "plugin/1", certificate, "t0psecret", "https://east:6443"}
	got := []any{config.QPS, config.Burst, config.UserAgent, config.CAFile, config.BearerToken, shown(config)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestTheMeshHasOneSourceOfCredentials(t *testing.T) {
	_, err := New(&rest.Config{Host: "https://west"}, Options{MeshKubeconfig: "/tmp/x", MeshSecretNamespace: "istio-system"}, hclog.NewNullLogger())
	if err == nil || !strings.Contains(err.Error(), "choose one") {
		t.Errorf("error %v", err)
	}
}

func TestAKubeconfigFromASecretNamesNoProgramsAndNoFiles(t *testing.T) {
	for sentence, tc := range map[string]struct{ user, cluster, refused string }{
		"a token":            {user: `token: abc`},
		"a program":          {user: `exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}`, refused: `user "u" runs a program`},
		"a provider":         {user: `auth-provider: {name: gcp}`, refused: `user "u" runs a program`},
		"a file with token":  {user: `tokenFile: /etc/passwd`, refused: `user "u" names files`},
		"a file with a key":  {user: `client-key: /etc/key`, refused: `user "u" names files`},
		"a file with a root": {user: `token: abc`, cluster: `, certificate-authority: /etc/ca`, refused: `cluster "c" names a file`},
	} {
		t.Run(sentence, func(t *testing.T) {
			text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x, clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"%s}}],
users: [{name: u, user: {%s}}], contexts: [{name: x, context: {cluster: c, user: u}}]}`, tc.cluster, tc.user)
			_, err := found{content: text, origin: "Secret istio/mesh"}.config(&rest.Config{})
			if tc.refused == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.refused) || !strings.Contains(err.Error(), "Secret istio/mesh") {
				t.Errorf("error %v, want %q", err, tc.refused)
			}
		})
	}
}
