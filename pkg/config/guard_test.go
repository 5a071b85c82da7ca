package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFaultyGuards(t *testing.T) {
	const block = `{virtualService: {name: web}, guard: `
	const parts = `must be a whole number of parts from 0 to 100 (maxTrafficWeight), or a whole percentage such as "5%"`
	const settle = `must be a string with a duration and its unit, from "0s" to "60s"`
	const hold = `must be a string with a duration and its unit, from "1s" to "24h"`
	tests := map[string]faultyCase{
		"it is a string": {
			block: block + `Enforce}`,
			want:  []string{`….guard: Invalid value: "Enforce": must be an object, not a string`},
		},
		"an unknown mode": {
			block: block + `{mode: Block}}`,
			want:  []string{`….guard.mode: Invalid value: "Block": unknown mode. There are Enforce, Observe, Off`},
		},
		"a mode in small letters": {
			block: block + `{mode: observe}}`,
			want:  []string{`….guard.mode: Invalid value: "observe": unknown mode: did you mean Observe? There are Enforce, Observe, Off`},
		},
		"mode Off without quotes in YAML 1.1 is a boolean": {
			block: block + `{mode: off}}`,
			want:  []string{`….guard.mode: Invalid value: false: must be a string, not a boolean`},
		},
		"all of it is wrong": {
			block: block + `{mode: "", minRaise: -1, settle: -1s, maxHold: 0s}}`,
			want: []string{
				`….guard.mode: Invalid value: "": is empty: give a value or remove the field`,
				`….guard.minRaise: Invalid value: -1: ` + parts,
				`….guard.settle: Invalid value: "-1s": ` + settle,
				`….guard.maxHold: Invalid value: "0s": ` + hold},
		},
		"minRaise beyond a smaller maxTrafficWeight": {
			block:   block + `{minRaise: 11}}`,
			rollout: maxTrafficWeight(10),
			want:    []string{`….guard.minRaise: Invalid value: 11: ` + strings.Replace(parts, "100", "10", 1)},
		},
	}
	for _, raise := range []string{`101`, `1.5`, `"101%"`, `"-1%"`, `"5"`, `"5 %"`, `"0.5%"`, `"%"`, `true`} {
		tests["minRaise "+raise] = faultyCase{
			block: block + `{minRaise: ` + raise + `}}`,
			want:  []string{`….guard.minRaise: Invalid value: ` + shown(raise) + parts},
		}
	}
	for _, d := range []string{`"61s"`, `5`, `"5"`, `"-1ms"`, `"1 s"`, `"999999h"`, `"NaN"`, `{}`, `null`} {
		tests["settle "+d] = faultyCase{
			block: block + `{settle: ` + d + `}}`,
			want:  []string{`….guard.settle: Invalid value: ` + shown(d) + settle},
		}
	}
	for _, d := range []string{`"24h1ns"`, `"999ms"`, `"-5m"`, `60`, `[]`} {
		tests["maxHold "+d] = faultyCase{
			block: block + `{maxHold: ` + d + `}}`,
			want:  []string{`….guard.maxHold: Invalid value: ` + shown(d) + hold},
		}
	}
	checkFaulty(t, tests)
}

// shown is how a report shows the value: nothing of a list or an object.
func shown(value string) string {
	if value == `{}` || value == `[]` {
		return ""
	}
	return value + ": "
}

func TestNumbersThatYAMLWouldRewrite(t *testing.T) {
	tests := map[string]struct{ number, shown string }{
		"an exponent":                   {"1e1", "1e1"},
		"a fraction of nothing":         {"5.0", "5.0"},
		"beyond 32 bits":                {"4294967301", "4294967301"},
		"beyond 64 bits":                {"18446744073709551621", "18446744073709551621"},
		"a hundred thousand digits":     {strings.Repeat("1", 100_000), `"` + strings.Repeat("1", 80) + `… (100000 bytes)"`},
		"less than nothing by overflow": {"-4294967291", "-4294967291"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			raw := `{"virtualService":{"name":"web"},"guard":{"minRaise":` + tc.number + `}}`
			_, err := FromRollout(withBlock(json.RawMessage(raw)), Options{})
			want := []string{`….guard.minRaise: Invalid value: ` + tc.shown + `: must be a whole number of parts ` +
				`from 0 to 100 (maxTrafficWeight), or a whole percentage such as "5%"`}
			if diff := cmp.Diff(want, problems(t, err)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
