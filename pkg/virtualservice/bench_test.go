package virtualservice_test

import (
	"fmt"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// large is a VirtualService of 500 routes that are all ours.
func large(host func(side string) string) *virtualservice.VirtualService {
	var routes []any
	for i := range 500 {
		routes = append(routes, http(fmt.Sprintf("route-%d", i), to(host("stable"), weighs(90)), to(host("canary"), weighs(10))))
	}
	return parse(fields{"http": routes})
}

// BenchmarkWeightChange is what one change costs from the cached view to the bytes
// of the request; under 1 ms is wanted.
func BenchmarkWeightChange(b *testing.B) {
	hosts := map[string]func(string) string{
		"short hosts": func(side string) string { return side },
		"full hosts":  func(side string) string { return side + ".shop.svc.cluster.local" },
	}
	for name, host := range hosts {
		b.Run(name, func(b *testing.B) { changeWeights(b, large(host), 20, 1000) })
	}
}

// BenchmarkManagedRoutes is the dearest case: a header route and a mirror route for
// each of 500 routes, all of which are there already and have to be compared.
func BenchmarkManagedRoutes(b *testing.B) {
	var routes []any
	for i := range 500 {
		routes = append(routes, http(fmt.Sprintf("route-%d", i), ours(90, 10)...))
	}
	target := wants(10, header("hdr"), mirror("mir", 100))
	selection := virtualservice.Selection{AllMatching: true, Managed: managedNames}
	u := virtualService(fields{"http": routes})
	patch, _, err := setTarget(u, selection, byHosts(), target)
	if err != nil {
		b.Fatal(err)
	}
	u = apply(b, u, patch)
	vs := virtualservice.Parse(u, manager)
	b.ReportAllocs()
	for b.Loop() {
		routes, err := vs.Select(selection, byHosts())
		if err != nil {
			b.Fatal(err)
		}
		if patch, _, err := vs.Set(routes, byHosts(), target); err != nil || len(patch) != 0 {
			b.Fatalf("%d operations, error %v", len(patch), err)
		}
	}
}

// BenchmarkNoChange is what every reconcile costs while nothing changes.
func BenchmarkNoChange(b *testing.B) {
	changeWeights(b, large(func(side string) string { return side }), 10, 0)
}

func changeWeights(b *testing.B, vs *virtualservice.VirtualService, canary int32, operations int) {
	b.ReportAllocs()
	for b.Loop() {
		routes, err := vs.Select(virtualservice.Selection{AllMatching: true}, byHosts())
		if err != nil {
			b.Fatal(err)
		}
		patch, _, err := vs.Set(routes, byHosts(), virtualservice.Target{Canary: canary})
		if err != nil || len(patch) != operations {
			b.Fatalf("%d operations, error %v", len(patch), err)
		}
		if _, err := patch.Guarded(vs.ResourceVersion).Marshal(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	var routes []any
	for i := range 500 {
		routes = append(routes, http(fmt.Sprintf("route-%d", i), ours(90, 10)...))
	}
	u := virtualService(fields{"http": routes})
	b.ReportAllocs()
	for b.Loop() {
		if vs := virtualservice.Parse(u, manager); len(vs.HTTP) != 500 {
			b.Fatal("routes are missing")
		}
	}
}
