package virtualservice_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// form is a StringMatch in the notation of the tests: "exact a", "prefix a",
// "regex a", or nothing for one that is there.
func form(text string) virtualservice.StringMatch {
	kind, value, _ := strings.Cut(text, " ")
	return map[string]virtualservice.StringMatch{
		"exact": {Exact: value}, "prefix": {Prefix: value}, "regex": {Regex: value},
	}[kind]
}

func ptr(m virtualservice.StringMatch) *virtualservice.StringMatch { return &m }

// first is the managed route that is made before a route with this match block and
// other fields, or the error.
func first(t *testing.T, route string, managed virtualservice.ManagedRoute) (fields, error) {
	t.Helper()
	list := listed(t, "- {"+route+"route: [{destination: {host: stable}, weight: 100}, {destination: {host: canary}, weight: 0}]}")
	u := virtualService(fields{"http": list})
	patch, _, err := setTarget(u, virtualservice.Selection{}, byHosts(), wants(0, managed))
	if err != nil {
		return nil, err
	}
	reach(t, u, byHosts(), wants(0, managed))
	made, _ := httpOf(apply(t, u, patch))[0].(fields)
	return made, nil
}

// value decodes YAML as a client does.
func value(t *testing.T, text string) any {
	t.Helper()
	document, err := yaml.YAMLToJSON([]byte("{kind: x, value: " + text + "}"))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(document); err != nil {
		t.Fatal(err)
	}
	return u.Object["value"]
}

// fieldMatch is a mirror route with one condition on a field of the request.
func fieldMatch(field, condition string) virtualservice.ManagedRoute {
	var match virtualservice.MirrorMatch
	switch field {
	case "uri":
		match.Path = ptr(form(condition))
	case "method":
		match.Method = ptr(form(condition))
	default:
		match.Headers = map[string]virtualservice.StringMatch{field: form(condition)}
	}
	return virtualservice.ManagedRoute{Name: "mir", Mirror: &virtualservice.Mirror{Match: []virtualservice.MirrorMatch{match}}}
}

