package mesh

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/types/known/anypb"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestWhatIsServedIsWhatWasAskedFor(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	s.set(t, clusterType, canary, nil)
	c := start(t, plain(s))
	c.Follow("rollout", "shop", want)
	got := await(t, c, "rollout", "an answer for everything", func(s Served) bool { return s.Answered(want) })
	at := []Endpoint{{Address: "10.0.0.1", Port: 8080, Healthy: true}}
	expected := Served{
		Routes: map[Host][]Route{web: {{
			Name: "primary", VirtualService: types.NamespacedName{Namespace: "shop", Name: "web"},
			Clusters: []Weighted{{Cluster: canary, Weight: 10}, {Cluster: stable, Weight: 90}},
		}}},
		Clusters: map[string]Cluster{
			canary: {Asked: true, Listed: true, Endpoints: at},
			stable: {Asked: true, Exists: true, Listed: true, Endpoints: at},
		},
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	node := s.node()
	if want := "sidecar~127.0.0.1~rollouts-plugin-trafficrouter-istio.shop~shop.svc.cluster.local"; node.GetId() != want {
		t.Errorf("node %q, want %q", node.GetId(), want)
	}
	for field, want := range map[string]string{"GENERATOR": "grpc", "NAMESPACE": "shop", "CLUSTER_ID": "Kubernetes"} {
		if got := node.GetMetadata().GetFields()[field].GetStringValue(); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	if n := s.count(func(r *discovery.DiscoveryRequest) bool { return r.GetNode() != nil }); n != 1 {
		t.Errorf("the node was sent %d times on one stream", n)
	}
}

func TestWhatIsNotAnsweredYetIsToldApart(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	c := New(plain(s), hclog.NewNullLogger())
	if _, err := c.Served("rollout"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("nobody follows, and the error is %v", err)
	}
	c.Follow("rollout", "shop", want)
	served, err := c.Served("rollout")
	if err != nil || len(served.Routes)+len(served.Clusters) > 0 || served.Answered(want) {
		t.Errorf("before anything was asked: %+v, %v", served, err)
	}
	run(t, c)
	// The real one answers for every cluster, and for routes that it knows.
	served = await(t, c, "rollout", "the answer about clusters", func(s Served) bool { return s.Clusters[canary].Asked })
	if _, answered := served.Routes[web]; answered || served.Clusters[canary].Listed || served.Answered(want) {
		t.Errorf("served %+v", served)
	}
	s.setAll(t)
	await(t, c, "rollout", "the rest", func(s Served) bool { return s.Answered(want) })
}

func TestAChangeIsToldToThoseWhomItConcerns(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	other := Host{Name: "cart.shop.svc.cluster.local", Port: 80}
	s.set(t, routeType, other.routeName(), packed(t, configuration(other)))
	news := &told{}
	options := plain(s)
	options.Changed = news.add
	c := start(t, options)
	c.Follow("web", "shop", want)
	c.Follow("cart", "shop", Want{Routes: []Host{other}})
	await(t, c, "web", "all of web", func(s Served) bool { return s.Answered(want) })
	await(t, c, "cart", "all of cart", func(s Served) bool { return s.Answered(Want{Routes: []Host{other}}) })
	if s.connected() != 1 {
		t.Errorf("two Rollouts of a namespace have %d streams", s.connected())
	}
	web, cart := news.count("web"), news.count("cart")
	s.setWeb(t, 25)
	await(t, c, "web", "the weight", func(s Served) bool { return canaryWeight(s) == 25 })
	eventually(t, "the news", func() bool { return news.count("web") > web })
	if now := news.count("cart"); now != cart {
		t.Errorf("cart was told %d times more of what is not its own", now-cart)
	}
	// The same again is no news: what comes after it is told as one.
	web = news.count("web")
	s.setWeb(t, 25)
	s.setWeb(t, 50)
	await(t, c, "web", "the weight", func(s Served) bool { return canaryWeight(s) == 50 })
	eventually(t, "the news", func() bool { return news.count("web") > web })
	if now := news.count("web"); now != web+1 {
		t.Errorf("told %d times of one change", now-web)
	}
}

func TestOnlyWhatSomebodyWantsIsAskedFor(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	c := start(t, plain(s))
	see := func(what string, typeURL string, names ...string) {
		t.Helper()
		eventually(t, what, func() bool { return slices.Equal(s.asked(typeURL), names) })
	}
	c.Follow("a", "shop", want)
	see("the clusters of one", clusterType, canary, stable)
	see("their endpoints", endpointType, canary, stable)
	see("the routes", routeType, web.routeName())
	c.Follow("b", "shop", Want{Routes: []Host{web}, Clusters: []string{stable, "outbound|80||cart"}})
	see("the clusters of both, each once", clusterType, canary, stable, "outbound|80||cart")
	c.Forget("a")
	see("what is left", clusterType, stable, "outbound|80||cart")
	c.Follow("b", "shop", Want{Routes: []Host{web}})
	see("no cluster, and not all of them", clusterType)
	see("the route still", routeType, web.routeName())
	await(t, c, "b", "its answer", func(s Served) bool { return canaryWeight(s) == 10 })
	c.Follow("b", "edge", want)
	see("everything, for another namespace", clusterType, canary, stable)
	eventually(t, "the stream of the namespace before to end", func() bool { return s.connected() == 1 })
	c.Follow("b", "edge", Want{})
	eventually(t, "no stream for nothing", func() bool { return s.connected() == 0 })
	if served, err := c.Served("b"); err != nil || len(served.Routes) > 0 {
		t.Errorf("who wants nothing gets %+v, %v", served, err)
	}
}

func TestToFollowTheSameAgainAsksNothing(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	c := start(t, plain(s))
	c.Follow("rollout", "shop", want)
	await(t, c, "rollout", "everything", func(s Served) bool { return s.Answered(want) })
	all := func(*discovery.DiscoveryRequest) bool { return true }
	eventually(t, "a request and a confirmation of each type", func() bool { return s.count(all) == 6 })
	for range 100 {
		c.Follow("rollout", "shop", Want{Routes: []Host{web, web}, Clusters: []string{stable, canary}})
	}
	s.setWeb(t, 30)
	await(t, c, "rollout", "the next answer", func(s Served) bool { return canaryWeight(s) == 30 })
	eventually(t, "its confirmation", func() bool { return s.count(all) == 7 })
}

func TestWithoutFollowersThereIsNoStreamAndNoGoroutine(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	c := start(t, plain(s))
	if n := s.connected(); n != 0 {
		t.Errorf("%d streams before anybody follows", n)
	}
	c.Follow("a", "shop", want)
	c.Follow("b", "edge", want)
	await(t, c, "a", "the answer", func(s Served) bool { return s.Answered(want) })
	await(t, c, "b", "the answer", func(s Served) bool { return s.Answered(want) })
	if n := s.connected(); n != 2 {
		t.Errorf("%d streams for two namespaces", n)
	}
	c.Forget("a")
	c.Forget("b")
	c.Forget("nobody")
	eventually(t, "the streams to end", func() bool { return s.connected() == 0 })
	eventually(t, "the goroutines to end", func() bool {
		stacks := make([]byte, 1<<20)
		return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "mesh.(*view)")
	})
}

