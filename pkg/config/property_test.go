package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/rollout/trafficrouting"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	label     = rapid.StringMatching(`[a-z]([a-z0-9-]{0,8}[a-z0-9])?`)
	namespace = rapid.SampledFrom([]string{"shop", "edge", "mesh"})
	// dotted object names are as legal as plain ones.
	objectName = rapid.StringMatching(`[a-z]([a-z0-9-]{0,6}[a-z0-9])?(\.[a-z][a-z0-9]{0,4}){0,2}`)
	subsetName = rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9-]{0,8}[A-Za-z0-9])?`)
	routeName  = rapid.StringMatching(`[A-Za-z0-9/_. -]{0,10}[a-z]`)
	port       = rapid.Int64Range(1, 65535)
)

func distinct(t *rapid.T, g *rapid.Generator[string], most int, what string) []string {
	return orNil(rapid.SliceOfNDistinct(g, 0, most, rapid.ID).Draw(t, what))
}

// orNil makes generated lists comparable with decoded ones.
func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func genTLSRoutes(t *rapid.T) []TLSRoute {
	return orNil(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) TLSRoute {
		r := TLSRoute{SNIHosts: distinct(t, label, 3, "sniHosts")}
		if r.SNIHosts == nil || rapid.Bool().Draw(t, "and port") {
			r.Port = port.Draw(t, "port")
		}
		return r
	}), 0, 3).Draw(t, "tlsRoutes"))
}

func genVirtualService(t *rapid.T) VirtualService {
	vs := VirtualService{Namespace: namespace.Draw(t, "namespace"), Name: objectName.Draw(t, "name")}
	if vs.AllMatchingRoutes = rapid.Bool().Draw(t, "allMatchingRoutes"); vs.AllMatchingRoutes {
		return vs
	}
	vs.Routes = distinct(t, routeName, 4, "routes")
	vs.TLSRoutes = genTLSRoutes(t)
	for _, p := range rapid.SliceOfNDistinct(port, 0, 3, rapid.ID).Draw(t, "tcpRoutes") {
		vs.TCPRoutes = append(vs.TCPRoutes, TCPRoute{Port: p})
	}
	return vs
}

func genDestinationRules(t *rapid.T) []DestinationRule {
	return orNil(rapid.SliceOfNDistinct(rapid.Custom(genDestinationRule), 0, 3, func(dr DestinationRule) string {
		return dr.Namespace + "/" + dr.Name
	}).Draw(t, "destinationRules"))
}

func genDestinationRule(t *rapid.T) DestinationRule {
	subsets := rapid.SliceOfNDistinct(subsetName, 2, 5, rapid.ID).Draw(t, "subsets")
	return DestinationRule{
		Namespace:             namespace.Draw(t, "namespace"),
		Name:                  objectName.Draw(t, "name"),
		CanarySubsetName:      subsets[0],
		StableSubsetName:      subsets[1],
		AdditionalSubsetNames: orNil(subsets[2:]),
	}
}

func genConfig(t *rapid.T, maxWeight int32) Config {
	hosts := rapid.SliceOfNDistinct(label, 2, 2, rapid.ID).Draw(t, "services")
	return Config{
		PluginName: DefaultPluginName,
		VirtualServices: rapid.SliceOfNDistinct(rapid.Custom(genVirtualService), 1, 3, func(vs VirtualService) string {
			return vs.Namespace + "/" + vs.Name
		}).Draw(t, "virtualServices"),
		DestinationRules: genDestinationRules(t),
		CanaryService:    hosts[0],
		StableService:    hosts[1],
		Guard: Guard{
			Mode:     rapid.SampledFrom([]Mode{Enforce, Observe, Off}).Draw(t, "mode"),
			MinRaise: rapid.Int32Range(0, maxWeight).Draw(t, "minRaise"),
			Settle:   time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "settle")),
			MaxHold:  time.Duration(rapid.Int64Range(int64(time.Second), int64(24*time.Hour)).Draw(t, "maxHold")),
		},
		Verify: genVerify(t),
	}
}

// blockOf writes the configuration back as a block.
func blockOf(cfg Config) map[string]any {
	block := map[string]any{"guard": map[string]any{
		"mode":     cfg.Guard.Mode,
		"minRaise": cfg.Guard.MinRaise,
		"settle":   cfg.Guard.Settle.String(),
		"maxHold":  cfg.Guard.MaxHold.String(),
	}, "verify": verifyBlock(cfg.Verify)}
	var all []any
	for _, vs := range cfg.VirtualServices {
		all = append(all, virtualServiceBlock(vs))
	}
	if len(all) == 1 {
		block["virtualService"] = all[0]
	} else {
		block["virtualServices"] = all
	}
	var rules []any
	for _, dr := range cfg.DestinationRules {
		rules = append(rules, map[string]any{"name": dr.Name, "namespace": dr.Namespace, "canarySubsetName": dr.CanarySubsetName,
			"stableSubsetName": dr.StableSubsetName, "additionalSubsetNames": append([]string{}, dr.AdditionalSubsetNames...)})
	}
	switch len(rules) {
	case 0:
	case 1:
		block["destinationRule"] = rules[0]
	default:
		block["destinationRules"] = rules
	}
	return block
}

func virtualServiceBlock(vs VirtualService) map[string]any {
	tls, tcp := []any{}, []any{}
	for _, r := range vs.TLSRoutes {
		entry := map[string]any{"sniHosts": append([]string{}, r.SNIHosts...)}
		if r.Port != 0 {
			entry["port"] = r.Port
		}
		tls = append(tls, entry)
	}
	for _, r := range vs.TCPRoutes {
		tcp = append(tcp, map[string]any{"port": r.Port})
	}
	return map[string]any{"name": vs.Name, "namespace": vs.Namespace, "routes": append([]string{}, vs.Routes...),
		"tlsRoutes": tls, "tcpRoutes": tcp, "allMatchingRoutes": vs.AllMatchingRoutes}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxWeight := rapid.SampledFrom([]int32{1, 100, 1000, 1<<31 - 1}).Draw(t, "maxTrafficWeight")
		want := genConfig(t, maxWeight)
		raw, err := json.Marshal(blockOf(want))
		if err != nil {
			t.Fatal(err)
		}
		ro := withBlock(raw, maxTrafficWeight(maxWeight), services(want.CanaryService, want.StableService))
		before := ro.DeepCopy()
		got, err := FromRollout(ro, Options{CrossNamespace: CrossNamespace{all: true}})
		if err != nil {
			t.Fatalf("%v\nblock: %s", err, raw)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("read back (-want +got):\n%s\nblock: %s", diff, raw)
		}
		if diff := cmp.Diff(before, ro); diff != "" {
			t.Fatalf("the Rollout was changed:\n%s", diff)
		}
	})
}

// shuffled writes an object with its fields in an arbitrary order.
func shuffled(t *rapid.T, value any) string {
	switch v := value.(type) {
	case map[string]any:
		var parts []string
		for _, k := range rapid.Permutation(slices.Sorted(maps.Keys(v))).Draw(t, "order") {
			parts = append(parts, fmt.Sprintf("%q:%s", k, shuffled(t, v[k])))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, shuffled(t, item))
		}
		return "[" + strings.Join(parts, ",") + "]"
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
}

// spoil replaces, removes or adds fields of the block, at any depth.
func spoil(t *rapid.T, block map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(block)) {
		switch rapid.IntRange(0, 9).Draw(t, "spoil "+name) {
		case 0:
			delete(block, name)
		case 1:
			block[name] = rapid.SampledFrom([]any{nil, true, -1, 1e30, "", "x y", []any{}, []any{nil}, map[string]any{}}).Draw(t, "value")
		case 2:
			block[name+"s"] = block[name]
		case 3:
			block[strings.ToUpper(name)] = 1
		}
		switch v := block[name].(type) {
		case map[string]any:
			spoil(t, v)
		case []any:
			for _, item := range v {
				if inner, ok := item.(map[string]any); ok {
					spoil(t, inner)
				}
			}
		}
	}
}

func TestAnswerDoesNotDependOnTheOrderOfFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := blockOf(genConfig(t, 100))
		spoil(t, block)
		one, other := shuffled(t, block), shuffled(t, block)
		first, firstErr := FromRollout(withBlock([]byte(one)), Options{})
		second, secondErr := FromRollout(withBlock([]byte(other)), Options{})
		if diff := cmp.Diff(fmt.Sprint(firstErr), fmt.Sprint(secondErr)); diff != "" {
			t.Fatalf("errors differ:\n%s\nfor %s\nand %s", diff, one, other)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("configurations differ:\n%s\nfor %s\nand %s", diff, one, other)
		}
	})
}

// asNative is the native block, in the controller's own types, that names the same objects and routes.
func asNative(cfg Config, singleForm bool) v1alpha1.IstioTrafficRouting {
	var native v1alpha1.IstioTrafficRouting
	for _, vs := range cfg.VirtualServices {
		out := v1alpha1.IstioVirtualService{Name: vs.Name + "." + vs.Namespace, Routes: vs.Routes}
		for _, r := range vs.TLSRoutes {
			out.TLSRoutes = append(out.TLSRoutes, v1alpha1.TLSRoute{Port: r.Port, SNIHosts: r.SNIHosts})
		}
		for _, r := range vs.TCPRoutes {
			out.TCPRoutes = append(out.TCPRoutes, v1alpha1.TCPRoute{Port: r.Port})
		}
		native.VirtualServices = append(native.VirtualServices, out)
	}
	for _, dr := range cfg.DestinationRules {
		native.DestinationRule = &v1alpha1.IstioDestinationRule{Name: dr.Name, CanarySubsetName: dr.CanarySubsetName,
			StableSubsetName: dr.StableSubsetName, AdditionalSubsetNames: dr.AdditionalSubsetNames}
	}
	if len(native.VirtualServices) == 1 && singleForm {
		native.VirtualService, native.VirtualServices = &native.VirtualServices[0], nil
	}
	return native
}

func TestNativeBlockMovedAsItIsMeansTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genConfig(t, 100)
		// The native block knows none of these.
		want.Guard, want.Verify = hostLevel().Guard, hostLevel().Verify
		for i := range want.VirtualServices {
			want.VirtualServices[i].AllMatchingRoutes = false
		}
		want.DestinationRules = want.DestinationRules[:min(1, len(want.DestinationRules))]
		for i := range want.DestinationRules {
			want.DestinationRules[i].Namespace = "shop"
		}
		raw, err := json.Marshal(asNative(want, rapid.Bool().Draw(t, "single form")))
		if err != nil {
			t.Fatal(err)
		}
		got, err := FromRollout(withBlock(raw, services(want.CanaryService, want.StableService)),
			Options{CrossNamespace: CrossNamespace{all: true}})
		if err != nil {
			t.Fatalf("%v\nblock: %s", err, raw)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("configuration (-want +got):\n%s\nblock: %s", diff, raw)
		}
	})
}

func TestServicesAreTheControllersOwnChoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ro := withBlock([]byte(`{"virtualService":{"name":"web"}}`))
		if rapid.Bool().Draw(t, "without Services") {
			services("", "")(ro)
		}
		if ro.Spec.Strategy.Canary.CanaryService == "" || rapid.Bool().Draw(t, "ping-pong") {
			pingPong("ping", "pong", rapid.SampledFrom([]v1alpha1.PingPongType{"", v1alpha1.PPPing, v1alpha1.PPPong}).Draw(t, "stable"))(ro)
		}
		cfg, err := FromRollout(ro, Options{})
		if err != nil {
			t.Fatal(err)
		}
		stable, canary := trafficrouting.GetStableAndCanaryServices(ro, false)
		if cfg.StableService != stable || cfg.CanaryService != canary {
			t.Fatalf("canary %q and stable %q, the controller has %q and %q", cfg.CanaryService, cfg.StableService, canary, stable)
		}
	})
}

func TestPercentOfIsRoundedUpAndInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		percent := rapid.Int64Range(0, 100).Draw(t, "percent")
		maxWeight := rapid.Int32Min(1).Draw(t, "maxWeight")
		parts := int64(percentOf(percent, maxWeight))
		// The smallest number of parts that is no less than the percentage.
		if parts*100 < percent*int64(maxWeight) || (parts-1)*100 >= percent*int64(maxWeight) {
			t.Fatalf("%d %% of %d is not %d", percent, maxWeight, parts)
		}
	})
}