// Two conditions on the same field of one request.
func TestConditionsOnTheSameField(t *testing.T) {
	const never = "no request can match both"
	for sentence, tc := range map[string]struct {
		block string // of the source
		field string
		step  string
		want  string // the block, or what the error says
	}{
		"no condition in the route":           {"{}", "uri", "exact /a", "{uri: {exact: /a}}"},
		"a null in the route":                 {"{uri: null}", "uri", "exact /a", "{uri: {exact: /a}}"},
		"other fields stay":                   {"{port: 80, futureField: [1, null], uri: {exact: /a}}", "method", "exact GET", "{port: 80, futureField: [1, null], uri: {exact: /a}, method: {exact: GET}}"},
		"the same exact":                      {"{uri: {exact: /a}}", "uri", "exact /a", "{uri: {exact: /a}}"},
		"the same prefix":                     {"{uri: {prefix: /a}}", "uri", "prefix /a", "{uri: {prefix: /a}}"},
		"the same regex":                      {"{uri: {regex: /a.+}}", "uri", "regex /a.+", "{uri: {regex: /a.+}}"},
		"two exacts":                          {"{uri: {exact: /a}}", "uri", "exact /b", never},
		"an exact with the prefix":            {"{uri: {exact: /a/b}}", "uri", "prefix /a", "{uri: {exact: /a/b}}"},
		"an exact without the prefix":         {"{uri: {exact: /b}}", "uri", "prefix /a", never},
		"a prefix of the exact":               {"{uri: {prefix: /a}}", "uri", "exact /a/b", "{uri: {exact: /a/b}}"},
		"a prefix of another exact":           {"{uri: {prefix: /b}}", "uri", "exact /a/b", never},
		"an exact that the regex matches":     {"{uri: {exact: /a1}}", "uri", "regex /a[0-9]", "{uri: {exact: /a1}}"},
		"the regex has to match all of it":    {"{uri: {exact: /a12}}", "uri", "regex /a[0-9]", never},
		"also with alternatives":              {"{uri: {exact: /a1}}", "uri", "regex /a|/b", never},
		"a regex that matches the exact":      {"{uri: {regex: '/a.*'}}", "uri", "exact /abc", "{uri: {exact: /abc}}"},
		"a regex that does not":               {"{uri: {regex: '/a.*'}}", "uri", "exact /bc", never},
		"the longer prefix, of the route":     {"{uri: {prefix: /a/b}}", "uri", "prefix /a", "{uri: {prefix: /a/b}}"},
		"the longer prefix, of the step":      {"{uri: {prefix: /a}}", "uri", "prefix /a/b", "{uri: {prefix: /a/b}}"},
		"different prefixes":                  {"{uri: {prefix: /a}}", "uri", "prefix /b/c", never},
		"different prefixes, the other way":   {"{uri: {prefix: /a/c}}", "uri", "prefix /b", never},
		"any path begins with a slash":        {"{uri: {prefix: /}}", "uri", "regex /a.+", "{uri: {regex: /a.+}}"},
		"any path in the step":                {"{uri: {regex: /a.+}}", "uri", "prefix /", "{uri: {regex: /a.+}}"},
		"any path in both":                    {"{port: 1}", "uri", "prefix /", "{port: 1}"},
		"a path that is there always is":      {"{port: 1}", "uri", "", "{port: 1}"},
		"a slash is no prefix of a header":    {"{headers: {x: {prefix: /}}}", "x", "exact a", never},
		"the empty prefix is of everything":   {"{uri: {prefix: ''}}", "uri", "regex /a.+", "{uri: {regex: /a.+}}"},
		"a regex for anything":                {"{headers: {x: {regex: .*}}}", "x", "prefix a", "{headers: {x: {prefix: a}}}"},
		"Istio's star for a header":           {"{headers: {x: {regex: '*'}}}", "x", "prefix a", "{headers: {x: {prefix: a}}}"},
		"a header that is there":              {"{headers: {x: {}}}", "x", "prefix a", "{headers: {x: {prefix: a}}}"},
		"a header that has to be there":       {"{headers: {x: {prefix: a}}}", "x", "", "{headers: {x: {prefix: a}}}"},
		"a header that has to be there only":  {"{}", "x", "", "{headers: {x: {}}}"},
		"headers by name without case":        {"{headers: {X-User: {prefix: a}}}", "x-user", "exact ab", "{headers: {X-User: {exact: ab}}}"},
		"another header":                      {"{headers: {z: {prefix: a}}}", "x", "exact ab", "{headers: {z: {prefix: a}, x: {exact: ab}}}"},
		"the same header in withoutHeaders":   {"{withoutHeaders: {x: {exact: a}}}", "x", "prefix a", "{withoutHeaders: {x: {exact: a}}, headers: {x: {prefix: a}}}"},
		"values of headers have case":         {"{headers: {x: {exact: A}}}", "x", "exact a", never},
		"paths have case":                     {"{uri: {exact: /A}}", "uri", "exact /a", never},
		"unless the route says otherwise":     {"{ignoreUriCase: true, uri: {exact: /A}}", "uri", "exact /a", "{ignoreUriCase: true, uri: {exact: /A}}"},
		"prefixes without case":               {"{ignoreUriCase: true, uri: {prefix: /A}}", "uri", "prefix /a/B", "{ignoreUriCase: true, uri: {prefix: /a/B}}"},
		"a regex without case":                {"{ignoreUriCase: true, uri: {exact: /A}}", "uri", "regex /[a-c]", "{ignoreUriCase: true, uri: {exact: /A}}"},
		"a method has case all the same":      {"{ignoreUriCase: true, method: {exact: get}}", "method", "exact GET", never},
		"methods":                             {"{method: {regex: GET|HEAD}}", "method", "exact GET", "{method: {exact: GET}}"},
		"other methods":                       {"{method: {exact: PUT}}", "method", "exact GET", never},
		"two regexes cannot be one":           {"{uri: {regex: /a.+}}", "uri", "regex /.+b", `match[0].uri: regex "/a.+" of the route and regex "/.+b" of the step: one field cannot hold both: make one of them exact`},
		"a regex and a prefix cannot be one":  {"{headers: {X: {prefix: a}}}", "x", "regex .+b", `match[0].headers["X"]: prefix "a" of the route and regex ".+b" of the step`},
		"a regex that is none":                {"{uri: {exact: /a}}", "uri", "regex (", `regex "(" cannot be compared with "/a"`},
		"a regex of the route that is none":   {"{uri: {regex: '('}}", "uri", "exact /a", `regex "(" cannot be compared with "/a"`},
		"quotes and angle brackets are kept":  {"{uri: {prefix: '/<\"&'}}", "method", "exact <é>", "{uri: {prefix: '/<\"&'}, method: {exact: <é>}}"},
		"a field of another spelling is kept": {"{URI: {exact: /z}}", "uri", "exact /a", "{URI: {exact: /z}, uri: {exact: /a}}"},
	} {
		t.Run(sentence, func(t *testing.T) {
			made, err := first(t, "match: ["+tc.block+"], ", fieldMatch(tc.field, tc.step))
			if !strings.HasPrefix(tc.want, "{") {
				mention(t, err, "VirtualService shop/web: ", `managed route "mir"`, tc.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value(t, "["+tc.want+"]"), made["match"]); diff != "" {
				t.Errorf("match (-want +got):\n%s", diff)
			}
		})
	}
}

// Each block of the route with each match of the step; what cannot be is left out.
func TestMatchesAreCombined(t *testing.T) {
	twoHeaders := virtualservice.ManagedRoute{Name: "hdr", Header: []virtualservice.HeaderMatch{
		{Name: "x", Value: form("exact a")}, {Name: "z", Value: form("prefix b")}}}
	twoMirrors := virtualservice.ManagedRoute{Name: "mir", Mirror: &virtualservice.Mirror{Match: []virtualservice.MirrorMatch{
		{Method: ptr(form("exact GET")), Path: ptr(form("prefix /a")), Headers: map[string]virtualservice.StringMatch{"x": form("exact 1"), "X": form("prefix 1"), "z": {}}},
		{Path: ptr(form("prefix /b"))},
	}}}
	everything := virtualservice.ManagedRoute{Name: "mir", Mirror: &virtualservice.Mirror{Match: []virtualservice.MirrorMatch{{}}}}
	for sentence, tc := range map[string]struct {
		route   string
		managed virtualservice.ManagedRoute
		want    string
	}{
		"several headers are alternatives": {"", twoHeaders, "[{headers: {x: {exact: a}}}, {headers: {z: {prefix: b}}}]"},
		"an empty list of blocks is none":  {"match: [], ", twoHeaders, "[{headers: {x: {exact: a}}}, {headers: {z: {prefix: b}}}]"},
		"each with each": {"match: [{port: 1}, {port: 2}], ", twoHeaders,
			"[{port: 1, headers: {x: {exact: a}}}, {port: 1, headers: {z: {prefix: b}}}, {port: 2, headers: {x: {exact: a}}}, {port: 2, headers: {z: {prefix: b}}}]"},
		"all of one mirror match has to hold": {"match: [{uri: {prefix: /}}], ", twoMirrors,
			"[{uri: {prefix: /a}, method: {exact: GET}, headers: {X: {exact: '1'}, z: {}}}, {uri: {prefix: /b}}]"},
		"what cannot be is left out": {"match: [{uri: {exact: /a/1}}, {uri: {exact: /b/1}}, {uri: {exact: /c}}], ", twoMirrors,
			"[{uri: {exact: /a/1}, method: {exact: GET}, headers: {X: {exact: '1'}, z: {}}}, {uri: {exact: /b/1}}]"},
		"a mirror of everything":                    {"match: [{port: 1}], ", everything, "[{port: 1}]"},
		"a mirror of everything of a route for all": {"", everything, "[{}]"},
	} {
		t.Run(sentence, func(t *testing.T) {
			made, err := first(t, tc.route, tc.managed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value(t, tc.want), made["match"]); diff != "" {
				t.Errorf("match (-want +got):\n%s", diff)
			}
		})
	}
}

// rewrite.uri replaces what the uri has matched: with another uri it has to be
// another one for the same result.
func TestPathsAreRewrittenAsBefore(t *testing.T) {
	for sentence, tc := range map[string]struct {
		route string
		step  string // on the path; none is a header route
		want  string
	}{
		"no path in the step":              {"match: [{uri: {prefix: /api}}], rewrite: {uri: /}, ", "none", "{uri: /}"},
		"the same prefix":                  {"match: [{uri: {prefix: /api}}], rewrite: {uri: /v1}, ", "prefix /a", "{uri: /v1}"},
		"a longer prefix":                  {"match: [{uri: {prefix: /api}}], rewrite: {uri: /v1, authority: x}, ", "prefix /api/cart", "{uri: /v1/cart, authority: x}"},
		"an exact path":                    {"match: [{uri: {prefix: /api/}}], rewrite: {uri: /}, ", "exact /api/cart", "{uri: /cart}"},
		"any path before":                  {"rewrite: {uri: /v1/}, ", "prefix /cart", "{uri: /v1/cart}"},
		"an exact path before":             {"match: [{uri: {exact: /api}}], rewrite: {uri: /v1}, ", "prefix /a", "{uri: /v1}"},
		"a regex that becomes exact":       {"match: [{uri: {regex: '/[a-z]+'}}], rewrite: {uri: /v1}, ", "exact /api", "{uri: /v1}"},
		"without case":                     {"match: [{ignoreUriCase: true, uri: {prefix: /API}}], rewrite: {uri: /v1}, ", "prefix /api/cart", "{uri: /v1/cart}"},
		"a regex rewrite of another path":  {"match: [{uri: {prefix: /}}], rewrite: {uri: /ignored, uriRegexRewrite: {match: /api, rewrite: /}}, ", "regex /x", "{uri: /ignored, uriRegexRewrite: {match: /api, rewrite: /}}"},
		"only the authority":               {"match: [{uri: {prefix: /api}}], rewrite: {authority: x}, ", "exact /api/x", "{authority: x}"},
		"the empty path is no rewrite":     {"match: [{uri: {prefix: /api}}], rewrite: {uri: ''}, ", "exact /api/x", "{uri: ''}"},
		"blocks that agree":                {"match: [{uri: {prefix: /api}}, {uri: {prefix: /api}, port: 1}], rewrite: {uri: /}, ", "exact /api/x", "{uri: //x}"},
		"blocks that do not":               {"match: [{uri: {prefix: /a}}, {uri: {prefix: /a/b}}], rewrite: {uri: /}, ", "exact /a/b/c", `rewrite.uri would have to be "//b/c" for one match and "//c" for another`},
		"a regex in the place of any":      {"rewrite: {uri: /v1}, ", "regex /a.+", `rewrite.uri replaces what prefix "/" of the route has matched, and cannot do the same with regex "/a.+" of the step`},
		"a prefix in the place of a regex": {"match: [{uri: {regex: .*}}], rewrite: {uri: /v1}, ", "prefix /a", `rewrite.uri replaces what regex ".*"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			managed := fieldMatch("uri", tc.step)
			if tc.step == "none" {
				managed = header("hdr")
			}
			made, err := first(t, tc.route, managed)
			switch {
			case !strings.HasPrefix(tc.want, "{"):
				mention(t, err, `managed route "mir" before http[0] without a name: `, tc.want)
			case err != nil:
				t.Fatal(err)
			default:
				if diff := cmp.Diff(value(t, tc.want), made["rewrite"]); diff != "" {
					t.Errorf("rewrite (-want +got):\n%s", diff)
				}
			}
		})
	}
}
