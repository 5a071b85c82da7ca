package config

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// plain turns the tree into what encoding/json makes of the same text; a field given twice counts by its last value.
func (n node) plain() any {
	switch n.kind {
	case kindNull:
		return nil
	case kindBool:
		return n.text == "true"
	case kindNumber:
		return json.Number(n.text)
	case kindString:
		return n.text
	case kindList:
		list := []any{}
		for _, item := range n.items {
			list = append(list, item.plain())
		}
		return list
	default:
		object := map[string]any{}
		for _, f := range n.fields {
			object[f.name] = f.value.plain()
		}
		return object
	}
}

// readBoth reads the text both ways.
func readBoth(t interface{ Fatalf(string, ...any) }, raw []byte) {
	got, err := parse(raw)
	if err != nil {
		t.Fatalf("%v\ntext: %q", err, raw)
	}
	var want any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&want); err != nil {
		t.Fatalf("%v\ntext: %q", err, raw)
	}
	if diff := cmp.Diff(want, got.plain()); diff != "" {
		t.Fatalf("tree (-encoding/json +ours):\n%s\ntext: %q", diff, raw)
	}
}

func TestParseReadsWhatEncodingJSONReads(t *testing.T) {
	tests := map[string]string{
		"scalars at the top":         `-0.5e+10`,
		"blanks everywhere":          " \n{ \"a\" : [ 1 , true ,\tnull ] , \"b\" : { } }\r\n",
		"escapes":                    `{"\u0061\"\\\/\b\n":"\ud83d\ude00 \\\""}`,
		"a lonely half of a pair":    `["\ud800","\udc00x"]`,
		"brackets within strings":    `{"]}":"[{,:\"","b":[]}`,
		"bytes that are no UTF-8":    "[\"\xff\xfe\",\"a\xc3\"]",
		"characters beyond ASCII":    `{"größe":"µs – 日本"}`,
		"empty things":               `[{},[],"",{"":""}]`,
		"numbers of all forms":       `[0,-1,1.5,1e400,1E-7,123456789012345678901234567890]`,
		"words next to each bracket": `{"a":true,"b":[false],"c":null}`,
	}
	for name, raw := range tests {
		t.Run(name, func(t *testing.T) { readBoth(t, []byte(raw)) })
	}
}

func TestParseKeepsFieldsGivenTwiceInOrder(t *testing.T) {
	n, err := parse([]byte(`{"b":1,"a":2,"b":3}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range n.fields {
		got = append(got, f.name+"="+f.value.text)
	}
	if diff := cmp.Diff([]string{"b=1", "a=2", "b=3"}, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// jsonValue generates values of at most the given depth.
func jsonValue(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Int64().AsAny(),
		rapid.Float64().AsAny(),
		rapid.String().AsAny(),
	)
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(scalar,
		rapid.SliceOfN(jsonValue(depth-1), 0, 4).AsAny(),
		rapid.MapOfN(rapid.String(), jsonValue(depth-1), 0, 4).AsAny())
}

func TestParseReadsAnyValueThatEncodingJSONWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := jsonValue(4).Draw(t, "value")
		compact, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		readBoth(t, compact)
		indented, err := json.MarshalIndent(value, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		readBoth(t, indented)
	})
}

// FuzzParse: the reader skips the checks that json.Valid has made, so any text must give either an error or the same
// tree as encoding/json.
func FuzzParse(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := parse(raw); err == nil {
			readBoth(t, raw)
		}
	})
}
