package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubelabels "k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// naive are the rules of the checks that ask the index, told without it: each compares a
// Rollout with every object of the input.
var naive = map[string]func(*subject) []string{
	"ARI0220": naiveSameHost, "ARI0222": naiveWithoutSubset, "ARI0224": naiveRootService,
	"ARI0221": naiveCatchAll, "ARI0232": naiveBorrowed, "ARI0307": naiveSameSubsets, "ARI0501": naiveScalers,
}

func (w *world) sameHosts(a, inA, b, inB string) bool {
	domain := w.options.ClusterDomain
	return hostname.Same(hostname.Canonical(a, inA, domain), hostname.Canonical(b, inB, domain), domain)
}

func naiveSameHost(s *subject) (told []string) {
	for _, x := range s.services {
		for _, other := range s.w.byKind[virtualServiceKind] {
			if x.o == nil || other == x.o || !forSidecars(other) || !forSidecars(x.o) || !meet(exportsOf(x.o), exportsOf(other)) {
				continue
			}
			shared := slices.IndexFunc(x.o.texts("spec", "hosts"), func(a string) bool {
				return slices.ContainsFunc(other.texts("spec", "hosts"), func(b string) bool { return s.w.sameHosts(a, x.o.Namespace, b, other.Namespace) })
			})
			if shared >= 0 {
				told = append(told, fmt.Sprintf("%s spec.hosts[%d]: %s", x.o, shared, other))
			}
		}
	}
	return told
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(scope string) bool { return scope == "*" || slices.Contains(b, scope) || slices.Contains(b, "*") })
}

// everySending is each destination of the input that gets requests, but for those of the
// routes that the Rollout handles.
func everySending(s *subject) (all []sending) {
	for _, o := range s.w.byKind[virtualServiceKind] {
		vs := s.w.services[o]
		for _, route := range slices.Concat(vs.HTTP, vs.TLS, vs.TCP) {
			own := slices.ContainsFunc(s.services, func(x *routed) bool {
				return x.o == o && slices.ContainsFunc(x.routes, func(r virtualservice.Route) bool { return r.Protocol == route.Protocol && r.Index == route.Index })
			})
			for _, d := range route.Destinations {
				if !own && (d.Weight > 0 || len(route.Destinations) == 1) {
					all = append(all, sending{o, &route, &d})
				}
			}
		}
	}
	return all
}

func isSide(s *subject, host, namespace string) bool {
	return slices.ContainsFunc(s.sides(), func(side virtualservice.Side) bool {
		return side.Host != "" && hostname.Same(hostname.Canonical(host, namespace, ""), side.Host, "")
	})
}

func naiveWithoutSubset(s *subject) (told []string) {
	for _, from := range everySending(s) {
		if len(s.rules) > 0 && from.to.Subset == "" && isSide(s, from.to.Host, from.o.Namespace) {
			told = append(told, from.text())
		}
	}
	return told
}

func (x sending) text() string { return fmt.Sprintf("%s %s %d", x.o, x.route, x.to.Index) }

func naiveRootService(s *subject) (told []string) {
	for _, from := range everySending(s) {
		for _, o := range s.w.byKind[serviceKind] {
			asked := o.labels("spec", "selector")
			if len(s.rules) == 0 && len(s.problems) == 0 && o.Namespace == s.o.Namespace && len(asked) > 0 &&
				s.w.sameHosts(o.Name, o.Namespace, from.to.Host, from.o.Namespace) && !isSide(s, from.to.Host, from.o.Namespace) && selects(asked, s.ro.Spec.Template.Labels) {
				told = append(told, from.text())
			}
		}
	}
	return told
}

// selects asks the selectors of Kubernetes.
func selects(asked, pods map[string]string) bool {
	return kubelabels.SelectorFromSet(asked).Matches(kubelabels.Set(pods))
}

func naiveCatchAll(s *subject) (told []string) {
	for _, x := range s.services {
		for _, route := range x.routes {
			for i := 0; route.Protocol == virtualservice.HTTP && i < route.Index; i++ {
				if before := x.vs.HTTP[i]; !slices.Contains(s.managed, before.Name) && unconditional(before.Raw) {
					told = append(told, fmt.Sprintf("%s %s %s", x.o, route, before))
					break
				}
			}
		}
	}
	return told
}

