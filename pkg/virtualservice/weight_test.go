package virtualservice_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// mixed is a route list of ours and one foreign destination.
func mixed(stable, canary, foreign any) []any {
	return []any{to("stable", stable), to("canary", canary), to("legacy", foreign)}
}

func one(destinations ...any) fields {
	return fields{"http": []any{http("primary", destinations...)}}
}

func TestSetWeight(t *testing.T) {
	all := virtualservice.Selection{AllMatching: true}
	for sentence, tc := range map[string]struct {
		spec      fields
		selection virtualservice.Selection
		split     virtualservice.Split
		canary    int32
		want      string // all weights afterwards
		ops       int
	}{
		// argo-rollouts#3884
		"one named http route, none listed":   {spec: one(ours(100, 0)...), canary: 30, want: "http 70 30", ops: 2},
		"one tls route, none listed":          {spec: fields{"tls": []any{tls([]string{"443 a"}, ours(100, 0)...)}}, canary: 30, want: "tls 70 30", ops: 2},
		"one tcp route, none listed":          {spec: fields{"tcp": []any{tcp([]int64{1}, ours(100, 0)...)}}, canary: 30, want: "tcp 70 30", ops: 2},
		"back to zero":                        {spec: one(ours(0, 100)...), canary: 0, want: "http 100 0", ops: 2},
		"all to the canary":                   {spec: one(ours(70, 30)...), canary: 100, want: "http 0 100", ops: 2},
		"the canary stands first":             {spec: one(to("canary", weighs(0)), to("stable", weighs(100))), canary: 10, want: "http 10 90", ops: 2},
		"several matching routes":             {spec: fields{"http": []any{http("a", ours(100, 0)...), http("b", foreign()...), http("c", ours(50, 50)...)}}, selection: all, canary: 40, want: "http 60 40 | 100 | 60 40", ops: 4},
		"only the route that differs changes": {spec: fields{"http": []any{http("a", ours(60, 40)...), http("c", ours(100, 0)...)}}, selection: all, canary: 40, want: "http 60 40 | 60 40", ops: 2},
		"the listed route changes and a foreign one before it does not": {
			spec:      fields{"http": []any{http("", to("web-svc")), http("primary", ours(100, 0)...)}},
			selection: virtualservice.Selection{HTTP: []string{"primary"}}, canary: 10, want: "http - | 90 10", ops: 2},
		// argo-rollouts#1552: with tls support, http weights no longer moved.
		"http moves and tls does not appear": {spec: one(ours(100, 0)...), canary: 50, want: "http 50 50", ops: 2},
		"http and tls move together": {
			spec:   fields{"http": []any{http("", ours(100, 0)...)}, "tls": []any{tls([]string{"443 a"}, ours(100, 0)...)}},
			canary: 50, want: "http 50 50; tls 50 50", ops: 4},

		"nothing differs":                         {spec: one(ours(70, 30)...), canary: 30, want: "http 70 30", ops: 0},
		"the same numbers as floats":              {spec: one(to("stable", 70.0), to("canary", 30.0)), canary: 30, want: "http 70 30", ops: 0},
		"an absent weight is zero already":        {spec: one(to("stable", weighs(100)), to("canary")), canary: 0, want: "http 100 -", ops: 0},
		"a null weight is zero already":           {spec: one(to("stable", weighs(100)), to("canary", nil)), canary: 0, want: "http 100 <nil>", ops: 0},
		"an absent weight is added":               {spec: one(to("stable", weighs(100)), to("canary")), canary: 30, want: "http 70 30", ops: 2},
		"a null weight is replaced":               {spec: one(to("stable", weighs(100)), to("canary", nil)), canary: 30, want: "http 70 30", ops: 2},
		"no weights at all":                       {spec: one(to("stable"), to("canary")), canary: 0, want: "http 100 -", ops: 1},
		"one weight differs":                      {spec: one(ours(90, 30)...), canary: 30, want: "http 70 30", ops: 1},
		"a negative weight left behind is healed": {spec: one(ours(140, -40)...), canary: 0, want: "http 100 0", ops: 2},
		"an absurd weight is healed":              {spec: one(ours(math.MaxInt64, 1)...), canary: 0, want: "http 100 0", ops: 2},

		// istio/api#2192: weights are relative.
		"tenths of a percent":                       {spec: one(ours(1000, 0)...), split: outOf(1000, byHosts()), canary: 5, want: "http 995 5", ops: 2},
		"hand-written on another scale, normalised": {spec: one(ours(900, 100)...), canary: 10, want: "http 90 10", ops: 2},
		"hand-written small numbers, normalised":    {spec: one(ours(1, 0)...), canary: 0, want: "http 100 0", ops: 1},
		"the smallest scale":                        {spec: one(ours(1, 0)...), split: outOf(1, byHosts()), canary: 1, want: "http 0 1", ops: 2},
		"the largest scale":                         {spec: one(ours(1, 0)...), split: outOf(math.MaxInt32, byHosts()), canary: math.MaxInt32, want: "http 0 2147483647", ops: 2},
		"the largest scale beside a foreign one":    {spec: one(mixed(weighs(0), weighs(1), weighs(1))...), split: outOf(math.MaxInt32, byHosts()), canary: math.MaxInt32 - 1, want: "http 1 2147483645 1", ops: 2},

		// argo-rollouts#3125: unknown destinations were deleted.
		"a foreign destination keeps its weight":     {spec: one(mixed(weighs(80), weighs(0), weighs(20))...), canary: 10, want: "http 72 8 20", ops: 2},
		"all of ours to the canary":                  {spec: one(mixed(weighs(80), weighs(0), weighs(20))...), canary: 100, want: "http 0 80 20", ops: 2},
		"ours back to stable":                        {spec: one(mixed(weighs(0), weighs(80), weighs(20))...), canary: 0, want: "http 80 0 20", ops: 2},
		"a share is rounded down for the canary":     {spec: one(mixed(weighs(80), weighs(0), weighs(20))...), canary: 13, want: "http 70 10 20", ops: 2},
		"a share below one part is none":             {spec: one(mixed(weighs(80), weighs(0), weighs(20))...), canary: 1, want: "http 80 0 20", ops: 0},
		"a foreign destination without a weight":     {spec: one(append(ours(100, 0), to("legacy"))...), canary: 30, want: "http 70 30 -", ops: 2},
		"ours do not add up beside a foreign one":    {spec: one(mixed(weighs(100), weighs(0), weighs(20))...), canary: 10, want: "http 72 8 20", ops: 2},
		"several foreign destinations":               {spec: one(to("a", weighs(10)), to("canary", weighs(0)), to("b", weighs(30)), to("stable", weighs(60))), canary: 50, want: "http 10 30 30 30", ops: 2},
		"another scale with weightless foreign ones": {spec: one(mixed(weighs(900), weighs(100), weighs(0))...), canary: 10, want: "http 90 10 0", ops: 2},
		"only one part is left":                      {spec: one(mixed(weighs(1), weighs(0), weighs(99))...), canary: 100, want: "http 0 1 99", ops: 2},
		// argo-rollouts#1105: the same Service elsewhere got the same weight.
		"the stable of another namespace is foreign": {
			spec:   one(to("stable.shop.svc.cluster.local", weighs(80)), to("canary.shop.svc.cluster.local", weighs(0)), to("stable.other.svc.cluster.local", weighs(20))),
			canary: 10, want: "http 72 8 20", ops: 2},
		"the same subset on another host is foreign": {
			spec:  one(to("web/stable", weighs(80)), to("web/canary", weighs(0)), to("db/canary", weighs(20))),
			split: bySubsets(), canary: 50, want: "http 40 40 20", ops: 2},
		"another subset of our host is foreign": {
			spec:  one(to("web/legacy", weighs(20)), to("web/stable", weighs(80)), to("web/canary", weighs(0))),
			split: bySubsets(), canary: 50, want: "http 20 40 40", ops: 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			split := tc.split
			if split.Max == 0 {
				split = byHosts()
			}
			u := virtualService(tc.spec)
			patch, changes, err := set(u, tc.selection, split, tc.canary)
			if err != nil {
				t.Fatal(err)
			}
			if len(patch) != tc.ops {
				t.Errorf("%d operations, want %d: %v", len(patch), tc.ops, patch)
			}
			if (len(changes) == 0) != (len(patch) == 0) {
				t.Errorf("changes %v for patch %v", changes, patch)
			}
			after := apply(t, u, patch)
			if diff := cmp.Diff(tc.want, weights(after)); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
			again, changes, err := set(after, tc.selection, split, tc.canary)
			if err != nil || len(again) != 0 || len(changes) != 0 {
				t.Errorf("the second time: patch %v, changes %v, error %v", again, changes, err)
			}
		})
	}
}

