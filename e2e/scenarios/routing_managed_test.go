package scenarios

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// The two managed routes of these scenarios.
const (
	byHeader = "by-header"
	copies   = "copies"
)

// onePod is a step for a canary of one pod, whatever its weight.
func onePod() v1alpha1.CanaryStep {
	one := int32(1)
	return v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{Replicas: &one}}
}

// stop is a pause without an end.
func stop() v1alpha1.CanaryStep { return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}} }

// toCanary sends requests with the header x-canary to the canary; with value "" the
// step removes that again.
func toCanary(value string) v1alpha1.CanaryStep {
	step := &v1alpha1.SetHeaderRoute{Name: byHeader}
	if value != "" {
		step.Match = []v1alpha1.HeaderRoutingMatch{{HeaderName: "x-canary", HeaderValue: &v1alpha1.StringMatch{Exact: value}}}
	}
	return v1alpha1.CanaryStep{SetHeaderRoute: step}
}

// copyReads sends the canary copies of half of the GET requests.
func copyReads() v1alpha1.CanaryStep {
	half := int32(50)
	return v1alpha1.CanaryStep{SetMirrorRoute: &v1alpha1.SetMirrorRoute{
		Name: copies, Percentage: &half,
		Match: []v1alpha1.RouteMatch{{Method: &v1alpha1.StringMatch{Exact: "GET"}}},
	}}
}

// managedCanary has two routes in one VirtualService, which say a lot, and a
// second VirtualService with nothing but a tls route.
func managedCanary(steps ...v1alpha1.CanaryStep) routed {
	web := virtualServiceOf(name, block{"hosts": []any{name}, "http": []any{
		block{
			"name":  "health",
			"match": []any{block{"uri": block{"prefix": "/health"}}},
			"route": []any{block{"destination": block{"host": name}}},
		},
		block{
			"name":    "primary",
			"match":   []any{block{"uri": block{"prefix": "/shop"}, "headers": block{"x-tenant": block{"exact": "a"}}}},
			"rewrite": block{"uri": "/"}, "timeout": "5s", "retries": block{"attempts": 2, "retryOn": "5xx"},
			"headers":    block{"request": block{"set": block{"x-from": "mesh"}}},
			"corsPolicy": block{"allowMethods": []any{"GET"}},
			"route":      sides(Subset, 100),
		},
		block{
			"name":    "api",
			"match":   []any{block{"uri": block{"prefix": "/api"}}, block{"uri": block{"exact": "/ping"}}},
			"timeout": "2s",
			"route":   sides(Subset, 100),
		},
	}})
	sni := virtualServiceOf("cart-tls", block{"hosts": []any{"cart.example.com"}, "tls": []any{
		block{"match": []any{block{"port": 443, "sniHosts": []any{"cart.example.com"}}}, "route": sides(Subset, 100)},
	}})
	return routed{
		Workload: Workload{Level: Subset, Router: Plugin, Replicas: 5, Steps: steps},
		managed:  []string{byHeader, copies},
		config: block{
			"virtualServices": []any{block{"name": name, "routes": []any{"primary", "api"}}, block{"name": "cart-tls"}},
			"destinationRule": block{"name": name, "canarySubsetName": "canary", "stableSubsetName": "stable"},
		},
		objects: append(around(Subset), web, sni),
		subject: func(s *timeline.Subject) { s.VirtualServices = append(s.VirtualServices, "cart-tls") },
	}
}