func naiveBorrowed(s *subject) (told []string) {
	for _, x := range s.services {
		for i := 0; x.vs != nil && i < len(x.vs.HTTP); i++ {
			if name := x.vs.HTTP[i].Name; name != "" && slices.Contains(s.managed, name) {
				told = append(told, fmt.Sprintf("%s %d", x.o, i))
			}
		}
	}
	return told
}

func naiveSameSubsets(s *subject) (told []string) {
	for _, r := range s.rules {
		for _, other := range s.w.byKind[destinationRuleKind] {
			dr := s.w.rules[other]
			own := slices.ContainsFunc(s.rules, func(r ruled) bool { return r.o == other })
			if r.dr == nil || own || other.Namespace != r.o.Namespace || !s.w.sameHosts(dr.Host, other.Namespace, r.dr.Host, r.o.Namespace) {
				continue
			}
			for _, subset := range dr.Subsets {
				if subset.Name == r.want.CanarySubsetName || subset.Name == r.want.StableSubsetName {
					told = append(told, fmt.Sprintf("%s %d %s", other, subset.Index, r.o))
				}
			}
		}
	}
	return told
}

func naiveScalers(s *subject) (told []string) {
	for _, o := range slices.Concat(s.w.byKind[autoscalerKind], s.w.byKind[scaledObjectKind]) {
		target := o.labels("spec", "scaleTargetRef")
		if s.o.at("spec", "replicas") != nil && o.Namespace == s.o.Namespace && target["kind"] == "Rollout" && target["name"] == s.o.Name {
			told = append(told, o.String())
		}
	}
	return told
}

// telling is what a check of the registry tells of a Rollout, in the words above.
func telling(s *subject, code string) []string {
	c, _ := Lookup(code)
	var told []string
	c.judge(s, func(o *object, field, format string, args ...any) bool {
		text := ""
		switch code {
		case "ARI0220":
			text = fmt.Sprintf("%s %s: %s", o, field, args[0])
		case "ARI0221":
			text = fmt.Sprintf("%s %s %s", o, args[0], args[1])
		case "ARI0222", "ARI0224":
			var index int
			_, rest, _ := strings.Cut(field, ".route[")
			_, _ = fmt.Sscanf(rest, "%d]", &index)
			text = fmt.Sprintf("%s %s %d", o, args[0], index)
		case "ARI0232", "ARI0307":
			text = fmt.Sprintf("%s %d", o, stepsOf(field)[2].index)
			if code == "ARI0307" {
				text += fmt.Sprintf(" %s", args[2])
			}
		case "ARI0501":
			text = fmt.Sprint(args[0])
		}
		told = append(told, text)
		return true
	})
	return told
}