func TestLowerKeepsWhatARouteHasLess(t *testing.T) {
	for sentence, tc := range map[string]struct {
		spec   fields
		canary int32
		want   string
	}{
		"a route with more comes down":                   {one(ours(40, 60)...), 50, "http 50 50"},
		"a route with less stays":                        {one(ours(90, 10)...), 50, "http 90 10"},
		"each route by itself":                           {fields{"http": []any{http("a", ours(90, 10)...), http("b", ours(40, 60)...)}}, 50, "http 90 10 | 50 50"},
		"a third of another scale is not rounded up":     {one(ours(66, 33)...), 50, "http 67 33"},
		"a route that says nothing gets what it may get": {one(to("stable"), to("canary")), 50, "http 50 50"},
	} {
		t.Run(sentence, func(t *testing.T) {
			u := virtualService(tc.spec)
			vs := virtualservice.Parse(u, manager)
			routes, err := vs.Select(virtualservice.Selection{AllMatching: true}, byHosts())
			if err != nil {
				t.Fatal(err)
			}
			patch, _, err := vs.Set(routes, byHosts(), virtualservice.Target{Canary: tc.canary, Lower: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := weights(apply(t, u, patch)); got != tc.want {
				t.Errorf("weights %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSetWeightRefuses(t *testing.T) {
	for sentence, tc := range map[string]struct {
		spec   fields
		split  virtualservice.Split
		canary int32
		want   []string
	}{
		// argo-rollouts#3470 and #4424: what the controller has asked for.
		"a negative weight":   {spec: one(ours(100, 0)...), canary: -140, want: []string{"canary weight -140 is outside 0..100"}},
		"a weight beyond max": {spec: one(ours(100, 0)...), canary: 200, want: []string{"canary weight 200 is outside 0..100"}},
		"a weight beyond another max": {
			spec: one(ours(100, 0)...), split: outOf(10, byHosts()), canary: 11, want: []string{"outside 0..10"}},
		"foreign destinations that take everything": {
			spec: one(mixed(weighs(0), weighs(0), weighs(100))...), canary: 10,
			want: []string{`route http[0] "primary"`, "weight 100 of 100", "leaves nothing", "lower their weights, or raise maxTrafficWeight"}},
		"foreign destinations that take more": {
			spec: one(to("stable"), to("canary"), to("a", weighs(60)), to("b", weighs(60))), canary: 0,
			want: []string{"weight 120 of 100", "lower their weights"}},
		"another scale beside a foreign destination": {
			spec: one(mixed(weighs(900), weighs(0), weighs(50))...), canary: 10,
			want: []string{`route http[0] "primary"`, "900/0 and 50", "another scale than maxTrafficWeight 100", "set maxTrafficWeight to 950", "add up to 100"}},
		"one too many beside a foreign destination": {
			spec: one(mixed(weighs(50), weighs(51), weighs(1))...), canary: 10,
			want: []string{"another scale", "set maxTrafficWeight to 102"}},
		"the second of two routes is at fault": {
			spec: fields{"http": []any{http("a", ours(100, 0)...), http("b", mixed(weighs(900), weighs(0), weighs(50))...)}}, canary: 10,
			want: []string{`route http[1] "b"`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			split := tc.split
			if split.Max == 0 {
				split = byHosts()
			}
			patch, changes, err := set(virtualService(tc.spec), virtualservice.Selection{AllMatching: true}, split, tc.canary)
			mention(t, err, append(tc.want, "VirtualService shop/web: ")...)
			if patch != nil || changes != nil {
				t.Errorf("patch %v and changes %v beside the error", patch, changes)
			}
		})
	}
}

func TestRoutesThatWereNotSelectedAreRefused(t *testing.T) {
	vs := parse(fields{"http": []any{http("a", ours(100, 0)...), http("b", foreign()...), fields{"name": "c", "delegate": fields{"name": "del"}}}})
	for sentence, tc := range map[string]struct {
		routes []virtualservice.Route
		want   string
	}{
		"no route":          {nil, "no route selected"},
		"a foreign route":   {vs.HTTP[:2], `route http[1] "b" has no stable destination`},
		"a delegating root": {vs.HTTP[2:], "delegates to VirtualService shop/del"},
	} {
		t.Run(sentence, func(t *testing.T) {
			patch, _, err := vs.Set(tc.routes, byHosts(), virtualservice.Target{Canary: 10})
			mention(t, err, "VirtualService shop/web: ", tc.want)
			if patch != nil {
				t.Errorf("patch %v beside the error", patch)
			}
			_, known, uniform, err := vs.CanaryWeight(tc.routes, byHosts())
			mention(t, err, tc.want)
			if known || uniform {
				t.Error("a weight is known beside the error")
			}
		})
	}
}

func TestAPatchNamesOnlyWeights(t *testing.T) {
	spec := fields{
		"http": []any{http("a", ours(100, 0)...), http("b", foreign()...)},
		"tls":  []any{tls([]string{"443 a"}, to("x"), to("canary"), to("stable", weighs(100)))},
	}
	patch, changes, err := set(virtualService(spec), virtualservice.Selection{AllMatching: true}, byHosts(), 25)
	if err != nil {
		t.Fatal(err)
	}
	wantPatch := jsonpatch.Patch{
		{Op: "add", Path: "/spec/http/0/route/0/weight", Value: int64(75)},
		{Op: "add", Path: "/spec/http/0/route/1/weight", Value: int64(25)},
		{Op: "add", Path: "/spec/tls/0/route/2/weight", Value: int64(75)},
		{Op: "add", Path: "/spec/tls/0/route/1/weight", Value: int64(25)},
	}
	if diff := cmp.Diff(wantPatch, patch); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	wantChanges := []virtualservice.Change{
		{Route: `http[0] "a"`, From: virtualservice.Weights{Stable: 100}, To: virtualservice.Weights{Stable: 75, Canary: 25}},
		{Route: "tls[0] (port 443, sniHosts a)", From: virtualservice.Weights{Stable: 100}, To: virtualservice.Weights{Stable: 75, Canary: 25}},
	}
	if diff := cmp.Diff(wantChanges, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got, want := changes[0].String(), `http[0] "a" 100/0 -> 75/25`; got != want {
		t.Errorf("change = %q, want %q", got, want)
	}
}

func TestCanaryWeight(t *testing.T) {
	for sentence, tc := range map[string]struct {
		spec  fields
		split virtualservice.Split
		want  string // weight, known, uniform
	}{
		"nothing for the canary":                            {spec: one(ours(100, 0)...), want: "0 true true"},
		"a part":                                            {spec: one(ours(70, 30)...), want: "30 true true"},
		"everything":                                        {spec: one(ours(0, 100)...), want: "100 true true"},
		"numbers as floats":                                 {spec: one(to("stable", 70.0), to("canary", 30.0)), want: "30 true true"},
		"an absent canary weight":                           {spec: one(to("stable", weighs(100)), to("canary")), want: "0 true true"},
		"an absent stable weight":                           {spec: one(to("stable"), to("canary", weighs(100))), want: "100 true true"},
		"no weights at all":                                 {spec: one(to("stable"), to("canary")), want: "0 false false"},
		"both weights zero":                                 {spec: one(ours(0, 0)...), want: "0 false false"},
		"another scale":                                     {spec: one(ours(900, 100)...), want: "10 true true"},
		"a fraction counts as the whole above it":           {spec: one(ours(995, 5)...), want: "1 true true"},
		"tenths of a percent":                               {spec: one(ours(995, 5)...), split: outOf(1000, byHosts()), want: "5 true true"},
		"of ours, not of everything":                        {spec: one(mixed(weighs(72), weighs(8), weighs(20))...), want: "10 true true"},
		"a rounded share is read as what was asked":         {spec: one(mixed(weighs(70), weighs(10), weighs(20))...), want: "13 true true"},
		"foreign weights alone say nothing":                 {spec: one(mixed(weighs(0), weighs(0), weighs(100))...), want: "0 false false"},
		"a negative canary weight is none":                  {spec: one(ours(140, -40)...), want: "0 true true"},
		"a negative stable weight is none":                  {spec: one(ours(-40, 140)...), want: "100 true true"},
		"absurd weights do not overflow":                    {spec: one(ours(math.MaxInt64, math.MaxInt64)...), split: outOf(math.MaxInt32, byHosts()), want: "1073741824 true true"},
		"two routes that agree":                             {spec: fields{"http": []any{http("a", ours(70, 30)...), http("b", ours(700, 300)...)}}, want: "30 true true"},
		"two routes that do not, the higher counts":         {spec: fields{"http": []any{http("a", ours(70, 30)...), http("b", ours(90, 10)...)}}, want: "30 true false"},
		"the higher may come second":                        {spec: fields{"http": []any{http("a", ours(90, 10)...)}, "tcp": []any{tcp(nil, ours(70, 30)...)}}, want: "30 true false"},
		"one of two routes says nothing":                    {spec: fields{"http": []any{http("a", ours(0, 0)...), http("b", ours(90, 10)...)}}, want: "10 true false"},
		"a share that was rounded to none agrees":           {spec: fields{"http": []any{http("a", mixed(weighs(80), weighs(0), weighs(20))...), http("b", ours(99, 1)...)}}, want: "1 true true"},
		"a share that was not rounded to none does not":     {spec: fields{"http": []any{http("a", mixed(weighs(80), weighs(0), weighs(20))...), http("b", ours(98, 2)...)}}, want: "2 true false"},
		"shares of different rest agree in what they stand": {spec: fields{"http": []any{http("a", mixed(weighs(70), weighs(10), weighs(20))...), http("b", ours(87, 13)...)}}, want: "13 true true"},
	} {
		t.Run(sentence, func(t *testing.T) {
			split := tc.split
			if split.Max == 0 {
				split = byHosts()
			}
			vs := parse(tc.spec)
			routes, err := vs.Select(virtualservice.Selection{AllMatching: true}, split)
			if err != nil {
				t.Fatal(err)
			}
			weight, known, uniform, err := vs.CanaryWeight(routes, split)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(weight, known, uniform); got != tc.want {
				t.Errorf("weight, known, uniform = %s, want %s", got, tc.want)
			}
		})
	}
}

// A canary from start to promotion through a VirtualService that only has tls
// routes: argo-rollouts#2501 was stuck at 0/100 there.
func TestATLSCanaryGoesAllTheWayAndBack(t *testing.T) {
	u := virtualService(fields{"tls": []any{tls([]string{"443 a"}, ours(100, 0)...)}})
	var seen []string
	for _, canary := range []int32{20, 60, 100, 0} {
		patch, _, err := set(u, virtualservice.Selection{}, byHosts(), canary)
		if err != nil {
			t.Fatal(err)
		}
		u = apply(t, u, patch)
		seen = append(seen, weights(u))
	}
	if diff := cmp.Diff("tls 80 20, tls 40 60, tls 0 100, tls 100 0", strings.Join(seen, ", ")); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	for _, absent := range []string{"http", "tcp"} {
		if _, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", absent); found {
			t.Errorf("spec.%s has appeared", absent)
		}
	}
}

// A foreign share is the same before, during and after a rollout.
func TestAForeignShareOutlivesARollout(t *testing.T) {
	u := virtualService(one(mixed(weighs(80), weighs(0), weighs(20))...))
	var seen []string
	for _, canary := range []int32{10, 50, 100, 0} {
		patch, _, err := set(u, virtualservice.Selection{}, byHosts(), canary)
		if err != nil {
			t.Fatal(err)
		}
		u = apply(t, u, patch)
		seen = append(seen, weights(u))
	}
	if diff := cmp.Diff("http 72 8 20, http 40 40 20, http 0 80 20, http 80 0 20", strings.Join(seen, ", ")); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
}