func TestHeaderAndMirrorRoutesFollowTheSteps(t *testing.T) {
	t.Parallel()
	var web, sni snapshot
	plain := hasRoutes("health", "primary", "api")
	withHeader := hasRoutes("health", byHeader, "primary", byHeader, "api")
	r := managedCanary(
		onePod(), toCanary("yes"), stop(), // 0 to 2
		SetWeight(20), copyReads(), stop(), // 3 to 5
		toCanary(""), SetWeight(40), stop()) // 6 to 8
	recorded := playRouted(t, controller(t, lab.DefaultVersion), r,
		deployed, web.take(virtualServices, name), sni.take(virtualServices, "cart-tls"),
		newPods(0), deploy("upgrade", 2), wait(2*time.Second), keeps(t, virtualServices, name, plain),

		newPods(-1), pausedAt(2), becomes(virtualServices, name, withHeader),
		keeps(t, virtualServices, name, derivedHeader), keeps(t, virtualServices, name, weighs("primary", 100, 0)),

		mark("pod lost"), newPods(0), losePods, becomes(virtualServices, name, plain),
		newPods(-1), becomes(virtualServices, name, withHeader), keeps(t, virtualServices, name, derivedHeader),

		mark("removed by hand"), update(virtualServices, name, withoutFirst(byHeader)), becomes(virtualServices, name, withHeader),

		goOn, pausedAt(5),
		becomes(virtualServices, name, hasRoutes("health", byHeader, copies, "primary", byHeader, copies, "api")),
		keeps(t, virtualServices, name, derivedMirror), keeps(t, virtualServices, name, weighs(copies, 80, 20)),
		keeps(t, virtualServices, name, weighs(byHeader, 100)), keeps(t, virtualServices, "cart-tls", tlsWeighs(80, 20)),

		goOn, pausedAt(8), becomes(virtualServices, name, hasRoutes("health", copies, "primary", copies, "api")),
		keeps(t, virtualServices, name, weighs(copies, 60, 40)), keeps(t, virtualServices, name, weighs("api", 60, 40)),

		goOn, promotedAfter("upgrade"),
		becomes(virtualServices, name, web.same), becomes(virtualServices, "cart-tls", sni.same))
	hold(t, recorded, withFailures(limits("upgrade", "Healthy", patience)))
	mendedInTime(t, recorded, "removed by hand", timeline.KindVirtualService, name)
}

func TestManagedRoutesGoWithTheirRevision(t *testing.T) {
	t.Parallel()
	var web snapshot
	managed := hasRoutes("health", byHeader, copies, "primary", byHeader, copies, "api")
	r := managedCanary(onePod(), toCanary("yes"), copyReads(), SetWeight(20), stop())
	recorded := playRouted(t, controller(t, lab.DefaultVersion), r,
		deployed, web.take(virtualServices, name),
		deploy("upgrade", 2), pausedAt(4), becomes(virtualServices, name, managed),

		deploy("superseded", 3), left(4), pausedAt(4), becomes(virtualServices, name, managed),

		func(ctx context.Context, s *Scene) error { return s.Abort(ctx, "abort") },
		becomes(virtualServices, name, web.same),

		func(ctx context.Context, s *Scene) error { return s.Retry(ctx, "retry") },
		pausedAt(4), becomes(virtualServices, name, managed),
		func(ctx context.Context, s *Scene) error { return s.PromoteFull(ctx, "promote") },
		promotedAfter("promote"), becomes(virtualServices, name, web.same))
	hold(t, recorded, limits("promote", "Healthy", patience))
	labelsMoveWithoutManagedRoutes(t, recorded)
}

// labelsMoveWithoutManagedRoutes: a managed route sends everything that matches it
// to the canary, so it has to be gone when the canary becomes another revision.
func labelsMoveWithoutManagedRoutes(t *testing.T, recorded timeline.Timeline) {
	t.Helper()
	managed, canary, moves := false, "", 0
	for _, e := range recorded.Entries {
		switch fact := e.Fact.(type) {
		case timeline.VirtualService:
			if e.Name == name {
				managed = len(routeOf(e.Object, byHeader))+len(routeOf(e.Object, copies)) > 0
			}
		case timeline.DestinationRule:
			if fact.Hashes["canary"] == canary {
				continue
			}
			canary, moves = fact.Hashes["canary"], moves+1
			if managed {
				t.Errorf("at %s the canary became %s while managed routes sent requests there", e.At, canary)
			}
		}
	}
	if moves < 3 { // the first deployment, the upgrade, and what supersedes it
		t.Errorf("the canary became another revision %d times, want at least 3", moves)
	}
}