// smallInput has few names, so that objects meet.
func smallInput(t *rapid.T) Input {
	var in Input
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
	namespace := func() string { return pick("namespace", "a", "a", "a", "b") }
	host := func() string {
		return pick("host", "web", "web.a", "web.b.svc", "web.a.svc.cluster.local", "api", "api.b", "*.example", "example.com", "WEB", "web-stable", "web-canary")
	}
	some := func(what string, most int, one func() any) []any {
		var all []any
		for range rapid.IntRange(0, most).Draw(t, what) {
			all = append(all, one())
		}
		return all
	}
	subset := func() string { return pick("subset", "stable", "canary", "old", "") }
	labels := func() map[string]any {
		return rapid.MapOf(rapid.SampledFrom([]string{"app", "tier"}), rapid.Map(rapid.SampledFrom([]string{"x", "x", "y"}), func(v string) any { return v })).Draw(t, "labels")
	}
	route := func() any {
		r := map[string]any{"route": append(some("destinations", 2, func() any {
			d := map[string]any{"host": host()}
			if name := subset(); name != "" {
				d["subset"] = name
			}
			return map[string]any{"destination": d, "weight": rapid.SampledFrom([]int64{0, 50, 100}).Draw(t, "weight")}
		}), map[string]any{"destination": map[string]any{"host": host()}})}
		to := func(host, subset string, weight int64) any {
			return map[string]any{"destination": map[string]any{"host": host, "subset": subset}, "weight": weight}
		}
		switch pick("fit", "by subsets", "by Services", "by Services with a subset", "") {
		case "by Services with a subset":
			r["route"] = []any{to("web-stable", "old", 100), to("web-canary", "old", 0)}
		case "by subsets":
			r["route"] = []any{to("web", "stable", 100), to("web", "canary", 0)}
		case "by Services":
			r["route"] = []any{to("web-stable", "", 100), to("web-canary", "", 0)}
		}
		if name := pick("name", "", "p", "q", "hdr"); name != "" {
			r["name"] = name
		}
		if rapid.Bool().Draw(t, "matched") {
			r["match"] = []any{map[string]any{"uri": map[string]any{"prefix": pick("prefix", "/", "/x")}}}
		}
		return r
	}
	add := func(version, kind, name, namespace string, spec map[string]any) {
		in.Add(map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}, "spec": spec})
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "VirtualServices") {
		spec := map[string]any{"hosts": some("hosts", 3, func() any { return host() }), "http": some("routes", 4, route)}
		if rapid.Bool().Draw(t, "gateways") {
			spec["gateways"] = some("gateways", 2, func() any { return pick("gateway", "mesh", "public") })
		}
		spec["exportTo"] = some("exports", 2, func() any { return pick("export", ".", "*", "a", "b") })
		add("networking.istio.io/v1", "VirtualService", fmt.Sprintf("vs%d", i), namespace(), spec)
	}
	for i := range rapid.IntRange(2, 5).Draw(t, "DestinationRules") {
		add("networking.istio.io/v1", "DestinationRule", fmt.Sprintf("dr%d", i), namespace(), map[string]any{
			"host": pick("host", "web", "web.a.svc", "api"), "subsets": some("subsets", 4, func() any { return map[string]any{"name": subset(), "labels": labels()} }),
		})
	}
	for range rapid.IntRange(2, 6).Draw(t, "Services") {
		add("v1", "Service", pick("service", "web", "api", "web-stable", "web-canary"), namespace(), map[string]any{"selector": labels()})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "autoscalers") {
		add("keda.sh/v1alpha1", "ScaledObject", fmt.Sprintf("so%d", i), namespace(), map[string]any{"scaleTargetRef": map[string]any{"kind": pick("target", "Rollout", "Deployment"), "name": pick("target", "ro0", "ro1")}})
	}
	for i := range rapid.IntRange(2, 6).Draw(t, "Rollouts") {
		block := map[string]any{"virtualService": map[string]any{"name": pick("vs", "vs0", "vs0", "vs1") + "." + namespace()}}
		switch how := pick("routes", "listed", "all", "unlisted"); how {
		case "listed":
			at(block, "virtualService").(map[string]any)["routes"] = []any{pick("route", "p", "q")}
		case "all":
			at(block, "virtualService").(map[string]any)["allMatchingRoutes"] = true
		}
		canary := map[string]any{"trafficRouting": map[string]any{"managedRoutes": []any{map[string]any{"name": "hdr"}}, "plugins": map[string]any{"argoproj-labs/istio": block}}}
		if rapid.Bool().Draw(t, "by subsets") {
			block["destinationRule"] = map[string]any{"name": pick("dr", "dr0", "dr1"), "canarySubsetName": "canary", "stableSubsetName": "stable"}
		} else {
			canary["canaryService"], canary["stableService"] = "web-canary", "web-stable"
		}
		pods := map[string]any{"app": "x"}
		if rapid.Bool().Draw(t, "tiered") {
			pods["tier"] = "x"
		}
		add("argoproj.io/v1alpha1", "Rollout", fmt.Sprintf("ro%d", i), namespace(), map[string]any{
			"replicas": int64(2), "template": map[string]any{"metadata": map[string]any{"labels": pods}}, "strategy": map[string]any{"canary": canary},
		})
	}
	return in
}

func TestTheIndexFindsWhatALookAtEverythingFinds(t *testing.T) {
	everywhere := Options{}
	found := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(smallInput(t), everywhere)
		for _, s := range w.subjects {
			for _, code := range slices.Sorted(maps.Keys(naive)) {
				want, got := sorting(naive[code](s)), sorting(telling(s, code))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s of %s:\n%s", code, s.o, diff)
				}
				found[code] += len(want)
			}
		}
	})
	for code := range naive {
		if found[code] == 0 {
			t.Errorf("%s was never found", code)
		}
	}
}

// sorting leaves of each text one.
func sorting(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }

