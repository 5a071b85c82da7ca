package object_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch/object"
)

// content is one of everything.
func content() map[string]any {
	return map[string]any{
		"text":   "x",
		"number": int64(3),
		"whole":  float64(30),
		"null":   nil,
		"yes":    true,
		"list":   []any{"a", map[string]any{"port": "http"}, nil},
		"texts":  []any{"b", "a"},
		"labels": map[string]any{"k": "v"},
		"empty":  map[string]any{},
		"deep":   map[string]any{"odd": map[string]any{"k": int64(1)}},
	}
}

func items(t *testing.T, n object.Node) []object.Node {
	t.Helper()
	entries, err := n.Items()
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestReadingValues(t *testing.T) {
	root := object.Root(content())
	for sentence, tc := range map[string]struct {
		read func() (any, error)
		want any
	}{
		"text is text":                           {func() (any, error) { return root.Field("text").Text() }, "x"},
		"absent text is empty":                   {func() (any, error) { return root.Field("none").Text() }, ""},
		"null text is empty":                     {func() (any, error) { return root.Field("null").Text() }, ""},
		"a field of an absent field is absent":   {func() (any, error) { return root.Field("none").Field("none").Text() }, ""},
		"a field of text is absent":              {func() (any, error) { return root.Field("text").Field("none").Text() }, ""},
		"a field of an entry that is null":       {func() (any, error) { return items(t, root.Field("list"))[2].Field("port").Integer() }, int64(0)},
		"an integer is an integer":               {func() (any, error) { return root.Field("number").Integer() }, int64(3)},
		"a whole float is an integer":            {func() (any, error) { return root.Field("whole").Integer() }, int64(30)},
		"an absent integer is zero":              {func() (any, error) { return root.Field("none").Integer() }, int64(0)},
		"a plain int is an integer":              {func() (any, error) { return object.Root(map[string]any{"a": 5}).Field("a").Integer() }, int64(5)},
		"the smallest integer as a float":        {func() (any, error) { return object.Root(map[string]any{"a": -math.Pow(2, 63)}).Field("a").Integer() }, int64(math.MinInt64)},
		"a list of texts keeps its order":        {func() (any, error) { return root.Field("texts").Texts() }, []string{"b", "a"}},
		"an absent list of texts is nil":         {func() (any, error) { return root.Field("none").Texts() }, []string(nil)},
		"labels are labels":                      {func() (any, error) { return root.Field("labels").Labels() }, map[string]string{"k": "v"}},
		"absent labels are nil":                  {func() (any, error) { return root.Field("none").Labels() }, map[string]string(nil)},
		"empty labels are there":                 {func() (any, error) { return root.Field("empty").Labels() }, map[string]string{}},
		"a zero node is absent":                  {func() (any, error) { return object.Node{}.Absent(), nil }, true},
		"a root without content is absent":       {func() (any, error) { return object.Root(nil).Absent(), nil }, true},
		"an object is there":                     {func() (any, error) { return root.Field("empty").Absent(), root.Field("empty").Object() }, false},
		"an absent object is no wrong type":      {func() (any, error) { return root.Field("none").Absent(), root.Field("none").Object() }, true},
		"an absent list has no entries":          {func() (any, error) { entries, err := root.Field("none").Items(); return len(entries), err }, 0},
		"a list has all entries, the null too":   {func() (any, error) { return len(items(t, root.Field("list"))), nil }, 3},
		"an entry of a list reads as a field":    {func() (any, error) { return items(t, root.Field("list"))[0].Text() }, "a"},
		"the path of a field under an entry":     {func() (any, error) { return items(t, root.Field("list"))[1].Field("port").Path(), nil }, "list[1].port"},
		"the path of the root has a name to it":  {func() (any, error) { return root.Path(), nil }, "object"},
		"the path of what is not there is known": {func() (any, error) { return root.Field("a").Field("b").Path(), nil }, "a.b"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := tc.read()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongTypes(t *testing.T) {
	root := object.Root(content())
	number := func(value any) object.Node { return object.Root(map[string]any{"w": value}).Field("w") }
	integer := func(n object.Node) error { _, err := n.Integer(); return err }
	for sentence, tc := range map[string]struct {
		err  error
		want string
	}{
		"a number is no text":             {second(root.Field("number").Text()), "number: want text, found an integer"},
		"a list is no object":             {root.Field("list").Object(), "list: want an object, found a list"},
		"an object is no list":            {second(root.Field("labels").Items()), "labels: want a list, found an object"},
		"text is no list of texts":        {second(root.Field("text").Texts()), "text: want a list, found text"},
		"text is no labels":               {second(root.Field("text").Labels()), "text: want an object, found text"},
		"a label must be text":            {second(root.Field("deep").Field("odd").Labels()), "deep.odd.k: want text, found an integer"},
		"an entry must be text":           {second(root.Field("list").Texts()), "list[1]: want text, found an object"},
		"text is no integer":              {integer(number("30")), "w: want an integer, found text"},
		"a boolean is no integer":         {integer(root.Field("yes")), "yes: want an integer, found a boolean"},
		"a fraction is no integer":        {integer(number(30.5)), "w: want an integer, found a fraction or a number out of range"},
		"too large a number is none":      {integer(number(math.Pow(2, 63))), "w: want an integer, found a fraction or a number out of range"},
		"too small a number is none":      {integer(number(-math.Pow(2, 64))), "w: want an integer, found a fraction or a number out of range"},
		"no number at all is none":        {integer(number(math.NaN())), "w: want an integer, found a fraction or a number out of range"},
		"infinity is none":                {integer(number(math.Inf(1))), "w: want an integer, found a fraction or a number out of range"},
		"what JSON cannot hold is named":  {integer(number(uint8(3))), "w: want an integer, found a uint8"},
		"a null where there must be some": {root.Field("null").Wrong("an object"), "null: want an object, found null"},
		"the wrong value is not repeated": {second(object.Root(map[string]any{"w": []any{"secret"}}).Field("w").Text()), "w: want text, found a list"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if tc.err == nil {
				t.Fatalf("no error, want %q", tc.want)
			}
			if diff := cmp.Diff(tc.want, tc.err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestAListOfTextsDoesNotAcceptNull(t *testing.T) {
	_, err := object.Root(map[string]any{"l": []any{nil}}).Field("l").Texts()
	if err == nil || err.Error() != "l[0]: want text, found null" {
		t.Errorf("error = %v", err)
	}
}

func TestTheFirstBadLabelIsAlwaysTheSame(t *testing.T) {
	bad := map[string]any{}
	for _, key := range strings.Split("gbfadceh", "") {
		bad[key] = true
	}
	_, err := object.Root(map[string]any{"l": bad}).Field("l").Labels()
	if err == nil || err.Error() != "l.a: want text, found a boolean" {
		t.Errorf("error = %v, want one about l.a", err)
	}
}

func TestLabelsAreACopy(t *testing.T) {
	source := content()
	labels, err := object.Root(source).Field("labels").Labels()
	if err != nil {
		t.Fatal(err)
	}
	labels["k"] = "changed"
	if diff := cmp.Diff(content(), source); diff != "" {
		t.Errorf("the object changed (-want +got):\n%s", diff)
	}
}

func metadata(fields map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": fields,
	}}
}

func TestIdentityOf(t *testing.T) {
	whole := metadata(map[string]any{
		"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "generation": int64(2),
		"labels":            map[string]any{"app": "web"},
		"annotations":       map[string]any{"note": "long"},
		"creationTimestamp": "2024-01-01T00:00:00Z",
	})
	want := object.Identity{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.istio.io/v1", Kind: "VirtualService"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u-1", ResourceVersion: "7", Generation: 2},
	}
	got, err := object.IdentityOf(whole)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
}

func TestIdentityOfBrokenObjects(t *testing.T) {
	for sentence, tc := range map[string]struct {
		u        *unstructured.Unstructured
		wantName string
		wantErr  string
	}{
		"no object":                  {nil, "", "object: want an object, found null"},
		"an object without content":  {&unstructured.Unstructured{}, "", "object: want an object, found null"},
		"metadata of the wrong type": {metadata0("text"), "", "metadata: want an object, found text"},
		"a name of the wrong type":   {metadata(map[string]any{"name": int64(1)}), "", "metadata.name: want text, found an integer"},
		"a generation of the wrong type does not hide the name": {
			metadata(map[string]any{"name": "web", "generation": "two"}), "web", "metadata.generation: want an integer, found text"},
		"the first of several errors is reported": {
			metadata(map[string]any{"name": "web", "uid": true, "resourceVersion": true}), "web", "metadata.uid: want text, found a boolean"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := object.IdentityOf(tc.u)
			if err == nil {
				t.Fatalf("no error, want %q", tc.wantErr)
			}
			if diff := cmp.Diff(tc.wantErr, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if got.Name != tc.wantName {
				t.Errorf("name = %q, want %q", got.Name, tc.wantName)
			}
		})
	}
}

func metadata0(value any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"metadata": value}}
}

func TestOwns(t *testing.T) {
	type fields = map[string]any
	entry := func(manager, operation any, owned any) fields {
		return fields{"manager": manager, "operation": operation, "fieldsV1": owned}
	}
	of := func(manager, operation string) fields {
		return entry(manager, operation, fields{"f:spec": fields{"f:subsets": fields{}}})
	}
	status := of("us", "Update")
	status["subresource"] = "status"
	odd := of("us", "Update")
	odd["subresource"] = int64(1)
	for sentence, tc := range map[string]struct {
		entries any
		path    []string
		want    bool
	}{
		"the field itself, by update":          {[]any{of("us", "Update")}, []string{"spec", "subsets"}, true},
		"the field itself, by apply":           {[]any{of("us", "Apply")}, []string{"spec", "subsets"}, true},
		"something below it":                   {[]any{of("us", "Update")}, []string{"spec"}, true},
		"any field at all":                     {[]any{of("us", "Update")}, nil, true},
		"the second entry is ours":             {[]any{of("kubectl", "Apply"), of("us", "Update")}, []string{"spec", "subsets"}, true},
		"only what is above it":                {[]any{of("us", "Update")}, []string{"spec", "subsets", "labels"}, false},
		"a field beside it":                    {[]any{of("us", "Update")}, []string{"spec", "http"}, false},
		"somebody else's":                      {[]any{of("kubectl", "Update")}, []string{"spec", "subsets"}, false},
		"a write to the status":                {[]any{status}, []string{"spec", "subsets"}, false},
		"a subresource of the wrong type":      {[]any{odd}, []string{"spec", "subsets"}, false},
		"an operation that is none":            {[]any{of("us", "Delete"), of("us", "")}, []string{"spec", "subsets"}, false},
		"no managed fields":                    {nil, []string{"spec"}, false},
		"managed fields of the wrong type":     {"x", []string{"spec"}, false},
		"entries that are none":                {[]any{nil, "x", int64(1), []any{}}, []string{"spec"}, false},
		"fields that are text":                 {[]any{entry("us", "Update", "f:spec")}, []string{"spec"}, false},
		"a field that is text":                 {[]any{entry("us", "Update", fields{"f:spec": "x"})}, []string{"spec"}, false},
		"a field that is null":                 {[]any{entry("us", "Update", fields{"f:spec": nil})}, []string{"spec"}, false},
		"no fields":                            {[]any{entry("us", "Update", nil)}, nil, false},
		"a manager of the wrong type":          {[]any{entry(int64(1), "Update", fields{"f:spec": fields{}})}, []string{"spec"}, false},
		"a name without the mark of a field":   {[]any{entry("us", "Update", fields{"spec": fields{}})}, []string{"spec"}, false},
		"a bad entry does not hide a good one": {[]any{entry("us", "Update", "x"), of("us", "Update")}, []string{"spec", "subsets"}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := object.Owns(metadata(fields{"managedFields": tc.entries}), "us", tc.path...); got != tc.want {
				t.Errorf("owns %v: %t, want %t", tc.path, got, tc.want)
			}
		})
	}
	nobody := metadata(fields{"managedFields": []any{of("", "Update")}})
	if object.Owns(nobody, "", "spec") || object.Owns(nil, "us", "spec") {
		t.Error("nobody owns a field, or a field of nothing is owned")
	}
}

// FuzzRead reads anything in every way. Whatever is there, one of the readings
// of a place that is not absent has to work, or all have to say what is found.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"spec":{"http":[{"route":[{"weight":1}]}]}}`, `{"spec":null}`, `{"spec":[null,1,"x",1e400]}`, `{"spec":{"":{}}}`, `{"spec":-0.0}`,
	} {
		f.Add([]byte(seed), "spec")
	}
	f.Fuzz(func(t *testing.T, document []byte, name string) {
		var fields map[string]any
		if json.Unmarshal(document, &fields) != nil {
			return
		}
		u := &unstructured.Unstructured{Object: fields}
		_, _ = object.IdentityOf(u)
		_ = object.LastChange(u)
		_ = object.Owns(u, name, name)
		readAll(t, object.Root(fields).Field(name))
	})
}

func readAll(t *testing.T, n object.Node) {
	entries, listErr := n.Items()
	_, textErr := n.Text()
	_, numberErr := n.Integer()
	_, _ = n.Labels()
	_, _ = n.Texts()
	good := 0
	for _, err := range []error{listErr, textErr, numberErr, n.Object()} {
		if err == nil {
			good++
		}
	}
	if n.Absent() != (good == 4) || good > 1 && !n.Absent() {
		t.Errorf("%s reads in %d ways, absent: %v", n.Path(), good, n.Absent())
	}
	for _, entry := range entries {
		readAll(t, entry)
	}
}