func TestAnIstiodThatGoesAwayAndComesBack(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	c := start(t, plain(s))
	c.Follow("rollout", "shop", want)
	await(t, c, "rollout", "the answer", func(s Served) bool { return s.Answered(want) })
	s.server.Stop()
	var err error
	eventually(t, "an error", func() bool {
		_, err = c.Served("rollout")
		return err != nil
	})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), s.addr) {
		t.Errorf("the error is %v", err)
	}
	s.setWeb(t, 40)
	s.serve(t, s.addr)
	await(t, c, "rollout", "everything again", func(s Served) bool { return s.Answered(want) && canaryWeight(s) == 40 })
}

func TestWhatWasToldBeforeAConnectionBrokeIsForgotten(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	c := start(t, plain(s))
	c.Follow("rollout", "shop", want)
	await(t, c, "rollout", "the answer", func(s Served) bool { return s.Answered(want) })
	s.with(func() { s.mute = true })
	s.server.Stop()
	s.serve(t, s.addr)
	withNode := func(r *discovery.DiscoveryRequest) bool { return r.GetNode() != nil }
	eventually(t, "a new stream that asks", func() bool { return s.count(withNode) == 2 })
	if served, err := c.Served("rollout"); len(served.Routes)+len(served.Clusters) > 0 {
		t.Errorf("the new stream has told nothing, and %+v is served, %v", served, err)
	}
	s.with(func() { s.mute = false })
	s.setAll(t)
	await(t, c, "rollout", "the answer of the new stream", func(s Served) bool { return s.Answered(want) })
}

func TestAnIstiodThatWasNeverThere(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	s.server.Stop()
	c := start(t, plain(s))
	c.Follow("rollout", "shop", want)
	eventually(t, "an error", func() bool {
		_, err := c.Served("rollout")
		return errors.Is(err, ErrUnavailable) && strings.Contains(err.Error(), "refused")
	})
	s.serve(t, s.addr)
	await(t, c, "rollout", "everything", func(s Served) bool { return s.Answered(want) })
}

