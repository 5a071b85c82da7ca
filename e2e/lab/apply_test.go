package lab

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const twoDocuments = `
# a document of nothing but a comment
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {key: %s}
---
apiVersion: v1
kind: Service
metadata: {name: two}
spec: {ports: [{port: 80}], selector: {app: web}}
`

func TestApplyCreatesAndChangesEveryDocument(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	namespace := scenario(t, ctx)
	for _, value := range []string{"first", "second"} {
		stored, err := shared.Apply(ctx, namespace, fmt.Appendf(nil, twoDocuments, value))
		if err != nil || len(stored) != 2 {
			t.Fatalf("%d objects, %v, want 2", len(stored), err)
		}
		one, err := shared.Client.CoreV1().ConfigMaps(namespace).Get(ctx, "one", metav1.GetOptions{})
		if err != nil || one.Data["key"] != value {
			t.Errorf("ConfigMap holds %v, %v, want %s", one.Data, err, value)
		}
	}
	if _, err := shared.Client.CoreV1().Services(namespace).Get(ctx, "two", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestApplyNamesTheDocumentThatFailsAndAppliesNoneAfterIt(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	namespace := scenario(t, ctx)
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"a kind that nobody serves": {"apiVersion: v9\nkind: Nothing\nmetadata: {name: a}", []string{"document 1 of 1", "Nothing", "v9"}},
		"not a document":            {"- a\n- b", []string{"document 1"}},
		"a field that is wrong":     {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: 1}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}", []string{"document 1 of 2"}},
	} {
		stored, err := shared.Apply(ctx, namespace, []byte(tc.text))
		if err == nil || !contains(err.Error(), tc.want...) || len(stored) > 0 {
			t.Errorf("%s: %d objects stored, error %v, want one with %q", name, len(stored), err, tc.want)
		}
	}
	list, err := shared.Client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("stored all the same: %v, %v", list.Items, err)
	}
}

func TestIstioObjectsAreStoredInEveryVersionThatIstioServes(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	namespace := scenario(t, ctx)
	for _, version := range []string{"v1", "v1beta1", "v1alpha3"} {
		_, err := shared.Apply(ctx, namespace, fmt.Appendf(nil, `
apiVersion: networking.istio.io/%[1]s
kind: VirtualService
metadata: {name: web-%[1]s}
spec: {hosts: [web], http: [{route: [{destination: {host: web}}]}]}
---
apiVersion: networking.istio.io/%[1]s
kind: DestinationRule
metadata: {name: web-%[1]s}
spec: {host: web, subsets: [{name: stable, labels: {app: web}}]}
---
apiVersion: networking.istio.io/%[1]s
kind: ServiceEntry
metadata: {name: web-%[1]s}
spec: {hosts: [web.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
`, version))
		if err != nil {
			t.Error(err)
		}
	}
}
