package virtualservice_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/ownership"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

const owner = "shop/web"

// service is the destination of an experiment at host level, subset one at subset level.
func service(name string) virtualservice.Side {
	return virtualservice.Side{Host: name + ".shop.svc.cluster.local"}
}

func subset(name string) virtualservice.Side {
	return virtualservice.Side{Host: "web.shop.svc.cluster.local", Subset: name}
}

func experiment(name string, weight int32) virtualservice.Experiment {
	return virtualservice.Experiment{Service: name, Side: service(name), Weight: weight}
}

// with makes further sides ours.
func with(split virtualservice.Split, sides ...virtualservice.Side) virtualservice.Split {
	split.Experiments = sides
	return split
}

// noted gives the object an annotation.
func noted(u *unstructured.Unstructured, text string) *unstructured.Unstructured {
	u.SetAnnotations(map[string]string{ownership.Annotation: text})
	return u
}

// reach applies the patch to the target and checks what always holds: the object
// that was read stays as it is, the second time there is nothing to do, and what a
// patch does is told.
func reach(t fataler, u *unstructured.Unstructured, split virtualservice.Split, target virtualservice.Target) (*unstructured.Unstructured, []virtualservice.Change) {
	t.Helper()
	selection := virtualservice.Selection{AllMatching: true, Managed: target.ManagedNames}
	before := u.DeepCopy()
	patch, changes, err := setTarget(u, selection, split, target)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, u); diff != "" {
		t.Fatal("the cached object changed (-before +after):\n" + diff)
	}
	if (len(patch) == 0) != (len(changes) == 0) {
		t.Fatal("patch ", patch, " with changes ", changes)
	}
	after := apply(t, u, patch)
	again, _, err := setTarget(after, selection, split, target)
	if err != nil || len(again) != 0 {
		t.Fatal("the second time: patch ", again, ", error ", err)
	}
	return after, changes
}

func texts(changes []virtualservice.Change) []string {
	var all []string
	for _, change := range changes {
		all = append(all, change.String())
	}
	return all
}

