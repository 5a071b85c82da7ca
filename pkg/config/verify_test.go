package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestVerify(t *testing.T) {
	tests := map[string]struct {
		verify string
		want   Verify
	}{
		"an empty one is all defaults":        {`{}`, Verify{Level: Object, OnUnavailable: Proceed}},
		"the default can be written out":      {`{level: Object, proxies: false, onUnavailable: Proceed}`, Verify{Level: Object, OnUnavailable: Proceed}},
		"the EndpointSlices are asked, too":   {`{level: Endpoints, onUnavailable: Hold}`, Verify{Level: Endpoints, OnUnavailable: Hold}},
		"istiod is asked, too":                {`{level: Mesh}`, Verify{Level: Mesh, OnUnavailable: Proceed}},
		"istiod is asked for its proxies":     {`{level: Mesh, proxies: true}`, Verify{Level: Mesh, Proxies: true, OnUnavailable: Proceed}},
		"what to do may be set for any level": {`{onUnavailable: Hold}`, Verify{Level: Object, OnUnavailable: Hold}},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			cfg, err := FromRollout(aRollout(t, `{virtualService: {name: web}, verify: `+tc.verify+`}`), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, cfg.Verify); diff != "" {
				t.Errorf("Verify (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultyVerify(t *testing.T) {
	const block = `{virtualService: {name: web}, verify: `
	checkFaulty(t, map[string]faultyCase{
		"it is the level itself": {
			block: block + `Mesh}`,
			want:  []string{`….verify: Invalid value: "Mesh": must be an object, not a string`},
		},
		"a level in small letters": {
			block: block + `{level: mesh}}`,
			want:  []string{`….verify.level: Invalid value: "mesh": unknown level: did you mean Mesh? There are Object, Endpoints, Mesh`},
		},
		"a level that is nothing like ours": {
			block: block + `{level: all}}`,
			want:  []string{`….verify.level: Invalid value: "all": unknown level. There are Object, Endpoints, Mesh`},
		},
		"a level that is empty, and the proxies with it": {
			block: block + `{level: "", proxies: true}}`,
			want: []string{
				`….verify.level: Invalid value: "": is empty: give a value or remove the field`,
				`….verify.proxies: Invalid value: true: only istiod knows the proxies: set level to Mesh, or remove the field`},
		},
		"the proxies without a level that is right": {
			block: block + `{level: Meshy, proxies: true}}`,
			want:  []string{`….verify.level: Invalid value: "Meshy": unknown level: did you mean Mesh? There are Object, Endpoints, Mesh`},
		},
		"the proxies at the default level": {
			block: block + `{proxies: true}}`,
			want:  []string{`….verify.proxies: Invalid value: true: only istiod knows the proxies: set level to Mesh, or remove the field`},
		},
		"the proxies at the level of the EndpointSlices": {
			block: block + `{level: Endpoints, proxies: true}}`,
			want:  []string{`….verify.proxies: Invalid value: true: only istiod knows the proxies: set level to Mesh, or remove the field`},
		},
		"the proxies in words": {
			block: block + `{level: Mesh, proxies: "all"}}`,
			want:  []string{`….verify.proxies: Invalid value: "all": must be a boolean, not a string`},
		},
		"an answer that there is not": {
			block: block + `{onUnavailable: Continue}}`,
			want:  []string{`….verify.onUnavailable: Invalid value: "Continue": unknown answer. There are Proceed, Hold`},
		},
		"a field of another block": {
			block: block + `{level: Mesh, settle: 1s}}`,
			want:  []string{`….verify.settle: Forbidden: unknown field: remove it. Known here: level, proxies, onUnavailable`},
		},
	})
}

func genVerify(t *rapid.T) Verify {
	v := Verify{
		Level:         rapid.SampledFrom([]Level{Object, Endpoints, Mesh}).Draw(t, "level"),
		OnUnavailable: rapid.SampledFrom([]OnUnavailable{Proceed, Hold}).Draw(t, "onUnavailable"),
	}
	v.Proxies = v.Level == Mesh && rapid.Bool().Draw(t, "proxies")
	return v
}

// verifyBlock writes it back as it would stand in a Rollout.
func verifyBlock(v Verify) map[string]any {
	return map[string]any{"level": v.Level, "proxies": v.Proxies, "onUnavailable": v.OnUnavailable}
}

func checkVerify(t *testing.T, v Verify) {
	t.Helper()
	if v.Level != Object && v.Level != Endpoints && v.Level != Mesh {
		t.Fatalf("level %q", v.Level)
	}
	if v.OnUnavailable != Proceed && v.OnUnavailable != Hold {
		t.Fatalf("onUnavailable %q", v.OnUnavailable)
	}
	if v.Proxies && v.Level != Mesh {
		t.Fatalf("the proxies are asked for at level %q", v.Level)
	}
}