func TestTheIndexChoosesTheRoutesThatThePluginChooses(t *testing.T) {
	chosen, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for _, s := range newWorld(smallInput(t), Options{}).subjects {
			for _, x := range s.services {
				if x.vs == nil || len(x.outcomes) != 1 {
					continue
				}
				routes, err := x.vs.Select(virtualservice.Selection{HTTP: x.want.Routes, AllMatching: x.want.AllMatchingRoutes, Managed: s.managed}, s.split)
				if diff := cmp.Diff(routes, x.routes, cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })); diff != "" {
					t.Errorf("%s:\n%s", s.o, diff)
				}
				if fmt.Sprint(err) != fmt.Sprint(x.outcomes[0].err) {
					t.Errorf("%s says %v, the plugin %v", s.o, x.outcomes[0].err, err)
				}
				for i, route := range x.routes {
					if fmt.Sprint(s.naivePatchError(x, route)) != fmt.Sprint(s.patchErrors(x)[i]) {
						t.Errorf("%s says %v of %s, the plugin %v", s.o, s.patchErrors(x)[i], route, s.naivePatchError(x, route))
					}
				}
				chosen, refused = chosen+len(routes), refused+1
			}
		}
	})
	if chosen == 0 || refused == 0 {
		t.Errorf("%d routes were chosen, %d selections refused", chosen, refused)
	}
}

func (s *subject) naivePatchError(x *routed, route virtualservice.Route) error {
	for _, weight := range s.weights() {
		if _, _, err := x.vs.Set([]virtualservice.Route{route}, s.split, virtualservice.Target{Canary: weight, ManagedNames: s.managed}); err != nil {
			return err
		}
	}
	return nil
}

func TestARouteThatIsNotThereIsRefusedInThePluginsWords(t *testing.T) {
	for _, n := range []int{0, 1, 19, 20, 21, 50} {
		vs := &virtualservice.VirtualService{}
		vs.Name, vs.Namespace = "web", "shop"
		for i := range n {
			vs.HTTP = append(vs.HTTP, virtualservice.Route{Protocol: virtualservice.HTTP, Index: i, Name: fmt.Sprintf("r%d", i)})
			vs.TLS = append(vs.TLS, virtualservice.Route{Protocol: virtualservice.TLS, Index: i})
			vs.TCP = append(vs.TCP, virtualservice.Route{Protocol: virtualservice.TCP, Index: i})
		}
		s := &subject{split: virtualservice.Split{Stable: virtualservice.Side{Host: "a"}, Canary: virtualservice.Side{Host: "b"}, Max: 100}}
		for _, selection := range []virtualservice.Selection{
			{HTTP: []string{"none"}}, {HTTP: []string{""}}, {HTTP: []string{"none"}, Managed: []string{"none"}},
			{TLS: []virtualservice.TLSRoute{{Port: 1}}}, {TCP: []virtualservice.TCPRoute{{Port: 1}}},
		} {
			_, want := vs.Select(selection, s.split)
			if got := s.refusal(vs, selection); want == nil || got == nil || got.Error() != want.Error() {
				t.Errorf("of %d routes, %+v:\n%v\n%v", n, selection, got, want)
			}
		}
	}
}

func TestOneKeyIsOneHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.SampledFrom([]string{"web", "a", "svc", "cluster", "local", "*", "", "WEB"})
		host := rapid.Map(rapid.SliceOfN(label, 1, 6), func(labels []string) string { return strings.Join(labels, ".") })
		namespace := rapid.SampledFrom([]string{"a", "web", "svc"})
		w := newWorld(Input{}, Options{})
		a, inA, b, inB := host.Draw(t, "a"), namespace.Draw(t, "in"), host.Draw(t, "b"), namespace.Draw(t, "in")
		if want, got := w.sameHosts(a, inA, b, inB), w.keyOf(a, inA) == w.keyOf(b, inB); want != got {
			t.Errorf("%q in %s and %q in %s: same is %v, keys are %q and %q", a, inA, b, inB, want, w.keyOf(a, inA), w.keyOf(b, inB))
		}
	})
}

func TestAServiceEntryNamesWhatALookAtAllSays(t *testing.T) {
	host := rapid.SampledFrom([]string{"web", "web.a", "Web.a", "x.example.com", "example.com", "*.example.com", "*", "*.com", "web.a.svc.cluster.local", "*.A.svc", "web.A.svc", ""})
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfN(host, 0, 3).Draw(t, "entries")
		var hosts []any
		for _, entry := range entries {
			hosts = append(hosts, entry)
		}
		var in Input
		in.Add(map[string]any{"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": map[string]any{"name": "e", "namespace": "a"}, "spec": map[string]any{"hosts": hosts}})
		w := newWorld(in, Options{})
		asked := host.Draw(t, "asked")
		want := slices.ContainsFunc(entries, func(entry string) bool {
			suffix, wild := strings.CutPrefix(entry, "*")
			return strings.EqualFold(entry, asked) || wild && strings.HasSuffix(asked, suffix)
		})
		if got := w.index.named(asked); got != want {
			t.Errorf("%q of %q: %v", asked, entries, got)
		}
		want = slices.ContainsFunc(entries, func(entry string) bool { return w.sameHosts(entry, "a", asked, "b") })
		if got := w.index.entries[w.keyOf(asked, "b")]; got != want {
			t.Errorf("%q of %q, completed: %v", asked, entries, got)
		}
	})
}

