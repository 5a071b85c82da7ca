package lint_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// crowd is text of n Rollouts, with all that their routing needs, and how many
// findings that has.
type crowd struct {
	text  func(n int) string
	finds func(n int) int
}

// crowds are ways in which many Rollouts share one host, and one in which they do not.
var crowds = map[string]crowd{
	"routes of one VirtualService": {oneService, func(int) int { return 0 }},
	"a VirtualService each":        {serviceEach, func(int) int { return 0 }},
	"a host each":                  {hostEach, func(int) int { return 0 }},
	"for sidecars, and so in each other's way": {
		func(n int) string { return gateways.ReplaceAllString(serviceEach(n), "") }, func(n int) int { return n * min(n-1, 20) },
	},
	"Services that select the pods of all": {servicesOfAll, func(n int) int { return n * min(n-1, 20) }},
	"routes that are not there": {
		func(n int) string { return strings.ReplaceAll(oneService(n), "routes: [r", "routes: [x") }, func(n int) int { return n },
	},
}

var gateways = regexp.MustCompile("  gateways: .*\n")

// rollout splits by what block says.
func rollout(i int, block string) string {
	return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web-%[1]d, namespace: shop}
spec:
  selector: {matchLabels: {app: web, part: p%[1]d}}
  template: {metadata: {labels: {app: web, part: p%[1]d}}, spec: {}}
  strategy:
    canary:
      steps: [{setWeight: 20}]
      trafficRouting: {plugins: {argoproj-labs/istio: %[2]s}}
---
`, i, block)
}

func destinations(host string, i int) string {
	return fmt.Sprintf("[{destination: {host: %[1]s, subset: stable-%[2]d}, weight: 100}, {destination: {host: %[1]s, subset: canary-%[2]d}, weight: 0}]", host, i)
}

func subsetPair(i int) string {
	return fmt.Sprintf("  - {name: stable-%[1]d, labels: {part: p%[1]d}}\n  - {name: canary-%[1]d, labels: {part: p%[1]d}}\n", i)
}

func ruleOf(name, host string) string {
	return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: %s, namespace: shop}\nspec:\n  host: %s\n  subsets:\n", name, host)
}

func serviceOf(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: shop}\nspec: {selector: {app: web}}\n---\n", name)
}

// oneService is one host with one VirtualService of a route for each Rollout.
func oneService(n int) string {
	var b strings.Builder
	b.WriteString(serviceOf("web"))
	for i := range n {
		b.WriteString(rollout(i, fmt.Sprintf("{virtualService: {name: web, routes: [r%[1]d]}, destinationRule: {name: web, stableSubsetName: stable-%[1]d, canarySubsetName: canary-%[1]d}}", i)))
	}
	b.WriteString(ruleOf("web", "web"))
	for i := range n {
		b.WriteString(subsetPair(i))
	}
	b.WriteString("---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web, namespace: shop}\nspec:\n  hosts: [web]\n  http:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: r%[1]d, match: [{uri: {prefix: /p%[1]d}}], route: %[2]s}\n", i, destinations("web", i))
	}
	return b.String()
}

// serviceEach is one host with a VirtualService of a gateway and a DestinationRule for
// each Rollout.
func serviceEach(n int) string {
	var b strings.Builder
	b.WriteString(serviceOf("web"))
	for i := range n {
		b.WriteString(rollout(i, fmt.Sprintf("{virtualService: {name: web-%[1]d}, destinationRule: {name: web-%[1]d, stableSubsetName: stable-%[1]d, canarySubsetName: canary-%[1]d}}", i)))
		fmt.Fprintf(&b, "%s%s---\n", ruleOf(fmt.Sprintf("web-%d", i), "web"), subsetPair(i))
		fmt.Fprintf(&b, "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web-%[1]d, namespace: shop}\nspec:\n  hosts: [shop.example]\n  gateways: [public-%[1]d]\n  http:\n  - route: %[2]s\n---\n", i, destinations("web", i))
	}
	return b.String()
}

// hostEach is all of it for each Rollout, for the mesh.
func hostEach(n int) string {
	var b strings.Builder
	for i := range n {
		host := fmt.Sprintf("web-%d", i)
		b.WriteString(serviceOf(host))
		b.WriteString(rollout(i, fmt.Sprintf("{virtualService: {name: web-%[1]d}, destinationRule: {name: web-%[1]d, stableSubsetName: stable-%[1]d, canarySubsetName: canary-%[1]d}}", i)))
		fmt.Fprintf(&b, "%s%s---\n", ruleOf(host, host), subsetPair(i))
		fmt.Fprintf(&b, "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web-%[1]d, namespace: shop}\nspec:\n  hosts: [%[2]s]\n  http:\n  - route: %[3]s\n---\n", i, host, destinations(host, i))
	}
	return b.String()
}

// servicesOfAll are Rollouts that differ in their names only, as a script makes them:
// the Services of each select the pods of all.
func servicesOfAll(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(serviceOf(fmt.Sprintf("stable-%d", i)) + serviceOf(fmt.Sprintf("canary-%d", i)))
		one := rollout(i, fmt.Sprintf("{virtualService: {name: web-%d}}", i))
		one = strings.ReplaceAll(one, fmt.Sprintf(", part: p%d", i), "")
		b.WriteString(strings.Replace(one, "    canary:\n", fmt.Sprintf("    canary:\n      stableService: stable-%[1]d\n      canaryService: canary-%[1]d\n", i), 1))
		fmt.Fprintf(&b, "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web-%[1]d, namespace: shop}\nspec:\n  hosts: [shop.example]\n  gateways: [public-%[1]d]\n  http:\n  - route: [{destination: {host: stable-%[1]d}, weight: 100}, {destination: {host: canary-%[1]d}, weight: 0}]\n---\n", i)
	}
	return b.String()
}

// BenchmarkLint judges what has been read before. The time for one Rollout must not
// depend on how many there are.
func BenchmarkLint(b *testing.B) {
	for name, crowd := range crowds {
		for _, n := range []int{100, 1_000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				var in lint.Input
				in.Read("web.yaml", []byte(crowd.text(n)))
				b.ReportAllocs()
				for b.Loop() {
					report := lint.Run(in, lint.Options{})
					if report.Rollouts != n || len(report.Findings) != crowd.finds(n) {
						b.Fatalf("%d Rollouts, %d findings", report.Rollouts, len(report.Findings))
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/Rollout")
			})
		}
	}
}
