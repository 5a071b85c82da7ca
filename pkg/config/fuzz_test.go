package config

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// seeds are blocks at the edges of the vocabulary; the corpus folder holds what fuzzing has found.
var seeds = []string{
	`{"virtualService":{"name":"web"}}`,
	`{"virtualServices":[{"name":"web.edge","routes":["a"],"tlsRoutes":[{"port":443,"sniHosts":["a"]}],"tcpRoutes":[{"port":80}]}]}`,
	`{"virtualService":{"name":"web","namespace":"edge","allMatchingRoutes":true},"guard":{"mode":"Observe","minRaise":"5%","settle":"1.5s","maxHold":"1h"}}`,
	`{"virtualService":{"name":"web"},"destinationRule":{"name":"web","canarySubsetName":"c","stableSubsetName":"s","additionalSubsetNames":["x"]}}`,
	`null`, `[]`, `""`, `{`, `{}{}`, `{"a":1,"a":2}`, "\x00", "\xff\xfe", `{"\ud800":"\udfff"}`,
	`{"virtualService":{"name":".cluster.local"}}`, `{"virtualService":{"name":"."}}`, `{"virtualService":{"name":".svc.cluster.local"}}`,
	`{"guard":{"minRaise":1e400,"settle":"9223372036854775807ns","maxHold":"-1h"}}`,
	`{"virtualService":{"name":"web"},"verify":{"level":"Mesh","proxies":true,"onUnavailable":"Hold"}}`,
	`{"verify":{"level":"Object","proxies":true,"onUnavailable":null}}`,
	`{"virtualService":{"name":"web"},"healthGate":{"provider":{"prometheus":{"queries":{"requests":"{{hash}}[{{window}}]"}}},"max5xxPercent":"0.5"}}`,
	`{"healthGate":{"provider":{"prometheus":{"address":"http://x","queries":null}},"interval":"9ns","minRequests":1e99,"maxLatencyFactor":"1e1"}}`,
	strings.Repeat(`{"virtualService":`, 40),
}

// FuzzFromRollout: any bytes give either a whole configuration or an error that names the Rollout and a field; the same
// bytes give the same answer; never a panic.
func FuzzFromRollout(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed), "web-canary", "web-stable", int32(100), "plugin-bin/argoproj-labs/istio")
	}
	f.Add([]byte(seeds[0]), "", "", int32(0), "")
	f.Add([]byte(seeds[0]), "Web", "web", int32(-1), "///")
	f.Fuzz(func(t *testing.T, block []byte, canary, stable string, maxWeight int32, path string) {
		ro := withBlock(block, services(canary, stable), maxTrafficWeight(maxWeight))
		o := Options{ExecutablePath: path, CrossNamespace: CrossNamespace{namespaces: []string{"edge"}}, Prometheus: operators}
		cfg, err := FromRollout(ro, o)
		_, again := FromRollout(ro, o)
		if (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
			t.Fatalf("two answers: %v and %v", err, again)
		}
		if err != nil {
			checkError(t, err)
			return
		}
		checkConfig(t, cfg, maxWeight)
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		t.Fatalf("an error without problems: %v", err)
	}
	if !strings.HasPrefix(err.Error(), "Rollout shop/web: ") {
		t.Fatalf("the error does not name the Rollout: %v", err)
	}
	for _, p := range e.Problems {
		if !strings.HasPrefix(p.Field, "spec.strategy.canary.") || p.Detail == "" {
			t.Fatalf("a problem without a field or a remedy: %v", p)
		}
	}
	if len(err.Error()) > 64<<10 || strings.ContainsAny(err.Error(), "\n\x00") {
		t.Fatalf("the report is too long or breaks the line: %d bytes", len(err.Error()))
	}
}

func checkConfig(t *testing.T, cfg Config, maxWeight int32) {
	t.Helper()
	if len(cfg.VirtualServices) == 0 {
		t.Fatal("no VirtualService")
	}
	for _, vs := range cfg.VirtualServices {
		if vs.Name == "" || vs.Namespace != "shop" && vs.Namespace != "edge" {
			t.Fatalf("VirtualService %q in namespace %q", vs.Name, vs.Namespace)
		}
	}
	if len(cfg.DestinationRules) == 0 {
		if cfg.CanaryService == "" || cfg.StableService == "" || cfg.CanaryService == cfg.StableService {
			t.Fatalf("host-level with Services %q and %q", cfg.CanaryService, cfg.StableService)
		}
	}
	for _, dr := range cfg.DestinationRules {
		if dr.Name == "" || dr.CanarySubsetName == "" || dr.StableSubsetName == "" || dr.CanarySubsetName == dr.StableSubsetName {
			t.Fatalf("subset-level with %+v", dr)
		}
	}
	g := cfg.Guard
	if g.MinRaise < 0 || g.MinRaise > maxWeight || g.Settle < 0 || g.Settle > time.Minute || g.MaxHold < time.Second || g.MaxHold > 24*time.Hour {
		t.Fatalf("guard %+v at maxTrafficWeight %d", g, maxWeight)
	}
	if g.Mode != Enforce && g.Mode != Observe && g.Mode != Off {
		t.Fatalf("mode %q", g.Mode)
	}
	checkVerify(t, cfg.Verify)
	checkHealthGate(t, cfg.HealthGate)
}

// The flag is read from the command line by an operator, but nothing stops a template from writing anything into it.
func FuzzParseCrossNamespace(f *testing.F) {
	for _, seed := range []string{"", "off", "*", "true", "a,b", ",", " a , *", "A", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, flag string) {
		x, err := ParseCrossNamespace(flag)
		if err != nil {
			if x.Allows("edge") {
				t.Fatal("a faulty flag allows a namespace")
			}
			return
		}
		again, err := ParseCrossNamespace(x.String())
		if err != nil || again.String() != x.String() {
			t.Fatalf("%q reads as %q, and that as %q (%v)", flag, x, again, err)
		}
	})
}

func TestSeedsIncludeValidBlocks(t *testing.T) {
	valid := 0
	for _, seed := range seeds {
		ro := withBlock([]byte(seed))
		if _, err := FromRollout(ro, Options{CrossNamespace: CrossNamespace{all: true}}); err == nil {
			valid++
		}
	}
	if valid != 5 {
		t.Errorf("%d valid seeds, want 5: the fuzzer would have nothing to start from", valid)
	}
}