func TestABoundedCheckStopsAndSaysSo(t *testing.T) {
	for sentence, tc := range map[string]struct{ others, findings, notes int }{
		"as many as are told": {mostOthers, mostOthers, 0},
		"one more":            {mostOthers + 1, mostOthers, 1},
	} {
		text := "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web, namespace: shop}\nspec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}, strategy: {canary: {canaryService: c, stableService: s, steps: [{setWeight: 5}], trafficRouting: {plugins: {argoproj-labs/istio: {virtualService: {name: web}}}}}}}\n"
		service := "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: NAME, namespace: shop}\nspec: {hosts: [web], http: [{route: [{destination: {host: s}, weight: 100}, {destination: {host: c}, weight: 0}]}]}\n"
		text += strings.Replace(service, "NAME", "web", 1)
		for i := range tc.others {
			text += strings.Replace(service, "NAME", fmt.Sprintf("other-%d", i), 1)
		}
		var in Input
		in.Read("web.yaml", []byte(text))
		report := Run(in, Options{})
		notes := slices.DeleteFunc(report.Notes, func(note string) bool { return !strings.Contains(note, "ARI0220") })
		if len(report.Findings) != tc.findings || len(notes) != tc.notes {
			t.Errorf("%s: %d findings, notes: %q", sentence, len(report.Findings), notes)
		}
		if report = Run(in, Options{Ignore: []string{"ARI0220"}}); slices.ContainsFunc(report.Notes, func(note string) bool { return strings.Contains(note, "ARI0220") }) {
			t.Errorf("%s, suppressed: notes: %q", sentence, report.Notes)
		}
	}
}

func TestAServiceIsFoundByTheLabelThatFewHave(t *testing.T) {
	var in Input
	for i := range 50 {
		name := fmt.Sprintf("web-%d", i)
		in.Add(map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name, "namespace": "a"}, "spec": map[string]any{"selector": map[string]any{"app": "web", "part": name, "tier": "x"}}})
		in.Add(map[string]any{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": map[string]any{"name": name, "namespace": "a"}, "spec": map[string]any{
			"http": []any{map[string]any{"route": []any{map[string]any{"destination": map[string]any{"host": name}}}}},
		}})
	}
	w := newWorld(in, Options{})
	for at, services := range w.index.selectors {
		if len(services) != 1 {
			t.Errorf("%d Services are looked at for %v", len(services), at)
		}
	}
	found := slices.Collect(w.index.selecting("a", map[string]string{"app": "web", "part": "web-7", "tier": "x", "x": "y"}))
	if len(found) != 1 || found[0].Name != "web-7" {
		t.Errorf("found %v", found)
	}
}

func TestWhoDeployedAnObjectIsKnownByItsMarks(t *testing.T) {
	app := func(namespace, name string) *object {
		return newObject("", map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": map[string]any{"name": name, "namespace": namespace}}, nil, "")
	}
	d := deployersOf([]*object{app("argocd", "shop"), app("team", "shop"), app("argocd", "cart")}, applicationTarget, applicationIgnores)
	for sentence, tc := range map[string]struct {
		name, label string
		want        string
	}{
		"by a name alone":                    {"shop", "", "[Application argocd/shop Application team/shop]"},
		"by a namespace and a name":          {"team_shop", "", "[Application team/shop]"},
		"by a label":                         {"", "cart", "[Application argocd/cart]"},
		"by a label, which has no such form": {"", "team_shop", "[]"},
		"by both, once":                      {"argocd_cart", "cart", "[Application argocd/cart]"},
		"by nothing":                         {"", "", "[]"},
	} {
		if got := fmt.Sprint(d.tracked(tc.name, tc.label).by); got != tc.want {
			t.Errorf("%s: %s, want %s", sentence, got, tc.want)
		}
	}
}