func TestAnIstiodThatDoesNotAnswerIsUnavailableAfterAWhile(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.mute = true
	clock := clocktesting.NewFakePassiveClock(time.Now())
	c := newClient(plain(s), hclog.NewNullLogger(), clock)
	run(t, c)
	c.Follow("rollout", "shop", want)
	eventually(t, "the request", func() bool { return len(s.asked(routeType)) == 1 })
	if _, err := c.Served("rollout"); err != nil {
		t.Errorf("at once: %v", err)
	}
	clock.SetTime(clock.Now().Add(6 * time.Second))
	if _, err := c.Served("rollout"); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no answer for 6s") {
		t.Errorf("after 6 s: %v", err)
	}
	// To want something else begins anew.
	c.Follow("rollout", "shop", Want{Routes: []Host{web}})
	if _, err := c.Served("rollout"); err != nil {
		t.Errorf("after another question: %v", err)
	}
	s.with(func() { s.mute = false })
	s.setAll(t)
	await(t, c, "rollout", "the answer", func(s Served) bool { return canaryWeight(s) == 10 })
	clock.SetTime(clock.Now().Add(time.Hour))
	if _, err := c.Served("rollout"); err != nil {
		t.Errorf("what was answered long ago holds until something else is sent, but: %v", err)
	}
}

func TestAnAnswerThatCannotBeReadIsRefusedAndNothingOfItIsTaken(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	c := start(t, plain(s))
	c.Follow("rollout", "shop", want)
	await(t, c, "rollout", "everything", func(s Served) bool { return s.Answered(want) })
	s.set(t, routeType, web.routeName(), &anypb.Any{TypeUrl: routeType, Value: []byte("not a message")})
	eventually(t, "a refusal with its reason, the version before and the nonce of the answer", func() bool {
		return s.count(func(r *discovery.DiscoveryRequest) bool {
			return r.GetErrorDetail().GetMessage() != "" && r.GetVersionInfo() != "" && r.GetResponseNonce() != "" &&
				strings.TrimPrefix(r.GetVersionInfo(), "v") != strings.TrimPrefix(r.GetResponseNonce(), "n")
		}) == 1
	})
	eventually(t, "an error", func() bool {
		_, err := c.Served("rollout")
		return errors.Is(err, ErrUnavailable) && strings.Contains(err.Error(), "cannot be read")
	})
	s.setWeb(t, 30)
	await(t, c, "rollout", "the next answer", func(s Served) bool { return canaryWeight(s) == 30 })
}

func TestAnAnswerThatIsTooLargeIsAnErrorAndNothingMore(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	s.set(t, clusterType, canary, packed(t, &clusterv3.Cluster{Name: canary, AltStatName: strings.Repeat("x", maxMessage)}))
	c := start(t, plain(s))
	c.Follow("rollout", "shop", want)
	eventually(t, "an error that says so", func() bool {
		_, err := c.Served("rollout")
		return errors.Is(err, ErrUnavailable) && strings.Contains(err.Error(), "larger than max")
	})
	s.set(t, clusterType, canary, packed(t, &clusterv3.Cluster{Name: canary}))
	await(t, c, "rollout", "everything", func(s Served) bool { return s.Answered(want) })
}

func TestManyFollowAndForgetAtOnce(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	c := start(t, plain(s))
	done := make(chan struct{})
	for _, uid := range []types.UID{"a", "b", "c", "d"} {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range 200 {
				c.Follow(uid, []string{"shop", "edge"}[i%2], want)
				_, _ = c.Served(uid)
				if i%3 == 0 {
					c.Forget(uid)
				}
			}
			c.Follow(uid, "shop", want)
		}()
	}
	for range 4 {
		<-done
	}
	for _, uid := range []types.UID{"a", "b", "c", "d"} {
		await(t, c, uid, "everything", func(s Served) bool { return s.Answered(want) })
	}
	eventually(t, "one stream", func() bool { return s.connected() == 1 })
}

func TestRunEndsAllStreams(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	c := New(plain(s), hclog.NewNullLogger())
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		c.Run(ctx)
		close(over)
	}()
	c.Follow("rollout", "shop", want)
	await(t, c, "rollout", "everything", func(s Served) bool { return s.Answered(want) })
	cancel()
	<-over
	eventually(t, "the stream to end", func() bool { return s.connected() == 0 })
}

func TestPausesGrowAndAreSpread(t *testing.T) {
	if d := pauseAfter(0); d != 0 {
		t.Errorf("the first attempt after a loss waits %s", d)
	}
	for failed := 1; failed < 100; failed++ {
		most := min(firstPause<<min(failed-1, 20), mostPause)
		if d := pauseAfter(failed); d < most/2 || d > most {
			t.Errorf("after %d failures: %s, want %s to %s", failed, d, most/2, most)
		}
	}
}