// listed is the YAML of a list, as a client decodes it.
func listed(t fataler, text string) []any {
	t.Helper()
	document, err := yaml.YAMLToJSON([]byte("kind: List\nhttp:\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(document); err != nil {
		t.Fatal(err)
	}
	list, _, err := unstructured.NestedSlice(u.Object, "http")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestExperimentWeights(t *testing.T) {
	for sentence, tc := range map[string]struct {
		spec        fields
		most        int32
		canary      int32
		experiments []virtualservice.Experiment
		want        string
	}{
		"two templates get their part, the stable the rest": { // Gateway API plugin #124
			spec: one(ours(100, 0)...), experiments: []virtualservice.Experiment{experiment("exp-a", 15), experiment("exp-b", 15)}, want: "http 70 0 15 15"},
		"beside a canary": {
			spec: one(ours(100, 0)...), canary: 20, experiments: []virtualservice.Experiment{experiment("exp-a", 15), experiment("exp-b", 5)}, want: "http 60 20 15 5"},
		"exactly everything": {
			spec: one(ours(100, 0)...), canary: 40, experiments: []virtualservice.Experiment{experiment("exp-a", 60)}, want: "http 0 40 60"},
		"more than everything: in proportion": {
			spec: one(ours(100, 0)...), experiments: []virtualservice.Experiment{experiment("exp-a", 60), experiment("exp-b", 60)}, want: "http 0 0 50 50"},
		"more than the canary leaves: the canary keeps its part": {
			spec: one(ours(100, 0)...), canary: 50, experiments: []virtualservice.Experiment{experiment("exp-a", 60), experiment("exp-b", 30)}, want: "http 1 50 33 16"},
		"nothing is left for templates": {
			spec: one(ours(100, 0)...), canary: 100, experiments: []virtualservice.Experiment{experiment("exp-a", 60)}, want: "http 0 100 0"},
		"a wanted template of weight 0 is there": { // argo-rollouts#3420
			spec: one(ours(100, 0)...), canary: 10, experiments: []virtualservice.Experiment{experiment("exp-a", 0)}, want: "http 90 10 0"},
		"a foreign destination keeps its weight": {
			spec: one(mixed(weighs(80), weighs(0), weighs(20))...), canary: 50, experiments: []virtualservice.Experiment{experiment("exp-a", 25)}, want: "http 20 40 20 20"},
		"what rounding leaves goes to the stable": {
			spec: one(mixed(weighs(99), weighs(0), weighs(1))...), canary: 50, experiments: []virtualservice.Experiment{experiment("exp-a", 50)}, want: "http 1 49 1 49"},
		"one that is there keeps its place": {
			spec: one(to("exp-b", weighs(3)), to("stable", weighs(97)), to("canary")), experiments: []virtualservice.Experiment{experiment("exp-a", 1), experiment("exp-b", 2)}, want: "http 2 97 - 1"},
		"one that is there twice stays once": {
			spec: one(append(ours(90, 0), to("exp-a", weighs(5)), to("exp-a", weighs(5)))...), experiments: []virtualservice.Experiment{experiment("exp-a", 10)}, want: "http 90 0 10"},
		"a negative weight of one is healed": {
			spec: one(append(ours(90, 0), to("exp-a", weighs(-5)))...), experiments: []virtualservice.Experiment{experiment("exp-a", 10)}, want: "http 90 0 10"},
		"on another scale": {
			spec: one(ours(1000, 0)...), most: 1000, canary: 5, experiments: []virtualservice.Experiment{experiment("exp-a", 7)}, want: "http 988 5 7"},
		"the largest weights do not overflow": {
			spec: one(ours(1, 0)...), most: 1<<31 - 1, canary: 1, experiments: []virtualservice.Experiment{experiment("exp-a", 1<<31-1), experiment("exp-b", 1<<31-1)}, want: "http 0 1 1073741823 1073741823"},
		"in every protocol": {
			spec:   fields{"http": []any{http("a", ours(100, 0)...)}, "tls": []any{tls([]string{"443 a"}, ours(100, 0)...)}, "tcp": []any{tcp(nil, ours(100, 0)...)}},
			canary: 10, experiments: []virtualservice.Experiment{experiment("exp-a", 20)}, want: "http 70 10 20; tls 70 10 20; tcp 70 10 20"},
	} {
		t.Run(sentence, func(t *testing.T) {
			split := with(byHosts(), service("exp-a"), service("exp-b"))
			if tc.most != 0 {
				split.Max = tc.most
			}
			target := virtualservice.Target{Owner: owner, Canary: tc.canary, Experiments: tc.experiments}
			after, _ := reach(t, virtualService(tc.spec), split, target)
			if diff := cmp.Diff(tc.want, weights(after)); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
		})
	}
}

// The life of an experiment: its destinations come and go with their account, and
// what others have beside it stays.
func TestAnExperimentLeavesNothingBehind(t *testing.T) {
	split := with(bySubsets(), subset("exp-a"), subset("exp-b"))
	list := listed(t, `
- name: primary
  timeout: 5s
  route:
  - {destination: {host: web, subset: stable, port: {number: 8080}, futureField: 1}, weight: 80}
  - {destination: {host: web, subset: canary, port: {number: 9090}}, weight: 0, headers: {request: {set: {a: b}}}}
  - {destination: {host: web, subset: legacy}, weight: 20}
- {route: [{destination: {host: db}}]}
`)
	u := virtualService(fields{"hosts": []any{"web"}, "http": list})
	original := u.DeepCopy()
	a := virtualservice.Experiment{Service: "exp-a", Side: subset("exp-a"), Weight: 10}
	b := virtualservice.Experiment{Service: "exp-b", Side: subset("exp-b"), Weight: 20}

	u, changes := reach(t, u, split, virtualservice.Target{Owner: owner, Experiments: []virtualservice.Experiment{b, a}})
	want := original.DeepCopy()
	route := want.Object["spec"].(fields)["http"].([]any)[0].(fields)
	destinations := route["route"].([]any)
	destinations[0].(fields)["weight"] = int64(56)
	port := func() any { return fields{"number": int64(8080)} }
	route["route"] = append(destinations,
		fields{"destination": fields{"host": "web.shop.svc.cluster.local", "subset": "exp-b", "port": port()}, "weight": int64(16)},
		fields{"destination": fields{"host": "web.shop.svc.cluster.local", "subset": "exp-a", "port": port()}, "weight": int64(8)})
	noted(want, `{"shop/web":["exp-a","exp-b"]}`)
	if diff := cmp.Diff(want, u); diff != "" {
		t.Errorf("with both (-want +got):\n%s", diff)
	}
	wantTexts := []string{
		`http[0] "primary" 80/0 -> 56/0`,
		`http[0] "primary" destination host web.shop.svc.cluster.local, subset exp-b added with weight 16`,
		`http[0] "primary" destination host web.shop.svc.cluster.local, subset exp-a added with weight 8`,
		`annotation istio.argoproj-labs.io/experiments now lists [exp-b, exp-a] for shop/web`,
	}
	if diff := cmp.Diff(wantTexts, texts(changes)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"exp-a", "exp-b"}, virtualservice.Parse(u, manager).ExperimentServices(owner)); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}

	u, changes = reach(t, u, split, virtualservice.Target{Owner: owner, Experiments: []virtualservice.Experiment{a}})
	if diff := cmp.Diff("http 72 0 20 8 | -", weights(u)); diff != "" {
		t.Errorf("with one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(`{"shop/web":["exp-a"]}`, u.GetAnnotations()[ownership.Annotation]); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
	if got, want := changes[1].String(), `http[0] "primary" destination host web.shop.svc.cluster.local, subset exp-b removed`; got != want {
		t.Errorf("change %q, want %q", got, want)
	}

	u, _ = reach(t, u, split, virtualservice.Target{Owner: owner})
	if diff := cmp.Diff(original, bare(u)); diff != "" {
		t.Errorf("afterwards (-original +got):\n%s", diff)
	}
}

// bare drops an empty list of annotations, which the API server does not keep.
func bare(u *unstructured.Unstructured) *unstructured.Unstructured {
	if metadata, ok := u.Object["metadata"].(fields); ok && len(u.GetAnnotations()) == 0 {
		delete(metadata, "annotations")
	}
	return u
}

// Only what is ours goes: a destination that nobody told us of is somebody's.
func TestForeignDestinationsOutliveAnExperiment(t *testing.T) {
	u := noted(virtualService(one(append(ours(60, 0), to("exp-a", weighs(10)), to("exp-z", weighs(30)))...)),
		`{"shop/web":["exp-a"],"shop/cart":["exp-z"]}`)
	after, _ := reach(t, u, with(byHosts(), service("exp-a")), virtualservice.Target{Owner: owner, Canary: 10})
	if diff := cmp.Diff("http 63 7 30", weights(after)); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(`{"shop/cart":["exp-z"]}`, after.GetAnnotations()[ownership.Annotation]); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
}

func TestAnAccountThatCannotBeRead(t *testing.T) {
	for sentence, text := range map[string]string{
		"no JSON":                "exp-a",
		"no object":              `["exp-a"]`,
		"our entry is no list":   `{"shop/web": 7}`,
		"our entry has no texts": `{"shop/web": [7]}`,
	} {
		t.Run(sentence, func(t *testing.T) {
			u := noted(virtualService(one(append(ours(100, 0), to("exp-a", weighs(0)))...)), text)
			selection, split := virtualservice.Selection{}, with(byHosts(), service("exp-a"))
			for _, target := range []virtualservice.Target{
				{Owner: owner, Experiments: []virtualservice.Experiment{experiment("exp-a", 5)}}, {Owner: owner},
			} {
				patch, _, err := setTarget(u, selection, split, target)
				mention(t, err, "VirtualService shop/web: ", ownership.Annotation, "correct it")
				if patch != nil {
					t.Errorf("patch %v beside the error", patch)
				}
			}
			// Where there is nothing to write it stops nobody.
			after, _ := reach(t, u, byHosts(), virtualservice.Target{Owner: owner, Canary: 10})
			if diff := cmp.Diff(text, after.GetAnnotations()[ownership.Annotation]); diff != "" {
				t.Errorf("annotation (-want +got):\n%s", diff)
			}
			if got := virtualservice.Parse(u, manager).ExperimentServices(owner); got != nil {
				t.Errorf("services %v", got)
			}
		})
	}
}

func TestTheAccountAloneIsPutRight(t *testing.T) {
	u := noted(virtualService(one(append(ours(95, 0), to("exp-a", weighs(5)))...)), `{"shop/web":["exp-a","exp-gone"]}`)
	after, changes := reach(t, u, with(byHosts(), service("exp-a"), service("exp-gone")),
		virtualservice.Target{Owner: owner, Experiments: []virtualservice.Experiment{experiment("exp-a", 5)}})
	if diff := cmp.Diff(`{"shop/web":["exp-a"]}`, after.GetAnnotations()[ownership.Annotation]); diff != "" {
		t.Errorf("account (-want +got):\n%s", diff)
	}
	if len(changes) != 1 {
		t.Errorf("changes %v", changes)
	}
}

func TestExperimentsThatAreRefused(t *testing.T) {
	twice := virtualservice.Experiment{Service: "exp-b", Side: service("exp-a")}
	for sentence, tc := range map[string]struct {
		split  virtualservice.Split
		target virtualservice.Target
		want   []string
	}{
		"no service":                  {byHosts(), virtualservice.Target{Owner: owner, Experiments: []virtualservice.Experiment{{Side: service("exp-a")}}}, []string{"has no service", "leave it out"}},
		"no host":                     {byHosts(), virtualservice.Target{Owner: owner, Experiments: []virtualservice.Experiment{{Service: "exp-a"}}}, []string{"has no host", "service"}},
		"no owner":                    {byHosts(), virtualservice.Target{Experiments: []virtualservice.Experiment{experiment("exp-a", 1)}}, []string{"the Rollout that they belong to"}},
		"a left-over one of no owner": {with(byHosts(), service("exp-a")), virtualservice.Target{}, []string{"the Rollout that they belong to"}},
		"a negative weight":           {byHosts(), virtualservice.Target{Owner: owner, Experiments: []virtualservice.Experiment{experiment("exp-a", -1)}}, []string{`weight -1 of experiment service "exp-a"`}},
		"twice the same destination":  {byHosts(), virtualservice.Target{Owner: owner, Experiments: []virtualservice.Experiment{experiment("exp-a", 1), twice}}, []string{`"exp-a" and "exp-b"`, "own service"}},
		"the stable destination":      {byHosts(), virtualservice.Target{Owner: owner, Experiments: []virtualservice.Experiment{experiment("stable", 1)}}, []string{"is the stable destination", "differ in host or in subset"}},
		"the canary destination":      {bySubsets(), virtualservice.Target{Owner: owner, Experiments: []virtualservice.Experiment{{Service: "canary", Side: subset("canary")}}}, []string{"is the canary destination"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			spec := fields{"http": []any{http("a", ours(100, 0)...)}}
			if tc.split.Stable.Subset != "" {
				spec = one(to("web/stable", weighs(100)), to("web/canary"))
			}
			patch, changes, err := setTarget(virtualService(spec), virtualservice.Selection{}, tc.split, tc.target)
			mention(t, err, append(tc.want, "VirtualService shop/web: ")...)
			if patch != nil || changes != nil {
				t.Errorf("patch %v and changes %v beside the error", patch, changes)
			}
		})
	}
}

// A name under which an experiment was may be that of a side by now.
func TestASideIsNeverLeftOver(t *testing.T) {
	u := noted(virtualService(one(ours(100, 0)...)), `{"shop/web":["stable","canary"]}`)
	after, _ := reach(t, u, with(byHosts(), service("stable"), service("canary")), virtualservice.Target{Owner: owner, Canary: 10})
	if diff := cmp.Diff("http 90 10", weights(after)); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
}

// The canary's part is of all that is ours.
func TestCanaryWeightBesideExperiments(t *testing.T) {
	spec := one(append(ours(60, 10), to("exp-a", weighs(10)), to("legacy", weighs(20)))...)
	for sentence, tc := range map[string]struct {
		split virtualservice.Split
		want  int32
	}{
		"an experiment is ours":              {with(byHosts(), service("exp-a")), 13}, // 10 of 80
		"it is foreign where it is not told": {byHosts(), 15},                         // 10 of 70
	} {
		t.Run(sentence, func(t *testing.T) {
			vs := parse(spec)
			routes, err := vs.Select(virtualservice.Selection{}, tc.split)
			if err != nil {
				t.Fatal(err)
			}
			got, known, uniform, err := vs.CanaryWeight(routes, tc.split)
			if err != nil || !known || !uniform || got != tc.want {
				t.Errorf("weight %d, known %v, uniform %v, error %v; want %d", got, known, uniform, err, tc.want)
			}
		})
	}
}

func TestNames(t *testing.T) {
	vs := parse(fields{
		"http": []any{http("a", foreign()...), http("hdr", to("web.shop/exp-a", weighs(0)))},
		"tcp":  []any{tcp(nil, to("exp-b"))},
	})
	for sentence, tc := range map[string]struct {
		side virtualservice.Side
		want bool
	}{
		"a subset of weight 0":       {subset("exp-a"), true},
		"a host in another protocol": {service("exp-b"), true},
		"another subset":             {subset("exp-c"), false},
		"the host without a subset":  {service("web"), false},
		"another host":               {service("exp-c"), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := vs.Names(tc.side, virtualservice.Split{}); got != tc.want {
				t.Errorf("Names(%s) = %v, want %v", tc.side, got, tc.want)
			}
		})
	}
}
