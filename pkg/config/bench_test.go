package config

import "testing"

// The whole vocabulary at once. FromRollout runs at each RPC, up to eight times a reconcile.
func BenchmarkFromRollout(b *testing.B) {
	ro := aRollout(b, `
virtualServices:
- {name: web, routes: [primary, secondary]}
- {name: web.edge, tlsRoutes: [{port: 443, sniHosts: [a.example, b.example]}], tcpRoutes: [{port: 3306}]}
destinationRule: {name: web, canarySubsetName: canary, stableSubsetName: stable, additionalSubsetNames: [legacy]}
guard: {mode: Enforce, minRaise: 5%, settle: 1s, maxHold: 10m}`)
	o := Options{ExecutablePath: "/home/argo-rollouts/plugin-bin/argoproj-labs/istio", CrossNamespace: CrossNamespace{all: true}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromRollout(ro, o); err != nil {
			b.Fatal(err)
		}
	}
}