func TestAHeaderRouteAsTheFirstStepIsThereDuringThePause(t *testing.T) {
	t.Parallel()
	w := Workload{Level: Host, Router: Plugin, Replicas: 4, Steps: []v1alpha1.CanaryStep{toCanary("yes"), onePod(), stop()}}
	withHeader := hasRoutes("health", byHeader, "primary")
	recorded := playRouted(t, controller(t, lab.DefaultVersion),
		routed{Workload: w, managed: []string{byHeader}, objects: append(around(Host), w.virtualService())},
		deployed, deploy("upgrade", 2), pausedAt(2), becomes(virtualServices, name, withHeader),
		mark("there"), wait(5*time.Second), keeps(t, virtualServices, name, withHeader),
		keeps(t, virtualServices, name, derivedHeader), keeps(t, virtualServices, name, weighs("primary", 100, 0)),
		mark("restarted"), restart, becomes(virtualServices, name, withHeader), keeps(t, virtualServices, name, derivedHeader))
	for _, s := range between(t, recorded, "there", "restarted") {
		if fact, ok := s.Entry.Fact.(timeline.VirtualService); ok {
			t.Errorf("at %s the VirtualService was written during the pause: %v", s.At, fact)
		}
	}
}

// restart makes the controller restart all pods, and waits until it has.
func restart(ctx context.Context, s *Scene) error {
	now := metav1.Now().UTC().Format(time.RFC3339)
	if err := s.Merge(ctx, rolloutsResource, name, fmt.Sprintf(`{"spec":{"restartAt":%q}}`, now)); err != nil {
		return err
	}
	return becomes(rolloutsResource, name, func(ro *unstructured.Unstructured) string {
		at, _, _ := unstructured.NestedString(ro.Object, "status", "restartedAt")
		return cmp.Diff(now, at)
	})(ctx, s)
}

// losePods deletes the canary's pods.
func losePods(ctx context.Context, s *Scene) error {
	hash, err := s.Hash(ctx)
	if err != nil {
		return err
	}
	return s.lab.Client.CoreV1().Pods(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: HashSelector(hash)})
}

// withoutFirst removes the first http route of that name.
func withoutFirst(name string) func(block) {
	return func(spec block) {
		routes := spec["http"].([]any)
		for i, route := range routes {
			if route.(block)["name"] == name {
				spec["http"] = append(routes[:i:i], routes[i+1:]...)
				return
			}
		}
	}
}

// tlsWeighs says how the weights of the tls route differ from these.
func tlsWeighs(want ...int64) func(*unstructured.Unstructured) string {
	return func(vs *unstructured.Unstructured) string {
		return cmp.Diff(want, weightsOf(listOf(vs.Object["spec"], "tls")[0]))
	}
}

// derivedHeader says how the header routes differ from what the steps ask for: the
// source with its own matches and the header, and only the canary.
func derivedHeader(vs *unstructured.Unstructured) string {
	return derived(vs, byHeader, func(route block) {
		for _, match := range listOf(route, "match") {
			headers, _ := match["headers"].(block)
			headers = maps.Clone(headers)
			if headers == nil {
				headers = block{}
			}
			headers["x-canary"] = block{"exact": "yes"}
			match["headers"] = headers
		}
		canary := listOf(route, "route")[1]
		canary["weight"] = int64(100)
		route["route"] = []any{canary}
	})
}

// derivedMirror is to mirror routes what derivedHeader is to header routes.
func derivedMirror(vs *unstructured.Unstructured) string {
	return derived(vs, copies, func(route block) {
		for _, match := range listOf(route, "match") {
			match["method"] = block{"exact": "GET"}
		}
		route["mirror"] = listOf(route, "route")[1]["destination"]
		route["mirrorPercentage"] = block{"value": int64(50)}
	})
}

// derived compares each managed route of that name with what its source makes of
// it. The source is the next route that is not managed.
func derived(vs *unstructured.Unstructured, managed string, change func(block)) string {
	routes := httpOf(vs.DeepCopy())
	seen := 0
	for i, route := range routes {
		if route["name"] != managed {
			continue
		}
		seen++
		at := i + 1
		for routes[at]["name"] == byHeader || routes[at]["name"] == copies {
			at++
		}
		want := (&unstructured.Unstructured{Object: routes[at]}).DeepCopy().Object
		want["name"] = managed
		if len(listOf(want, "match")) == 0 {
			want["match"] = []any{block{}}
		}
		change(want)
		if diff := cmp.Diff(want, route); diff != "" {
			return fmt.Sprintf("%s before %v:\n%s", managed, routes[at]["name"], diff)
		}
	}
	if seen == 0 {
		return "there is no route " + managed
	}
	return ""
}
