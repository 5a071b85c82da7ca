package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValuesThatAreNoBlock(t *testing.T) {
	tests := map[string]struct {
		raw  string
		want string
	}{
		"nothing":                {"", `Invalid value: "": is empty: give virtualService or virtualServices`},
		"blanks":                 {" \n\t", `Invalid value: " \n\t": is empty: give virtualService or virtualServices`},
		"null":                   {"null", `Invalid value: null: give an object or remove the field`},
		"a list":                 {"[]", `Invalid value: must be an object, not a list`},
		"a string":               {`"web"`, `Invalid value: "web": must be an object, not a string`},
		"a number":               {`12`, `Invalid value: 12: must be an object, not a number`},
		"a boolean":              {`true`, `Invalid value: true: must be an object, not a boolean`},
		"an unfinished object":   {`{"virtualService":`, `Invalid value: "{\"virtualService\":": not valid JSON at byte 18: unexpected end of JSON input`},
		"an unfinished list":     {`{"a":[1`, `Invalid value: "{\"a\":[1": not valid JSON at byte 7: unexpected end of JSON input`},
		"a comma too many":       {`{"a":1,}`, `Invalid value: "{\"a\":1,}": not valid JSON at byte 8: invalid character '}' looking for beginning of object key string`},
		"two values":             {`{} {}`, `Invalid value: "{} {}": not valid JSON at byte 4: invalid character '{' after top-level value`},
		"a field without quotes": {`{a:1}`, `Invalid value: "{a:1}": not valid JSON at byte 2: invalid character 'a' looking for beginning of object key string`},
		"deep nesting": {strings.Repeat("[", 100) + strings.Repeat("]", 100), `Invalid value: "` + strings.Repeat("[", 80) +
			`… (200 bytes)": nested deeper than 16 levels: check the indentation`},
		"nesting beyond any stack": {strings.Repeat("[", 100_000), `Invalid value: "` + strings.Repeat("[", 80) +
			`… (100000 bytes)": not valid JSON at byte 10001: invalid character '[' exceeded max depth`},
		"a megabyte": {`{"a":"` + strings.Repeat("x", 1<<20) + `"}`, `Invalid value: "{\"a\":\"` + strings.Repeat("x", 74) +
			`… (1048584 bytes)": 1048584 bytes are too many: a configuration has at most 262144`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := FromRollout(withBlock([]byte(tc.raw), services("", "")), Options{})
			if diff := cmp.Diff([]string{"…: " + tc.want}, problems(t, err)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFieldsGivenTwice(t *testing.T) {
	raw := `{"guard":{},"virtualService":{"name":"web","name":"other","name":"third"},"guard":{"mode":"Off"}}`
	_, err := FromRollout(withBlock(json.RawMessage(raw)), Options{})
	want := []string{
		`….guard: Duplicate value: "guard": the field is given more than once: keep one`,
		`….virtualService.name: Duplicate value: "name": the field is given more than once: keep one`,
	}
	if diff := cmp.Diff(want, problems(t, err)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestReportIsBoundedForABlockFullOfFaults(t *testing.T) {
	var fields []string
	for i := range 10_000 {
		fields = append(fields, fmt.Sprintf(`"field%05d":{}`, i))
	}
	_, err := FromRollout(withBlock([]byte("{"+strings.Join(fields, ",")+"}")), Options{})
	if got := len(problems(t, err)); got != maxProblems {
		t.Errorf("%d problems reported, want %d", got, maxProblems)
	}
	// The ten thousand fields, and the missing virtualService.
	if want := "; and 9951 more"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the report does not end in %q: …%s", want, err.Error()[max(0, len(err.Error())-60):])
	}
	if len(err.Error()) > 20_000 {
		t.Errorf("the report has %d bytes", len(err.Error()))
	}
}
