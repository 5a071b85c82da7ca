package istio

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) []byte {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

const goodRule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop, labels: {team: a}, annotations: {note: b}}
spec:
  host: cart
  subsets:
  - {name: stable, labels: {app: cart}}
  - {name: canary, labels: {app: cart}}
`

const goodService = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart]
  http:
  - name: primary
    route:
    - {destination: {host: cart, subset: stable}, weight: 90}
    - {destination: {host: cart, subset: canary}, weight: 10}
`

func TestVerdicts(t *testing.T) {
	for sentence, c := range map[string]struct {
		object string
		err    string // "" passes
		warns  string
	}{
		"a good DestinationRule passes": {object: goodRule},
		"a good VirtualService passes":  {object: goodService},
		"an older version of the kind is judged the same": {
			object: strings.Replace(goodService, "/v1\n", "/v1alpha3\n", 1),
		},
		"a negative weight is refused": {
			object: strings.Replace(goodService, "weight: 10", "weight: -10", 1), err: "weight",
		},
		"a route whose weights add up to nothing is refused": {
			object: strings.NewReplacer("90", "0", "10", "0").Replace(goodService), err: "total destination weight = 0",
		},
		"two subsets of one name are refused": {
			object: strings.Replace(goodRule, "name: canary", "name: stable", 1), err: "duplicate subset names: stable",
		},
		"an object without spec is refused": {
			object: "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: cart}}", err: "must be provided",
		},
		"a weight that is text is refused": {
			object: strings.Replace(goodService, "weight: 10", "weight: much", 1), err: "spec cannot be read",
		},
		"a field of a later version passes with a warning": {
			object: strings.Replace(goodRule, "host: cart", "host: cart\n  futureField: 1", 1), warns: "futureField",
		},
		"a route that nothing reaches passes with a warning": {
			object: goodService + "  - {name: second, route: [{destination: {host: cart}}]}\n", warns: "not used",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			warnings, err := Validate(object(t, c.object))
			switch {
			case c.err == "" && err != nil:
				t.Error(err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("error %v, want %q", err, c.err)
			case errors.Is(err, ErrNotJudged):
				t.Errorf("not judged: %v", err)
			}
			if got := strings.Join(warnings, "; "); (got == "") != (c.warns == "") || !strings.Contains(got, c.warns) {
				t.Errorf("warnings %q, want %q", got, c.warns)
			}
		})
	}
}

func TestWhatIsNeitherKindIsNotJudged(t *testing.T) {
	for _, text := range []string{
		"", "null", "[]", `"x"`, "{", "{}", `{"apiVersion":"v1","kind":"Service"}`,
		`{"apiVersion":"networking.istio.io/v1","kind":"Gateway"}`,
		`{"apiVersion":"example.com/v1","kind":"VirtualService"}`,
		`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"labels":{"a":1}}}`,
	} {
		if _, err := Validate([]byte(text)); !errors.Is(err, ErrNotJudged) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
